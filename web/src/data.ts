// What the program tells the page (docs/page.md). One answer holds everything the screens show, so
// that every number on them is of one moment.

export type GpuState = 'used' | 'free' | 'unhealthy' | 'reserved' | 'unknown';

export interface Counts {
  total: number;
  used: number;
  free: number;
  unhealthy: number;
  reserved: number;
  unknown: number;
}

export interface ModelRow extends Counts {
  model: string;
  largestBlock: number; // free GPUs on one node
  gangs: { gpus: number; pods: number }[]; // so many pods of so many GPUs fit now
}

export interface QueueRow {
  name: string;
  cohort: string;
  quota: number | null; // null: unlimited
  used: number;
  borrowed: number;
  waiting: number;
  oldest: string | null; // since when
  next: string;
  nextReason: string;
  waits: { count: number; p50Seconds: number; p95Seconds: number } | null; // of the last day
}

export interface WorkloadRow {
  kind: string; // Job, Pod, PodGroup, Workload: as `berth why` takes it
  namespace: string;
  name: string;
  queue: string;
  state: 'waiting' | 'running' | 'finished';
  pods: number;
  running: number;
  gpus: number;
  since: string | null;
  reason: string;
  message: string;
  never: boolean;
  position: number;
}

// Of a node's GPUs, by index: states is a letter each (U, F, X, R, ?), busy a percentage or -1,
// holder an index into Page.pods or -1, clique a number for GPUs joined by NVLink.
export interface NodeRow {
  name: string;
  rack: string;
  model: string;
  ready: boolean;
  cordoned: boolean;
  states: string;
  busy: number[];
  holder: number[];
  clique: number[];
}

export interface PodRow {
  name: string; // "ns/name"
  workload: string; // "ns/name"
  queue: string;
  gpus: number;
  since: string | null;
}

export interface HealthRow {
  node: string;
  gpu: number;
  state: string;
  reason: string;
}

export interface HealthEvent {
  at: string | null;
  node: string;
  gpu: number; // -1: the node itself
  inService: boolean;
  reason: string;
}

export interface TrendStep {
  at: string | null;
  used: number; // GPUs, the mean of five minutes
  free: number;
  out: number;
  busy: number; // per cent of what is held; -1: nobody measured
}

export interface TeamRow {
  team: string;
  heldHours: number;
  busyHours: number;
  idleHours: number;
  unknownHours: number; // held, and nobody measured
}

export interface Interruption {
  workload: string; // "ns/name"
  at: string;
  reason: string;
  message: string;
}

export interface Page {
  version: string;
  revision: number;
  cluster: string;
  time: string;
  trouble: string; // why nothing is decided, or empty
  gpus: Counts;
  models: ModelRow[];
  queues: QueueRow[];
  pending: { reason: string; workloads: number; gpus: number; config: boolean }[];
  workloads: WorkloadRow[];
  workloadsMore: number;
  nodes: NodeRow[];
  pods: PodRow[];
  health: HealthRow[];
  healthEvents: HealthEvent[]; // of the last day, the latest first
  trend: TrendStep[];
  telemetry: { nodes: number; silent: number; oldest: string | null }; // who tells how busy GPUs are
  control: { leading: boolean; cycles: number; bound: number; evicted: number; failedWrites: number; lastDecisionMs: number | null };
  usage: { since: string | null; teams: TeamRow[]; total: Omit<TeamRow, 'team'> & { freeHours: number; unhealthyHours: number } };
  interruptions: Interruption[];
}

export interface Pool {
  name: string;
  nodes: number;
  inFlight: number;
  maxNodes: number | null;
  atLimit: string | null;
  healthy: boolean;
  lastFailure: string | null;
}

export interface Why {
  verdict: string;
  line: string;
  reason: string;
  stage: string;
  also: { reason: string; message: string }[];
  since: string | null;
  need: { pods: number; gpusPerPod: number; gpus: number; model: string | null; topology: string | null; priority: number; queue: string | null } | null;
  quota: { queue: string; cohort: string; cells: { flavor: string; resource: string; nominal: number; used: number; available: number; borrowable: number }[] } | null;
  have: { nodes: number; eligibleNodes: number; nodesWithRoom: number; freeGpus: number; largestBlock: number } | null;
  fragmentation: { freeGpus: number; largestBlock: number; needed: number; strandedGpus: number } | null;
  funnel: { constraint: string; removed: number; only: number; left: number }[];
  holders: { node: string; pod: string; gpus: number }[];
  ahead: { position: number; workloads: number; gpus: number } | null;
  autoscaler?: { pools: Pool[]; poolsMore: number; event: { reason: string; message: string } | null; request: { name: string; state: string; message: string | null } | null } | null;
  health: { node: string; gpu: number; reason: string }[];
  fixes: { title: string; result: string }[];
  refused?: { title: string; because: string }[];
  start: { known: boolean; at: string | null; because: string } | null;
  evidence: { replay: string } | null;
}

const LETTERS: Record<string, GpuState> = { U: 'used', F: 'free', X: 'unhealthy', R: 'reserved' };
export function stateOf(letter: string | undefined): GpuState {
  return LETTERS[letter ?? '?'] ?? 'unknown';
}

export const full = (w: { namespace: string; name: string }) => `${w.namespace}/${w.name}`;

export function ago(seconds: number): string {
  if (!Number.isFinite(seconds)) return 'unknown';
  const s = Math.max(0, Math.round(seconds));
  if (s < 90) return `${s} s`;
  if (s < 90 * 60) return `${Math.round(s / 60)} min`;
  if (s < 36 * 3600) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} d`;
}

export function since(time: string | null, now: string): string {
  return time ? ago((Date.parse(now) - Date.parse(time)) / 1000) : 'unknown';
}

export const plural = (n: number, noun: string) => `${n} ${noun}${n === 1 ? '' : 's'}`;
