"""Faults of a node (A), and what a node with an agent shows (G)."""
import json
import os
import random
import re
import signal
import subprocess
import time

import kubelet_api
from node import NAME, wait
from rows import log_count, pods_in_metrics, row, state_of, uid, untouched
from world import GPU, HOLD, Sampler, check, equal, gpu_pod


def on_host(world, gpus):
    """Flags for a host with a NIC and so many GPUs on its PCI bus, whatever is on that of this machine."""
    root = world.node.path(f"host-{world.number}")
    for i in range(gpus + 1):
        device = os.path.join(root, f"sys/bus/pci/devices/0000:{i + 16:02x}:00.0")
        os.makedirs(device)
        nic, gpu = ("0x8086", "0x1592", "0x020000"), ("0x10de", "0x2330", "0x030200")
        for file, text in zip(("vendor", "device", "class"), gpu if i < gpus else nic):
            with open(os.path.join(device, file), "w", encoding="ascii") as f:
                f.write(text + "\n")
    return ["--host-root", root]


STARTUP_TAINT = {"key": "berth.dev/agent-not-ready", "effect": "NoSchedule"}


def taint(world):
    world.node.api.patch(f"/api/v1/nodes/{NAME}", {"spec": {"taints": [STARTUP_TAINT]}})


def tainted(world):
    return any(t["key"] == STARTUP_TAINT["key"] for t in world.node.object()["spec"].get("taints", []))


# Faults of a node


@row("A2", "sockets removed, then the whole folder with the kubelet's: registered again without a restart", ci=True)
def a2(world):
    agent = world.agent(2)
    for file in os.listdir(kubelet_api.PLUGINS):
        if file.startswith("berth-"):
            os.unlink(os.path.join(kubelet_api.PLUGINS, file))
    wait("registered again", lambda: log_count(world, agent, "registered with the kubelet") >= 2)
    world.wait_registered(agent)
    world.run_pod("uses", 2)
    world.node.delete("uses")
    world.node.wait_gone("uses")
    world.node.kill_kubelet()
    for file in os.listdir(kubelet_api.PLUGINS):
        os.unlink(os.path.join(kubelet_api.PLUGINS, file))
    os.rmdir(kubelet_api.PLUGINS)
    world.node.start_kubelet()
    world.node.wait_kubelet()
    wait("registered again", lambda: log_count(world, agent, "registered with the kubelet") >= 3)
    world.wait_counts(2, 2, agent=agent)
    world.run_pod("uses-again", 2)


def settle(world, names, kubelet_killed=False):
    """Each pod runs or was refused; no device twice; each sees what the kubelet says it holds. Whoever starts a
    container while its kubelet is killed has it cut off: the pod has failed then, and its container says how."""
    outcome = {}
    for name in names:
        def done(name=name):
            pod = world.node.pod(name)
            phase = pod["status"].get("phase")
            if phase == "Failed":
                ends = [s["state"].get("terminated") for s in pod["status"].get("containerStatuses", [])]
                if kubelet_killed and ends and all(e and e["exitCode"] in (128, 137) for e in ends):
                    return "cut off"
                equal(pod["status"].get("reason"), "UnexpectedAdmissionError", f"why {name} failed: {ends}")
                return "refused"
            ready = any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
            return "runs" if ready else None
        outcome[name] = wait(f"{name} runs or is refused", done)
    held = []
    for name in names:
        if outcome[name] == "runs":
            ids = world.ids(name)
            equal(len(ids), 1, f"devices of {name}")
            equal(len(world.gpu_nodes(name)), 1, f"device nodes of {name}")
            held += ids
    equal(len(held), len(set(held)), f"devices held more than once: {held}")
    return outcome


