// The frame: the answer at the top, how old it is, search, and the screen that the address names.
import { useEffect, useRef } from 'preact/hooks';
import { signal } from '@preact/signals';
import { ago, full, plural, type Page } from './data';
import { FleetScreen } from './fleet';
import { JobScreen, JobsScreen } from './jobs';
import { address, ageSeconds, go, needsToken, page, place, signIn, stale, trouble } from './state';
import { UsageScreen } from './usage';

const SCREENS: [string, string][] = [
  ['fleet', 'Fleet'],
  ['jobs', 'Jobs'],
  ['usage', 'Usage'],
];

// "Can the fleet take work now?" in one line.
export function answer(p: Page): string {
  const { total, free } = p.gpus;
  if (total === 0) return 'No GPUs: no node reports any.';
  if (p.trouble) return `Nothing is decided: ${p.trouble}`;
  if (free === 0) return `No: all ${plural(total, 'GPU')} are taken or out of service.`;
  const best = p.models
    .flatMap((m) => m.gangs.map((g) => ({ ...g, model: m.model })))
    .sort((a, b) => b.gpus - a.gpus || b.pods - a.pods)[0]; // the widest pods come first
  const fits = best ? `; the largest that fits now: ${best.pods} x ${best.gpus} ${best.model}` : '';
  return `Yes: ${free} of ${plural(total, 'GPU')} free${fits}.`;
}

function Freshness() {
  const p = page.value;
  if (!p) return null;
  if (trouble.value || stale.value) {
    return (
      <p class="banner bad" role="alert">
        These facts are {ago(ageSeconds.value)} old{trouble.value ? `: ${trouble.value}` : ''}.
      </p>
    );
  }
  return null;
}

const found = signal<{ label: string; target: string }[]>([]);
function search(text: string): void {
  const p = page.value;
  const words = text.trim().toLowerCase();
  if (!p || !words) {
    found.value = [];
    return;
  }
  const hits: { label: string; target: string }[] = [];
  for (const w of p.workloads) {
    if (hits.length >= 12) break;
    if (full(w).toLowerCase().includes(words)) {
      hits.push({ label: `${w.kind} ${full(w)}`, target: address(['jobs', w.kind, w.namespace, w.name]) });
    }
  }
  for (const n of p.nodes) {
    if (hits.length >= 12) break;
    if (n.name.toLowerCase().includes(words)) hits.push({ label: `Node ${n.name}`, target: address(['fleet'], { node: n.name }) });
  }
  for (const q of p.queues) {
    if (hits.length >= 12) break;
    if (q.name.toLowerCase().includes(words)) hits.push({ label: `Queue ${q.name}`, target: address(['jobs'], { queue: q.name }) });
  }
  found.value = hits;
}

function Search() {
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
      if (event.key === '/' && !typing) {
        event.preventDefault();
        box.current?.focus();
      }
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, []);
  const close = () => {
    found.value = [];
    if (box.current) box.current.value = '';
    box.current?.blur();
  };
  return (
    <div class="search" role="search">
      <input
        ref={box}
        type="search"
        placeholder="Search  ( / )"
        aria-label="Search jobs, nodes and queues"
        onInput={(event) => search(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') close();
          const first = found.value[0];
          if (event.key === 'Enter' && first) {
            go(first.target);
            close();
          }
        }}
      />
      {found.value.length > 0 && (
        <ul class="hits">
          {found.value.map((hit) => (
            <li key={hit.target}>
              <a href={hit.target} onClick={close}>
                {hit.label}
              </a>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function SignIn() {
  const box = useRef<HTMLInputElement>(null);
  return (
    <form
      class="card narrow"
      onSubmit={(event) => {
        event.preventDefault();
        signIn(box.current?.value ?? '');
      }}
    >
      <h1>Sign in</h1>
      <p>
        The page shows what the token's owner may see. One for an hour: <code>kubectl create token NAME</code>
      </p>
      <label>
        Token <input ref={box} type="password" autocomplete="off" required />
      </label>
      <button type="submit">Sign in</button>
    </form>
  );
}

function Screen() {
  if (needsToken.value) return <SignIn />;
  const p = page.value;
  if (!p) {
    return (
      <p class={trouble.value ? 'banner bad' : 'banner'} role="status">
        {trouble.value ? `No facts yet: ${trouble.value}. Trying again.` : 'Asking the program.'}
      </p>
    );
  }
  const [screen = 'fleet', kind, namespace, name] = place.value.path;
  if (screen === 'jobs' && kind && namespace && name) return <JobScreen page={p} kind={kind} namespace={namespace} name={name} />;
  if (screen === 'jobs') return <JobsScreen page={p} />;
  if (screen === 'usage') return <UsageScreen page={p} />;
  return <FleetScreen page={p} />;
}

export function App() {
  const p = page.value;
  const current = place.value.path[0] ?? 'fleet';
  return (
    <>
      <header>
        <a class="brand" href="#/fleet">
          berth
        </a>
        <nav aria-label="Screens">
          {SCREENS.map(([key, label]) => (
            <a key={key} href={address([key])} aria-current={current === key ? 'page' : undefined}>
              {label}
            </a>
          ))}
        </nav>
        <p class="answer">{p ? answer(p) : ''}</p>
        <Search />
      </header>
      <main>
        <Freshness />
        <Screen />
      </main>
      <footer>
        {p && (
          <span>
            {p.cluster} · revision {p.revision} · {p.time.slice(0, 19)}Z · the same on the command line: <code>berth status</code>
          </span>
        )}
      </footer>
    </>
  );
}
