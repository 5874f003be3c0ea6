"""What the tests of the agent share: agents as processes, samplers, and the node brought back to a known state."""
import ctypes
import glob
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import grpc_lite
import isolate
import kubelet_api
import node as nodes
from node import CDI_DIR, KUBELET_DIR, NAME, Timeout, wait

GPU = "nvidia.com/gpu"
# What a container tells of the devices it has.
TELL = "env | grep ^NVIDIA_ | sort; for d in /dev/nvidia*; do [ -c $d ] && echo dev $d; done; echo told; "
HOLD = TELL + "trap 'exit 0' TERM; sleep 1000000 & wait $!"


def gpu_pod(name, gpus=1, script=HOLD, restart="Never", resource=GPU, **spec):
    return nodes.pod(name, script, {resource: gpus}, restart, **spec)


class Failed(AssertionError):
    pass


def check(condition, what):
    if not condition:
        raise Failed(what)


def equal(found, want, what):
    if found != want:
        raise Failed(f"{what}: found {found!r}, want {want!r}")


class Agent:
    """A process `berth agent`. own_pids: it is the first process of a namespace, as in a pod."""

    def __init__(self, world, name, gpus, faults=(), flags=(), source=None, model="NVIDIA-H100-80GB-HBM3", own_pids=False,
                 strategy="cdi-cri", pool=None, state=None):
        self.world, self.node, self.name = world, world.node, name
        self.port = world.next_port()
        self.fault_file = self.node.path(f"{name}-faults", "lines")
        self.state = state or self.node.path(f"{name}-state")
        os.makedirs(os.path.dirname(self.fault_file), exist_ok=True)
        with open(self.fault_file, "w", encoding="ascii"):
            pass
        if source is None:
            fleet = self.node.path(f"{name}-fleet.yaml")
            with open(fleet, "w", encoding="utf-8") as f:
                json.dump({"pools": [{"name": self.node.name.rsplit("-", 1)[0], "count": 1, "model": model, "gpus": gpus,
                                      **(pool or {})}], "faults": list(faults)}, f)
            source = "sim=" + fleet
        command = [world.berth, "agent", "--source", source, "--node-name", self.node.name,
                   "--kubeconfig", self.node.cluster.kubeconfig_of("berth"), "--kubelet-dir", KUBELET_DIR,
                   "--cdi-dir", CDI_DIR, "--state-dir", self.state, "--metrics", f"127.0.0.1:{self.port}",
                   "--sim-faults", self.fault_file, *flags]
        if strategy:
            command += ["--device-list-strategy", strategy]
        if own_pids:
            command = ["unshare", "--pid", "--fork", "--kill-child", *command]
        self.process = self.node.spawn(name, command)
        self.own_pids = own_pids

    def pid(self):
        if not self.own_pids:
            return self.process.pid
        def child():
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as f:
                return f.read().split()
        return int(wait("the agent was forked", child)[0])

    def running(self):
        return self.process.poll() is None

    def inject(self, line):
        """A fault, now: "xid gpu=3 code=79"."""
        with open(self.fault_file, "a", encoding="ascii") as f:
            f.write(line + "\n")

    def signal(self, number):
        os.kill(self.pid(), number)

    def end(self, number):
        if self.running():
            self.signal(number)
        code = self.process.wait(nodes.LIMIT)
        self.node.processes.pop(self.name, None)
        return code

    def kill(self):
        return self.end(signal.SIGKILL)

    def stop(self):
        return self.end(signal.SIGTERM)

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read().decode()
            if answer.status != 200:
                raise OSError(f"{path}: {answer.status}")
            return body
        finally:
            connection.close()

    def status(self):
        return json.loads(self.get("/status"))

    def step(self, name):
        """One of the steps from the driver to the Node: its state, reason and text."""
        return next(s for s in self.status()["steps"] if s["step"] == name)

    def metrics(self, name):
        """[(labels, value)] of one metric."""
        out = []
        for line in self.get("/metrics").splitlines():
            found = re.match(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if found and found[1] == name:
                labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[2] or ""))
                out.append((labels, float(found[3])))
        return out

    def index_of(self, uuid):
        for gpu in self.status()["gpus"]:
            if gpu["uuid"] == uuid:
                return gpu["index"]
        raise Failed(f"{uuid} is not a GPU of {self.status()['gpus']}")

    def break_streams(self):
        """Cuts the kubelet's connections to this agent's plugins from outside; how many."""
        libc = ctypes.CDLL(None, use_errno=True)
        pid, cut = self.pid(), 0
        handle = libc.syscall(434, pid, 0)  # pidfd_open
        if handle < 0:
            raise OSError(ctypes.get_errno(), "pidfd_open")
        for entry in os.listdir(f"/proc/{pid}/fd"):
            try:
                if not os.readlink(f"/proc/{pid}/fd/{entry}").startswith("socket:"):
                    continue
            except FileNotFoundError:
                continue
            copy = libc.syscall(438, handle, int(entry), 0)  # pidfd_getfd
            if copy < 0:
                continue
            with socket.socket(fileno=copy) as s:
                try:
                    name = s.getsockname()
                    s.getpeername()
                except OSError:
                    continue
                if isinstance(name, str) and os.path.dirname(name) == kubelet_api.PLUGINS:
                    s.shutdown(socket.SHUT_RDWR)
                    cut += 1
        os.close(handle)
        return cut


