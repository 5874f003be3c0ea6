// A page of a made-up fleet, as the program would tell it. Deterministic.
const MODELS = ['H100', 'A100'];

export function makePage({ nodes = 4, revision = 1, time = '2026-11-16T12:00:00Z' } = {}) {
  const page = {
    version: 'berth.dev/page/v1',
    revision,
    cluster: 'test cluster',
    time,
    trouble: '',
    gpus: { total: 0, used: 0, free: 0, unhealthy: 0, reserved: 0, unknown: 0 },
    models: [],
    queues: [],
    pending: [],
    workloads: [],
    workloadsMore: 0,
    nodes: [],
    pods: [],
    health: [],
    healthEvents: [],
    trend: [],
    telemetry: { nodes: 0, silent: 0, oldest: null },
    control: { leading: true, cycles: 12, bound: 9, evicted: 0, failedWrites: 0, lastDecisionMs: 0.42 },
    usage: { since: '2026-11-16T08:00:00Z', teams: [], total: { heldHours: 0, busyHours: 0, idleHours: 0, unknownHours: 0, freeHours: 0, unhealthyHours: 0 } },
    interruptions: [],
  };
  const names = { U: 'used', F: 'free', X: 'unhealthy', R: 'reserved', '?': 'unknown' };
  for (let n = 0; n < nodes; ++n) {
    const model = MODELS[n % 7 === 3 ? 1 : 0];
    const states = n === 1 ? 'UUUUUUXF' : n % 4 === 2 ? 'UUUUUUUU' : 'UUUUUUFF';
    const holder = [];
    for (let g = 0; g < 8; ++g) {
      if (states[g] !== 'U') {
        holder.push(-1);
        continue;
      }
      if (g === 0 || g === 4) {
        page.pods.push({ name: `team-${n % 3}/train-${n}-${g}`, workload: `team-${n % 3}/train-${n}`, queue: `team-${n % 3}`, gpus: 4, since: '2026-11-16T10:30:00Z' });
      }
      holder.push(page.pods.length - 1);
    }
    for (const letter of states) {
      page.gpus.total++;
      page.gpus[names[letter]]++;
    }
    page.nodes.push({
      name: `gpu-node-${String(n).padStart(4, '0')}`,
      rack: `r${Math.floor(n / 16)}`,
      model,
      ready: n !== 3,
      cordoned: false,
      states,
      busy: holder.map((h, g) => (h < 0 ? -1 : (n * 37 + g * 13) % 101)),
      holder,
      clique: [0, 0, 0, 0, 1, 1, 1, 1],
    });
  }
  if (nodes === 0) return page;
  page.health.push({ node: 'gpu-node-0001', gpu: 6, state: 'unhealthy', reason: 'XidGpuFallen: the GPU fell off the bus' });
  page.healthEvents = [
    { at: '2026-11-16T11:40:00Z', node: 'gpu-node-0001', gpu: 6, inService: false, reason: 'XidGpuFallen' },
    { at: '2026-11-16T07:10:00Z', node: 'gpu-node-0003', gpu: -1, inService: false, reason: 'not ready' },
    { at: '2026-11-15T22:00:00Z', node: 'gpu-node-0000', gpu: 2, inService: true, reason: '' },
  ];
  page.telemetry = { nodes: nodes - 1, silent: 1, oldest: '2026-11-16T11:59:48Z' };
  // A day of steps, with a hole where the program did not run.
  for (let i = 0; i < 288; ++i) {
    if (i > 100 && i < 120) continue;
    const used = page.gpus.total * (0.55 + 0.3 * Math.sin(i / 40));
    page.trend.push({
      at: new Date(Date.parse(time) - (287 - i) * 300000).toISOString(),
      used,
      free: page.gpus.total - used - page.gpus.unhealthy,
      out: page.gpus.unhealthy,
      busy: i > 200 && i < 210 ? -1 : Math.round(60 + 25 * Math.sin(i / 15)),
    });
  }
  for (const model of MODELS) {
    const of = page.nodes.filter((node) => node.model === model);
    if (of.length === 0) continue;
    const count = (letter) => of.reduce((sum, node) => sum + [...node.states].filter((s) => s === letter).length, 0);
    page.models.push({ model, total: of.length * 8, used: count('U'), free: count('F'), unhealthy: count('X'), reserved: 0, unknown: 0, largestBlock: 2, gangs: [{ gpus: 2, pods: Math.floor(count('F') / 2) }] });
  }
  page.queues = [
    { name: 'team-0', cohort: 'ml', quota: 16, used: 18, borrowed: 2, waiting: 1, oldest: '2026-11-16T10:00:00Z', next: 'llama-70b', nextReason: 'NeverFits', waits: { count: 41, p50Seconds: 95, p95Seconds: 8040 } },
    { name: 'team-1', cohort: 'ml', quota: 8, used: 8, borrowed: 0, waiting: 1, oldest: '2026-11-16T11:56:00Z', next: '<script>alert(1)</script>', nextReason: 'Fragmented', waits: null },
  ];
  page.pending = [
    { reason: 'Fragmented', workloads: 1, gpus: 4, config: false },
    { reason: 'NeverFits', workloads: 1, gpus: 40, config: true },
  ];
  page.workloads = [
    { kind: 'Job', namespace: 'team-1', name: 'resnet', queue: 'team-1', state: 'waiting', pods: 1, running: 0, gpus: 4, since: '2026-11-16T11:25:00Z', reason: 'Fragmented', message: '6 free, at most 2 on one node', never: false, position: 1 },
    { kind: 'Job', namespace: 'team-0', name: 'llama-70b', queue: 'team-0', state: 'waiting', pods: 5, running: 0, gpus: 40, since: '2026-11-16T10:00:00Z', reason: 'NeverFits', message: '5 whole nodes, there are 4', never: true, position: 1 },
    { kind: 'Job', namespace: 'team-0', name: 'train-0', queue: 'team-0', state: 'running', pods: 2, running: 2, gpus: 6, since: '2026-11-16T10:30:00Z', reason: '', message: '', never: false, position: 0 },
  ];
  page.usage.teams = [
    { team: 'team-0', heldHours: 41.5, busyHours: 30.25, idleHours: 11.25, unknownHours: 0 },
    { team: 'team-1', heldHours: 8, busyHours: 0, idleHours: 0, unknownHours: 8 },
  ];
  page.usage.total = { heldHours: 49.5, busyHours: 30.25, idleHours: 11.25, unknownHours: 8, freeHours: 20, unhealthyHours: 4 };
  page.interruptions = [{ workload: 'team-0/train-0', at: '2026-11-16T10:20:00Z', reason: 'Preempted', message: 'made room for team-1/urgent' }];
  return page;
}

