"""Results as tables of Markdown: one for each workload, one line for each contestant with the median of its runs."""
import json
import statistics

COLUMNS = {
    "a": [("bound/s", "bound_per_s"), ("of the floor", "of_floor"), ("floor/s", "floor_per_s"), ("all bound s", "all_s"),
          ("CPU ms per pod", "cpu_ms_per_pod"), ("peak MB", "peak_mb"), ("apiserver CPU ms per pod", "apiserver_cpu_ms_per_pod"),
          ("writes per pod", "writes_per_pod")],
    "b": [("whole gangs", "whole"), ("partial", "partial"), ("first bound s", "first_s"), ("all bound s", "all_s"),
          ("CPU s", "cpu_s"), ("peak MB", "peak_mb"), ("apiserver CPU s", "apiserver_cpu_s"),
          ("writes per pod", "writes_per_pod")],
    "c": [("no after s", "no_s"), ("small before s", "before.median_s"), ("small beside s", "beside.median_s"),
          ("worst beside s", "beside.max_s"), ("cores used", "cores_used"), ("peak MB", "peak_mb")],
    "d": [("bound", "bound"), ("evicted", "evicted"), ("first bound s", "first_s"), ("all bound s", "all_s"),
          ("CPU s", "cpu_s"), ("peak MB", "peak_mb"), ("apiserver CPU s", "apiserver_cpu_s"),
          ("writes per pod", "writes_per_pod")],
    "e": [("first bind s", "first_bind_s"), ("CPU s", "cpu_s"), ("peak MB", "peak_mb"),
          ("apiserver CPU s", "apiserver_cpu_s")],
}
TITLES = {"a": "(a) drain", "b": "(b) gangs", "c": "(c) an impossible gang", "d": "(d) reclaim", "e": "(e) restart"}


def value(run, path):
    for key in path.split("."):
        run = run.get(key) if isinstance(run, dict) else None
    return run


def cell(runs, path):
    values = [v for v in (value(run, path) for run in runs) if v is not None]
    return f"{statistics.median(values):g}" if values else "-"


def show(file):
    with open(file, encoding="utf-8") as f:
        runs = [json.loads(line) for line in f]
    for work, columns in COLUMNS.items():
        by_name = {}
        for run in runs:
            if run["work"] == work:
                key = (run["contestant"], run.get("nodes"), run.get("pods"))
                by_name.setdefault(key, []).append(run)
        if not by_name:
            continue
        print(f"\n{TITLES[work]}\n| | runs | " + " | ".join(title for title, _ in columns) + " | cores of others | |")
        print("|---" * (len(columns) + 4) + "|")
        for (name, _, _), some in by_name.items():
            remarks = dict.fromkeys(x for run in some for x in (run.get("note"), run.get("stopped")) if x)
            print(f"| {name} {some[-1]['version']} | {len(some)} | " + " | ".join(cell(some, p) for _, p in columns)
                  + f" | {cell(some, 'cores_of_others')} | {' '.join('; '.join(remarks).split())[:200]} |")
