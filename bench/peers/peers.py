#!/usr/bin/env python3
"""berth beside its peers: the same workloads on a real API server, one contestant at a time.

    bench/peers/peers.py [--only berth,kube-scheduler] [--work a,c] [--pods 8000] [--nodes 1000] [--repeat 1]
                         [--berth build/release/berth] [--results build/bench-peers]

Work: a drain 8,000 one-GPU pods; b 100 gangs of 64 GPUs up to 90 % load; c an impossible gang beside small jobs;
d reclaim of half the cluster; e restart with 5,000 running pods. Writes per bound pod come with each. Every run has
its own etcd and kube-apiserver. (a) first measures the floor on the same server: bindings with all answers known.
Results are JSON lines in RESULTS/results.jsonl, one a run; a table comes at the end, and --table prints it again.
The first run builds the peers (12 minutes of two cores). A whole run takes about an hour.
"""
import argparse
import json
import os
import signal
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import contestants  # noqa: E402
import table  # noqa: E402
import workloads  # noqa: E402
from measure import ROOT, Rig, version_of  # noqa: E402


def chosen(text, all_of, what, parser):
    names = text.split(",") if text else list(all_of)
    for name in names:
        if name not in all_of:
            parser.error(f"no {what} '{name}'; there are: {', '.join(all_of)}")
    return names


def run(contestant, work, options):
    with open("/proc/loadavg", encoding="ascii") as f:
        load = float(f.read().split()[0])
    out = {"contestant": contestant.name, "version": contestant.version, "work": work,
           "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "load_before": load}
    begin = time.monotonic()
    try:
        with Rig(contestant) as rig:
            try:
                out.update(workloads.ALL[work](rig, options))
            finally:
                if out.get("stopped") is None or out["stopped"] or options.keep_logs:
                    keep_logs(rig, options, f"{contestant.name}-{work}")
    except Exception as error:  # pylint: disable=broad-except
        traceback.print_exc()
        out["stopped"] = f"{type(error).__name__}: {error}"[:500]
    out["whole_run_s"] = round(time.monotonic() - begin, 1)
    note = contestant.notes.get(work, contestant.notes.get("*"))
    return {**out, **({"note": note} if note else {})}


def keep_logs(rig, options, name):
    folder = os.path.join(options.results, "logs")
    os.makedirs(folder, exist_ok=True)
    for child in {**rig.past, **rig.children}:
        with open(os.path.join(folder, f"{name}-{child}.log"), "w", encoding="utf-8") as f:
            f.write(rig.tail(child, 200_000))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="contestants")
    parser.add_argument("--work", default="", help="workloads")
    parser.add_argument("--pods", type=int, help="of (a) (default: one for each GPU)")
    parser.add_argument("--running", type=int, default=5000, help="pods of (e)")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--floor-pods", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=1, help="rounds; contestants take turns in each")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a run is stopped")
    parser.add_argument("--patience", type=float, default=90, help="seconds without a binding after which it is")
    parser.add_argument("--berth", default=os.path.join(ROOT, "build", "release", "berth"))
    parser.add_argument("--results", default=os.path.join(ROOT, "build", "bench-peers"))
    parser.add_argument("--keep-logs", action="store_true", help="of contestants; else only of runs that were stopped")
    parser.add_argument("--table", action="store_true", help="only print what RESULTS holds")
    options = parser.parse_args()
    known = {c.name: c for c in contestants.ALL}
    only = chosen(options.only, known, "contestant", parser)
    works = chosen(options.work, workloads.ALL, "work", parser)
    options.results = os.path.abspath(options.results)
    file = os.path.join(options.results, "results.jsonl")
    if options.table:
        table.show(file)
        return 0
    options.pods = options.nodes * 8 if options.pods is None else options.pods
    if options.nodes < 10 or options.pods < 1 or options.pods > options.nodes * 8:
        parser.error("--nodes: at least 10; --pods: 1 to 8 for each node")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    contestants.Berth.program = os.path.abspath(options.berth)
    contestants.Berth.version = version_of(contestants.Berth.program)
    os.makedirs(options.results, exist_ok=True)
    programs = [p for name in only for p in known[name].programs]
    if programs:
        contestants.build(*programs)
    for _ in range(options.repeat):
        for work in works:
            for name in only:
                result = run(known[name](), work, options)
                with open(file, "a", encoding="utf-8") as f:
                    f.write(json.dumps(result) + "\n")
                print(json.dumps(result), flush=True)
    table.show(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
