#!/usr/bin/env python3
"""Kills berth with kill -9 and checks that nothing acknowledged is lost and nothing is done twice.

    test/crash/crash_test.py --berth build/dev/berth [--seeds 200] [--first 1] [--jobs 3]

Modes (all by default):
  seeds        `berth up` is killed at moments that the seed says, while pods, jobs, gangs and
               config maps are written; started again; killed again; then everything must finish.
  points       it is killed at each named point of its code (BERTH_CRASH_AT), once.
  controllers  the API server without a controller, two `berth controller` beside it: the leader is
               killed, the API server stands still for a while.

What must hold (ledger.py): every acknowledged write is there; resourceVersions rise and uids never
come again; no pod is bound twice or moves; no GPU has two holders; no gang stays partly bound; all
jobs finish. A failure names its seed, and the folder with data and logs is kept.
"""
import argparse
import concurrent.futures
import os
import random
import shutil
import sys
import tempfile
import threading
import time
import traceback

from cluster import Api, Cluster, Failure, Gone, Process, pause, wait_for
from ledger import NAMESPACE, Ledger, config_map, job, pod

KUEUE = "kueue.x-k8s.io/v1beta2"
QUEUE = "train"

# A name, and the passages at which it is hit; the workload makes sure that there are so many.
POINTS = [
    ("store-before-commit", 20),  # while the cluster is set up for the first time
    ("store-before-commit", 150),
    ("store-after-commit", 150),
    ("api-before-answer", 300),
    ("controller-before-bind", 1),
    ("controller-before-bind", 2),  # between the pods of a gang
    ("controller-after-bind", 1),
    ("controller-after-bind", 3),
    ("controller-before-status", 2),
]


