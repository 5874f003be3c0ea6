// The platform engineer's first screen: can the fleet take work now?
import { useMemo } from 'preact/hooks';
import { Trend } from './charts';
import { ago, full, plural, since, stateOf, type Counts, type NodeRow, type Page } from './data';
import { BUSY_STEPS, FleetMap, type Colour } from './map';
import { address, place, with_query } from './state';

const STATES: (keyof Omit<Counts, 'total'>)[] = ['used', 'free', 'unhealthy', 'reserved', 'unknown'];

export function StateBar({ counts, label }: { counts: Counts; label: string }) {
  const words = STATES.filter((s) => counts[s] > 0).map((s) => `${s} ${counts[s]}`);
  return (
    <div class="bar" role="img" aria-label={`${label}: ${words.join(', ')} = ${counts.total}`}>
      {STATES.map((s) => counts[s] > 0 && <span key={s} class={`part ${s}`} ref={(e) => e && (e.style.flexGrow = String(counts[s]))} />)}
    </div>
  );
}

function Sum({ counts }: { counts: Counts }) {
  return (
    <p class="sum">
      {STATES.map((s) => (
        <span key={s}>
          <i class={`dot ${s}`} aria-hidden="true" /> {s} <b>{counts[s]}</b>
        </span>
      ))}
      <span>
        = <b>{counts.total}</b>
      </span>
    </p>
  );
}

