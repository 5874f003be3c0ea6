"""Two real nodes, one control plane, one controller: what tests of the whole product share.

    with Fleet(berth) as fleet:          inside isolate.run
        fleet.agents(gpus=4)
        controller = fleet.controller()

etcd, kube-apiserver and kube-controller-manager; of each node a kubelet and a containerd with mounts, cgroup and
address of their own; `berth agent` with simulated GPUs on each, `berth controller` beside them. Pods are made by Jobs
and bound by berth. Nothing leaves the network namespace.
"""
import json
import os
import re
import signal
import subprocess
import time
import urllib.request

import isolate
import node as nodes
from cluster import Cluster, free_ports
from node import IMAGE, Timeout, wait
from world import GPU, HOLD, Agent, Failed, World

HERE = os.path.dirname(os.path.abspath(__file__))
CRDS = os.path.join(HERE, "..", "..", "deploy", "crds")
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
QUEUE = "kueue.x-k8s.io/queue-name"
HOST = "kubernetes.io/hostname"
WORK = ("job-controller,deployment-controller,replicaset-controller,garbage-collector-controller,namespace-controller,"
        "serviceaccount-controller")
PLACES = (("gpu-0", "198.51.100.210", "198.51.100.0/26"), ("gpu-1", "198.51.100.211", "198.51.100.64/26"))