class Load:
    """Writes of one seed, one after the other."""

    def __init__(self, ledger, rng):
        self.ledger, self.rng = ledger, rng
        self.count = 0
        self.maps = []

    def make_namespace(self, api, dead=lambda: False):
        """With a queue over everything; when both are there already, that is as well."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        queue = {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": {"name": QUEUE},
                 "spec": {"clusterQueue": "default"}}
        for path, body in (("/api/v1/namespaces", namespace),
                           (f"/apis/{KUEUE}/namespaces/{NAMESPACE}/localqueues", queue)):
            def made():
                return dead() or api.call("POST", path, body)[0] in (201, 409)

            wait_for(path, made)

    def gang(self, api):
        self.count += 1
        name = f"gang-{self.count}"
        pods = self.rng.randint(2, 3)
        self.ledger.gangs[name] = pods
        queue = self.rng.choice((None, QUEUE))
        return self.ledger.write(api, "POST", "Job", name, job(name, pods, 8, 0.3, True, queue))

    def touch(self, api):
        """A write that starts nothing."""
        self.count += 1
        name = self.rng.choice(self.maps) if self.maps else None
        if name is None or not self.ledger.write(api, "PUT", "ConfigMap", name,
                                                 config_map(name, str(self.count))):
            self.maps.append(f"map-{self.count}")
            self.ledger.write(api, "POST", "ConfigMap", f"map-{self.count}",
                              config_map(f"map-{self.count}", "0"))

    def step(self, api):
        """True, False or None, as Ledger.write() says."""
        self.count += 1
        n, what = self.count, self.rng.random()
        if what < 0.2:
            return self.ledger.write(api, "POST", "Pod", f"pod-{n}",
                                     pod(f"pod-{n}", self.rng.choice((1, 1, 2, 4)), 0.3))
        if what < 0.3:
            return self.ledger.write(api, "POST", "Job", f"job-{n}",
                                     job(f"job-{n}", self.rng.randint(1, 3),
                                         self.rng.choice((1, 2)), 0.3,
                                         queue=self.rng.choice((None, QUEUE))))
        if what < 0.36:
            return self.gang(api)
        if what < 0.6 or not self.maps:
            self.maps.append(f"map-{n}")
            return self.ledger.write(api, "POST", "ConfigMap", f"map-{n}",
                                     config_map(f"map-{n}", str(n)))
        name = self.rng.choice(self.maps)
        if what < 0.67:
            self.maps.remove(name)
            return self.ledger.write(api, "DELETE", "ConfigMap", name)
        return self.ledger.write(api, "PUT", "ConfigMap", name, config_map(name, str(n)))


class Scribe(threading.Thread):
    """Writes as fast as it can, so that a kill always meets writes under way; until no answer."""

    def __init__(self, kubeconfig, ledger, name):
        super().__init__(daemon=True)
        self.api, self.ledger, self.prefix = Api(kubeconfig), ledger, name
        self.over = threading.Event()
        self.failure = None
        self.start()

    def run(self):
        for n in range(100_000):
            if self.over.is_set():
                return
            name = f"{self.prefix}-{n // 20}"
            try:
                method = "POST" if n % 20 == 0 else "PUT"
                if self.ledger.write(self.api, method, "ConfigMap", name,
                                     config_map(name, str(n))) is None:
                    return
            except Failure as failure:
                self.failure = failure
                return

    def stop(self):
        self.over.set()
        self.join()
        if self.failure:
            raise self.failure


class Observer(threading.Thread):
    """Reads all pods again and again and judges them; keeps the first failure."""

    def __init__(self, kubeconfig, ledger):
        super().__init__(daemon=True)
        self.kubeconfig, self.ledger = kubeconfig, ledger
        self.over = threading.Event()
        self.failure = None
        self.start()

    def run(self):
        api = None
        while not self.over.wait(0.02):
            try:
                api = api or Api(self.kubeconfig, timeout_s=5)
                self.ledger.observe(api.get(f"/api/v1/namespaces/{NAMESPACE}/pods"))
            except Gone:
                api = None
            except Failure as failure:
                if "404" not in str(failure):
                    self.failure = failure
                    return

    def stop(self):
        self.over.set()
        self.join()
        if self.failure:
            raise self.failure


def converge(cluster, ledger):
    """Everything finishes, and the process is still the one that was started."""
    api = cluster.api()
    ledger.waiting = []

    def done():
        cluster.process.must_run()
        return ledger.finished(api)

    try:
        wait_for("the end of all jobs", done)
    except Failure as failure:
        raise Failure(f"{failure}: {', '.join(ledger.waiting[:10])}") from None


def restart_and_verify(cluster, ledger):
    cluster.start()
    if not cluster.await_ready():
        raise Failure("berth up ended while it started again")
    ledger.restart_clocks()
    ledger.verify(cluster.api())


def run_seed(berth, folder, seed):
    """Three lives and two deaths at moments of the seed; then everything must finish."""
    rng = random.Random(seed)
    cluster, ledger = Cluster(berth, folder), Ledger()
    load = Load(ledger, rng)
    cluster.start()
    if not cluster.await_ready():
        raise Failure("berth up ended while it started")
    for life in range(3):
        api = cluster.api()
        load.make_namespace(api)
        observer = Observer(cluster.kubeconfig, ledger)
        scribes = [Scribe(cluster.kubeconfig, ledger, f"scribe-{life}-{i}") for i in range(3)]
        killer = None
        steps = rng.randint(1, 60)
        for step in range(steps + 100 if life < 2 else 15):
            if life < 2 and step == steps:
                # From another thread, so that it strikes inside of a request.
                killer = threading.Timer(rng.random() * 0.03, cluster.process.kill)
                killer.start()
            if load.step(api) is None:
                break
        if killer:
            killer.join()
        if life < 2:
            if rng.random() < 0.5:
                pause(rng.random() * 0.2)
            cluster.process.kill()
            for watcher in [observer] + scribes:
                watcher.stop()
            restart_and_verify(cluster, ledger)
        else:
            for scribe in scribes:
                scribe.stop()
            converge(cluster, ledger)
            observer.stop()
            ledger.verify(cluster.api())
    if cluster.process.terminate() != 0:
        raise Failure(f"berth up ended with {cluster.process.child.returncode} when asked to stop")
    return ledger.writes


def run_point(berth, folder, point, count):
    """Dies by itself at the count-th passage; then everything must finish."""
    rng = random.Random(f"{point} {count}")
    cluster, ledger = Cluster(berth, folder), Ledger()
    load = Load(ledger, rng)
    cluster.start(f"{point}:{count}")
    if cluster.await_ready():
        api = cluster.api()
        try:
            load.make_namespace(api, lambda: not cluster.process.running())
            load.gang(api)
            load.gang(api)
            for _ in range(60):
                if load.step(api) is None:
                    break
        except Failure:
            if cluster.process.running():
                raise

        def died():
            load.touch(api)
            return not cluster.process.running()

        wait_for(f"the end at {point}:{count}", died)
    code = cluster.process.child.returncode
    if code != -9:
        raise Failure(f"berth up ended with {code} instead of at {point}")
    restart_and_verify(cluster, ledger)
    load.make_namespace(cluster.api())
    observer = Observer(cluster.kubeconfig, ledger)
    for _ in range(10):
        load.step(cluster.api())
    converge(cluster, ledger)
    observer.stop()
    cluster.process.terminate()
    return ledger.writes


class Controllers:
    """Two `berth controller` processes on one cluster."""

    def __init__(self, berth, folder, kubeconfig):
        self.berth, self.folder, self.kubeconfig = berth, folder, kubeconfig
        self.processes = {}
        self.born = 0

    def start(self, crash_at=None):
        self.born += 1
        name = f"controller-{self.born}"
        log = os.path.join(self.folder, name + ".log")
        self.processes[name] = Process(
            [self.berth, "controller", "--kubeconfig", self.kubeconfig, "--identity", name,
             "--metrics", "", "--log-level", "warn"], log, crash_at)
        return name

    def leader(self, api):
        """The one that holds the lease and lives."""
        found = api.get("/apis/coordination.k8s.io/v1/leases")["items"]
        for lease in found:
            holder = lease["spec"].get("holderIdentity", "")
            if holder in self.processes and self.processes[holder].running():
                return holder
        return None

    def kill(self, name):
        self.processes.pop(name).kill()

    def kill_all(self):
        for name in list(self.processes):
            self.kill(name)


def run_controllers(args, folder, seed):
    rng = random.Random(f"controllers {seed}")
    cluster, ledger = Cluster(args.berth, folder, controller=False), Ledger()
    load = Load(ledger, rng)
    cluster.start()
    if not cluster.await_ready():
        raise Failure("berth up ended while it started")
    api = cluster.api()
    load.make_namespace(api)
    controllers = Controllers(args.berth, folder, cluster.kubeconfig)
    try:
        # Odd seeds: it dies between the bindings of a gang. Even ones: at any moment.
        at_point = seed % 2 == 1
        first = controllers.start("controller-after-bind:1" if at_point else None)
        wait_for("a leader", lambda: controllers.leader(api) == first)
        controllers.start()
        observer = Observer(cluster.kubeconfig, ledger)
        load.gang(api)
        for step in range(40):
            load.step(api)
            if step == 20 and not at_point:
                pause(rng.random() * 0.05)
                controllers.kill(first)
        if at_point:
            wait_for("the end of the leader", lambda: not controllers.processes[first].running())
            controllers.kill(first)
        controllers.start()
        wait_for("the next leader", lambda: controllers.leader(api))
        converge(cluster, ledger)
        # The API server stands still; the work given before and after is done.
        for _ in range(10):
            load.step(api)
        if args.kill_server:
            port = cluster.port()
            cluster.process.kill()
            pause(args.away)
            cluster.start(port=port)
            if not cluster.await_ready():
                raise Failure(f"berth up ended while it started again on port {port}")
            ledger.restart_clocks()
        else:
            cluster.process.stop_and_go(args.away)
        api = cluster.api()
        for _ in range(10):
            load.step(api)
        # Which of the two leads now is theirs to say; one that lost the lead may have ended.
        for name, process in list(controllers.processes.items()):
            if not process.running():
                controllers.processes.pop(name)
                controllers.start()
        ledger.verify(api)
        converge(cluster, ledger)
        observer.stop()
    finally:
        controllers.kill_all()
    cluster.process.terminate()
    return ledger.writes


def run_all(args):
    plan = []  # the longest first
    for seed in range(args.first, args.first + args.controllers):
        plan.append((f"controllers {seed}", lambda folder, s=seed: run_controllers(args, folder, s)))
    for seed in range(args.first, args.first + args.seeds):
        plan.append((f"seed {seed}", lambda folder, s=seed: run_seed(args.berth, folder, s)))
    if args.points:
        for point, count in POINTS:
            plan.append((f"{point}:{count}", lambda folder, p=point, c=count:
                         run_point(args.berth, folder, p, c)))
    with concurrent.futures.ThreadPoolExecutor(max_workers=args.jobs) as pool:
        passed = list(pool.map(lambda item: run_one(args, *item), plan))
    print(f"{sum(passed)} of {len(plan)} passed")
    return len(plan) - sum(passed)


def run_one(args, name, run):
    start = time.monotonic()
    folder = tempfile.mkdtemp(prefix="berth-crash-", dir=args.folder)
    try:
        writes = run(folder)
        print(f"ok    {name}: {writes} writes, {time.monotonic() - start:.1f} s", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        return True
    except Exception as error:  # whatever it is, the others are still worth knowing
        trace = "" if isinstance(error, Failure) else traceback.format_exc()
        print(f"FAIL  {name}: {error}\n      kept in {folder}\n{trace}{last_lines(folder)}",
              flush=True)
        return False
    finally:
        kill_leftovers(folder)


def last_lines(folder):
    out = ""
    for name in sorted(os.listdir(folder)):
        if name.endswith(".log"):
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                lines = file.readlines()[-15:]
            out += f"      {name}:\n" + "".join("        " + line for line in lines)
    return out


def kill_leftovers(folder):
    for process in Process.all:
        if process.log.startswith(folder) and process.running():
            process.child.kill()
            process.child.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--berth", default="build/dev/berth")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--points", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--controllers", type=int, default=1, help="seeds of that mode")
    parser.add_argument("--away", type=float, default=3, help="seconds without the API server")
    parser.add_argument("--kill-server", action="store_true",
                        help="kill it for that time (its port may be lost) instead of halting it")
    parser.add_argument("--jobs", type=int, default=3, help="at the same time")
    parser.add_argument("--folder", default=None, help="where to put data (default: temporary)")
    args = parser.parse_args()
    sys.exit(1 if run_all(args) else 0)


if __name__ == "__main__":
    main()
