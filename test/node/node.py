#!/usr/bin/env python3
"""A real node: control plane, containerd and kubelet, with fresh data, in namespaces of their own (isolate.py).

As a command it runs another one on it, or a shell:

    node.py [COMMAND...]        KUBECONFIG, PATH and CONTAINERD_ADDRESS are set

As a module, inside isolate.run: `with Node() as node:`, then the methods below. Pods are bound by their spec's
nodeName; there is no scheduler and no controller-manager. One image, IMAGE, holds busybox.

Several nodes of one cluster: `Node(name, ip, pods, cluster=cluster)`. Each has its folders in mounts of its own
(node.root leads there from outside) and an address of its own; processes and network are those of all.
"""
import ctypes
import hashlib
import http.client
import io
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import tarfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "kubernetes"))
import isolate  # noqa: E402
from cluster import Cluster, tools  # noqa: E402

IMAGE = "localhost/busybox:1"
PAUSE = "localhost/pause:1"
NAME = "node-0"
KUBELET_DIR = "/var/lib/kubelet"
CDI_DIR = "/run/cdi"
LIMIT = 180  # seconds that a thing may take before a test gives up on it
BUSYBOX = "/bin/busybox"


class Timeout(Exception):
    pass


class KernelWatch:
    """For how long the kernel's own threads got no CPU.

    On a machine that is busy with other things they have been seen to stand still for minutes (the kernel log then has
    "workqueue lockup" and "rcu_preempt kthread starved"). Namespaces and cgroups are made and ended with their help: no
    sandbox starts meanwhile, whatever kubelet and containerd do. That time does not count against a test.
    """
    MEMBARRIER = {"x86_64": 324, "aarch64": 283}[os.uname().machine]
    USUAL = 2  # seconds; with a load of 40 on two cores it takes up to 1.8

    def __init__(self):
        self.libc = ctypes.CDLL(None)
        self.counted, self.asked = 0, None
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            self.asked = time.monotonic()
            self.libc.syscall(self.MEMBARRIER, 1, 0, 0)  # returns after a grace period of RCU
            took, self.asked = time.monotonic() - self.asked, None
            self.counted += took if took > self.USUAL else 0
            time.sleep(0.25)

    def lost(self):
        asked = self.asked
        now = time.monotonic() - asked if asked else 0
        return self.counted + (now if now > self.USUAL else 0)


def kernel():
    if not hasattr(kernel, "watch"):
        kernel.watch = KernelWatch()  # not before fork: threads do not survive it
    return kernel.watch


def wait(what, condition, limit=LIMIT, step=0.05):
    """Until condition() is true; its value. An OSError, or JSON that is not there, means: not yet."""
    end = time.monotonic() + limit - kernel().lost()
    last = None
    while True:
        try:
            last = condition()
            if last:
                return last
        except (OSError, http.client.HTTPException, json.JSONDecodeError) as e:
            last = e
        if time.monotonic() - kernel().lost() > end:
            raise Timeout(f"after {limit} s still not: {what} (last: {last!r})")
        time.sleep(step)


class ApiError(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body.get('message', body) if isinstance(body, dict) else body}")
        self.status = status


