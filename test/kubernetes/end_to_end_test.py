#!/usr/bin/env python3
"""The whole path on real parts: from a GPU that an agent finds to a gang that survives its loss.

    end_to_end_test.py BERTH [--demo]

etcd, kube-apiserver, kube-controller-manager, two kubelets with containerd, two `berth agent` with simulated GPUs and
`berth controller`, all real processes in namespaces that end with it (test/node/fleet.py). --demo tells more: what
kubectl shows at each step. Exit code 0 only when every step was seen. Needs root. KEEP=1 keeps the logs.
"""
import argparse
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "node"))
sys.path.insert(0, HERE)
import isolate  # noqa: E402
from fleet import Fleet, planned, steps  # noqa: E402
from node import Timeout, wait  # noqa: E402
from world import GPU, check, equal  # noqa: E402

COLUMNS = ("-o=custom-columns=NAME:.metadata.name,GPUS:.status.allocatable.nvidia\\.com/gpu,"
           "READY:.status.conditions[?(@.type=='GpuReady')].status,"
           "HEALTHY:.status.conditions[?(@.type=='GpuHealthy')].status")
PODS = ("-o=custom-columns=NAME:.metadata.name,NODE:.spec.nodeName,GPUS:.metadata.annotations.berth\\.dev/gpus,"
        "PHASE:.status.phase")