function Models({ page }: { page: Page }) {
  return (
    <section class="card" aria-labelledby="models">
      <h2 id="models">GPUs by model</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="GPUs by model, table">
        <table>
          <thead>
            <tr>
              <th>Model</th>
              <th>State</th>
              <th class="num">Free</th>
              <th class="num">Of</th>
              <th>Fits now</th>
            </tr>
          </thead>
          <tbody>
            {page.models.map((m) => (
              <tr key={m.model}>
                <th scope="row">{m.model}</th>
                <td class="wide">
                  <StateBar counts={m} label={m.model} />
                </td>
                <td class="num">{m.free}</td>
                <td class="num">{m.total}</td>
                <td>{m.gangs.map((g) => `${g.pods} x ${g.gpus}`).join(' · ') || 'nothing'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Queues({ page }: { page: Page }) {
  if (page.queues.length === 0) {
    return (
      <section class="card">
        <h2>Queues</h2>
        <p class="empty">No ClusterQueue yet: pods start as they come.</p>
      </section>
    );
  }
  return (
    <section class="card" aria-labelledby="queues">
      <h2 id="queues">Queues</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Queues, table">
        <table>
          <thead>
            <tr>
              <th>Queue</th>
              <th class="num">Quota</th>
              <th class="num">Used</th>
              <th class="num">Waiting</th>
              <th class="num">Oldest</th>
              <th class="num" title="Half of those let in during the last day waited at most so long">
                Wait p50
              </th>
              <th class="num" title="19 of 20 waited at most so long">
                p95
              </th>
              <th>Next in line</th>
            </tr>
          </thead>
          <tbody>
            {page.queues.map((q) => (
              <tr key={q.name}>
                <th scope="row">
                  <a href={address(['jobs'], { queue: q.name })}>{q.name}</a>
                </th>
                <td class="num">{q.quota ?? 'unlimited'}</td>
                <td class="num">
                  {q.used}
                  {q.borrowed > 0 && <small> +{q.borrowed}</small>}
                </td>
                <td class="num">{q.waiting}</td>
                <td class="num">{q.oldest && since(q.oldest, page.time)}</td>
                <td class="num">{q.waits ? ago(q.waits.p50Seconds) : <small>nobody yet</small>}</td>
                <td class="num">
                  {q.waits && ago(q.waits.p95Seconds)}
                  {q.waits && <small> of {q.waits.count}</small>}
                </td>
                <td>{q.next && `${q.next}: ${q.nextReason}`}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Pending({ page }: { page: Page }) {
  const most = Math.max(1, ...page.pending.map((r) => r.gpus));
  return (
    <section class="card" aria-labelledby="pending">
      <h2 id="pending">Waiting, by reason</h2>
      {page.pending.length === 0 && <p class="empty">Nothing waits.</p>}
      <ul class="bars">
        {page.pending.map((r) => (
          <li key={r.reason}>
            <a href={address(['jobs'], { reason: r.reason })}>{r.reason}</a>
            <span class="track">
              <span class={r.config ? 'fill config' : 'fill'} ref={(e) => e && (e.style.width = `${Math.max(2, (100 * r.gpus) / most)}%`)} />
            </span>
            <span class="num">
              {r.workloads} · {plural(r.gpus, 'GPU')}
            </span>
            {r.config && <small>for its owner to mend: waiting does not help</small>}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Health({ page }: { page: Page }) {
  const off = page.nodes.filter((n) => !n.ready || n.cordoned);
  const events = page.healthEvents ?? [];
  return (
    <section class="card" aria-labelledby="health">
      <h2 id="health">Health</h2>
      {page.health.length === 0 && off.length === 0 && <p class="empty">Every GPU and node is in service.</p>}
      <ul class="plain">
        {page.health.slice(0, 20).map((h) => (
          <li key={`${h.node}/${h.gpu}`}>
            <a href={address(['fleet'], { node: h.node })}>
              {h.node} GPU {h.gpu}
            </a>{' '}
            {h.state}: {h.reason}
          </li>
        ))}
        {off.slice(0, 20).map((n) => (
          <li key={n.name}>
            <a href={address(['fleet'], { node: n.name })}>{n.name}</a> {n.ready ? 'is cordoned' : 'is not ready'}
          </li>
        ))}
      </ul>
      {page.health.length > 20 && <p class="more">+{page.health.length - 20} more GPUs</p>}
      <h3>Last 24 hours</h3>
      {events.length === 0 && <p class="empty">Nothing left service or came back.</p>}
      <ul class="plain">
        {events.slice(0, 8).map((e) => (
          <li key={`${e.at} ${e.node}/${e.gpu}`}>
            {since(e.at, page.time)} ago:{' '}
            <a href={address(['fleet'], { node: e.node })}>
              {e.node}
              {e.gpu >= 0 && ` GPU ${e.gpu}`}
            </a>{' '}
            {e.inService ? 'came back' : `left service${e.reason && `: ${e.reason}`}`}
          </li>
        ))}
      </ul>
      {events.length > 8 && <p class="more">+{events.length - 8} more</p>}
    </section>
  );
}

function Control({ page }: { page: Page }) {
  const c = page.control;
  return (
    <section class="card" aria-labelledby="control">
      <h2 id="control">Control plane</h2>
      <dl>
        <dt>Leads</dt>
        <dd>{c.leading ? 'yes' : 'no'}</dd>
        <dt>Last decision</dt>
        <dd>{c.lastDecisionMs === null ? 'unknown' : `${c.lastDecisionMs.toFixed(1)} ms`}</dd>
        <dt>Bound</dt>
        <dd>{c.bound}</dd>
        <dt>Evicted</dt>
        <dd>{c.evicted}</dd>
        <dt>Failed writes</dt>
        <dd>{c.failedWrites}</dd>
      </dl>
    </section>
  );
}

function NodePanel({ page, node }: { page: Page; node: NodeRow }) {
  return (
    <section class="card panel" aria-labelledby="node">
      <h2 id="node">{node.name}</h2>
      <p>
        {node.model} x {node.states.length}
        {node.rack && `, rack ${node.rack}`}
        {!node.ready && ', not ready'}
        {node.cordoned && ', cordoned'} <a href={with_query({ node: '' })}>close</a>
      </p>
      <table>
        <thead>
          <tr>
            <th class="num">GPU</th>
            <th>State</th>
            <th class="num">Busy</th>
            <th>Pod</th>
          </tr>
        </thead>
        <tbody>
          {[...node.states].map((letter, i) => {
            const pod = page.pods[node.holder[i] ?? -1];
            const busy = node.busy[i] ?? -1;
            return (
              <tr key={i}>
                <td class="num">{i}</td>
                <td>
                  <i class={`dot ${stateOf(letter)}`} aria-hidden="true" /> {stateOf(letter)}
                </td>
                <td class="num">{busy >= 0 ? `${busy} %` : pod ? 'unknown' : ''}</td>
                <td>
                  {pod && (
                    <>
                      <a href={jobOf(page, pod.workload)}>{pod.name}</a> <small>{since(pod.since, page.time)}</small>
                    </>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

export function jobOf(page: Page, workload: string): string {
  const row = page.workloads.find((w) => full(w) === workload);
  const [namespace = '', name = ''] = workload.split('/');
  return address(['jobs', row?.kind ?? 'Pod', namespace, name]);
}

// Who tells how busy GPUs are, and how old that is.
function Telemetry({ page }: { page: Page }) {
  const t = page.telemetry;
  if (!t || page.nodes.length === 0) return null;
  if (t.nodes === 0) {
    return <p class="empty">Nobody tells how busy GPUs are{t.silent > 0 && `: ${plural(t.silent, 'node')} did not answer`}.</p>;
  }
  return (
    <p class="sum">
      <small>
        Utilisation from {plural(t.nodes, 'node')}, at most {since(t.oldest, page.time)} old
        {t.silent > 0 && `; ${plural(t.silent, 'node')} did not answer`}
      </small>
    </p>
  );
}

const busyMean = (n: NodeRow) => {
  const known = n.busy.filter((b) => b >= 0);
  return known.length === 0 ? -1 : Math.round(known.reduce((a, b) => a + b, 0) / known.length);
};

const COLOURS: [Colour, string][] = [
  ['state', 'state'],
  ['busy', 'utilisation'],
  ['queue', 'queue'],
  ['age', 'age'],
];

function NodeTable({ page }: { page: Page }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Nodes">
      <table>
        <thead>
          <tr>
            <th>Node</th>
            <th>Rack</th>
            <th>Model</th>
            <th class="num">Used</th>
            <th class="num">Free</th>
            <th class="num">Of</th>
            <th class="num">Busy</th>
          </tr>
        </thead>
        <tbody>
          {page.nodes.slice(0, 500).map((n) => (
            <tr key={n.name}>
              <th scope="row">
                <a href={with_query({ node: n.name })}>{n.name}</a>
              </th>
              <td>{n.rack}</td>
              <td>{n.model}</td>
              <td class="num">{[...n.states].filter((s) => s === 'U').length}</td>
              <td class="num">{[...n.states].filter((s) => s === 'F').length}</td>
              <td class="num">{n.states.length}</td>
              <td class="num">{busyMean(n) < 0 ? 'unknown' : `${busyMean(n)} %`}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {page.nodes.length > 500 && <p class="more">+{page.nodes.length - 500} more nodes: berth gpus --tree</p>}
    </div>
  );
}

export function FleetScreen({ page }: { page: Page }) {
  const query = place.value.query;
  const colour = (COLOURS.find(([key]) => key === query.get('color'))?.[0] ?? 'state') as Colour;
  const chosen = query.get('node') ?? '';
  const node = useMemo(() => page.nodes.find((n) => n.name === chosen), [page, chosen]);
  const table = query.get('as') === 'table';
  const waiting = page.workloads.filter((w) => w.state === 'waiting');
  return (
    <div class="fleet">
      <h1 class="visually-hidden">Fleet</h1>
      <section class="card main" aria-labelledby="map">
        <div class="row">
          <h2 id="map">Fleet map</h2>
          <span class="choices" role="group" aria-label="Colour by">
            {COLOURS.map(([key, label]) => (
              <a key={key} href={with_query({ color: key === 'state' ? '' : key })} aria-current={key === colour ? 'true' : undefined}>
                {label}
              </a>
            ))}
            <a href={with_query({ as: table ? '' : 'table' })} aria-current={table ? 'true' : undefined}>
              table
            </a>
          </span>
        </div>
        <Sum counts={page.gpus} />
        {colour === 'busy' && (
          <p class="sum">
            {BUSY_STEPS.map(([, colour, label], i) => (
              <span key={label}>
                <i class="dot" aria-hidden="true" ref={(e) => e && (e.style.background = colour)} /> {i === 0 ? label : `to ${label}`}
              </span>
            ))}
            <span>
              <i class="dot unknown" aria-hidden="true" /> unknown
            </span>
          </p>
        )}
        <Telemetry page={page} />
        {page.nodes.length === 0 && <p class="empty">No node has a GPU. Start an agent on one: berth agent --help</p>}
        {page.nodes.length > 0 && (table ? <NodeTable page={page} /> : <FleetMap page={page} colour={colour} chosen={chosen} />)}
      </section>
      <aside>
        {node && <NodePanel page={page} node={node} />}
        {chosen && !node && <p class="banner">No node is named {chosen}.</p>}
        <section class="card" aria-labelledby="waiting">
          <h2 id="waiting">Waiting</h2>
          {waiting.length === 0 && <p class="empty">Nothing waits.</p>}
          <ul class="plain">
            {waiting.slice(0, 12).map((w) => (
              <li key={full(w)}>
                <a href={address(['jobs', w.kind, w.namespace, w.name])}>{full(w)}</a> {plural(w.gpus, 'GPU')}, {since(w.since, page.time)}
                <br />
                <small>
                  <b>{w.reason}</b> {w.message}
                </small>
              </li>
            ))}
          </ul>
          {waiting.length > 12 && (
            <p class="more">
              <a href="#/jobs">+{waiting.length - 12 + page.workloadsMore} more</a>
            </p>
          )}
        </section>
        <Pending page={page} />
        <Health page={page} />
      </aside>
      <Queues page={page} />
      <Trend page={page} />
      <Models page={page} />
      <Control page={page} />
    </div>
  );
}
