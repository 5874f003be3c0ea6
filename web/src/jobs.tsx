// The ML engineer's first screen: where is my job, why does it wait, what does it use.
import { useEffect, useState } from 'preact/hooks';
import { ago, full, plural, since, type Page, type Pool, type Why, type WorkloadRow } from './data';
import { address, askWhy, place, with_query } from './state';

const ROWS = 200;

export function JobsScreen({ page }: { page: Page }) {
  const query = place.value.query;
  const want = (w: WorkloadRow) =>
    (!query.get('queue') || w.queue === query.get('queue')) &&
    (!query.get('reason') || w.reason === query.get('reason')) &&
    (!query.get('ns') || w.namespace === query.get('ns')) &&
    (!query.get('state') || w.state === query.get('state'));
  const rows = page.workloads.filter(want);
  const filters = ['queue', 'reason', 'ns', 'state'].filter((key) => query.get(key));
  const spaces = [...new Set(page.workloads.map((w) => w.namespace))].sort();
  return (
    <>
      <h1>Where is my job?</h1>
      <p class="choices" role="group" aria-label="Namespaces">
        {spaces.slice(0, 30).map((ns) => (
          <a key={ns} href={with_query({ ns: query.get('ns') === ns ? '' : ns })} aria-current={query.get('ns') === ns ? 'true' : undefined}>
            {ns}
          </a>
        ))}
      </p>
      {filters.length > 0 && (
        <p>
          Only {filters.map((key) => `${key} ${query.get(key)}`).join(', ')}. <a href="#/jobs">Show all</a>
        </p>
      )}
      {rows.length === 0 ? (
        <p class="empty">
          {page.workloads.length === 0 ? 'No jobs yet. Submit one: berth run --gpus 1 -- CMD, or kubectl apply.' : 'No job is like that.'}
        </p>
      ) : (
        <div class="card scroll" tabIndex={0} role="region" aria-label="Jobs">
          <table>
            <thead>
              <tr>
                <th>Job</th>
                <th>State</th>
                <th class="num">GPUs</th>
                <th>Queue</th>
                <th class="num">Since</th>
                <th>Why</th>
              </tr>
            </thead>
            <tbody>
              {rows.slice(0, ROWS).map((w) => (
                <tr key={`${w.kind} ${full(w)}`}>
                  <th scope="row">
                    <a href={address(['jobs', w.kind, w.namespace, w.name])}>{full(w)}</a>
                  </th>
                  <td>
                    <span class={`state ${w.state}`}>{w.state}</span>
                  </td>
                  <td class="num">{w.gpus}</td>
                  <td>
                    {w.queue}
                    {w.position > 0 && <small> place {w.position}</small>}
                  </td>
                  <td class="num">{since(w.since, page.time)}</td>
                  <td>
                    {w.state === 'waiting' && (
                      <>
                        <b>{w.reason}</b> <small>{w.message}</small>
                      </>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {rows.length > ROWS && <p class="more">+{rows.length - ROWS} more: berth queue</p>}
      {page.workloadsMore > 0 && <p class="more">+{page.workloadsMore} that the program did not send: berth queue</p>}
    </>
  );
}

const meanOf = (busy: number[]) => {
  const known = busy.filter((b) => b >= 0);
  return known.length === 0 ? 'unknown' : `${Math.round(known.reduce((a, b) => a + b, 0) / known.length)} %`;
};

// The ranks of a job: each pod, its GPUs and how busy they are.
function Ranks({ page, workload }: { page: Page; workload: string }) {
  const rows: { pod: string; node: string; gpus: number[]; busy: number[] }[] = [];
  for (const node of page.nodes) {
    const of = new Map<number, { gpus: number[]; busy: number[] }>();
    node.holder.forEach((h, i) => {
      if (h < 0 || page.pods[h]?.workload !== workload) return;
      const entry = of.get(h) ?? { gpus: [], busy: [] };
      entry.gpus.push(i);
      entry.busy.push(node.busy[i] ?? -1);
      of.set(h, entry);
    });
    for (const [h, entry] of of) rows.push({ pod: page.pods[h]!.name, node: node.name, ...entry });
  }
  if (rows.length === 0) return null;
  rows.sort((a, b) => a.pod.localeCompare(b.pod, 'en', { numeric: true }));
  const known = rows.flatMap((r) => r.busy).filter((b) => b >= 0);
  const idle = known.filter((b) => b < 5).length;
  return (
    <section class="card" aria-labelledby="ranks">
      <h2 id="ranks">Where it runs</h2>
      {known.length > 0 && (
        <p>
          Busy: {Math.round(known.reduce((a, b) => a + b, 0) / known.length)} % on average, {Math.min(...known)} to {Math.max(...known)} %
          {page.telemetry?.oldest && <small>, at most {since(page.telemetry.oldest, page.time)} old</small>}
        </p>
      )}
      {known.length === 0 && <p class="empty">Nobody measures these GPUs: utilisation is unknown.</p>}
      {idle > 0 && (
        <p class="banner">
          {idle} of {plural(known.length, 'GPU')} {idle === 1 ? 'does' : 'do'} less than 5 % now.
        </p>
      )}
      <div class="scroll" tabIndex={0} role="region" aria-label="Ranks, table">
        <table>
          <thead>
            <tr>
              <th>Pod</th>
              <th>Node</th>
              <th>GPUs</th>
              <th>Busy</th>
              <th class="num">Mean</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, 256).map((r) => (
              <tr key={r.pod}>
                <th scope="row">{r.pod}</th>
                <td>
                  <a href={address(['fleet'], { node: r.node })}>{r.node}</a>
                </td>
                <td>{r.gpus.join(', ')}</td>
                <td>
                  <span class="meters">
                    {r.busy.map((b, i) => (
                      <span key={i} class="meter" role="img" aria-label={b < 0 ? 'unknown' : `${b} %`} title={b < 0 ? 'unknown' : `${b} %`}>
                        <span ref={(e) => e && (e.style.height = `${Math.max(0, b)}%`)} />
                      </span>
                    ))}
                  </span>
                </td>
                <td class="num">{meanOf(r.busy)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Line({ label, children }: { label: string; children: preact.ComponentChildren }) {
  return (
    <>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </>
  );
}

function poolLine(pool: Pool): string {
  const parts = [`${pool.name}: ${pool.nodes}${pool.maxNodes === null ? '' : ` of ${pool.maxNodes}`} nodes`];
  if (pool.inFlight > 0) parts.push(`${pool.inFlight} on the way`);
  if (pool.atLimit) parts.push(`at its limit of ${pool.atLimit}`);
  if (!pool.healthy) parts.push('not healthy');
  if (pool.lastFailure) parts.push(`last failure: ${pool.lastFailure}`);
  return parts.join(', ');
}

function Autoscaler({ why }: { why: Why }) {
  const scaler = why.autoscaler;
  if (!scaler) return null;
  return (
    <Line label="Autoscaler">
      {scaler.pools.slice(0, 4).map((pool) => (
        <div key={pool.name}>{poolLine(pool)}</div>
      ))}
      {scaler.pools.length + scaler.poolsMore > 4 && <div>+{scaler.pools.length + scaler.poolsMore - 4} more pools</div>}
      {scaler.event && (
        <div>
          {scaler.event.reason}: {scaler.event.message}
        </div>
      )}
      {scaler.request && (
        <div>
          request {scaler.request.name}: {scaler.request.state}
          {scaler.request.message && `, ${scaler.request.message}`}
        </div>
      )}
    </Line>
  );
}

function Quota({ why }: { why: Why }) {
  if (!why.quota) return null;
  return (
    <Line label="Quota">
      {why.quota.queue}
      {why.quota.cohort && ` in cohort ${why.quota.cohort}`}
      {why.quota.cells.map((c) => (
        <div key={`${c.flavor}/${c.resource}`}>
          {c.resource} ({c.flavor}): {c.used} used of {c.nominal}, {c.available} to be had
        </div>
      ))}
    </Line>
  );
}

export function WhyPanel({ why }: { why: Why }) {
  return (
    <section class="card" aria-labelledby="why">
      <h2 id="why">Why</h2>
      <p class={`verdict ${why.verdict}`}>{why.line}</p>
      <dl class="why">
        <Line label="Reason">
          {why.reason} <small>({why.stage})</small>
        </Line>
        {why.also.map((a) => (
          <Line key={a.reason} label="Also">
            {a.reason}: {a.message}
          </Line>
        ))}
        {why.need && (
          <Line label="Needs">
            {plural(why.need.pods, 'pod')} x {plural(why.need.gpusPerPod, 'GPU')}
            {why.need.model && ` of model ${why.need.model}`}
            {why.need.topology && `, in one ${why.need.topology}`}, priority {why.need.priority}
          </Line>
        )}
        <Quota why={why} />
        {why.have && (
          <Line label="There is">
            {plural(why.have.freeGpus, 'GPU')} free, at most {why.have.largestBlock} on one node; {why.have.eligibleNodes} of {plural(why.have.nodes, 'node')} may take it,{' '}
            {why.have.nodesWithRoom} with room
          </Line>
        )}
        {why.fragmentation && (
          <Line label="Fragmented">
            {why.fragmentation.freeGpus} free in all, the largest block is {why.fragmentation.largestBlock}, needed are {why.fragmentation.needed}
          </Line>
        )}
        {why.funnel.length > 0 && (
          <Line label="Nodes">
            {why.funnel.map((f) => (
              <div key={f.constraint}>
                {f.removed} out by {f.constraint}
                {f.only > 0 && ` (${f.only} by this alone)`}, {f.left} left
              </div>
            ))}
          </Line>
        )}
        {why.holders.length > 0 && (
          <Line label="Held by">
            {why.holders.slice(0, 8).map((h) => (
              <div key={`${h.node} ${h.pod}`}>
                {h.node}: {h.pod} ({h.gpus})
              </div>
            ))}
          </Line>
        )}
        {why.ahead && (
          <Line label="Ahead">{why.ahead.workloads === 0 ? 'nobody' : `${plural(why.ahead.workloads, 'workload')} with ${plural(why.ahead.gpus, 'GPU')}`}</Line>
        )}
        <Autoscaler why={why} />
        {why.health.length > 0 && <Line label="Out of service">{why.health.map((h) => `${h.node} GPU ${h.gpu}: ${h.reason}`).join('; ')}</Line>}
        {why.start && <Line label="Starts">{why.start.known ? (why.start.at ?? '') : `unknown: ${why.start.because}`}</Line>}
      </dl>
      {why.fixes.length > 0 && (
        <>
          <h3>What would help, each tried on a copy of the cluster</h3>
          <ol>
            {why.fixes.map((f) => (
              <li key={f.title}>
                {f.title}: <b>{f.result}</b>
              </li>
            ))}
          </ol>
        </>
      )}
      {(why.refused ?? []).length > 0 && (
        <ul>
          {(why.refused ?? []).map((r) => (
            <li key={r.title}>
              {r.title}: no, {r.because}
            </li>
          ))}
        </ul>
      )}
      {why.evidence?.replay && (
        <p>
          <code>{why.evidence.replay}</code>
        </p>
      )}
    </section>
  );
}

export function JobScreen({ page, kind, namespace, name }: { page: Page; kind: string; namespace: string; name: string }) {
  const [why, setWhy] = useState<Why | null>(null);
  const [failed, setFailed] = useState('');
  const row = page.workloads.find((w) => w.kind === kind && w.namespace === namespace && w.name === name);
  const version = `${kind} ${namespace}/${name} ${row?.state ?? ''} ${row?.reason ?? ''}`;
  useEffect(() => {
    const abort = new AbortController();
    askWhy(kind, namespace, name, abort.signal).then(
      (answer) => {
        setWhy(answer);
        setFailed('');
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        setWhy(null);
        setFailed(error instanceof Error ? error.message : String(error));
      },
    );
    return () => abort.abort();
  }, [version]);
  const workload = `${namespace}/${name}`;
  const interruptions = page.interruptions.filter((i) => i.workload === workload);
  return (
    <>
      <h1>
        {kind} {workload}
      </h1>
      {row ? (
        <p>
          <span class={`state ${row.state}`}>{row.state}</span> {plural(row.gpus, 'GPU')}, {row.running} of {plural(row.pods, 'pod')} running, since{' '}
          {since(row.since, page.time)}
          {row.queue && `, queue ${row.queue}`}
        </p>
      ) : (
        <p class="banner">No {kind} of that name is known; it may have ended.</p>
      )}
      {failed && (
        <p class="banner bad" role="alert">
          No explanation: {failed}
        </p>
      )}
      {!why && !failed && <p class="banner">Asking why.</p>}
      {why && <WhyPanel why={why} />}
      <Ranks page={page} workload={workload} />
      <section class="card" aria-labelledby="interruptions">
        <h2 id="interruptions">Interruptions</h2>
        {interruptions.length === 0 && <p class="empty">None that is known.</p>}
        <ul class="plain">
          {interruptions.map((i) => (
            <li key={i.at + i.reason}>
              {ago((Date.parse(page.time) - Date.parse(i.at)) / 1000)} ago: <b>{i.reason}</b> {i.message}
            </li>
          ))}
        </ul>
      </section>
    </>
  );
}