class Sampler:
    """Looks at the node's counts, from the API and from the kubelet itself, until stopped."""

    def __init__(self, world, resource=GPU, period=0.04):
        self.node, self.resource, self.period = world.node, resource, period
        self.seen, self.kubelet_seen, self.samples, self.problems = [], [], 0, []
        self.ended = threading.Event()
        self.started = time.monotonic()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        api = self.node.new_api()
        while True:
            last = self.ended.is_set()  # what the one who stops it has seen is sampled too
            try:
                for value, place in ((self.node.counts(self.resource, api), self.seen),
                                     (len(kubelet_api.allocatable(self.resource, self.node.root)), self.kubelet_seen)):
                    if not place or place[-1] != value:
                        place.append(value)
                self.samples += 1
            except Exception as e:
                self.problems.append(repr(e))
            if last:
                return
            self.ended.wait(self.period)

    def stop(self):
        self.ended.set()
        self.thread.join()
        self.rate = self.samples / (time.monotonic() - self.started)
        return self

    def has(self, wanted):
        """The values appear in this order, others may be between them."""
        rest = iter(self.seen)
        return all(any(value == want for value in rest) for want in wanted)


class World:
    def __init__(self, node, berth, port=20000):
        self.node, self.berth, self.agents, self.port, self.number = node, berth, [], port, 0
        self.notes = []

    def next_port(self):
        self.port += 1
        return self.port

    def note(self, text):
        self.notes.append(text)

    # Agents

    def agent(self, gpus=4, ready=True, **options):
        self.number += 1
        agent = Agent(self, f"agent-{self.number}", gpus, **options)
        self.agents.append(agent)
        if ready:
            self.wait_counts(gpus, gpus, agent=agent)
            self.wait_registered(agent)
        return agent

    def wait_registered(self, agent):
        def registered():
            self.must_run(agent)
            return agent.step("registration")["state"] == "ok"
        wait(f"{agent.name} is registered", registered)

    def must_run(self, agent):
        if not agent.running():
            raise Failed(f"{agent.name} ended with {agent.process.returncode}: {self.node.tail(agent.name)}")

    # The node

    def wait_counts(self, capacity, allocatable, resource=GPU, agent=None, limit=nodes.LIMIT):
        def reached():
            if agent is not None:
                self.must_run(agent)
            return self.node.counts(resource) == (capacity, allocatable)
        try:
            wait(f"{resource} is {capacity}/{allocatable}", reached, limit)
        except Timeout as e:
            log = f"\n{self.node.tail(agent.name, 20)}" if agent else ""
            raise Failed(f"{e}; found {self.node.counts(resource)}{log}")

    def stays(self, seconds, condition, what):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            check(condition(), what)
            time.sleep(0.1)

    def run_pod(self, name, gpus=1, **more):
        self.node.create(gpu_pod(name, gpus, **more))
        return self.node.wait_running(name)

    def run_pod_soon(self, name, gpus=1):
        """A kubelet that is still ending an orphan refuses its devices: ask until it gives them."""
        end = time.monotonic() + nodes.LIMIT
        for attempt in range(1000):
            self.node.create(gpu_pod(f"{name}-{attempt}", gpus))
            if self.node.wait_phase(f"{name}-{attempt}", "Running", "Failed")["status"]["phase"] == "Running":
                return f"{name}-{attempt}"
            check(time.monotonic() < end, f"{name} is refused again and again")
            time.sleep(1)

    def ids(self, name, container="main", resource=GPU):
        """The devices that the kubelet says a container holds; one that just started hears of the pod soon."""
        def known():
            try:
                return kubelet_api.assignment(name)
            except grpc_lite.RpcError as e:
                raise OSError(str(e)) from e
        return wait(f"the kubelet knows the pod {name}", known).get(container, {}).get(resource, [])

    def told(self, name, container="main", attempt=None):
        """(environment, device nodes) as the container saw them."""
        def read():
            text = self.node.output(name, container, attempt)
            return text if "told\n" in text else None  # all of it
        lines = wait(f"{name} told what it has", read).splitlines()
        return (dict(line.split("=", 1) for line in lines if line.startswith("NVIDIA_")),
                sorted(line[4:] for line in lines if line.startswith("dev ")))

    def gpu_nodes(self, name, container="main", attempt=None):
        return [d for d in self.told(name, container, attempt)[1] if re.fullmatch(r"/dev/nvidia\d+", d)]

    def clean(self):
        """Nothing of a test is left for the next one."""
        for name in ("containerd", "kubelet"):
            process = self.node.processes.get(name)
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGCONT)
        for agent in self.agents:
            if agent.running():
                agent.signal(signal.SIGCONT)
                agent.kill()
        self.agents.clear()
        if not self.node.running("containerd"):
            self.node.start_containerd()
        if not self.node.running("kubelet"):
            self.node.start_kubelet()
            self.node.wait_ready()
        self.node.delete_all()
        for file in glob.glob(os.path.join(CDI_DIR, "*")):
            os.unlink(file)
        # A kubelet remembers resources for five minutes, and devices for ever.
        self.node.kill_kubelet()
        shutil.rmtree(kubelet_api.PLUGINS, ignore_errors=True)
        self.node.start_kubelet()
        self.node.wait_ready()
        for resource, _ in list(self.node.object()["status"]["capacity"].items()):
            if "/" in resource:
                self.node.api.request("PATCH", f"/api/v1/nodes/{NAME}/status", {"status": {
                    "capacity": {resource: None}, "allocatable": {resource: None}}}, "application/merge-patch+json")
        self.node.kubectl("delete", "gpunodes", "--all")

    def reboot(self):
        """As after a power cut: processes and /run are gone, disks are there."""
        self.node.kill_kubelet()
        self.node.stop("containerd", signal.SIGKILL)
        for process in glob.glob("/proc/[0-9]*"):  # of this namespace
            try:
                if os.path.basename(os.readlink(process + "/exe")) == "containerd-shim-runc-v2":
                    os.kill(int(os.path.basename(process)), signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError):
                pass
        def pods_gone():
            left = 0
            for root in isolate.hierarchies():
                for folder, _, _ in os.walk(root + isolate.cgroup()):
                    with open(os.path.join(folder, "cgroup.procs"), encoding="ascii") as f:
                        for pid in f.read().split():
                            left += 1
                            if int(pid) > 0:
                                os.kill(int(pid), signal.SIGKILL)
            return left == 0
        wait("no container runs", pods_gone)
        with open("/proc/self/mounts", encoding="utf-8") as f:
            places = [line.split()[1] for line in f]
        for place in reversed(places):
            if place.startswith(("/run/containerd", "/run/netns/")):
                subprocess.run(["umount", "-l", place], check=False)
        for place in ("/run/containerd", "/run/netns", "/run/cni", "/run/runc"):
            shutil.rmtree(place, ignore_errors=True)
        os.makedirs("/run/netns")
        self.node.start_containerd()
