"""The scenarios in which Kubernetes tests its own device manager, with berth's agent as the plugin."""
import json
import os
import re
import signal
import threading
import time

import grpc_lite
import kubelet_api
import node as nodes
from node import CDI_DIR, wait
from rows import OPTIONS, log_count, pods_in_metrics, refused, restarts, row, state_of, untouched
from world import GPU, HOLD, TELL, Failed, Sampler, check, equal, gpu_pod


# Pods that need devices


@row("D1", "a pod that needs a device runs, and pod-resources lists exactly what it got", ci=True)
def d1(world):
    agent = world.agent(4)
    world.run_pod("one", 1)
    world.run_pod("two", 2)
    one, two = world.ids("one"), world.ids("two")
    equal((len(one), len(two), len(set(one) | set(two))), (1, 2, 3), "devices held")
    known = {gpu["uuid"] for gpu in agent.status()["gpus"]}
    check(set(one) | set(two) <= known, f"{one}, {two} are not among {known}")
    equal(kubelet_api.assignments(), {"default/one": {"main": {GPU: one}}, "default/two": {"main": {GPU: two}}},
          "pod-resources")
    equal(sorted(known), kubelet_api.allocatable(GPU), "ids that the kubelet may hand out")


def everything(world, name):
    """All that a container sees: {"env": {...}, "dev": {...}, "mnt": {...}}."""
    def told():
        lines = world.node.output(name).splitlines()
        return lines if "end" in lines else None
    out = {"env": set(), "dev": set(), "mnt": set()}
    for line in wait(f"{name} told what it sees", told):
        kind, _, what = line.partition(" ")
        if kind in out and not what.startswith("HOSTNAME="):
            out[kind].add(what)
    return out


def promised(ids):
    """The same, of what the CDI specs say about these devices."""
    out = {"env": set(), "dev": set(), "mnt": set()}
    for file in os.listdir(CDI_DIR):
        if not file.endswith(".json"):
            continue
        with open(os.path.join(CDI_DIR, file), encoding="utf-8") as f:
            spec = json.load(f)
        edits = [d["containerEdits"] for d in spec["devices"] if d["name"] in ids] + [spec.get("containerEdits", {})]
        for edit in edits:
            out["env"] |= set(edit.get("env", []))
            out["dev"] |= {d["path"] for d in edit.get("deviceNodes", [])}
            out["mnt"] |= {m["containerPath"] for m in edit.get("mounts", [])}
            equal(edit.get("hooks", []), [], "hooks in the CDI spec")
    return out


@row("D2", "the container sees the CDI devices, mounts and environment it was given, and nothing else", ci=True)
def d2(world):
    agent = world.agent(4)
    script = ("env | sort | sed 's/^/env /'; find /dev -type c | sed 's/^/dev /'; "
              "cut -d ' ' -f 2 /proc/self/mounts | sed 's/^/mnt /'; echo end; trap 'exit 0' TERM; sleep 100000 & wait $!")
    world.node.create(nodes.pod("none", script))
    world.node.wait_running("none")
    usual = everything(world, "none")
    check(not any("nvidia" in d for d in usual["dev"]), f"devices of a pod that asked for none: {usual['dev']}")
    for name, gpus in (("one", 1), ("three", 3)):
        world.node.create(gpu_pod(name, gpus, script))
        world.node.wait_running(name)
        found, ids = everything(world, name), world.ids(name)
        want = promised(ids)
        for kind in ("env", "dev", "mnt"):
            equal(sorted(found[kind] - usual[kind]), sorted(want[kind]), f"{kind} of {name} beyond the usual")
        equal(sorted(d for d in found["dev"] if re.fullmatch(r"/dev/nvidia\d+", d)),
              sorted(f"/dev/nvidia{agent.index_of(i)}" for i in ids), f"GPUs of {name}")
        check(any(e.startswith("NVIDIA_VISIBLE_DEVICES=") for e in found["env"]), f"environment: {found['env']}")


@row("D3", "a container that restarts keeps its device")
def d3(world):
    world.agent(4)
    world.node.create(gpu_pod("again", 1, TELL + "sleep 1; exit 1", "Always"))
    wait("it restarted", lambda: restarts(world.node, "again") >= 1)
    first, second = world.gpu_nodes("again", attempt=0), world.gpu_nodes("again", attempt=1)
    equal(len(first), 1, "devices of the first run")
    equal(second, first, "devices of the second run")


