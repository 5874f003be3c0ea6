#!/usr/bin/env python3
"""(g) Kueue's own performance runner, with berth or Kueue as the controller of its Workloads, on a real API server.

    bench/peers/kueue_runner.py [--only known-answers,berth,berth-owners,berth-spares,minimalkueue,kueue]
                                [--scenario baseline,tas] [--cohorts N] [--berth build/release/berth]
                                [--results build/bench-peers]

The runner makes queues and 15,000 Workloads, ends each when its time is over, and counts until all have ended. It
makes no pods. known-answers admits each Workload at once, whatever its quota: what the server and the runner need of
themselves. berth-owners is berth with a rule more, berth-spares with two. minimalkueue is what Kueue measures itself
with: its client is held to 50 requests a second, and no flag changes that; "kueue" is the whole program with its
limits raised. berth admits only what has a place on nodes, so the baseline, which has none, gets nodes that are never
short. --cohorts takes fewer of the five. Results are JSON lines in RESULTS/kueue-runner.jsonl.
"""
import argparse
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import contestants  # noqa: E402
from measure import ROOT, Rig, node, version_of  # noqa: E402
from workloads import Meter  # noqa: E402

MODULE = "sigs.k8s.io/kueue@v0.19.2"


class Berth(contestants.Berth):
    def prepare(self, rig):
        kueue_crds(rig)
        rig.apply(os.path.join(ROOT, "deploy", "crds", "gpunodes.yaml"))


class BerthSpares(Berth):
    """Whoever has run for less than a second is nobody's victim: by Kueue's rules the large class preempts every
    1.2 s what needs 0.5 s to run. And what an owner's next would reclaim at once is not lent."""
    name, flags = "berth-spares", ["--queue-policy", "min-runtime=1s,owners-first"]


class BerthOwners(Berth):
    """Only the latter."""
    name, flags = "berth-owners", ["--queue-policy", "owners-first"]


class KnownAnswers(contestants.Contestant):
    name, version, users = "known-answers", "", ["known"]

    def prepare(self, rig):
        kueue_crds(rig)

    def start(self, rig):
        rig.spawn("known-answers", [sys.executable, "-B", os.path.join(HERE, "known_answers.py"),
                                    rig.cluster.kubeconfig_of("known")])


class Kueue(contestants.Kueue):
    def start(self, rig):
        super().start(rig)
        rig.children.pop("kube-scheduler").terminate()


class MinimalKueue(contestants.Contestant):
    name, version, users, programs = "minimalkueue", "0.19.2", ["kueue"], ["minimalkueue"]

    def prepare(self, rig):
        kueue_crds(rig)
        rig.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "kueue-system"}})

    def start(self, rig):
        rig.spawn("minimalkueue", [os.path.join(contestants.build("minimalkueue"), "minimalkueue"), "--kubeconfig",
                                   rig.cluster.kubeconfig_of("kueue"), *(["--enableTAS"] if rig.tas else [])])


def kueue_crds(rig):
    rig.apply(*sorted(glob.glob(contestants.module(MODULE) + "/config/components/crd/bases/*.yaml")))


def generator(rig, scenario, cohorts):
    """The scenario's file, with fewer cohorts where that is asked for."""
    path = contestants.module(MODULE) + f"/test/performance/scheduler/configs/{scenario}/generator.yaml"
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if cohorts:
        text = re.sub(r"(className: cohort\n\s+count: )\d+", rf"\g<1>{cohorts}", text)
    out = rig.cluster.path("generator.yaml")
    with open(out, "w", encoding="utf-8") as f:
        f.write(text)
    return out


def summary(folder):
    """Of the runner's own words: seconds to admission by class."""
    out, name = {}, ""
    try:
        with open(os.path.join(folder, "summary.yaml"), encoding="utf-8") as f:
            for line in f:
                found = re.match(r"  (\w[\w-]*):$", line)
                name = found.group(1) if found else name
                found = re.match(r"\s+averageTimeToAdmissionMs: (\d+)", line)
                if found:
                    out[name] = round(int(found.group(1)) / 1000, 1)
    except FileNotFoundError:
        pass
    return out


def ends(rig):
    """How far the Workloads are, as the server has them."""
    out = {"made": 0, "admitted": 0, "finished": 0}
    items = rig.api.call("GET", f"{contestants.KUEUE_API}/workloads")["items"]
    for one in items:
        true = {c["type"] for c in one.get("status", {}).get("conditions", []) if c["status"] == "True"}
        out["made"] += 1
        out["admitted"] += "Admitted" in true
        out["finished"] += "Finished" in true
    if items:
        out["bytes_each"] = len(json.dumps(items[-1]))
    return out


