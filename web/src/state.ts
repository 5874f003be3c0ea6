// The page's state: the last answer, how old it is, and the address, which says what is shown.
import { computed, signal } from '@preact/signals';
import type { Page, Why } from './data';

export const page = signal<Page | null>(null);
export const trouble = signal(''); // why the last request failed, or empty
export const arrived = signal(0); // performance.now() of the last answer
export const clock = signal(performance.now()); // ticks once a second

export const ageSeconds = computed(() => (page.value ? (clock.value - arrived.value) / 1000 : 0));
export const STALE_SECONDS = 15;
export const stale = computed(() => page.value !== null && ageSeconds.value > STALE_SECONDS);

// ---- the address: #/fleet?color=busy&node=n1 ----
export interface Place {
  path: string[];
  query: URLSearchParams;
}
function read(): Place {
  const raw = location.hash.replace(/^#\/?/, '');
  const [path = '', query = ''] = raw.split('?', 2);
  return { path: path.split('/').filter(Boolean).map(decodeURIComponentSafe), query: new URLSearchParams(query) };
}
function decodeURIComponentSafe(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
export const place = signal<Place>(read());
addEventListener('hashchange', () => (place.value = read()));

export function address(path: string[], query: Record<string, string> = {}): string {
  const words = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== ''));
  const tail = words.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${tail ? `?${tail}` : ''}`;
}
export function with_query(changes: Record<string, string>): string {
  const query = Object.fromEntries(place.value.query);
  return address(place.value.path, { ...query, ...changes });
}
export function go(target: string): void {
  location.hash = target;
}

// ---- talking to the program ----
const token = () => sessionStorage.getItem('berth-token') ?? '';
export const needsToken = signal(false);

async function get<T>(path: string, signal_: AbortSignal): Promise<T> {
  const headers: Record<string, string> = { Accept: 'application/json' };
  if (token()) headers.Authorization = `Bearer ${token()}`;
  const answer = await fetch(path, { headers, signal: signal_, cache: 'no-store' });
  if (answer.status === 401 || answer.status === 403) {
    needsToken.value = true;
    throw new Error('the program does not let this page in: a token is needed');
  }
  if (!answer.ok) {
    throw new Error((await answer.text()).trim().slice(0, 300) || `the program answered ${answer.status}`);
  }
  return (await answer.json()) as T;
}

export function signIn(text: string): void {
  sessionStorage.setItem('berth-token', text.trim());
  needsToken.value = false;
  void poll();
}

let revision = 0;
let running = false;
// The program answers when something changed, or after some seconds with the same; a broken one is
// asked again with a growing pause.
export async function poll(): Promise<void> {
  if (running) return;
  running = true;
  for (let failures = 0; !needsToken.value; ) {
    try {
      const answer = await get<Page>(`api/page?after=${revision}`, AbortSignal.timeout(40_000));
      if (!Array.isArray(answer.nodes) || typeof answer.gpus?.total !== 'number') {
        throw new Error('the program answered something else than a page');
      }
      revision = answer.revision;
      page.value = answer;
      arrived.value = clock.value = performance.now();
      trouble.value = '';
      failures = 0;
      await pause(document.hidden ? 5_000 : 500);
    } catch (error) {
      trouble.value = error instanceof Error ? words(error) : String(error);
      revision = 0;
      await pause(Math.min(10_000, 500 * 2 ** failures++));
    }
  }
  running = false;
}
function words(error: Error): string {
  if (error.name === 'TimeoutError') return 'the program does not answer';
  if (error instanceof TypeError) return 'the program cannot be reached';
  if (error instanceof SyntaxError) return 'the program answered something that is not JSON';
  return error.message;
}
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

export function askWhy(kind: string, namespace: string, name: string, abort: AbortSignal): Promise<Why> {
  const query = new URLSearchParams({ kind, namespace, name });
  return get<Why>(`api/why?${query}`, abort);
}

export function start(): void {
  setInterval(() => (clock.value = performance.now()), 1000);
  void poll();
}