@row("D4", "kubelet restart: the pod runs on untouched, counts return, the assignment is the same", ci=True)
def d4(world):
    agent = world.agent(4)
    world.run_pod("stays", 1)
    before = state_of(world, "stays")
    began = time.monotonic()
    world.node.restart_kubelet()
    world.wait_registered(agent)
    world.wait_counts(4, 4, agent=agent)
    wait("allocatable in the kubelet", lambda: len(kubelet_api.allocatable(GPU)) == 4)
    world.note(f"registered and counted {time.monotonic() - began:.1f} s after kill -9 of the kubelet")
    world.stays(5, lambda: world.node.phase("stays") == "Running", "the pod was perturbed")
    untouched(world, "stays", before)
    world.run_pod("new", 3)
    check(not set(world.ids("new")) & set(before[1]), "a device was given twice")


@row("D5", "kubelet and container restart: the same device")
def d5(world):
    agent = world.agent(4)
    world.node.create(gpu_pod("again", 1, TELL + "trap 'exit 0' TERM; sleep 8 & wait $!; exit 1", "Always"))
    world.node.wait_running("again")
    devices, first = world.ids("again"), world.gpu_nodes("again", attempt=0)
    world.node.restart_kubelet()
    world.wait_registered(agent)
    wait("it restarted", lambda: restarts(world.node, "again") >= 1)
    equal(world.gpu_nodes("again", attempt=1), first, "device nodes of the second run")
    equal(world.ids("again"), devices, "devices")


@row("D6", "a pod that succeeded stays so when the agent is gone and the kubelet restarts")
def d6(world):
    agent = world.agent(2)
    world.node.create(gpu_pod("done", 1, TELL + "exit 0"))
    world.node.wait_phase("done", "Succeeded")
    agent.stop()
    world.node.restart_kubelet()
    world.node.wait_ready()
    world.stays(20 if OPTIONS["quick"] else 60, lambda: world.node.phase("done") == "Succeeded",
                "a pod that succeeded was judged again")


@row("D7", "agent restart: devices are there again and a new pod gets one", ci=True)
def d7(world):
    agent = world.agent(2)
    world.run_pod("old", 1)
    before = state_of(world, "old")
    agent.kill()
    world.wait_counts(2, 0)
    world.agent(2, state=agent.state)
    world.run_pod("new", 1)
    check(not set(world.ids("new")) & set(before[1]), "a device was given twice")
    untouched(world, "old", before)


@row("D8", "kubelet and agent restart: the pod is untouched and its assignment stable")
def d8(world):
    agent = world.agent(2)
    world.run_pod("stays", 1)
    before = state_of(world, "stays")
    agent.kill()
    world.node.restart_kubelet()
    world.agent(2, state=agent.state)
    untouched(world, "stays", before)
    world.stays(5, lambda: world.node.phase("stays") == "Running", "the pod was perturbed")
    world.run_pod("new", 1)
    check(not set(world.ids("new")) & set(before[1]), "a device was given twice")


@row("D9", "a pod deleted while the kubelet was down leaves no assignment behind", ci=True)
def d9(world):
    agent = world.agent(1)
    world.run_pod("leaves", 1)
    world.node.kill_kubelet()
    world.node.delete("leaves", 0)
    world.node.wait_gone("leaves")
    world.node.start_kubelet()
    world.node.wait_kubelet()
    world.wait_registered(agent)
    wait("no assignment is left", lambda: "default/leaves" not in kubelet_api.assignments())
    world.wait_counts(1, 1, agent=agent)
    new = world.run_pod_soon("next", 1)
    wait("the agent names the holder", lambda: pods_in_metrics(agent) == {new})


@row("D10", "init container's device goes to the sidecar; sidecar and main differ; the kubelet lists these two")
def d10(world):
    world.agent(2)
    pod = gpu_pod("three", 1)
    pod["spec"]["initContainers"] = [
        nodes.container("first", TELL + "exit 0", {GPU: 1}),
        nodes.container("side", HOLD, {GPU: 1}, restartPolicy="Always")]
    world.node.create(pod)
    world.node.wait_running("three")
    first, side, main = (world.gpu_nodes("three", c) for c in ("first", "side", "main"))
    equal((len(first), len(side), len(main)), (1, 1, 1), "device nodes of each")
    equal(side, first, "devices of the sidecar and of the init container before it")
    check(side != main, f"sidecar and main share {main}")
    held = {c: d for c, d in kubelet_api.assignment("three").items() if d}
    equal(sorted(held), ["main", "side"], "containers in pod-resources")
    check(held["main"] != held["side"], f"pod-resources: {held}")


