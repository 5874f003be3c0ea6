#!/usr/bin/env python3
"""A real kubelet and containerd on the embedded API server, with the controller of `berth up` and an agent.

    embedded_test.py BERTH

Needs root; everything happens in namespaces that end with the test.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import isolate  # noqa: E402
import node as nodes  # noqa: E402
from embedded import Embedded  # noqa: E402
from world import GPU, World, check, equal, gpu_pod  # noqa: E402


def ask(world, name, gpus):
    pod = gpu_pod(name, gpus, schedulerName="berth")
    pod["spec"].pop("nodeName")
    world.node.create(pod)


def path(world):
    agent = world.agent(4)
    ask(world, "first", 3)
    world.node.wait_running("first")
    equal(len(world.gpu_nodes("first")), 3, "device nodes of first")
    hint = world.node.pod("first")["metadata"]["annotations"]["berth.dev/gpus"]
    equal([f"/dev/nvidia{i}" for i in hint.split(",")], world.gpu_nodes("first"), "the GPUs that were decided")
    ask(world, "second", 2)
    nodes.wait("second is told why it waits", lambda: any(
        c["type"] == "PodScheduled" and c["status"] == "False"
        for c in world.node.pod("second")["status"].get("conditions", [])))
    world.node.delete("first")
    world.node.wait_running("second")
    equal(len(world.gpu_nodes("second")), 2, "device nodes of second")
    agent.inject("xid gpu=3 code=79")
    nodes.wait("a broken GPU leaves", lambda: world.node.counts(GPU)[1] == 3)


def restarts(world):
    before = world.node.pod("second")["status"]["containerStatuses"][0]["containerID"]
    world.node.restart_kubelet()
    nodes.wait("the kubelet counts again", lambda: world.node.counts(GPU)[1] == 3)
    status = world.node.pod("second")["status"]["containerStatuses"][0]
    check(status["containerID"] == before and status["restartCount"] == 0, f"second was touched: {json.dumps(status)}")


def main():
    berth = os.path.abspath(sys.argv[1])
    with Embedded(berth) as cluster, nodes.Node(name="real-0", ip="198.51.100.201", cluster=cluster) as node:
        world = World(node, berth)
        for test in (path, restarts):
            try:
                test(world)
            except Exception:
                for name in ["kubelet", *(agent.name for agent in world.agents)]:
                    print(f"--- {name}:\n{node.tail(name)}")
                print(f"--- berth up:\n{cluster.log()[-3000:]}")
                raise
            print(f"pass  {test.__name__}", flush=True)
    print("2 of 2 tests")
    return 0


if __name__ == "__main__":
    sys.exit(isolate.run(main))