@row("A3", "kill -9 of agent or kubelet in the middle of pod creation, 10 rounds: no device twice, all come back")
def a3(world):
    chance = random.Random(20261116)
    agent = world.agent(4)
    refusals = cut_off = 0
    for number in range(10):
        names = [f"round-{number}-{i}" for i in range(3)]
        for name in names:
            world.node.create(gpu_pod(name, 1))
        time.sleep(chance.uniform(0, 0.6))
        if number % 2 == 0:
            agent.kill()
            time.sleep(chance.uniform(0, 1.0))
            agent = world.agent(4, ready=False, state=agent.state)
        else:
            world.node.kill_kubelet()
            time.sleep(chance.uniform(0, 0.5))
            world.node.start_kubelet()
            world.node.wait_kubelet()
        outcome = settle(world, names, kubelet_killed=number % 2 == 1)
        refusals += sum(o == "refused" for o in outcome.values())
        cut_off += sum(o == "cut off" for o in outcome.values())
        world.wait_registered(agent)
        wait("the kubelet knows four", lambda: len(kubelet_api.allocatable(GPU)) == 4)
        wait("the agent names the holders",
             lambda: pods_in_metrics(agent) == {n for n, o in outcome.items() if o == "runs"})
        for name in names:
            world.node.delete(name)
        for name in names:
            world.node.wait_gone(name)
    world.run_pod("all", 4)
    world.note(f"{refusals} of 30 pods were refused, {cut_off} cut off with their kubelet, the others ran")


@row("A3b", "kill -9 of agent and kubelet at once, 3 rounds, with pods running")
def a3b(world):
    chance = random.Random(7)
    agent = world.agent(4)
    world.run_pod("stays", 1)
    before = state_of(world, "stays")
    for number in range(3):
        name = f"new-{number}"
        world.node.create(gpu_pod(name, 1))
        time.sleep(chance.uniform(0, 0.8))
        agent.kill()
        world.node.kill_kubelet()
        world.node.start_kubelet()
        agent = world.agent(4, ready=False, state=agent.state)
        world.node.wait_kubelet()
        settle(world, [name], kubelet_killed=True)
        world.wait_registered(agent)
        world.wait_counts(4, 4, agent=agent)
        untouched(world, "stays", before)
        world.node.delete(name)
        world.node.wait_gone(name)


@row("A8", "Xid 79 on one GPU: that one leaves, the others serve; after a reset it returns", ci=True)
def a8(world):
    agent = world.agent(4)
    bad = next(gpu["uuid"] for gpu in agent.status()["gpus"] if gpu["index"] == 2)
    began = time.monotonic()
    agent.inject("xid gpu=2 code=79")
    wait("the kubelet knows three", lambda: len(kubelet_api.allocatable(GPU)) == 3, step=0.01)
    world.note(f"out of the kubelet's list {1000 * (time.monotonic() - began):.0f} ms after the injection")
    check(bad not in kubelet_api.allocatable(GPU), "the wrong GPU left")
    world.wait_counts(4, 3, agent=agent)
    world.run_pod("three", 3)
    check(bad not in world.ids("three"), "the bad GPU was given out")
    standing = wait("GpuNode says it", lambda: gpu_states(world).get(2) not in (None, "Healthy"))
    check(standing, "no health in GpuNode")
    wait("the Node says it", lambda: world.node.condition("GpuHealthy") == "False")
    equal([value for labels, value in agent.metrics("berth_gpu_xid_total")
           if (labels.get("gpu"), labels.get("xid")) == ("2", "79")], [1.0], "Xids counted")
    world.stays(5, lambda: world.node.counts(GPU) == (4, 3), "time alone healed it")
    agent.inject("recover gpu=2")
    world.wait_counts(4, 4, agent=agent)
    world.run_pod("one", 1)
    equal(world.ids("one"), [bad], "the device of the next pod")


@row("A8m", "the last Xid of a GPU that fell off the bus is in the metrics under DCGM's name")
def a8m(world):
    agent = world.agent(2)
    agent.inject("xid gpu=1 code=79")
    world.wait_counts(2, 1, agent=agent)
    wait("the last Xid is 79", lambda: [v for labels, v in agent.metrics("DCGM_FI_DEV_XID_ERRORS")
                                        if labels.get("gpu") == "1"] == [79.0], 30)


def gpu_states(world):
    found = world.node.api.find(f"/apis/berth.dev/v1alpha1/gpunodes/{NAME}")
    gpus = (found or {}).get("status", {}).get("gpus", [])
    return {gpu["index"]: gpu.get("health", {}).get("state", "Healthy") for gpu in gpus}