@row("D11", "reboot, pods come back before the agent: refused with a clear reason, and not listed", ci=True)
def d11(world):
    agent = world.agent(2)
    world.node.create(gpu_pod("early", 1, restart="Always"))
    world.node.wait_running("early")
    agent.kill()
    world.reboot()
    world.node.start_kubelet()
    world.node.wait_kubelet()
    world.note(refused(world, "early"))
    again = world.agent(2, state=agent.state)
    world.run_pod("late", 2)
    world.must_run(again)


@row("D12", "reboot with an agent that does not register: no capacity, pods refused; then it registers")
def d12(world):
    agent = world.agent(2)
    world.node.create(gpu_pod("early", 1, restart="Always"))
    world.node.wait_running("early")
    agent.signal(signal.SIGSTOP)
    world.reboot()
    world.node.start_kubelet()
    world.node.wait_kubelet()
    world.wait_counts(0, 0)
    refused(world, "early")
    agent.signal(signal.SIGCONT)
    world.wait_counts(2, 2, agent=agent)
    world.run_pod("late", 2)


# Failures


@row("F1", "a plugin whose options cannot be had is never advertised; the agent then serves the resource")
def f1(world):
    before = world.node.counts(GPU)
    equal(before, (-1, -1), "counts before")
    bad = kubelet_api.StandIn(GPU, ["a", "b"], refuse_options=True)
    try:
        bad.register()
        raise Failed("the kubelet registered it")
    except grpc_lite.RpcError:
        pass
    world.stays(5, lambda: world.node.counts(GPU) == (-1, -1), "it was advertised")
    world.agent(2)
    bad.stop()
    world.run_pod("uses", 2)


@row("F2", "one GPU goes bad and recovers: allocatable 1, 0, 1; capacity stays 1", ci=True)
def f2(world):
    agent = world.agent(1)
    sampler = Sampler(world)
    agent.inject("xid gpu=0 code=79")
    world.wait_counts(1, 0, agent=agent)
    agent.inject("recover gpu=0")
    world.wait_counts(1, 1, agent=agent)
    equal(sampler.stop().seen, [(1, 1), (1, 0), (1, 1)], "counts over time")


@row("F3", "a GPU goes bad under a pod: the pod runs on; capacity stays, also after the pod is deleted")
def f3(world):
    agent = world.agent(1)
    world.run_pod("victim", 1)
    before = state_of(world, "victim")
    agent.inject("xid gpu=0 code=79")
    world.wait_counts(1, 0, agent=agent)
    world.stays(10, lambda: world.node.phase("victim") == "Running", "the pod was killed")
    untouched(world, "victim", before)
    world.node.delete("victim")
    world.node.wait_gone("victim")
    world.stays(15, lambda: world.node.counts(GPU) == (1, 0), "counts changed after the pod was gone")
    world.must_run(agent)


@row("F4", "four GPUs, several go bad and recover: allocatable 4, 3, 4, 2, 3, 4; capacity stays 4")
def f4(world):
    agent = world.agent(4)
    sampler = Sampler(world)
    steps = [(["xid gpu=0 code=79"], 3), (["recover gpu=0"], 4), (["xid gpu=1 code=79", "xid gpu=2 code=79"], 2),
             (["recover gpu=1"], 3), (["recover gpu=2"], 4)]
    for lines, allocatable in steps:
        for line in lines:
            agent.inject(line)
        world.wait_counts(4, allocatable, agent=agent)
    sampler.stop()
    check(sampler.has([(4, 4), (4, 3), (4, 4), (4, 2), (4, 3), (4, 4)]), f"counts over time: {sampler.seen}")
    equal({capacity for capacity, _ in sampler.seen}, {4}, "capacity over time")


