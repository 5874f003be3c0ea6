"""What every workload of bench/peers stands on: a fresh API server, load, simulated kubelets, and what was seen.

Bindings and writes are read from the API server's audit log, whose users say who wrote; CPU and memory from
/proc. Times are those of the log. What is written by the users "admin" and "load" is the load itself.
"""
import calendar
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "test", "kubernetes")]
import cluster as control_plane  # noqa: E402
import drain  # noqa: E402
from drain import free_port, pause, usage  # noqa: E402,F401

TICKS = os.sysconf("SC_CLK_TCK")
PODS = "/api/v1/namespaces/default/pods"
GPU = "nvidia.com/gpu"
OURS = ("admin", "load", "system:apiserver")


class Api(drain.Api):
    def patch(self, path, body, connection, kind="strategic-merge"):
        connection.request("PATCH", path, json.dumps(body),
                           {**self.headers, "Content-Type": f"application/{kind}-patch+json"})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def delete_now(self, path, connection):
        connection.request("DELETE", path, json.dumps({"gracePeriodSeconds": 0}), self.headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


def stamp(text):
    """Seconds since 1970 of an audit log's time, to the microsecond."""
    whole, part = text.rstrip("Z").split(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float("0." + part)


class Audit:
    """The writes of a log, read on as it grows."""

    def __init__(self, path):
        self.path, self.offset, self.rest = path, 0, b""
        self.lock = threading.Lock()
        self.bound = {}  # pod: when
        self.writes = {}  # (user, verb, resource): how many
        self.evicted = set()
        self.told = {}  # pod: when the contestant first wrote its status

    def read(self):
        with self.lock:
            try:
                with open(self.path, "rb") as f:
                    f.seek(self.offset)
                    data = f.read()
            except FileNotFoundError:
                return
            self.offset += len(data)
            lines = (self.rest + data).split(b"\n")
            self.rest = lines.pop()
            for line in lines:
                self.take(json.loads(line))

    def take(self, event):
        about, user = event.get("objectRef", {}), event["user"]["username"]
        code = event.get("responseStatus", {}).get("code", 0)
        if about.get("subresource") == "binding" and code == 201:
            self.bound[about["name"]] = stamp(event["stageTimestamp"])
        if user in OURS or about.get("resource") == "leases":
            return
        if about.get("resource") == "pods" and about.get("subresource") == "status" and code < 300:
            self.told.setdefault(about["name"], stamp(event["stageTimestamp"]))
        if event["verb"] == "delete" and about.get("resource") == "pods" and code < 300:
            self.evicted.add(about["name"])
        what = about.get("resource", "?") + ("/" + about["subresource"] if about.get("subresource") else "")
        key = (user, event["verb"], what + ("" if code < 300 else f" ({code})"))
        self.writes[key] = self.writes.get(key, 0) + 1

    def forget_writes(self):
        self.read()
        self.writes = {}


class Kubelets:
    """Lets bound pods run, and lets go of those that were told to leave, as fast as the server takes it."""

    RUNNING = {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "conditions": [
        {"type": "Ready", "status": "True"}], "containerStatuses": [
            {"name": "c", "image": "i", "imageID": "", "ready": True, "started": True, "restartCount": 0,
             "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}}

    def __init__(self, api, workers=4):
        self.api, self.stopped, self.started = api, False, set()
        self.todo = queue.SimpleQueue()
        self.running = set()
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(workers)]
        self.threads.append(threading.Thread(target=self.watch, daemon=True))
        for thread in self.threads:
            thread.start()

    def watch(self):
        while not self.stopped:
            connection = self.api.connect()
            try:
                connection.request("GET", f"{PODS}?watch=1&resourceVersion=0&timeoutSeconds=600", headers=self.api.headers)
                answer = connection.getresponse()
                while not self.stopped:
                    line = answer.readline()
                    if not line:
                        break
                    self.see(json.loads(line))
            except (OSError, ValueError):
                pause(0.1)

    def see(self, event):
        pod = event["object"]
        meta, name = pod.get("metadata", {}), pod.get("metadata", {}).get("name")
        if event["type"] not in ("ADDED", "MODIFIED") or not pod["spec"].get("nodeName"):
            return
        if "deletionTimestamp" in meta:
            self.todo.put(("leave", name))
        elif pod["status"].get("phase") == "Pending" and meta["uid"] not in self.started:
            self.started.add(meta["uid"])
            self.todo.put(("run", name))

    def work(self):
        connection = self.api.connect()
        while not self.stopped:
            try:
                what, name = self.todo.get(timeout=0.5)
            except queue.Empty:
                continue
            try:
                if what == "run":
                    self.api.patch(f"{PODS}/{name}/status", self.RUNNING, connection)
                    self.running.add(name)
                else:
                    self.api.delete_now(f"{PODS}/{name}", connection)
            except OSError:
                connection = self.api.connect()
                self.todo.put((what, name))

    def stop(self):
        self.stopped = True


class ControlPlane(control_plane.Cluster):
    """Each program in a session of its own, as a contestant's are: the kernel shares a busy machine by sessions."""

    def spawn(self, program, *flags):
        with open(self.path(program + ".log"), "ab") as log:
            process = subprocess.Popen([os.path.join(self.bin, program), *flags], stdout=log, stderr=log,
                                       stdin=subprocess.DEVNULL, cwd=self.folder, start_new_session=True)
        self.processes.append((program, process))
        return process


def busy_ticks():
    with open("/proc/stat", encoding="ascii") as f:
        fields = [int(x) for x in f.readline().split()[1:]]
    return sum(fields[:3]) + sum(fields[5:8])


class Rig:
    """A fresh API server with one contestant's processes on it."""

    def __init__(self, contestant):
        control_plane.USERS[:] = list(dict.fromkeys(control_plane.USERS + contestant.users))
        self.contestant = contestant
        self.cluster = ControlPlane(audit=True, api_flags=contestant.api_flags)
        self.children, self.past, self.kubelets = {}, {}, None

    def __enter__(self):
        self.cluster.__enter__()
        self.api = Api(self.cluster.kubeconfig_of("load"))
        self.audit = Audit(self.cluster.path("audit.log"))
        return self

    def __exit__(self, *_):
        if self.kubelets:
            self.kubelets.stop()
        self.stop_all()
        self.cluster.stop()

    # ---- processes -----------------------------------------------------------------------------
    def spawn(self, name, argv, env=None):
        with open(self.cluster.path(name + ".log"), "ab") as log:
            self.children[name] = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                   env={**os.environ, **(env or {})}, cwd=self.cluster.folder,
                                                   start_new_session=True)

    def stop_all(self):
        for name, child in self.children.items():
            if child.poll() is None:
                self.past[name] = usage(child.pid)
                child.terminate()
        for child in self.children.values():
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self.children = {}

    def dead(self):
        return [name for name, child in self.children.items() if child.poll() is not None]

    def tail(self, name, size=1500):
        with open(self.cluster.path(name + ".log"), encoding="utf-8", errors="replace") as f:
            return f.read()[-size:]

    def cost(self):
        """{process: (CPU seconds, peak MB)} of the contestant."""
        return {name: usage(child.pid) for name, child in self.children.items() if child.poll() is None}

    def server_cpu(self):
        return {name: usage(p.pid)[0] for name, p in self.cluster.processes}

    # ---- the load ------------------------------------------------------------------------------
    def kubectl(self, *arguments):
        done = subprocess.run([os.path.join(control_plane.tools("kubectl"), "kubectl"), *arguments], text=True,
                              env=self.cluster.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stdout[-500:]}")

    def apply(self, *files):
        self.kubectl("apply", "--server-side", *[x for file in files for x in ("-f", file)])
        for attempt in range(10):
            try:
                return self.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
            except RuntimeError:  # one that is so new that it has no conditions yet
                if attempt == 9:
                    raise
                pause(0.5)

    def nodes(self, count):
        self.api.many([("/api/v1/nodes", node(i)) for i in range(count)])

    def filler(self, name, node_name, gpus):
        """A pod of somebody else that runs already."""
        body = pod(name, gpus, "default-scheduler")
        body["spec"]["nodeName"] = node_name
        return PODS, body

    def run_kubelets(self):
        self.kubelets = Kubelets(self.api)

    def wait_running(self, names, limit=120):
        end = time.monotonic() + limit
        while not names <= self.kubelets.running:
            if time.monotonic() > end:
                raise RuntimeError(f"{len(names - self.kubelets.running)} pods do not run")
            pause(0.1)

    def wait_bound(self, names, limit, patience):
        """Until all are bound, nothing was for so long, a process died, or the limit; why it stopped."""
        names, start = set(names), time.monotonic()
        last, seen = start, 0
        while True:
            self.audit.read()
            count = len(names & self.audit.bound.keys())
            now = time.monotonic()
            if count > seen:
                last, seen = now, count
            if seen == len(names):
                return ""
            if self.dead():
                return f"{', '.join(self.dead())} ended: {self.tail(self.dead()[0], 300)}"
            if now > last + patience:
                return f"nothing bound for {patience} s"
            if now > start + limit:
                return f"stopped after {limit} s"
            pause(0.1)


def node(i, gpus=8):
    name = f"n{i:05d}"
    amounts = {"cpu": "128", "memory": "2Ti", "pods": "110", GPU: str(gpus), "ephemeral-storage": "1Ti"}
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {
                "kubernetes.io/hostname": name, "topology.kubernetes.io/rack": f"r{i // 16:03d}",
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": str(gpus),
                "nvidia.com/gpu.memory": "81559"}},
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady",
                 "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}


def pod(name, gpus, scheduler):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": {}, "annotations": {}},
            "spec": {"schedulerName": scheduler, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                     "containers": [{"name": "c", "image": "i", "resources": {
                         "requests": {"cpu": str(4 * gpus), "memory": f"{16 * gpus}Gi", GPU: str(gpus)},
                         "limits": {GPU: str(gpus)}}}]}}


def version_of(berth):
    out = subprocess.run([berth, "version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                         check=False).stdout
    found = re.search(r"\d+\.\d+\S*", out)
    return found.group(0) if found else out.strip()