@row("A9", "a verdict outlives the agent: what was bad before a restart is bad after it, until it is well")
def a9(world):
    agent = world.agent(2)
    agent.inject("xid gpu=1 code=79")
    world.wait_counts(2, 1, agent=agent)
    wait("the verdict is kept", lambda: os.path.exists(os.path.join(agent.state, "health.json")))
    agent.kill()
    world.wait_counts(2, 0)
    again = world.agent(2, ready=False, state=agent.state,
                        faults=[{"at": "0s", "node": NAME, "gpu": 1, "kind": "xid", "code": 79}])
    world.wait_registered(again)
    world.wait_counts(2, 1, agent=again)
    world.stays(5, lambda: world.node.counts(GPU) == (2, 1), "the verdict was forgotten")
    again.inject("recover gpu=1")
    world.wait_counts(2, 2, agent=again)


@row("A10", "Xids that blame the job leave the GPU where it is")
def a10(world):
    agent = world.agent(2)
    world.run_pod("works", 1)
    sampler = Sampler(world)
    for code in (13, 31, 43, 45, 68):
        agent.inject(f"xid gpu=0 code={code}")
    wait("the last is in the metrics", lambda: [v for labels, v in agent.metrics("DCGM_FI_DEV_XID_ERRORS")
                                                if labels.get("gpu") == "0"] == [68.0])
    time.sleep(5)
    sampler.stop()
    equal(sampler.seen, [(2, 2)], "counts over time")


@row("A11", "a driver that hangs for one GPU: that one is unknown, the others serve")
def a11(world):
    agent = world.agent(3)
    agent.inject("gpu-silent gpu=1")
    world.wait_counts(3, 2, agent=agent)
    world.run_pod("two", 2)
    check("nvidia1" not in " ".join(world.gpu_nodes("two")), "the silent GPU was given out")
    agent.get("/healthz")
    agent.inject("recover gpu=1")
    world.wait_counts(3, 3, agent=agent)


@row("A12", "no driver: the agent stays, says why on the Node and in its status, and advertises nothing")
def a12(world):
    agent = world.agent(0, ready=False, source="nvml", flags=on_host(world, gpus=1))
    wait("it says why", lambda: agent.step("driver")["state"] != "ok" and agent.step("driver")["reason"])
    wait("the Node says it", lambda: world.node.condition("GpuReady") == "False")
    reason = [c["reason"] for c in world.node.object()["status"]["conditions"] if c["type"] == "GpuReady"]
    world.note(f"GpuReady is False: {reason[0]}")
    world.stays(5, agent.running, "the agent ended")
    check(world.node.counts(GPU)[1] <= 0, "something was advertised")


@row("A12n", "no driver and no GPU on the bus: nothing to do, so the startup taint goes and the Node says nothing")
def a12n(world):
    taint(world)
    agent = world.agent(0, ready=False, source="nvml", flags=on_host(world, gpus=0))
    wait("the taint is gone", lambda: not tainted(world))
    wait("the Node says nothing", lambda: world.node.condition("GpuReady") is None)
    world.stays(3, lambda: world.node.condition("GpuReady") is None, "the Node was called broken")
    check(world.node.counts(GPU)[1] <= 0, "something was advertised")
    check(agent.running(), "the agent ended")


@row("A17", "another vendor's plugin serves here: nothing is advertised twice; when it goes, the agent serves", ci=True)
def a17(world):
    rival = kubelet_api.StandIn(GPU, ["x", "y"], "nvidia-gpu.sock")
    rival.register()
    world.wait_counts(2, 2)
    agent = world.agent(4, ready=False)
    wait("it says why", lambda: "nvidia-gpu.sock" in json.dumps(agent.status()))
    world.stays(5, lambda: world.node.counts(GPU) == (2, 2), "it was advertised twice")
    rival.stop()
    world.wait_counts(4, 4, agent=agent)