class Api:
    """A small client: one connection, opened again when it was lost. Not for several threads."""

    def __init__(self, url, token):
        self.host, self.token, self.connection = url.split("//")[1], token, None
        self.context = ssl.create_default_context()
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE

    def request(self, method, path, body=None, kind="application/json"):
        for attempt in range(2):
            if self.connection is None:
                self.connection = http.client.HTTPSConnection(self.host, context=self.context, timeout=60)
            try:
                self.connection.request(method, path, None if body is None else json.dumps(body),
                                        {"Authorization": f"Bearer {self.token}", "Content-Type": kind})
                answer = self.connection.getresponse()
                data = answer.read()
                break
            except (OSError, http.client.HTTPException):
                self.connection.close()
                self.connection = None
                if attempt or method == "POST":
                    raise
        data = json.loads(data) if data[:1] == b"{" else data.decode()
        if answer.status >= 300:
            raise ApiError(answer.status, data)
        return data

    def get(self, path):
        return self.request("GET", path)

    def find(self, path):
        try:
            return self.request("GET", path)
        except ApiError as e:
            if e.status == 404:
                return None
            raise

    def post(self, path, body):
        return self.request("POST", path, body)

    def delete(self, path, grace=None):
        try:
            return self.request("DELETE", path, None if grace is None else
                                {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": grace})
        except ApiError as e:
            if e.status != 404:
                raise

    def patch(self, path, body):
        return self.request("PATCH", path, body, "application/merge-patch+json")


def layer():
    """A tar with busybox under all its names."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for folder in ("bin", "tmp", "etc"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        with open(BUSYBOX, "rb") as f:
            data = f.read()
        entry = tarfile.TarInfo("bin/busybox")
        entry.size, entry.mode = len(data), 0o755
        tar.addfile(entry, io.BytesIO(data))
        for name in subprocess.run([BUSYBOX, "--list"], check=True, capture_output=True, text=True).stdout.split():
            if name != "busybox":
                entry = tarfile.TarInfo("bin/" + name)
                entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(entry)
    return out.getvalue()


def write_image(path, tag, command, data):
    digest = hashlib.sha256(data).hexdigest()
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    config = json.dumps({"architecture": architecture, "os": "linux",
                         "config": {"Cmd": command, "Env": ["PATH=/bin"]},
                         "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]},
                         "history": [{"created_by": "by hand"}]}).encode()
    name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": name, "RepoTags": [tag], "Layers": [digest + ".tar"]}]).encode()
    with tarfile.open(path, "w") as tar:
        for file, content in ((name, config), (digest + ".tar", data), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(file)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


def containerd_config(root):
    return f"""version = 3
root = "{root}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "native"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{PAUSE}"
[plugins."io.containerd.cri.v1.runtime"]
  enable_cdi = true
  cdi_spec_dirs = ["/etc/cdi", "{CDI_DIR}"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "{root}/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""


def kubelet_config(ip=isolate.NODE_IP, cgroup=None):
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "address": ip, "healthzPort": 0, "authentication": {"anonymous": {"enabled": True},
                                                                        "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"}, "cgroupDriver": "cgroupfs", "cgroupRoot": cgroup or isolate.cgroup(),
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock", "failSwapOn": False,
        "nodeStatusUpdateFrequency": "2s",  # also how long a call to the API may take
        "nodeStatusReportFrequency": "10s", "syncFrequency": "10s",
        "registerNode": True, "serializeImagePulls": False, "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "10Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
                         "imagefs.available": "0%"},
        "fileCheckFrequency": "0s", "httpCheckFrequency": "0s", "resolvConf": "", "clusterDomain": "cluster.local",
        "shutdownGracePeriod": "0s"}
    if not isolate.cgroup_v2():
        config["failCgroupV1"] = False
    return config


class Node:
    def __init__(self, name=NAME, ip=isolate.NODE_IP, pods="198.51.100.0/25", cluster=None, kubelet="kubelet"):
        self.name, self.ip, self.pods, self.kubelet = name, ip, pods, kubelet
        self.folder, self.cgroup = isolate.folder(), isolate.cgroup()
        self.bin = tools("etcd", "kube-apiserver", "kubectl", kubelet, "containerd", "containerd-shim-runc-v2",
                         "ctr")
        self.own_cluster = cluster is None
        self.cluster = cluster or Cluster(base=self.folder)
        self.processes = {}
        self.cache = {}
        self.inside, self.root = [], ""  # how to get to its mounts
        if cluster is not None:
            self.folder, self.cgroup = os.path.join(self.folder, name), f"{self.cgroup}/{name}"

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def __enter__(self):
        if self.own_cluster:
            self.cluster.__enter__()
        else:
            self.move_apart()
        try:
            self.api = self.new_api()
            self.write_files()
            self.start_containerd()
            for tag, command in ((IMAGE, ["sh"]), (PAUSE, ["sleep", "infinity"])):
                self.import_image(tag, command)
            self.start_kubelet()
            self.wait_ready()
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        # The namespace's end takes everything; this is for tests that look at what a clean stop leaves.
        for name in reversed(list(self.processes)):
            self.stop(name, signal.SIGKILL)
        if self.own_cluster:
            self.cluster.__exit__()

    def move_apart(self):
        """Mounts of its own, kept by a process that waits, and a group and an address of its own."""
        os.makedirs(self.folder)
        isolate.make_cgroup(self.cgroup.lstrip("/"))
        subprocess.run(["ip", "addr", "add", self.ip + "/32", "dev", "lo"], check=True)
        ready = self.path("mounted")
        keeper = subprocess.Popen(isolate.DIE_WITH_PARENT + [
            "unshare", "--mount", "--propagation", "private", "sh", "-ec", f"""
            for place in /run /var/lib /var/log; do mount -t tmpfs -o mode=755 tmpfs $place; done
            mkdir -p /run/lock /run/netns /var/lib/kubelet
            mount --bind /var/lib/kubelet /var/lib/kubelet
            mount --make-rshared /var/lib/kubelet
            touch {ready}
            exec sleep infinity"""], stdin=subprocess.DEVNULL)
        self.processes["mounts"] = keeper
        wait(f"{self.name} has mounts of its own", lambda: os.path.exists(ready))
        self.root = f"/proc/{keeper.pid}/root"
        self.inside = ["nsenter", f"--mount=/proc/{keeper.pid}/ns/mnt", "--"]

    def new_api(self):
        return Api(self.cluster.url, self.cluster.token())

    def environment(self):
        return {**self.cluster.environment(), "CONTAINERD_ADDRESS": "/run/containerd/containerd.sock",
                "CONTAINERD_NAMESPACE": "k8s.io", "PATH": self.bin + os.pathsep + os.environ.get("PATH", "")}

    # Processes

    def spawn(self, name, argv, environment=None):
        with open(self.path(name + ".log"), "ab") as log:
            process = subprocess.Popen(isolate.DIE_WITH_PARENT + self.inside + list(argv), stdout=log, stderr=log,
                                       stdin=subprocess.DEVNULL, cwd=self.folder,
                                       env={**self.environment(), **(environment or {})})
        self.processes[name] = process
        return process

    def stop(self, name, number=signal.SIGTERM, limit=LIMIT):
        process = self.processes.pop(name, None)
        if process is None:
            return None
        if process.poll() is None:
            process.send_signal(number)
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise Timeout(f"{name} did not end {limit} s after signal {number}")
        return process.returncode

    def running(self, name):
        process = self.processes.get(name)
        return process is not None and process.poll() is None

    def log(self, name):
        try:
            with open(self.path(name + ".log"), encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def tail(self, name, lines=15):
        return "\n".join(line[:400] for line in self.log(name).splitlines()[-lines:])

    def start_containerd(self):
        self.spawn("containerd", [os.path.join(self.bin, "containerd"), "--config", self.path("containerd.toml")])
        wait("containerd answers", self.containerd_answers)

    def containerd_answers(self):
        if not self.running("containerd"):
            raise Timeout("containerd ended: " + self.tail("containerd"))
        return subprocess.run([*self.inside, os.path.join(self.bin, "ctr"), "version"], env=self.environment(),
                              capture_output=True).returncode == 0

    def start_kubelet(self):
        self.spawn("kubelet", [
            os.path.join(self.bin, self.kubelet), "--kubeconfig", self.cluster.kubeconfig, "--config",
            self.path("kubelet.json"), "--hostname-override", self.name, "--node-ip", self.ip,
            "--root-dir", KUBELET_DIR, "--cert-dir", self.path("kubelet-certificates"), "--v=2"])

    def kill_kubelet(self):
        self.stop("kubelet", signal.SIGKILL)

    def restart_kubelet(self, number=signal.SIGKILL):
        self.stop("kubelet", number)
        self.start_kubelet()
        self.wait_kubelet()

    def wait_kubelet(self):
        """Its device plugin socket answers: a file of an older kubelet does not."""
        def answers():
            if not self.running("kubelet"):
                raise Timeout("kubelet ended: " + self.tail("kubelet"))
            for file in ("device-plugins/kubelet.sock", "pod-resources/kubelet.sock"):
                with socket.socket(socket.AF_UNIX) as s:
                    s.connect(self.root + os.path.join(KUBELET_DIR, file))
            return True
        wait("kubelet answers", answers)

    def wait_ready(self):
        self.wait_kubelet()
        wait("the node is Ready", lambda: self.condition("Ready") == "True")

    def write_files(self):
        os.makedirs(self.path("cni"), exist_ok=True)
        os.makedirs(self.root + CDI_DIR, exist_ok=True)
        with open(self.path("containerd.toml"), "w", encoding="utf-8") as f:
            f.write(containerd_config(self.folder))
        with open(self.path("kubelet.json"), "w", encoding="utf-8") as f:
            json.dump(kubelet_config(self.ip, self.cgroup), f, indent=1)
        with open(self.path("cni", "10-pods.conflist"), "w", encoding="utf-8") as f:
            json.dump({"cniVersion": "0.4.0", "name": "pods", "plugins": [
                {"type": "ptp", "ipMasq": False, "ipam": {
                    "type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": self.pods}]]}}]}, f)

    def import_image(self, tag, command):
        if "layer" not in self.cache:
            self.cache["layer"] = layer()
        file = self.path("image.tar")
        write_image(file, tag, command, self.cache["layer"])
        subprocess.run([*self.inside, os.path.join(self.bin, "ctr"), "images", "import", "--local", "--snapshotter",
                        "native", file], check=True, env=self.environment(), capture_output=True)
        os.unlink(file)

    # The API

    def kubectl(self, *arguments, check=True):
        return subprocess.run([os.path.join(self.bin, "kubectl"), *arguments], env=self.environment(), check=check,
                              capture_output=True, text=True).stdout

    def object(self):
        return self.api.find(f"/api/v1/nodes/{self.name}")

    def condition(self, kind):
        node = self.object() or {}
        for condition in node.get("status", {}).get("conditions", []):
            if condition["type"] == kind:
                return condition["status"]
        return None

    def counts(self, resource, api=None):
        """(capacity, allocatable) as the Node says; -1: not there."""
        status = (api or self.api).get(f"/api/v1/nodes/{self.name}")["status"]
        return tuple(int(status.get(part, {}).get(resource, -1)) for part in ("capacity", "allocatable"))

    def pod_path(self, name=""):
        return "/api/v1/namespaces/default/pods" + (f"/{name}" if name else "")

    def create(self, pod):
        return self.api.post(self.pod_path(), pod)

    def pod(self, name):
        return self.api.find(self.pod_path(name))

    def phase(self, name):
        pod = self.pod(name)
        return pod["status"].get("phase") if pod else None

    def wait_phase(self, name, *phases):
        def reached():
            pod = self.pod(name)
            return pod if pod and pod["status"].get("phase") in phases else None
        try:
            return wait(f"pod {name} is {' or '.join(phases)}", reached)
        except Timeout as e:
            status = json.dumps((self.pod(name) or {}).get("status"))
            raise Timeout(f"{e}; its status: {status}; events: {self.events(name)}")

    def events(self, name):
        found = self.api.get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=" + name)
        return "; ".join(f"{e['reason']}: {e['message']}" for e in found["items"] if e["type"] != "Normal")

    def wait_running(self, name):
        """Running with every container ready."""
        def reached():
            pod = self.pod(name)
            if not pod or pod["status"].get("phase") in ("Failed", "Succeeded"):
                raise Timeout(f"pod {name} does not run: {json.dumps((pod or {}).get('status'))}")
            return pod if any(c["type"] == "Ready" and c["status"] == "True"
                              for c in pod["status"].get("conditions", [])) else None
        try:
            return wait(f"pod {name} runs", reached)
        except Timeout as e:
            raise Timeout(f"{e}; events: {self.events(name)}")

    def delete(self, name, grace=1):
        self.api.delete(self.pod_path(name), grace)

    def wait_gone(self, name):
        wait(f"pod {name} is gone", lambda: self.pod(name) is None)

    def delete_all(self):
        for pod in self.api.get(self.pod_path())["items"]:
            self.delete(pod["metadata"]["name"], 1)
        wait("all pods are gone", lambda: not self.api.get(self.pod_path())["items"])

    def output(self, name, container="main", attempt=None):
        """What a container wrote; `attempt` counts its restarts, None: the newest."""
        pod = self.pod(name)
        folder = self.root + f"/var/log/pods/default_{name}_{pod['metadata']['uid']}/{container}"
        if attempt is None:
            attempt = max((int(f.split(".")[0]) for f in os.listdir(folder)), default=0)
        with open(os.path.join(folder, f"{attempt}.log"), encoding="utf-8") as f:
            return "".join(line.split(" ", 3)[3] for line in f)

    def containers(self):
        """Ids of the running tasks of containerd."""
        out = subprocess.run([*self.inside, os.path.join(self.bin, "ctr"), "tasks", "list", "-q"], check=True,
                             env=self.environment(), capture_output=True, text=True).stdout
        return set(out.split())


def pod(name, script="sleep 1000000", limits=None, restart="Never", **spec):
    """A pod bound to the node whose container `main` runs a shell script."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"nodeName": NAME, "restartPolicy": restart, "terminationGracePeriodSeconds": 1,
                     "enableServiceLinks": False, "automountServiceAccountToken": False,
                     "containers": [container("main", script, limits)], **spec}}


def container(name, script="sleep 1000000", limits=None, **more):
    # The shell becomes the first process, which ignores signals that it does not handle.
    script = f"trap 'exit 0' TERM; {script} & wait $!" if script.startswith("sleep") else script
    return {"name": name, "image": IMAGE, "imagePullPolicy": "Never", "command": ["sh", "-c", script],
            "resources": {"limits": dict(limits or {})}, **more}


def main():
    with Node() as node:
        return subprocess.run(sys.argv[1:] or ["bash"], env=node.environment()).returncode


if __name__ == "__main__":
    sys.exit(isolate.run(main))