class Controller:
    """A `berth controller`."""

    def __init__(self, fleet, name, program, flags):
        self.fleet, self.name, self.port = fleet, name, free_ports(1)[0]
        self.decision_log = fleet.path(name + ".decisions")
        command = [program, "controller", "--kubeconfig", fleet.cluster.kubeconfig_of("berth"), "--identity", name,
                   "--metrics", f"127.0.0.1:{self.port}", "--decision-log", self.decision_log, *flags]
        with open(fleet.path(name + ".log"), "ab") as log:
            self.process = subprocess.Popen(isolate.DIE_WITH_PARENT + command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=fleet.cluster.environment())

    def running(self):
        return self.process.poll() is None

    def text(self):
        with open(self.fleet.path(self.name + ".log"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def leads(self):
        if not self.running():
            raise Failed(f"{self.name} ended: {self.text()[-2000:]}")
        return re.search(r"\bleading\b", self.text()) is not None

    def end(self, number=signal.SIGTERM):
        """Its exit code."""
        if self.running():
            self.process.send_signal(number)
        return self.process.wait(nodes.LIMIT)

    def metric(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
            page = answer.read().decode()
        return sum(float(v) for v in re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", page, re.M))


class Fleet:
    def __init__(self, berth, places=PLACES, kubelet="kubelet", **cluster):
        self.berth, self.started = os.path.abspath(berth), time.monotonic()
        self.cluster = Cluster(**{"controllers": WORK, "audit": True, "base": isolate.folder(), "api_flags": [
            "--kubelet-preferred-address-types=InternalIP", "--allow-privileged=true"], **cluster})
        self.nodes = {name: nodes.Node(name, ip, pods, cluster=self.cluster, kubelet=kubelet)
                      for name, ip, pods in places}
        self.worlds, self.agent, self.controllers = {}, {}, []

    def path(self, *parts):
        return os.path.join(isolate.folder(), *parts)

    def __enter__(self):
        self.cluster.__enter__()
        try:
            self.api = nodes.Api(self.cluster.url, self.cluster.token())
            for name in ("kueue", "gpunodes"):
                self.kubectl("apply", "--server-side", "-f", os.path.join(CRDS, name + ".yaml"))
            self.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=180s")
            for number, (name, node) in enumerate(self.nodes.items()):
                node.__enter__()
                self.worlds[name] = World(node, self.berth, 20000 + 1000 * number)
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        for one in self.controllers:
            one.end(signal.SIGKILL)
        for node in self.nodes.values():
            node.__exit__()
        self.cluster.stop()

    # Processes

    def agents(self, gpus=4):
        """One on each node; it is there when its GPUs are allocatable."""
        for name, world in self.worlds.items():
            self.agent[name] = world.agent(gpus, ready=False)
        for name, world in self.worlds.items():
            world.wait_counts(gpus, gpus, agent=self.agent[name])
            world.wait_registered(self.agent[name])

    def next_agent(self, name, berth=None, gpus=4):
        """Another one on the same node with the same state, which the one before may still use."""
        world, before = self.worlds[name], self.agent[name]
        world.berth, world.number = berth or world.berth, world.number + 1
        after = Agent(world, f"agent-{world.number}", gpus, state=before.state)
        world.agents.append(after)
        self.agent[name] = after
        return after

    def controller(self, name="berth-0", berth=None, flags=(), leads=True):
        one = Controller(self, name, berth or self.berth, list(flags))
        self.controllers.append(one)
        if leads:
            wait(f"{name} leads", one.leads)
        return one

    def kubectl(self, *arguments, check=True):
        return self.cluster.kubectl(*arguments, check=check)

    def logs(self):
        """The ends of all logs, for a test that failed."""
        out = [f"--- {c.name}\n" + "\n".join(c.text().splitlines()[-15:]) for c in self.controllers]
        for node in self.nodes.values():
            for name in node.processes:
                if name != "mounts":
                    out.append(f"--- {name} of {node.name}\n{node.tail(name, 12)}")
        return "\n".join(out)

    # Objects

    def queue(self, name, gpus, one_host=True):
        """A ClusterQueue of so many GPUs, and a LocalQueue of the same name in default."""
        def make(kind, name, spec, path):
            self.api.post(path, {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name},
                                 "spec": spec})
        if not self.api.get(f"{KUEUE}/resourceflavors")["items"]:
            if one_host:
                make("Topology", "hosts", {"levels": [{"nodeLabel": HOST}]}, f"{KUEUE}/topologies")
            make("ResourceFlavor", "gpus", {"nodeLabels": {"kubernetes.io/os": "linux"},
                                            **({"topologyName": "hosts"} if one_host else {})},
                 f"{KUEUE}/resourceflavors")
        make("ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": [
            {"coveredResources": [GPU], "flavors": [
                {"name": "gpus", "resources": [{"name": GPU, "nominalQuota": gpus}]}]}]}, f"{KUEUE}/clusterqueues")
        make("LocalQueue", name, {"clusterQueue": name}, f"{KUEUE}/namespaces/default/localqueues")

    def job(self, name, pods, gpus, queue=None, script=HOLD, one_host=True, selector=None, gang=False):
        labels = {QUEUE: queue} if queue else {}
        notes = {"kueue.x-k8s.io/podset-required-topology": HOST} if queue and one_host else {}
        self.api.post("/apis/batch/v1/namespaces/default/jobs", {
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {
                "name": name, "labels": labels, "annotations": {"berth.dev/gang": "true"} if gang else {}}, "spec": {
                "parallelism": pods, "completions": pods, "completionMode": "Indexed", "backoffLimit": 20,
                "suspend": queue is not None,
                "template": {"metadata": {"annotations": notes}, "spec": {
                    "schedulerName": "berth", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                    "enableServiceLinks": False, "automountServiceAccountToken": False,
                    **({"nodeSelector": selector} if selector else {}),
                    "containers": [{"name": "main", "image": IMAGE, "imagePullPolicy": "Never",
                                    "command": ["sh", "-c", script],
                                    "resources": {"limits": {GPU: gpus}}}]}}}})

    def delete_job(self, name):
        self.kubectl("delete", "job", name, "--wait=false")

    def pods(self, job):
        """Those that are there and not on their way out."""
        found = self.api.get(f"/api/v1/namespaces/default/pods?labelSelector=batch.kubernetes.io/job-name={job}")
        return [p for p in found["items"] if "deletionTimestamp" not in p["metadata"]
                and p["status"].get("phase") not in ("Failed", "Succeeded")]

    def running(self, job, count):
        """Its pods when so many are ready, else None."""
        pods = self.pods(job)
        ready = [p for p in pods if any(c["type"] == "Ready" and c["status"] == "True"
                                        for c in p["status"].get("conditions", []))]
        return pods if len(pods) == count == len(ready) else None

    def wait_running(self, job, count):
        try:
            return wait(f"{count} pods of {job} run", lambda: self.running(job, count))
        except Timeout as e:
            raise Failed(f"{e}; {json.dumps([(p['metadata']['name'], p['status']) for p in self.pods(job)])}; "
                         f"{json.dumps((self.workload(job) or {}).get('status', {}).get('conditions'))}")

    def workload(self, job):
        for one in self.api.get(f"{KUEUE}/namespaces/default/workloads")["items"]:
            if any(o["name"] == job for o in one["metadata"].get("ownerReferences", [])):
                return one
        return None

    def condition(self, job, kind):
        status = (self.workload(job) or {}).get("status", {})
        return next((c for c in status.get("conditions", []) if c["type"] == kind), {})

    def gpu_states(self, name):
        found = self.api.find(f"/apis/berth.dev/v1alpha1/gpunodes/{name}") or {}
        return {g["index"]: g for g in found.get("status", {}).get("gpus", [])}

    def audit(self, resource, subresource, verb):
        """What was written and answered, in order."""
        out = []
        with open(self.cluster.path("audit.log"), encoding="utf-8") as f:
            for line in f:
                event = json.loads(line) if line.endswith("\n") else {}
                about = event.get("objectRef", {})
                if event.get("stage") == "ResponseComplete" and event["verb"] == verb and \
                        (about.get("resource"), about.get("subresource", "")) == (resource, subresource):
                    out.append(event)
        return out

    # What is in containers

    def told(self, pod):
        """The GPUs whose device nodes the container has, as it says itself."""
        def read():
            text = self.kubectl("logs", pod["metadata"]["name"], check=False)
            return re.findall(r"^dev /dev/nvidia(\d+)$", text, re.M)
        return sorted(int(i) for i in wait(f"{pod['metadata']['name']} told what it has", read))


def steps():
    """A list, and the decorator that puts a function into it with its title."""
    found = []

    def step(title):
        def add(function):
            found.append((title, function))
            return function
        return add
    return found, step


def planned(pod):
    """(node, GPUs) that the decision named."""
    gpus = (pod["metadata"].get("annotations") or {}).get("berth.dev/gpus", "")
    return pod["spec"].get("nodeName"), sorted(int(i) for i in gpus.split(",") if i)