def run(contestant, scenario, options):
    out = {"contestant": contestant.name, "version": contestant.version, "scenario": scenario,
           "cohorts": options.cohorts or 5, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    with Rig(contestant) as rig:
        rig.tas = scenario == "tas"
        contestant.prepare(rig)
        if not rig.tas:
            for i in range(40):
                body = node(i)
                for amounts in (body["status"]["capacity"], body["status"]["allocatable"]):
                    amounts.update({"cpu": "1000", "memory": "100Ti", "pods": "100000"})
                rig.api.call("POST", "/api/v1/nodes", body)
        contestant.start(rig)
        folder = rig.cluster.path("runner")
        os.mkdir(folder)
        meter = Meter(rig)
        command = [os.path.join(contestants.build("kueue-runner"), "kueue-runner"), "-o", folder, "-generatorConfig",
                   generator(rig, scenario, options.cohorts), "-timeout", f"{options.limit}s", "-qps", "1000", "-burst", "2000"]
        with open(rig.cluster.path("runner.log"), "wb") as log:
            child = subprocess.Popen(command, stdout=log, stderr=log, env={
                **os.environ, "KUBECONFIG": rig.cluster.kubeconfig, "PROJECT_DIR": rig.cluster.folder})
        profile = profiler(rig, options)
        try:
            # The runner tidies up after its measurement: what is measured ends with its summary.
            while child.poll() is None and not os.path.exists(os.path.join(folder, "wlStates.csv")):
                time.sleep(0.2)
                if rig.dead() or time.time() > meter.start + options.limit + 120:
                    break
            seconds = time.time() - meter.start
            whole = 3000 * (options.cohorts or 5)
            out.update({"seconds": round(seconds, 1), "workloads": whole, "admission_s": summary(folder),
                        **meter.result(whole, settle=0), "stopped": "; ".join(rig.dead())})
            out["writes_per_workload"] = out.pop("writes_per_pod")
            if not out["admission_s"]:
                out["stopped"] = out["stopped"] or "no summary"
                print(rig.tail("runner", 3000), file=sys.stderr)
            out.update(ends(rig))
            if options.audit:
                shutil.copy(rig.cluster.path("audit.log"), options.audit)
        finally:
            child.kill()
            child.wait()
            if profile:
                profile.kill()
    return out


def profiler(rig, options):
    """Where the API server's CPU goes while Workloads are admitted: half a minute of it, for `go tool pprof`."""
    if not options.profile:
        return None
    return subprocess.Popen(["sh", "-c", 'sleep 150; exec "$0" --kubeconfig "$1" get --raw "$2" >"$3"',
                             os.path.join(rig.cluster.bin, "kubectl"), rig.cluster.kubeconfig,
                             "/debug/pprof/profile?seconds=30", options.profile])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="known-answers,berth,berth-owners,berth-spares,minimalkueue,kueue")
    parser.add_argument("--scenario", default="baseline,tas")
    parser.add_argument("--cohorts", type=int, default=0)
    parser.add_argument("--profile", help="a file for a CPU profile of the API server")
    parser.add_argument("--audit", help="a file for the API server's audit log")
    parser.add_argument("--limit", type=int, default=1200)
    parser.add_argument("--berth", default=os.path.join(ROOT, "build", "release", "berth"))
    parser.add_argument("--results", default=os.path.join(ROOT, "build", "bench-peers"))
    options = parser.parse_args()
    known = {"known-answers": KnownAnswers, "berth": Berth, "berth-spares": BerthSpares, "berth-owners": BerthOwners,
             "minimalkueue": MinimalKueue, "kueue": Kueue}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    contestants.Berth.program = os.path.abspath(options.berth)
    contestants.Berth.version = version_of(contestants.Berth.program)
    os.makedirs(options.results, exist_ok=True)
    contestants.build("kueue-runner")
    for scenario in options.scenario.split(","):
        for name in options.only.split(","):
            if name not in known or scenario not in ("baseline", "tas"):
                parser.error(f"no '{name}' or no scenario '{scenario}'")
            result = run(known[name](), scenario, options)
            with open(os.path.join(options.results, "kueue-runner.jsonl"), "a", encoding="utf-8") as f:
                f.write(json.dumps(result) + "\n")
            print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
