"""The workloads of the issue, (a) to (e), each on a fresh Rig. (f), the writes per bound pod, comes with each.

A workload returns a dict of what was seen; "stopped" in it says that not everything was bound, and why.
"""
import statistics
import threading
import time

from measure import PODS, busy_ticks, pause, TICKS

GANG_PODS, GANG_GPUS = 8, 8  # 64 GPUs
SETTLE_S = 3  # writes that follow the last binding still count


class Meter:
    """Costs from here on: CPU of contestant and server, writes, and what others took of the machine."""

    def __init__(self, rig):
        self.rig, self.start = rig, time.time()
        rig.audit.forget_writes()
        self.server = rig.server_cpu()
        self.before = {name: cost[0] for name, cost in rig.cost().items()}
        self.busy, self.own = busy_ticks(), time.process_time()

    def result(self, bound, settle=SETTLE_S):
        """Of so many bound pods."""
        rig, end = self.rig, time.time()
        server = {name: cpu - self.server.get(name, 0) for name, cpu in rig.server_cpu().items()}
        cost = {name: (cpu - self.before.get(name, 0), peak) for name, (cpu, peak) in rig.cost().items()}
        mine = sum(server.values()) + sum(c for c, _ in cost.values()) + time.process_time() - self.own
        others = (busy_ticks() - self.busy) / TICKS - mine
        pause(settle)
        rig.audit.read()
        writes = sorted(rig.audit.writes.items(), key=lambda item: -item[1])
        count = max(1, bound)
        return {
            "processes": {name: {"cpu_s": round(cpu, 2), "peak_mb": round(peak)} for name, (cpu, peak) in cost.items()},
            "cpu_s": round(sum(c for c, _ in cost.values()), 2),
            "cpu_ms_per_pod": round(1000 * sum(c for c, _ in cost.values()) / count, 3),
            "peak_mb": round(sum(peak for _, peak in cost.values())),
            "apiserver_cpu_s": round(server.get("kube-apiserver", 0), 2),
            "apiserver_cpu_ms_per_pod": round(1000 * server.get("kube-apiserver", 0) / count, 3),
            "writes_per_pod": round(sum(rig.audit.writes.values()) / count, 3),
            "writes": {" ".join(key): n for key, n in writes[:10]},
            "cores_of_others": round(max(0.0, others) / max(1e-9, end - self.start), 2)}


def of_bindings(times, start):
    """first, last and rate."""
    times = sorted(times)
    if not times:
        return {"bound": 0}
    span = times[-1] - times[0]
    return {"bound": len(times), "first_s": round(times[0] - start, 2), "all_s": round(times[-1] - start, 2),
            "bound_per_s": round((len(times) - 1) / span) if span > 0 else None}


def begin(rig, options, each=None):
    rig.contestant.prepare(rig)
    rig.nodes(options.nodes)
    if each or rig.contestant.needs_queues:
        rig.contestant.queues(rig, each or options.nodes * 8)


