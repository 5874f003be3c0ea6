#!/usr/bin/env python3
"""The agent under a real kubelet and containerd, one test for each promise.

    agent_test.py BERTH [--filter REGEX] [--list] [--quick] [--ci]

D1 to D12, F1 to F7, M1 to M3, H1, H2 and P1 follow the scenarios in which Kubernetes tests its own device manager;
A... are faults of a node, G... what a node with an agent shows. --quick leaves out what waits for minutes, --ci is the
part that every change must pass, below four minutes of two cores that have nothing else to do. Needs root; everything
happens in namespaces that end with the test. KEEP=1 keeps the logs.
"""
import argparse
import os
import re
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import isolate  # noqa: E402
import node as nodes  # noqa: E402
import device_manager_rows  # noqa: E402,F401
import node_rows  # noqa: E402,F401
from rows import OPTIONS, TESTS  # noqa: E402
from world import Failed, World  # noqa: E402


def run_test(world, name, function):
    world.notes = []
    began, lost = time.monotonic(), nodes.kernel().lost()
    verdict, text = "pass", ""
    try:
        function(world)
    except (Failed, nodes.Timeout) as e:
        verdict, text = "FAIL", str(e)
    except Exception:
        verdict, text = "ERROR", traceback.format_exc(limit=-4)
    took = time.monotonic() - began
    if verdict != "pass":
        print(f"--- {name}: {text}", flush=True)
        for agent in world.agents:
            print(f"--- log of {agent.name}:\n{world.node.tail(agent.name, 12)}", flush=True)
        for part in ("kubelet", "containerd"):
            print(f"--- log of {part}:\n{world.node.tail(part, 12)}", flush=True)
    if nodes.kernel().lost() - lost > 5:
        world.note(f"the kernel's threads got no CPU for {nodes.kernel().lost() - lost:.0f} s")
    try:
        world.clean()
    except Exception:
        print(f"--- {name}: the node could not be cleaned up\n{traceback.format_exc()}", flush=True)
        verdict = "ERROR" if verdict == "pass" else verdict
    return verdict, took, "; ".join(world.notes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("berth")
    parser.add_argument("--filter", default="", help="names that match this expression")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--quick", action="store_true", help="without what waits for minutes")
    parser.add_argument("--ci", action="store_true", help="the part that every change must pass")
    options = parser.parse_args()
    OPTIONS["quick"] = options.quick or options.ci
    chosen = [t for t in TESTS if re.fullmatch(options.filter or ".*", t[0]) and not (t[3] and OPTIONS["quick"])
              and (t[4] or not options.ci)]
    if options.list:
        for name, what, *_ in chosen:
            print(f"{name:5} {what}")
        return 0
    results = []
    began = time.monotonic()
    with nodes.Node() as node:
        node.kubectl("apply", "-f", os.path.join(HERE, "..", "..", "deploy", "crds", "gpunodes.yaml"))
        node.kubectl("wait", "--for=condition=Established", "crd/gpunodes.berth.dev")
        world = World(node, os.path.abspath(options.berth))
        for name, what, function, *_ in chosen:
            verdict, took, notes = run_test(world, name, function)
            results.append((name, what, verdict, took, notes))
            print(f"{verdict:5} {name:4} {took:6.1f} s  {what}" + (f"\n{'':20}{notes}" if notes else ""), flush=True)
    bad = [r for r in results if r[2] != "pass"]
    slowest = sorted(results, key=lambda r: -r[3])[:5]
    print(f"\n{len(results) - len(bad)} of {len(results)} pass, {time.monotonic() - began:.0f} s, of which tests "
          f"{sum(r[3] for r in results):.0f} s; slowest: " + ", ".join(f"{r[0]} {r[3]:.0f} s" for r in slowest))
    for name, what, verdict, _, _ in bad:
        print(f"  {verdict:5} {name:4} {what}")
    return 1 if bad or not results else 0


if __name__ == "__main__":
    if "--list" in sys.argv or "-h" in sys.argv or "--help" in sys.argv:
        sys.exit(main())
    sys.exit(isolate.run(main))