@row("A18", "the API server is away: the kubelet is served, and what changed is said when it is back")
def a18(world):
    agent = world.agent(2)
    wait("GpuNode is there", lambda: gpu_states(world) == {0: "Healthy", 1: "Healthy"})
    server = dict(world.node.cluster.processes)["kube-apiserver"]
    server.send_signal(signal.SIGSTOP)
    try:
        agent.inject("xid gpu=1 code=79")
        wait("the kubelet knows one", lambda: len(kubelet_api.allocatable(GPU)) == 1)
        world.stays(10, agent.running, "the agent ended")
        agent.get("/metrics")
    finally:
        server.send_signal(signal.SIGCONT)
    world.wait_counts(2, 1, agent=agent)
    wait("GpuNode says it", lambda: gpu_states(world) == {0: "Healthy", 1: "Unhealthy"})
    world.run_pod("uses", 1)


# What a node with an agent shows


@row("G1", "labels on the Node: product, count, memory, driver, NVLink; kept when the agent is gone", ci=True)
def g1(world):
    agent = world.agent(4)
    def labels():
        return {k: v for k, v in world.node.object()["metadata"]["labels"].items()
                if k.startswith(("nvidia.com/", "gpu.nvidia.com/"))}
    wait("labels are there", lambda: labels().get("nvidia.com/gpu.count") == "4")
    found = labels()
    check("H100" in found.get("nvidia.com/gpu.product", ""), f"product: {found}")
    equal(found.get("nvidia.com/gpu.family"), "hopper", "family")
    equal(found.get("nvidia.com/gpu.compute.major"), "9", "compute capability")
    equal(found.get("nvidia.com/gpu.replicas"), "1", "replicas")
    equal(found.get("nvidia.com/gpu.sharing-strategy"), "none", "sharing")
    equal(found.get("nvidia.com/cuda.driver-version.full"), "580.159.04", "driver")
    check(int(found.get("nvidia.com/gpu.memory", 0)) > 80000, f"memory: {found}")
    equal(found.get("gpu.nvidia.com/nvlink-enabled"), "true", "NVLink")
    equal(found.get("gpu.nvidia.com/nvlink-gpus-per-island"), "4", "GPUs of an island")
    agent.stop()
    time.sleep(3)
    equal(labels(), found, "labels after the agent was stopped")
    world.note(f"{len(found)} labels")


@row("G2", "GpuNode: the GPUs, their holders, owned by the Node; it follows pods that come and go", ci=True)
def g2(world):
    world.agent(2)
    world.run_pod("holder", 1)
    index = int(world.gpu_nodes("holder")[0][len("/dev/nvidia"):])
    path = f"/apis/berth.dev/v1alpha1/gpunodes/{NAME}"
    def holders():
        found = world.node.api.find(path) or {}
        return {g["index"]: json.dumps(g) for g in found.get("status", {}).get("gpus", [])}
    wait("the holder is published", lambda: uid(world.node, "holder") in holders().get(index, ""))
    found = world.node.api.get(path)
    equal([g["index"] for g in found["status"]["gpus"]], [0, 1], "indices")
    equal(found["status"].get("driverVersion"), "580.159.04", "driver")
    equal([(o["kind"], o["name"]) for o in found["metadata"].get("ownerReferences", [])], [("Node", NAME)], "owner")
    gone = uid(world.node, "holder")
    world.node.delete("holder")
    world.node.wait_gone("holder")
    wait("the holder is gone", lambda: gone not in holders().get(index, gone))


@row("G3", "metrics name pod, namespace and container of a GPU, and nobody for a free one", ci=True)
def g3(world):
    agent = world.agent(2)
    world.run_pod("named", 1)
    index = world.gpu_nodes("named")[0][len("/dev/nvidia"):]
    def labels_of(gpu):
        found = [labels for labels, _ in agent.metrics("DCGM_FI_DEV_GPU_UTIL") if labels.get("gpu") == gpu]
        equal(len(found), 1, f"samples of GPU {gpu}")
        return found[0]
    wait("the pod is named", lambda: labels_of(index).get("pod") == "named")
    equal((labels_of(index).get("namespace"), labels_of(index).get("container")), ("default", "main"), "labels")
    equal(labels_of(str(1 - int(index))).get("pod", ""), "", "pod of the free GPU")
    equal(labels_of(index).get("UUID"), world.ids("named")[0], "UUID")


