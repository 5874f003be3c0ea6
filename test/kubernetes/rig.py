"""`berth controller` as a process on a real API server, with nodes simulated here: what tests of it share.

    class Failover(rig.Test):
        def test_something(self):
            with rig.Rig(self) as r:
                r.nodes(4, gpus=8)
                leader = r.controller("berth")
                ...

Standard library only. Waits have generous deadlines and none is a measurement; what a test prints with
Test.figure() is what was seen. A failed test shows the end of the controllers' logs. Everything a test starts
ends with its Rig.
"""
import argparse
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "conformance"))
sys.path.insert(0, HERE)
from api_client import PATCHES, Server  # noqa: E402
from cluster import Cluster, free_ports  # noqa: E402

CRDS = os.path.join(HERE, "..", "..", "deploy", "crds")
DEADLINE_S = 180
GPU = "nvidia.com/gpu"
QUEUE = "kueue.x-k8s.io/queue-name"
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1"
# What Kubernetes itself makes of Jobs and Deployments.
WORK = ("job-controller,deployment-controller,replicaset-controller,garbage-collector-controller,"
        "namespace-controller")

berth = ""  # the program; main() sets it


def pause(seconds):
    threading.Event().wait(seconds)


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status = status


def is_being_set_up(status, message):
    """The server is still making room for a kind that it has just begun to serve."""
    words = {500: "error resolving resource", 429: "storage is (re)initializing"}.get(status)
    return words is not None and words in message


class Api:
    """JSON in, JSON out. What is refused raises Refused, what is not answered OSError."""

    def __init__(self, kubeconfig):
        self.server = Server.from_kubeconfig(kubeconfig)

    def call(self, method, path, body=None, patch=None, tries=50):
        headers = {"Content-Type": PATCHES[patch]} if patch else None
        try:
            status, _, text = self.server.request(
                method, path, None if body is None else json.dumps(body), headers)
        except http.client.HTTPException as e:
            raise OSError(str(e)) from e
        answer = json.loads(text) if text.startswith("{") else {"message": text}
        if is_being_set_up(status, answer.get("message", "")) and tries > 1:
            pause(0.2)
            return self.call(method, path, body, patch, tries - 1)
        if status >= 300:
            raise Refused(status, f"{method} {path}: {answer.get('message')}")
        return answer

    def watch(self, path, tries=50):
        watch = self.server.watch(path)
        while is_being_set_up(watch.status, watch.first) and (tries := tries - 1):
            pause(0.2)
            watch = self.server.watch(path)
        if watch.status != 200:
            raise Refused(watch.status, f"watch {path}: {watch.first}")
        return watch

    def get(self, path):
        return self.call("GET", path)

    def items(self, path):
        return self.get(path).get("items", [])

    def post(self, path, body):
        return self.call("POST", path, body)

    def merge(self, path, body):
        return self.call("PATCH", path, body, patch="merge")

    def delete(self, path, body=None):
        return self.call("DELETE", path, body)


class Kubelets(threading.Thread):
    """Lets bound pods run, ends them when their time has come, and lets go of those that were told to leave.

    Annotations of a pod: test/seconds (how long it runs; for ever when there is none).
    """

    def __init__(self, kubeconfig):
        super().__init__(daemon=True)
        self.api = Api(kubeconfig)
        self.stopped = threading.Event()
        self.began = {}

    def run(self):
        while not self.stopped.wait(0.1):
            try:
                for pod in self.api.items("/api/v1/pods?resourceVersion=0"):
                    if pod["spec"].get("nodeName"):
                        self.look_after(pod)
            except (OSError, Refused, ValueError):
                pass  # the server is away: asked again

    def look_after(self, pod):
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        phase = pod["status"].get("phase")
        try:
            if "deletionTimestamp" in meta:
                self.api.delete(path, {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}})
            elif phase == "Pending":
                self.began[meta["uid"]] = time.monotonic()
                self.api.call("PATCH", path + "/status", self.status("Running", "True"), patch="strategic")
            elif phase == "Running":
                seconds = (meta.get("annotations") or {}).get("test/seconds")
                began = self.began.setdefault(meta["uid"], time.monotonic())
                if seconds is not None and time.monotonic() > began + float(seconds):
                    self.api.call("PATCH", path + "/status", self.status("Succeeded", "False"), patch="strategic")
        except Refused as e:
            if e.status not in (404, 409):
                raise

    @staticmethod
    def status(phase, ready):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        state = {"running": {"startedAt": now}} if phase == "Running" else \
            {"terminated": {"exitCode": 0, "startedAt": now, "finishedAt": now}}
        return {"status": {"phase": phase, "conditions": [
            {"type": "Ready", "status": ready, "lastTransitionTime": now}], "containerStatuses": [
                {"name": "c", "image": "i", "imageID": "", "ready": ready == "True", "restartCount": 0,
                 "state": state}]}}