@row("F5", "the stream fails again and again from the start: the agent registers anew until it holds")
def f5(world):
    agent = world.agent(2, ready=False)
    began, cuts = time.monotonic(), 0
    def cut():
        nonlocal cuts
        cuts += agent.break_streams()
        return cuts >= 3 and time.monotonic() - began > 10
    # One that is cut before the kubelet asks for devices costs the agent 15 s of patience.
    wait("three connections were cut", cut, step=0.02)
    world.note(f"{cuts} connections cut in {time.monotonic() - began:.0f} s")
    world.wait_counts(2, 2, agent=agent)
    world.wait_registered(agent)
    world.run_pod("uses", 2)


@row("F6", "the stream fails after provisioning: the kubelet does not ask again, the agent does", ci=True)
def f6(world):
    agent = world.agent(2)
    world.run_pod("stays", 1)
    before = state_of(world, "stays")
    began = time.monotonic()
    check(agent.break_streams() >= 1, "no stream was found")
    # The agent may be back before the kubelet tells the API server that anything happened.
    wait("registered again", lambda: log_count(world, agent, "registered with the kubelet") >= 2)
    world.wait_registered(agent)
    world.note(f"registered again {time.monotonic() - began:.2f} s after the cut")
    world.wait_counts(2, 2, agent=agent)
    wait("allocatable in the kubelet", lambda: len(kubelet_api.allocatable(GPU)) == 2)
    world.run_pod("new", 1)
    untouched(world, "stays", before)


@row("F6k", "the same with a plugin that does not come back: allocatable 0, and no retry by the kubelet")
def f6k(world):
    plugin = kubelet_api.StandIn("example.com/thing", ["a", "b"])
    plugin.register()
    world.wait_counts(2, 2, "example.com/thing")
    plugin.break_stream()
    world.wait_counts(2, 0, "example.com/thing")
    world.stays(10, lambda: world.node.counts("example.com/thing") == (2, 0), "the kubelet asked again")
    plugin.stop()


@row("F7", "agent stopped: allocatable 0 at once; capacity 0 after the kubelet's five minutes", slow=True)
def f7(world):
    agent = world.agent(2)
    equal(agent.stop(), 0, "exit code of an agent told to stop")
    world.wait_counts(2, 0, limit=30)
    began = time.monotonic()
    wait("capacity is 0", lambda: world.node.counts(GPU)[0] <= 0, 500)
    took = time.monotonic() - began
    check(took > 200, f"capacity went after {took:.0f} s already")
    world.note(f"capacity went {took:.0f} s after the stop")


@row("F7a", "agent stopped: its sockets are gone and allocatable is 0", ci=True)
def f7a(world):
    agent = world.agent(2)
    equal(agent.stop(), 0, "exit code of an agent told to stop")
    world.wait_counts(2, 0)
    left = [f for f in os.listdir(kubelet_api.PLUGINS) if f.startswith("berth-")]
    equal(left, [], "sockets left behind")


# Several agents


def steady(world, sampler, count, allowed=()):
    sampler.stop()
    equal(sampler.seen, [(count, count)], "counts over time")
    equal(sampler.kubelet_seen, [count], "allocatable in the kubelet over time")
    equal(sampler.problems, list(allowed), "samples that failed")
    world.note(f"{sampler.samples} samples, {sampler.rate:.0f} a second")


def roll(world, own_pids):
    old = world.agent(2, own_pids=own_pids)
    sampler = Sampler(world)
    hold = 5 if OPTIONS["quick"] else 30
    for step in range(2):
        new = world.agent(2, own_pids=own_pids, state=old.state)
        world.run_pod(f"both-{step}", 1)
        time.sleep(hold)
        equal(old.stop(), 0, "exit code of the old agent")
        world.run_pod(f"after-{step}", 1)
        time.sleep(hold)
        for name in (f"both-{step}", f"after-{step}"):
            world.node.delete(name)
            world.node.wait_gone(name)
        old = new
    steady(world, sampler, 2)


@row("M1", "rolling update: the new agent registers, the old one goes; counts never change, pods start throughout")
def m1(world):
    roll(world, False)


@row("M1p", "the same with agents that are the first process of their namespace, as in pods")
def m1p(world):
    roll(world, True)