@row("G4", "device list strategies envvar and volume-mounts: the container is told its devices and no others")
def g4(world):
    agent = world.agent(2, strategy="envvar")
    world.run_pod("env", 1)
    equal(world.told("env"), ({"NVIDIA_VISIBLE_DEVICES": world.ids("env")[0]}, []), "environment and devices")
    agent.stop()
    world.node.delete("env")
    world.node.wait_gone("env")
    world.agent(2, strategy="volume-mounts")
    world.node.create(gpu_pod("mounts", 2, "ls /var/run/nvidia-container-devices; " + HOLD))
    world.node.wait_running("mounts")
    equal(world.told("mounts"), ({"NVIDIA_VISIBLE_DEVICES": "/var/run/nvidia-container-devices"}, []),
          "environment and devices")
    text = world.node.output("mounts")
    equal(sorted(line for line in text.splitlines() if line.startswith("GPU-")), world.ids("mounts"), "mounts")


@row("G4c", "CDI names as annotations and in the answer, as the GPU operator asks for: each device once")
def g4c(world):
    agent = world.agent(2, strategy="cdi-annotations,cdi-cri")
    world.run_pod("both", 1)
    equal(world.gpu_nodes("both"), [f"/dev/nvidia{agent.index_of(world.ids('both')[0])}"], "device nodes")


@row("G4d", "envvar with device specs: the container has the device nodes of its GPUs")
def g4d(world):
    agent = world.agent(2, strategy="envvar", flags=["--pass-device-specs"])
    world.node.create(gpu_pod("specs", 1))
    world.node.wait_running("specs")
    equal(world.gpu_nodes("specs"), [f"/dev/nvidia{agent.index_of(world.ids('specs')[0])}"], "device nodes")


@row("G4e", "GDS, GDRCopy, RDMA and an IMEX channel come by CDI where the configuration says so", ci=True)
def g4e(world):
    world.agent(1, flags=["--gds-enabled", "--gdrcopy-enabled", "--mofed-enabled", "--imex-channel-ids", "0"])
    names = ["/dev/gdrdrv", "/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs0",
             "/dev/nvidia-caps-imex-channels/channel0", "/dev/nvidia-fs0"]
    script = f"for d in {' '.join(names)}; do [ -c $d ] && echo has $d; done; "
    world.node.create(gpu_pod("moves-data", 1, script + HOLD))
    world.node.wait_running("moves-data")
    world.told("moves-data")
    found = [line[4:] for line in world.node.output("moves-data").splitlines() if line.startswith("has ")]
    equal(found, names, "device nodes besides the GPU's")