def floor(rig, count, nodes):
    """Bindings a second with every answer known beforehand, and the server's CPU; the pods are gone afterwards."""
    names = [f"f{i:05d}" for i in range(count)]
    bodies = []
    for name in names:
        body = rig.contestant.pod(name)
        body["spec"].update({"schedulerName": "nobody"})
        body["spec"].pop("schedulingGates", None)
        body["metadata"].update({"labels": {}, "annotations": {}, "finalizers": []})
        bodies.append((PODS, body))
    rig.api.many(bodies)
    before = rig.server_cpu()["kube-apiserver"]
    seconds = rig.api.many([(f"{PODS}/{name}/binding", {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": f"n{i % nodes:05d}"}}) for i, name in enumerate(names)])
    cpu = rig.server_cpu()["kube-apiserver"] - before
    connection = rig.api.connect()
    for name in names:
        rig.api.delete_now(f"{PODS}/{name}", connection)
    return count / seconds, 1000 * cpu / count


def drain(rig, options):
    """(a) One-GPU pods that all exist before the contestant starts; the floor is measured before it and after it."""
    begin(rig, options)
    floors = [floor(rig, options.floor_pods, options.nodes)]
    names = [f"p{i:05d}" for i in range(options.pods)]
    rig.api.many([(PODS, rig.contestant.pod(name)) for name in names])
    meter = Meter(rig)
    rig.contestant.start(rig)
    stopped = rig.wait_bound(names, options.limit, options.patience)
    out = of_bindings([rig.audit.bound[n] for n in names if n in rig.audit.bound], meter.start)
    out.update(meter.result(out["bound"]))
    rig.stop_all()
    floors.append(floor(rig, options.floor_pods, options.nodes))
    mean = statistics.mean(rate for rate, _ in floors)
    if out.get("bound_per_s"):
        out["of_floor"] = round(out["bound_per_s"] / mean, 3)
    return {"pods": options.pods, "nodes": options.nodes, **out, "floor_per_s": round(mean),
            "floors_per_s": [round(rate) for rate, _ in floors],
            "floor_apiserver_cpu_ms_per_pod": round(statistics.mean(cpu for _, cpu in floors), 3), "stopped": stopped}


def members(rig, gang):
    return [rig.contestant.pod(f"{gang}-{i}", GANG_GPUS, gang=gang, size=GANG_PODS) for i in range(GANG_PODS)]


def post_gangs(rig, gangs):
    objects = [rig.contestant.gang(name, GANG_PODS) for name in gangs]
    rig.api.many([one for one in objects if one])
    rig.api.many([(PODS, body) for name in gangs for body in members(rig, name)])


def gangs(rig, options):
    """(b) Gangs of 8 pods with 8 GPUs each that fill the cluster up to 90 %; one node in ten is taken already."""
    begin(rig, options)
    taken = options.nodes // 10
    rig.run_kubelets()
    rig.api.many([rig.filler(f"other-{i:05d}", f"n{i:05d}", 8) for i in range(taken)])
    names = [f"g{i:04d}" for i in range(options.nodes // 10)]
    post_gangs(rig, names)
    rig.wait_running({f"other-{i:05d}" for i in range(taken)})
    meter = Meter(rig)
    rig.contestant.start(rig)
    pods = [f"{name}-{i}" for name in names for i in range(GANG_PODS)]
    stopped = rig.wait_bound(pods, options.limit, options.patience)
    bound = rig.audit.bound
    out = of_bindings([bound[p] for p in pods if p in bound], meter.start)
    whole, partial, spans = 0, 0, []
    for name in names:
        times = [bound[p] for p in (f"{name}-{i}" for i in range(GANG_PODS)) if p in bound]
        whole += len(times) == GANG_PODS
        partial += 0 < len(times) < GANG_PODS
        if len(times) == GANG_PODS:
            spans.append(max(times) - min(times))
    if spans:
        out["gang_first_to_last_s"] = round(statistics.median(spans), 3)
    return {"gangs": len(names), "whole": whole, "partial": partial, "nodes": options.nodes, **out,
            **meter.result(out["bound"]), "stopped": stopped}


def says_no(rig, pods, group_path):
    """What tells people that the gang does not fit, or None."""
    for body in pods:
        for one in body.get("status", {}).get("conditions", []):
            if one["type"] == "PodScheduled" and one["status"] == "False" and one.get("reason") != "SchedulingGated":
                return f"pod condition {one.get('reason')}"
    if group_path:
        status = rig.api.call("GET", group_path).get("status", {})
        for one in status.get("conditions", []) + status.get("schedulingConditions", []):
            if one.get("reason") == "PendingEvaluation":
                continue  # of a Workload: nobody has looked at it
            if "nschedul" in one["type"] or one["status"] == "False" or one.get("reason") == "Unschedulable":
                return f"group condition {one['type']} {one.get('reason', '')}".strip()
    return None


class NoWatch(threading.Thread):
    """Looks every 30 ms whether somebody has said no."""

    def __init__(self, rig, gang):
        super().__init__(daemon=True)
        self.rig, self.gang, self.when, self.what, self.stopped = rig, gang, None, None, False

    def run(self):
        connection = self.rig.api.connect()
        paths = [f"{PODS}/{self.gang}-{i}" for i in range(GANG_PODS)]
        group = self.rig.contestant.gang_path(self.gang)
        while not self.stopped:
            try:
                pods = [self.rig.api.call("GET", path, connection=connection) for path in paths]
                self.what = says_no(self.rig, pods, group)
            except (OSError, RuntimeError):
                connection = self.rig.api.connect()
            if self.what:
                self.when = time.time()
                return
            pause(0.03)


def small_jobs(rig, names, limit):
    """Each a pod of one GPU, made when the last is bound: seconds from POST to binding."""
    seconds = []
    for name in names:
        start = time.time()
        rig.api.call("POST", PODS, rig.contestant.pod(name))
        end = time.monotonic() + limit
        while name not in rig.audit.bound and time.monotonic() < end and not rig.dead():
            pause(0.005)
            rig.audit.read()
        seconds.append(rig.audit.bound.get(name, time.time()) - start)
    return seconds


def impossible(rig, options):
    """(c) 160 GPUs are free, four on each of 40 nodes; a gang that needs 8 whole nodes comes, and small jobs go on."""
    begin(rig, options)
    rig.run_kubelets()
    holes = min(40, options.nodes)
    fill = [rig.filler(f"other-{i:05d}", f"n{i:05d}", 4 if i < holes else 8) for i in range(options.nodes)]
    rig.api.many(fill)
    rig.wait_running({body["metadata"]["name"] for _, body in fill})
    rig.contestant.start(rig)
    first = small_jobs(rig, ["warm"], options.limit)
    pause(2)
    before = small_jobs(rig, [f"before-{i}" for i in range(10)], 60)
    watch = NoWatch(rig, "big")
    meter = Meter(rig)
    post_gangs(rig, ["big"])
    watch.start()
    beside = small_jobs(rig, [f"beside-{i}" for i in range(20)], 60)
    end = time.monotonic() + 60
    while not watch.when and time.monotonic() < end:
        pause(0.1)
    watch.stopped = True
    watch.join()
    elapsed = time.time() - meter.start
    rig.audit.read()
    no_at = watch.when
    if watch.what and watch.what.startswith("pod"):  # the log knows better than a look now and then
        no_at = min([when for name, when in rig.audit.told.items() if name.startswith("big-")] + [no_at])
    cost = meter.result(len(beside), settle=0)
    some = lambda values: {"median_s": round(statistics.median(values), 3), "max_s": round(max(values), 3)}
    placed = sum(1 for i in range(GANG_PODS) if f"big-{i}" in rig.audit.bound)
    return {"nodes": options.nodes, "first_small_s": round(first[0], 2), "before": some(before), "beside": some(beside),
            "delay_s": round(statistics.median(beside) - statistics.median(before), 3),
            "no_s": no_at and round(no_at - meter.start, 2), "no_is": watch.what, "gang_pods_bound": placed,
            "cores_used": round(cost["cpu_s"] / elapsed, 2), **cost,
            "stopped": "" if watch.when else "no answer within a minute of the last small job"}


def reclaim(rig, options):
    """(d) Queue a has filled the cluster with pods of 8 GPUs; queue b, to which half belongs, asks for it."""
    begin(rig, options, each=options.nodes * 4)
    rig.run_kubelets()
    names = [f"a{i:05d}" for i in range(options.nodes)]
    rig.api.many([(PODS, rig.contestant.pod(name, 8, queue="a")) for name in names])
    rig.contestant.start(rig)
    stopped = rig.wait_bound(names, options.limit, options.patience)
    if stopped:
        return {"stopped": "filling the cluster: " + stopped}
    rig.wait_running(set(names))
    pause(3)
    meter = Meter(rig)
    wanted = [f"b{i:05d}" for i in range(options.nodes // 2)]
    rig.api.many([(PODS, rig.contestant.pod(name, 8, queue="b")) for name in wanted])
    stopped = rig.wait_bound(wanted, options.limit, options.patience)
    out = of_bindings([rig.audit.bound[n] for n in wanted if n in rig.audit.bound], meter.start)
    return {"nodes": options.nodes, "wanted": len(wanted), **out, "evicted": len(rig.audit.evicted & set(names)),
            **meter.result(out["bound"]), "stopped": stopped}


def restart(rig, options):
    """(e) The contestant has placed 5,000 pods that run, and stops; a pod comes; the contestant starts again."""
    begin(rig, options)
    rig.run_kubelets()
    names = [f"p{i:05d}" for i in range(min(options.running, options.nodes * 8 - 1))]
    rig.api.many([(PODS, rig.contestant.pod(name)) for name in names])
    rig.contestant.start(rig)
    stopped = rig.wait_bound(names, options.limit, options.patience)
    if stopped:
        return {"stopped": "the first start: " + stopped}
    rig.wait_running(set(names))
    pause(2)
    rig.stop_all()
    rig.api.call("POST", PODS, rig.contestant.pod("next"))
    pause(1)
    meter = Meter(rig)
    rig.contestant.start(rig)
    stopped = rig.wait_bound(["next"], options.limit, options.patience)
    when = rig.audit.bound.get("next")
    return {"nodes": options.nodes, "running": len(names), "first_bind_s": when and round(when - meter.start, 2),
            **meter.result(1), "stopped": stopped}


ALL = {"a": drain, "b": gangs, "c": impossible, "d": reclaim, "e": restart}