class Controller:
    """A `berth controller`."""

    def __init__(self, rig, user, *flags, kubeconfig=None):
        self.user = user
        self.port = free_ports(1)[0]
        self.log = rig.cluster.path(f"controller-{len(rig.controllers)}-{user}.log")
        command = [berth, "controller", "--kubeconfig", kubeconfig or rig.cluster.kubeconfig_of(user),
                   "--identity", user, "--metrics", f"127.0.0.1:{self.port}",
                   "--decision-log", self.log + ".decisions", *flags]
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def running(self):
        return self.child.poll() is None

    def kill(self):
        self.child.kill()
        self.child.wait()

    def signal(self, number):
        self.child.send_signal(number)

    def stop(self):
        """Its exit code."""
        if self.running():
            self.child.send_signal(signal.SIGCONT)
            self.child.terminate()
        try:
            return self.child.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def decisions(self):
        try:
            with open(self.log + ".decisions", encoding="utf-8") as f:
                return [json.loads(line) for line in f if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def metric(self, name, **labels):
        """The sum of the samples of a name that carry these labels."""
        url = f"http://127.0.0.1:{self.port}/metrics"
        with urllib.request.urlopen(url, timeout=30) as answer:
            page = answer.read().decode()
        total = 0.0
        for found, inside, value in re.findall(r"^(\w+)(\{[^}]*\})? (\S+)$", page, re.M):
            if found == name and all(f'{k}="{v}"' in inside for k, v in labels.items()):
                total += float(value)
        return total


class Rig:
    def __init__(self, test, controllers=WORK, crds=("kueue", "coscheduling", "gpunodes", "berthpolicies"), **options):
        self.test = test
        self.cluster = Cluster(controllers=controllers, **{"audit": True, **options})
        self.crds = crds
        self.controllers = []
        self.namespaces = []

    def __enter__(self):
        self.cluster.__enter__()
        try:
            self.api = Api(self.cluster.kubeconfig)
            for name in self.crds:
                self.kubectl("apply", "--server-side", "-f", os.path.join(CRDS, name + ".yaml"))
            self.wait("custom kinds", self.served)
            self.kubelets = Kubelets(self.cluster.kubeconfig)
            if not self.cluster.kwok:  # which does the same for its nodes
                self.kubelets.start()
        except BaseException:
            self.cluster.stop()
            raise
        return self

    def __exit__(self, kind, error, trace):
        for one in self.controllers:
            one.stop()
        if kind is not None:
            for one in self.controllers:
                print(f"---- {one.log}\n" + "\n".join(one.text().splitlines()[-25:]), file=sys.stderr)
        self.kubelets.stopped.set()
        if self.kubelets.is_alive():
            self.kubelets.join()
        self.cluster.stop()

    def server_dies(self, seconds=1.0, meanwhile=lambda: None):
        """kill -9 of the API server; it is back so long afterwards."""
        self.cluster.kill_api_server()
        pause(seconds)
        meanwhile()
        self.cluster.start_api_server()
        self.api = Api(self.cluster.kubeconfig)  # its connection ended

    def served(self):
        paths = {"kueue": KUEUE, "coscheduling": GROUPS}
        for name in self.crds:
            if name in paths:
                try:
                    self.api.get(paths[name])
                except Refused:
                    return False
        return True

    def kubectl(self, *arguments, check=True):
        return self.cluster.kubectl(*arguments, check=check)

    def wait(self, what, ready, deadline_s=DEADLINE_S, step_s=0.1):
        """Until ready() is true; lost answers are asked for again. Seconds that it took."""
        begin = time.monotonic()
        while True:
            try:
                if ready():
                    return time.monotonic() - begin
            except OSError:
                pass
            if time.monotonic() > begin + deadline_s:
                raise AssertionError(f"{what}: not within {deadline_s} s")
            pause(step_s)

    def controller(self, user="berth", *flags, leads=True, kubeconfig=None):
        one = Controller(self, user, *flags, kubeconfig=kubeconfig)
        self.controllers.append(one)
        if leads:
            self.wait(f"{user} leads", lambda: self.leads(one), 90)
        return one

    @staticmethod
    def leads(one):
        if not one.running():
            raise AssertionError("the controller ended: " + one.text())
        return re.search(r"\bleading\b", one.text()) is not None

    # ---- objects ---------------------------------------------------------------------------------
    def nodes(self, count, gpus=8, prefix="node-", labels=None):
        for i in range(count):
            self.node(f"{prefix}{i}", gpus, labels)

    def node(self, name, gpus=8, labels=None):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        amounts = {GPU: str(gpus), "cpu": "64", "memory": "512Gi", "pods": "110"}
        self.api.post("/api/v1/nodes", {"metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, **(labels or {})}}})
        self.api.merge(f"/api/v1/nodes/{name}/status", {"status": {
            "capacity": amounts, "allocatable": amounts, "conditions": [
                {"type": "Ready", "status": "True", "reason": "Simulated", "message": "", "lastHeartbeatTime": now,
                 "lastTransitionTime": now}]}})

    def namespace(self, name, **labels):
        self.api.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": {
            **labels}}})
        self.namespaces.append(name)
        return name

    def queue(self, name, ns, gpus, **spec):
        """A ClusterQueue of so many GPUs with a LocalQueue of the same name."""
        try:
            self.api.post(f"{KUEUE}/resourceflavors", {
                "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "default"}})
        except Refused as e:
            if e.status != 409:
                raise
        self.api.post(f"{KUEUE}/clusterqueues", {
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": name},
            "spec": {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": [GPU], "flavors": [
                {"name": "default", "resources": [{"name": GPU, "nominalQuota": gpus}]}]}], **spec}})
        self.api.post(f"{KUEUE}/namespaces/{ns}/localqueues", {
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": {"name": name},
            "spec": {"clusterQueue": name}})

    def set_quota(self, name, gpus):
        self.api.merge(f"{KUEUE}/clusterqueues/{name}", {"spec": {"resourceGroups": [
            {"coveredResources": [GPU], "flavors": [
                {"name": "default", "resources": [{"name": GPU, "nominalQuota": gpus}]}]}]}})

    def job(self, ns, name, pods=1, gpus=1, queue=None, group=None, seconds=None, scheduler="berth",
            suspend=None):
        labels = {QUEUE: queue} if queue else {}
        pod = {"metadata": {"labels": {"scheduling.x-k8s.io/pod-group": group} if group else {},
                            "annotations": {} if seconds is None else {"test/seconds": str(seconds)}},
               "spec": pod_spec(gpus, scheduler)}
        spec = {"parallelism": pods, "completions": pods, "backoffLimit": 100, "template": pod}
        if suspend is None:
            suspend = queue is not None
        return self.api.post(f"/apis/batch/v1/namespaces/{ns}/jobs", {
            "metadata": {"name": name, "labels": labels}, "spec": {**spec, "suspend": suspend}})

    def pod_group(self, ns, name, minimum):
        self.api.post(f"{GROUPS}/namespaces/{ns}/podgroups", {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": name},
            "spec": {"minMember": minimum}})

    # ---- what is to be seen ------------------------------------------------------------------------
    def pods(self, ns, **labels):
        return [p for p in self.api.items(f"/api/v1/namespaces/{ns}/pods")
                if all((p["metadata"].get("labels") or {}).get(k) == v for k, v in labels.items())]

    def bound(self, ns):
        """Those that are bound and not on their way out."""
        return [p for p in self.pods(ns) if p["spec"].get("nodeName") and "deletionTimestamp" not in p["metadata"]]

    def workloads(self, ns):
        return self.api.items(f"{KUEUE}/namespaces/{ns}/workloads")

    def audit(self, resource=None, subresource=None, verb=None):
        """What was written and answered, in order."""
        out = []
        with open(self.cluster.path("audit.log"), encoding="utf-8") as f:
            for line in f:
                try:
                    event = json.loads(line)
                except ValueError:
                    continue  # being written
                about = event.get("objectRef", {})
                if event.get("stage") == "ResponseComplete" and \
                        resource in (None, about.get("resource")) and \
                        subresource in (None, about.get("subresource", "")) and verb in (None, event["verb"]):
                    out.append(event)
        return out

    def bindings(self):
        """{(namespace, pod): [user of each binding that was accepted]}"""
        out = {}
        for event in self.audit("pods", "binding", "create"):
            if event["responseStatus"]["code"] == 201:
                about = event["objectRef"]
                out.setdefault((about["namespace"], about["name"]), []).append(event["user"]["username"])
        return out

    def nothing_wrong(self):
        """What holds at every moment: nobody is bound twice, and no GPU and no node is given away twice."""
        for pod, users in self.bindings().items():
            self.test.assertEqual(len(users), 1, f"{pod} was bound {len(users)} times")
        used, held = {}, {}
        for pod in self.api.items("/api/v1/pods"):
            node = pod["spec"].get("nodeName")
            if not node or pod["status"].get("phase") in ("Succeeded", "Failed"):
                continue
            count = sum(int(c.get("resources", {}).get("limits", {}).get(GPU, 0)) for c in pod["spec"]["containers"])
            used[node] = used.get(node, 0) + count
            for gpu in filter(None, (pod["metadata"].get("annotations") or {}).get("berth.dev/gpus", "").split(",")):
                other = held.setdefault((node, gpu), pod["metadata"]["name"])
                self.test.assertEqual(other, pod["metadata"]["name"], f"GPU {gpu} of {node} is held twice")
        for node in self.api.items("/api/v1/nodes"):
            name = node["metadata"]["name"]
            self.test.assertLessEqual(used.get(name, 0), int(node["status"]["allocatable"][GPU]), name)


def pod_spec(gpus=1, scheduler="berth"):
    return {"schedulerName": scheduler, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [
        {"name": "c", "image": "i", "resources": {"limits": {GPU: gpus}} if gpus else {}}]}


def condition(thing, kind):
    return next((c for c in thing.get("status", {}).get("conditions", []) if c["type"] == kind), {})


def is_true(thing, kind):
    return condition(thing, kind).get("status") == "True"


class Test(unittest.TestCase):
    longMessage = True

    def figure(self, text):
        print(f"  {self.id().split('.', 1)[-1]}: {text}", file=sys.stderr, flush=True)


def main(description):
    """Runs the tests of the calling file on the program that the command line names."""
    global berth
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("berth")
    parser.add_argument("tests", nargs="*", help="all when none is named")
    options = parser.parse_args()
    berth = os.path.abspath(options.berth)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # A test file is run as a program: this module is there twice unless it looks itself up.
    sys.modules["rig"].berth = berth
    unittest.main(argv=[sys.argv[0], *options.tests], verbosity=2, warnings="ignore")
