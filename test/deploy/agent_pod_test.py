#!/usr/bin/env python3
"""The agent as it is shipped: image, DaemonSet's pod and a real kubelet; replaced as a rolling update does it.

    agent_pod_test.py BERTH       needs root; everything happens in namespaces that end with the test

Pods are made here from the template of deploy/berth.yaml, as the DaemonSet's controller would. Only the GPUs are
simulated, and the API server is out of the pods' reach: what the agent writes there is tested elsewhere.
"""
import json
import os
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "test", "node"))
import isolate  # noqa: E402
import node as nodes  # noqa: E402

NS = "/api/v1/namespaces/berth-system"
GPUS = 8


def template(node):
    """The DaemonSet's pod, as kubectl reads it."""
    out = node.kubectl("create", "--dry-run=client", "-o", "json", "-f", os.path.join(ROOT, "deploy", "berth.yaml"))
    decoder, at, found = json.JSONDecoder(), 0, []
    while out[at:].strip():
        at += len(out[at:]) - len(out[at:].lstrip())
        one, at = decoder.raw_decode(out, at)
        found += one["items"] if one["kind"] == "List" else [one]
    return next(o for o in found if o["kind"] == "DaemonSet")["spec"]["template"]


def agent_pod(shipped, name):
    pod = json.loads(json.dumps(shipped))
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    spec.update(nodeName=nodes.NAME, restartPolicy="Always", automountServiceAccountToken=False)
    spec["volumes"].append({"name": "fleet", "configMap": {"name": "fleet"}})
    container["volumeMounts"].append({"name": "fleet", "mountPath": "/etc/fleet", "readOnly": True})
    container["args"].append("--source=sim=/etc/fleet/fleet.yaml")
    container["env"].append({"name": "KUBERNETES_SERVICE_HOST", "value": ""})
    container["imagePullPolicy"] = "Never"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **pod["metadata"]}, "spec": spec}


def ready(node, name):
    pod = node.api.get(f"{NS}/pods/{name}")
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


def why(node, name):
    pod = node.api.get(f"{NS}/pods/{name}")
    events = node.api.get(f"{NS}/events?fieldSelector=involvedObject.name={name}")["items"]
    logs = node.kubectl("-n", "berth-system", "logs", name, check=False)
    return json.dumps(pod["status"]) + "\n" + "\n".join(f"{e['reason']}: {e['message']}" for e in events) + "\n" + logs


class Samples(threading.Thread):
    """What the node offers, all the time."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.api, self.name, self.stopped, self.seen = node.new_api(), node.name, threading.Event(), []

    def run(self):
        while not self.stopped.wait(0.05):
            status = self.api.get(f"/api/v1/nodes/{self.name}")["status"]
            self.seen.append(int(status["allocatable"].get("nvidia.com/gpu", -1)))


def start(node, shipped, name):
    node.api.post(f"{NS}/pods", agent_pod(shipped, name))
    try:
        nodes.wait(f"{name} is ready", lambda: ready(node, name))
    except nodes.Timeout as e:
        raise AssertionError(f"{e}\n{why(node, name)}") from e


def main():
    archive = os.environ["BERTH_IMAGE"]
    with nodes.Node() as node:
        command = [os.path.join(node.bin, "ctr"), "images", "import", "--local", "--snapshotter", "native", archive]
        subprocess.run(command, check=True, env=node.environment(), capture_output=True)
        shipped = template(node)
        node.kubectl("apply", "-f", os.path.join(ROOT, "deploy", "rbac", "namespace.yaml"),
                     "-f", os.path.join(ROOT, "deploy", "rbac", "agent.yaml"))
        node.kubectl("label", "node", nodes.NAME, "nvidia.com/gpu.present=true")
        node.api.post(f"{NS}/configmaps", {"metadata": {"name": "fleet"}, "data": {"fleet.yaml": json.dumps(
            {"pools": [{"name": nodes.NAME.rsplit("-", 1)[0], "count": 1, "model": "H100", "gpus": GPUS}]})}})
        start(node, shipped, "first")
        nodes.wait("the node offers its GPUs", lambda: node.counts("nvidia.com/gpu") == (GPUS, GPUS))
        node.create(nodes.pod("worker", limits={"nvidia.com/gpu": 2}))
        node.wait_running("worker")
        samples = Samples(node)
        samples.start()
        start(node, shipped, "second")
        node.api.delete(f"{NS}/pods/first", 30)
        nodes.wait("the first agent is gone", lambda: node.api.find(f"{NS}/pods/first") is None)
        node.create(nodes.pod("later", limits={"nvidia.com/gpu": 2}))
        node.wait_running("later")
        samples.stopped.set()
        samples.join()
        if set(samples.seen) != {GPUS}:
            raise AssertionError(f"allocatable was {sorted(set(samples.seen))} while one agent followed another")
        status = node.api.get(f"{NS}/pods/second")["status"]["containerStatuses"][0]
        if status["restartCount"] or node.phase("worker") != "Running":
            raise AssertionError(f"{status}; worker: {node.phase('worker')}")
        print(f"5 checks passed: allocatable was read {len(samples.seen)} times while one agent followed another, "
              f"and was {GPUS} each time")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if isolate.INSIDE in os.environ:  # started again, in there
        sys.exit(isolate.run(main))
    with tempfile.TemporaryDirectory(prefix="berth-agent-pod-") as scratch:
        archive_path = os.environ["BERTH_IMAGE"] = os.path.join(scratch, "image.tar")
        subprocess.run([os.path.join(ROOT, "scripts", "image"), os.path.abspath(sys.argv[1]), archive_path],
                       check=True, stdout=subprocess.DEVNULL)
        code = isolate.run(main)
    sys.exit(code)