class Story:
    """Steps, what was seen in each, and how long each took."""

    def __init__(self, demo):
        self.demo, self.began, self.steps = demo, time.monotonic(), []

    def step(self, title):
        self.close()
        self.steps.append([title, time.monotonic(), None])
        print(f"\n{len(self.steps):2}. {title}" if self.demo else f"{len(self.steps):2}. {title}", flush=True)

    def close(self):
        if self.steps and self.steps[-1][2] is None:
            self.steps[-1][2] = time.monotonic() - self.steps[-1][1]

    def saw(self, text):
        print(f"    {text}", flush=True)

    def show(self, fleet, *arguments):
        if self.demo:
            words = [w if "custom-columns" not in w else "-o custom-columns=…" for w in arguments]
            print(f"    $ kubectl {' '.join(words)}", flush=True)
            for line in fleet.kubectl(*arguments, check=False).rstrip().splitlines():
                print(f"      {line}", flush=True)

    def why(self, fleet, *arguments):
        if self.demo:
            print(f"    $ berth why {' '.join(arguments)}", flush=True)
            done = subprocess.run([fleet.berth, "why", *arguments], env=fleet.cluster.environment(), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            for line in done.stdout.rstrip().splitlines()[:14]:
                print(f"      {line}", flush=True)

    def summary(self, total, problem):
        self.close()
        print("\n    seconds  step", flush=True)
        for number, (title, _, took) in enumerate(self.steps, 1):
            last = problem and number == len(self.steps)
            print(f"    {took:7.1f}  {number}. {title}" + ("   <-- not seen" if last else ""))
        seen = len(self.steps) - (1 if problem else 0)
        print(f"{seen} of {total} checks were seen in {time.monotonic() - self.began:.0f} s", flush=True)


STEPS, step = steps()


@step("a control plane, and two nodes that are Ready")
def nodes_ready(fleet, story, _):
    version = fleet.api.get("/version")["gitVersion"]
    for name, node in fleet.nodes.items():
        info = node.object()["status"]["nodeInfo"]
        story.saw(f"{name}: kubelet {info['kubeletVersion']}, {info['containerRuntimeVersion']}, API server {version}")
    story.show(fleet, "get", "nodes")


@step("the agents find 4 GPUs each and register them; the Nodes offer them")
def agents_register(fleet, story, _):
    fleet.agents(4)
    for name in fleet.nodes:
        wait(f"GpuNode of {name}", lambda name=name: len(fleet.gpu_states(name)) == 4)
    story.show(fleet, "get", "nodes", COLUMNS)
    story.show(fleet, "get", "gpunodes")
    story.saw("allocatable: " + ", ".join(f"{n} {node.counts(GPU)[1]}" for n, node in fleet.nodes.items()))


@step("the controller leads; a first gang of 2 pods x 2 GPUs takes the whole quota of its queue")
def first_gang(fleet, story, _):
    fleet.controller()
    fleet.queue("team", 4)
    fleet.job("first", 2, 2, queue="team")
    for pod in fleet.wait_running("first", 2):
        story.saw(f"{pod['metadata']['name']} runs on {planned(pod)[0]}, GPUs {planned(pod)[1]}")


@step("a second gang of 2 pods x 2 GPUs waits in the queue, as a whole, though GPUs are free")
def second_waits(fleet, story, _):
    fleet.job("train", 2, 2, queue="team")
    said = wait("its Workload says why", lambda: fleet.condition("train", "QuotaReserved").get("message"))
    story.saw(f"Workload: {fleet.condition('train', 'QuotaReserved')['reason']}: {said}")
    story.why(fleet, "job", "train")
    end = time.monotonic() + 3
    while time.monotonic() < end:
        equal(fleet.pods("train"), [], "pods of a Job that waits")
        time.sleep(0.3)
    story.show(fleet, "get", "workloads")


@step("the first gang ends; the second is admitted, bound and started")
def second_starts(fleet, story, seen):
    began = time.monotonic()
    fleet.delete_job("first")
    wait("admitted", lambda: fleet.condition("train", "Admitted").get("status") == "True")
    story.saw(f"admitted {time.monotonic() - began:.1f} s after the first was deleted")
    seen["train"] = fleet.wait_running("train", 2)
    story.saw(f"both containers run {time.monotonic() - began:.1f} s after it")
    story.show(fleet, "get", "pods", PODS)
    equal(len({planned(p)[0] for p in seen["train"]}), 1, "hosts of a gang that must share one")


@step("the GPUs in the containers are those that the decision named")
def devices_as_decided(fleet, story, seen):
    named, found = {}, {}
    for pod in seen["train"]:
        name = pod["metadata"]["name"]
        node, named[name] = planned(pod)
        found[name] = fleet.told(pod)
        story.saw(f"{name} on {node}: decided {named[name]}, in the container {found[name]}")
        wait(f"GpuNode names {name}", lambda pod=pod, name=name, node=node: sorted(
            i for i, g in fleet.gpu_states(node).items()
            if pod["metadata"]["uid"] in g.get("holders", [])) == found[name])
    # A kubelet does not say for which pod it asks: equal pods that start at once may have each other's, whole.
    equal(sorted(found.values()), sorted(named.values()), "GPUs in the containers")
    if found != named:
        story.saw("the two have each other's: a kubelet does not say for which of equal pods it asks; GpuNode tells the truth")
    story.show(fleet, "logs", seen["train"][0]["metadata"]["name"])


@step("the agent's metrics carry the names of the pods")
def metrics_name_pods(fleet, story, seen):
    node = planned(seen["train"][0])[0]
    def names():
        return {int(labels["gpu"]): labels.get("pod", "")
                for labels, _ in fleet.agent[node].metrics("DCGM_FI_DEV_GPU_UTIL")}
    want = {i: "" for i in range(4)}
    for pod in seen["train"]:
        want.update({i: pod["metadata"]["name"] for i in planned(pod)[1]})
    wait("metrics name the pods", lambda: names() == want)
    for gpu, pod in sorted(names().items()):
        story.saw(f'DCGM_FI_DEV_GPU_UTIL{{gpu="{gpu}",pod="{pod}",…}} on {node}')


@step("a GPU of the gang fails (Xid 79): it leaves capacity")
def gpu_fails(fleet, story, seen):
    victim = seen["train"][0]
    node, gpus = planned(victim)
    seen["node"], seen["gpu"], seen["failed_at"] = node, gpus[0], time.monotonic()
    fleet.agent[node].inject(f"xid gpu={gpus[0]} code=79")
    fleet.worlds[node].wait_counts(4, 3, agent=fleet.agent[node])
    story.saw(f"GPU {gpus[0]} of {node} under {victim['metadata']['name']}: allocatable 4 -> 3 after "
              f"{time.monotonic() - seen['failed_at']:.1f} s")
    story.show(fleet, "get", "nodes", COLUMNS)


@step("its pod is evicted and the whole gang is requeued and starts elsewhere")
def gang_moves(fleet, story, seen):
    before = {p["metadata"]["uid"] for p in seen["train"]}
    evicted = wait("the Workload is evicted", lambda: next(
        (c for c in [fleet.condition("train", "Evicted")] if c.get("status") == "True"
         or "GpuFailure" in c.get("message", "")), None))
    story.saw(f"Workload Evicted {time.monotonic() - seen['failed_at']:.1f} s after the fault: {evicted['reason']}: "
              f"{evicted['message']}")
    def moved():
        pods = fleet.running("train", 2)
        return pods if pods and not before & {p["metadata"]["uid"] for p in pods} else None
    now = wait("the gang runs again", moved)
    story.saw(f"it runs again {time.monotonic() - seen['failed_at']:.1f} s after the fault")
    for pod in now:
        node, gpus = planned(pod)
        check(node != seen["node"], f"{pod['metadata']['name']} is on {node} again, where 3 GPUs are left for 4")
        story.saw(f"{pod['metadata']['name']} on {node}: decided {gpus}, in the container {fleet.told(pod)}")
        equal(fleet.told(pod), gpus, "GPUs in the container")
    seen["train"] = now
    story.show(fleet, "get", "events", "--field-selector", "reason=EvictedDueToGpuFailure")


@step("the GPU is reset and heals: it returns to capacity and takes a pod")
def gpu_heals(fleet, story, seen):
    began, node = time.monotonic(), seen["node"]
    fleet.agent[node].inject(f"recover gpu={seen['gpu']}")
    fleet.worlds[node].wait_counts(4, 4, agent=fleet.agent[node])
    story.saw(f"{node}: allocatable 3 -> 4 after {time.monotonic() - began:.1f} s")
    fleet.job("all", 1, 4, selector={"kubernetes.io/hostname": node})
    pod = fleet.wait_running("all", 1)[0]
    equal(fleet.told(pod), [0, 1, 2, 3], "GPUs of a pod that takes the whole node")
    story.saw(f"{pod['metadata']['name']} holds all 4 GPUs of {node}")
    story.show(fleet, "get", "pods", PODS)


@step("nobody was bound twice, and the gang that moved was left alone since")
def nothing_wrong(fleet, story, seen):
    bound = {}
    for event in fleet.audit("pods", "binding", "create"):
        if event["responseStatus"]["code"] == 201:
            bound.setdefault(event["objectRef"]["name"], []).append(event["user"]["username"])
    for pod, users in bound.items():
        equal(users, ["berth"], f"who bound {pod}")
    now = {p["metadata"]["uid"] for p in fleet.pods("train")}
    equal(now, {p["metadata"]["uid"] for p in seen["train"]}, "pods of the gang")
    story.saw(f"{len(bound)} pods bound, each once")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("berth")
    parser.add_argument("--demo", action="store_true", help="show what kubectl shows")
    parser.add_argument("--version", choices=["1.34"], help="an older Kubernetes: control plane and kubelets")
    options = parser.parse_args()
    older = {"kubelet": f"kubelet-{options.version}", "version": options.version} if options.version else {}
    story, seen, problem = Story(options.demo), {}, None
    print("starting etcd, kube-apiserver, kube-controller-manager and two nodes …", flush=True)
    with Fleet(options.berth, **older) as fleet:
        try:
            for title, function in STEPS:
                story.step(title)
                function(fleet, story, seen)
        except (AssertionError, Timeout) as e:
            problem = str(e)
            print(f"--- not seen: {problem}\n{fleet.logs()}", flush=True)
        story.summary(len(STEPS), problem)
    return 1 if problem else 0


if __name__ == "__main__":
    if "-h" in sys.argv or "--help" in sys.argv:
        sys.exit(main())
    sys.exit(isolate.run(main))