@row("G5", "MIG, mixed: an instance is a resource of its own, and its verdict is that of its GPU", ci=True)
def g5(world):
    agent = world.agent(2, ready=False, pool={"mig": "1g.10gb"}, flags=["--mig-strategy", "mixed"])
    resource = "nvidia.com/mig-1g.10gb"
    wait("the resource is there", lambda: world.node.counts(resource)[1] > 0)
    total = world.node.counts(resource)[0]
    world.note(f"{total} instances of two GPUs")
    world.node.create(gpu_pod("slice", 1, resource=resource))
    world.node.wait_running("slice")
    check(world.ids("slice", resource=resource)[0].startswith("MIG-"), "the id of an instance")
    agent.inject("xid gpu=0 code=79")
    world.wait_counts(total, total // 2, resource, agent=agent)


@row("G6", "time-slicing from the plugin's config file; a changed file counts without a restart", ci=True)
def g6(world):
    config = world.node.path("config", "config.yaml")
    os.makedirs(os.path.dirname(config), exist_ok=True)
    def write(replicas):
        with open(config + ".new", "w", encoding="utf-8") as f:
            f.write("version: v1\nsharing:\n  timeSlicing:\n    resources:\n"
                    f"    - {{name: nvidia.com/gpu, replicas: {replicas}}}\n")
        os.rename(config + ".new", config)
    write(3)
    agent = world.agent(2, ready=False, flags=["--config-file", config])
    world.wait_counts(6, 6, agent=agent)
    world.run_pod("shares", 1)
    check(re.fullmatch(r"GPU-.*::\d", world.ids("shares")[0]), f"id of a replica: {world.ids('shares')}")
    equal(len(world.gpu_nodes("shares")), 1, "device nodes")
    agent.inject("xid gpu=0 code=79")
    world.wait_counts(6, 3, agent=agent)
    agent.inject("recover gpu=0")
    world.wait_counts(6, 6, agent=agent)
    write(2)
    world.wait_counts(4, 4, agent=agent)


@row("G7", "`berth agent status` says ready, and exits with 10 when it is not", ci=True)
def g7(world):
    agent = world.agent(1)
    def status():
        return subprocess.run([world.berth, "agent", "status", "--state-dir", agent.state], capture_output=True,
                              text=True)
    wait("ready", lambda: status().returncode == 0)
    world.node.kill_kubelet()
    os.unlink(os.path.join(kubelet_api.PLUGINS, "kubelet.sock"))
    wait("not ready", lambda: status().returncode == 10)
    world.node.start_kubelet()
    world.node.wait_kubelet()
    wait("ready again", lambda: status().returncode == 0)


@row("G7f", "a GPU that flaps stays out until `berth agent forgive`; the Node's events say who did it", ci=True)
def g7f(world):
    agent = world.agent(2)
    def forgive(gpu):
        return subprocess.run([world.berth, "agent", "forgive", gpu, "--why", "a riser was replaced", "--state-dir",
                               agent.state], capture_output=True, text=True, env={**os.environ, "USER": "alice"})
    for number in range(3):
        agent.inject("xid gpu=1 code=79")
        world.wait_counts(2, 1, agent=agent)
        agent.inject("recover gpu=1")
        if number < 2:
            world.wait_counts(2, 2, agent=agent)
    wait("it flaps", lambda: any(labels.get("code") == "Flapping" for labels, _ in agent.metrics("berth_gpu_health")))
    world.stays(5, lambda: world.node.counts(GPU) == (2, 1), "it came back by itself")
    equal(forgive("7").returncode, 1, "exit code for a GPU that is not here")
    done = forgive("1")
    equal((done.returncode, "takes pods again" in done.stdout), (0, True), f"forgiving: {done.stdout}{done.stderr}")
    world.wait_counts(2, 2, agent=agent)
    def told():
        events = world.node.api.get("/apis/events.k8s.io/v1/events")["items"]
        return [e["note"] for e in events if e["reason"] == "GpuForgiven"]
    note = wait("an event says it", told)[0]
    check("forgiven by" in note and "a riser was replaced" in note, f"event: {note}")


@row("G8", "the controller's choice of GPUs is what the kubelet takes; where it is not, that is counted")
def g8(world):
    agent = world.agent(4)
    followed = others = 0
    for number in range(5):
        name = f"hinted-{number}"
        pod = gpu_pod(name, 2)
        pod["metadata"]["annotations"] = {"berth.dev/gpus": "0,3"}
        # Both hear of a pod at the same time: the kubelet is held up, so that the agent knows the choice.
        world.node.processes["kubelet"].send_signal(signal.SIGSTOP)
        world.node.create(pod)
        time.sleep(3)
        world.node.processes["kubelet"].send_signal(signal.SIGCONT)
        world.node.wait_running(name)
        if world.gpu_nodes(name) == ["/dev/nvidia0", "/dev/nvidia3"]:
            followed += 1
        else:
            others += 1
        wait("differences are counted",
             lambda: sum(v for _, v in agent.metrics("berth_agent_hint_differences_total")) == others)
        world.node.delete(name)
        world.node.wait_gone(name)
        if followed >= 2:
            break
    check(followed >= 1, "the choice was never followed")
    world.note(f"followed {followed} times, not {others} times")


@row("G9", "the startup taint goes when GPUs can be handed out, and not before")
def g9(world):
    taint(world)
    waiting = world.agent(0, ready=False, source="nvml", flags=on_host(world, gpus=1))
    wait("it says why", lambda: waiting.step("driver")["state"] != "ok" and waiting.step("driver")["reason"])
    world.stays(3, lambda: tainted(world), "the taint went before there were GPUs")
    waiting.stop()
    world.agent(1)
    wait("the taint is gone", lambda: not tainted(world))