export const why = {
  version: 'berth.dev/why/v1',
  verdict: 'waiting',
  line: 'team-1/resnet waits: 4 GPUs on one node, and no node has 4 free (Fragmented)',
  reason: 'Fragmented',
  stage: 'capacity',
  also: [],
  since: '2026-11-16T11:25:00Z',
  need: { pods: 1, gpusPerPod: 4, gpus: 4, model: null, topology: null, priority: 0, queue: 'team-1' },
  quota: { queue: 'team-1', cohort: 'ml', cells: [{ flavor: 'default', resource: 'nvidia.com/gpu', nominal: 8, used: 0, available: 8, borrowable: 4 }] },
  have: { nodes: 4, eligibleNodes: 4, nodesWithRoom: 0, freeGpus: 6, largestBlock: 2 },
  fragmentation: { freeGpus: 6, largestBlock: 2, needed: 4, strandedGpus: 6 },
  funnel: [{ constraint: 'gpus', removed: 4, only: 4, left: 0 }],
  holders: [{ node: 'gpu-node-0000', pod: 'team-0/train-0-0', gpus: 4 }],
  ahead: { position: 1, workloads: 0, gpus: 0 },
  autoscaler: {
    pools: [{ name: 'h100-pool', nodes: 4, inFlight: 0, maxNodes: 4, atLimit: '4 nodes', healthy: true, lastFailure: null }],
    poolsMore: 0,
    event: { reason: 'NotTriggerScaleUp', message: '1 max node group size reached' },
    request: null,
  },
  health: [],
  fixes: [{ title: 'ask for 2 pods x 2 GPUs', result: 'starts now' }],
  refused: [{ title: 'preempt team-0/train-0-0', because: 'same priority' }],
  start: { known: false, at: null, because: 'nobody declares when it ends' },
  evidence: { replay: 'berth why job team-1/resnet' },
};