@row("M2", "a new version that fails to register: the old one keeps serving; a third takes over")
def m2(world):
    old = world.agent(2)
    sampler = Sampler(world)
    bad = kubelet_api.StandIn(GPU, ["x"], refuse_options=True)
    try:
        bad.register()
        raise Failed("the kubelet registered it")
    except grpc_lite.RpcError:
        pass
    world.run_pod("during", 1)
    time.sleep(5 if OPTIONS["quick"] else 30)
    bad.stop()
    world.agent(2)
    old.stop()
    world.run_pod("after", 1)
    time.sleep(5)
    steady(world, sampler, 2)


@row("M3", "a new agent registers and dies: the old one goes on", ci=True)
def m3(world):
    old = world.agent(2, own_pids=True)
    sampler = Sampler(world)
    world.agent(2, own_pids=True).kill()
    world.run_pod("after", 2)
    time.sleep(5)
    steady(world, sampler, 2)
    check(old.running(), "the old agent ended")


# Health in the pod's status


def health_in_status(world, name):
    for status in world.node.pod(name)["status"].get("containerStatuses", []):
        for resource in status.get("allocatedResourcesStatus", []):
            if resource["name"] == GPU:
                return {r["resourceID"]: r["health"] for r in resource["resources"]}
    return {}


@row("H1", "a GPU goes bad under a pod: the pod's status says so", ci=True)
def h1(world):
    agent = world.agent(2)
    world.run_pod("watched", 1)
    device = world.ids("watched")[0]
    wait("healthy in the status", lambda: health_in_status(world, "watched") == {device: "Healthy"})
    agent.inject(f"xid gpu={agent.index_of(device)} code=79")
    wait("unhealthy in the status", lambda: health_in_status(world, "watched") == {device: "Unhealthy"})
    agent.inject(f"recover gpu={agent.index_of(device)}")
    wait("healthy in the status", lambda: health_in_status(world, "watched") == {device: "Healthy"})


@row("H2", "the health of a failed pod's device is still reported")
def h2(world):
    agent = world.agent(2)
    world.node.create(gpu_pod("fails", 1, TELL + "until [ -e /tmp/end ]; do sleep 1; i=$((i+1)); "
                              "[ $i -gt 12 ] && exit 1; done"))
    world.node.wait_running("fails")
    device = world.ids("fails")[0]
    agent.inject(f"xid gpu={agent.index_of(device)} code=79")
    world.node.wait_phase("fails", "Failed")
    wait("unhealthy in the status", lambda: health_in_status(world, "fails") == {device: "Unhealthy"})


# Pod resources


@row("P1", "the exporter survives the kubelet's limits, pods that vanish, and a kubelet restart")
def p1(world):
    agent = world.agent(4)
    world.run_pod("plain", 1)
    limits = {GPU: 1, "cpu": "100m", "memory": "32Mi"}
    guaranteed = nodes.pod("guaranteed", HOLD, limits)
    world.node.create(guaranteed)
    world.node.create(gpu_pod("ends", 1, TELL + "exit 0"))
    world.node.wait_running("guaranteed")
    world.node.wait_phase("ends", "Succeeded")
    wait("both are named", lambda: pods_in_metrics(agent) == {"plain", "guaranteed"})
    equal(sorted(p for p, c in kubelet_api.assignments().items() if any(c.values())),
          ["default/guaranteed", "default/plain"], "holders by List")
    refusals, stop = [], threading.Event()
    def hammer():
        while not stop.is_set():
            try:
                kubelet_api.assignments()
            except grpc_lite.RpcError as e:
                refusals.append(e.status)
            except OSError:
                pass
    threads = [threading.Thread(target=hammer, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 15  # longer than the agent's own period
    while time.monotonic() < end:
        equal(pods_in_metrics(agent), {"plain", "guaranteed"}, "names while the kubelet refuses")
        time.sleep(0.5)
    stop.set()
    for thread in threads:
        thread.join()
    check(8 in refusals, "the kubelet refused nothing: the limit was not reached")
    world.note(f"{len(refusals)} calls refused by the kubelet")
    world.node.delete("guaranteed", 0)
    world.node.restart_kubelet()
    wait("one is named", lambda: pods_in_metrics(agent) == {"plain"})
    world.wait_registered(agent)
    world.wait_counts(4, 4, agent=agent)
    world.run_pod("new", 2)
    wait("both are named", lambda: pods_in_metrics(agent) == {"plain", "new"})
    world.must_run(agent)
