// GPU-hours held, busy and idle per team, since the program began to count.
import type { Page } from './data';

const hours = (h: number) => (h < 10 ? h.toFixed(2) : h < 1000 ? h.toFixed(1) : Math.round(h).toLocaleString('en'));

export function UsageScreen({ page }: { page: Page }) {
  const { usage } = page;
  const teams = [...usage.teams].sort((a, b) => b.heldHours - a.heldHours || (a.team < b.team ? -1 : 1));
  const total = usage.total;
  return (
    <>
      <h1>Usage</h1>
      <p>
        Since {usage.since ? `${usage.since.slice(0, 19)}Z` : 'its start'}, when this program began to count. Held = busy + idle + unknown; all GPU-hours = held + free + out of service.
      </p>
      {teams.length === 0 ? (
        <p class="empty">No GPU has been held yet.</p>
      ) : (
        <div class="card scroll" tabIndex={0} role="region" aria-label="GPU-hours per team">
          <table>
            <thead>
              <tr>
                <th>Team (namespace)</th>
                <th class="num">Held</th>
                <th class="num">Busy</th>
                <th class="num">Idle</th>
                <th class="num">Unknown</th>
                <th>
                  Of what it held: <i class="dot used" aria-hidden="true" /> busy <i class="dot idle" aria-hidden="true" /> idle{' '}
                  <i class="dot unknown" aria-hidden="true" /> unknown
                </th>
              </tr>
            </thead>
            <tbody>
              {teams.map((t) => (
                <tr key={t.team}>
                  <th scope="row">{t.team}</th>
                  <td class="num">{hours(t.heldHours)}</td>
                  <td class="num">{hours(t.busyHours)}</td>
                  <td class="num">{hours(t.idleHours)}</td>
                  <td class="num">{hours(t.unknownHours)}</td>
                  <td class="wide">
                    <div class="bar" role="img" aria-label={`busy ${hours(t.busyHours)}, idle ${hours(t.idleHours)}, unknown ${hours(t.unknownHours)}`}>
                      {(
                        [
                          ['used', t.busyHours],
                          ['idle', t.idleHours],
                          ['unknown', t.unknownHours],
                        ] as const
                      ).map(([key, value]) => value > 0 && <span key={key} class={`part ${key}`} ref={(e) => e && (e.style.flexGrow = String(value))} />)}
                    </div>
                  </td>
                </tr>
              ))}
            </tbody>
            <tfoot>
              <tr>
                <th scope="row">All teams</th>
                <td class="num">{hours(total.heldHours)}</td>
                <td class="num">{hours(total.busyHours)}</td>
                <td class="num">{hours(total.idleHours)}</td>
                <td class="num">{hours(total.unknownHours)}</td>
                <td>
                  free {hours(total.freeHours)}, out of service {hours(total.unhealthyHours)}
                </td>
              </tr>
            </tfoot>
          </table>
        </div>
      )}
    </>
  );
}
