#!/usr/bin/env python3
"""Agent and controller are replaced by another version under running pods, and nobody notices.

    upgrade_test.py BERTH [--to BERTH]

Two real nodes (test/node/fleet.py): a gang runs, another waits in the queue. Every agent and the controller are
replaced as a rolling update of the chart does it (the new one first, then SIGTERM), then by a stop and a start, then
after kill -9. All the while the Nodes' allocatable, what the kubelets themselves say, and every container are looked at.
--to is the new version; a copy of the first when none is named. Needs root. KEEP=1 keeps the logs.
"""
import argparse
import json
import os
import shutil
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "node"))
sys.path.insert(0, HERE)
import isolate  # noqa: E402
from fleet import Fleet, planned, steps  # noqa: E402
from node import Timeout, wait  # noqa: E402
from world import GPU, Sampler, check, equal  # noqa: E402

SETTLES = 6  # seconds: longer than a kubelet takes to write its Node


class Watcher:
    """Containers of pods over time: every different answer is kept."""

    def __init__(self, fleet, jobs):
        self.fleet, self.jobs, self.seen, self.samples, self.ended = fleet, jobs, [], 0, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    @staticmethod
    def facts(pod):
        return (pod["metadata"]["uid"], "deletionTimestamp" in pod["metadata"], pod["status"].get("phase"), tuple(
            (c.get("containerID"), c["restartCount"], c["state"].get("running", {}).get("startedAt"))
            for c in pod["status"].get("containerStatuses", [])))

    def run(self):
        api = next(iter(self.fleet.nodes.values())).new_api()
        while True:
            last = self.ended.is_set()
            try:
                pods = api.get("/api/v1/namespaces/default/pods")["items"]
                now = sorted(self.facts(p) for p in pods
                             if p["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name") in self.jobs)
                if not self.seen or self.seen[-1] != now:
                    self.seen.append(now)
                self.samples += 1
            except OSError:
                pass
            if last:
                return
            self.ended.wait(0.1)

    def stop(self):
        self.ended.set()
        self.thread.join()
        return self


class Upgrade:
    def __init__(self, fleet, new):
        self.fleet, self.new, self.number = fleet, new, 0

    def prepare(self):
        fleet = self.fleet
        fleet.agents(4)
        self.leader = fleet.controller("berth-0")
        fleet.queue("team", 4)
        fleet.job("runs", 2, 2, queue="team")
        self.pods = fleet.wait_running("runs", 2)
        self.told = {p["metadata"]["name"]: fleet.told(p) for p in self.pods}
        fleet.job("waits", 2, 2, queue="team")
        wait("the second waits", lambda: fleet.condition("waits", "QuotaReserved").get("message"))

    def watched(self, action):
        """What was seen of allocatable, by the API and by the kubelet, for each node; no pod was touched."""
        samplers = {name: Sampler(world) for name, world in self.fleet.worlds.items()}
        watcher = Watcher(self.fleet, ("runs",))
        wait("samplers see", lambda: watcher.samples and all(s.samples for s in samplers.values()))
        try:
            action()
            time.sleep(SETTLES)
        finally:
            watcher.stop()
            for one in samplers.values():
                one.stop()
        equal(len(watcher.seen), 1, f"states of the running pods: {watcher.seen}")
        for pod in self.pods:
            name = pod["metadata"]["name"]
            equal(self.fleet.told(pod), self.told[name], f"GPUs of {name}")
            holders = self.fleet.gpu_states(planned(pod)[0])
            equal(sorted(i for i, g in holders.items() if pod["metadata"]["uid"] in g.get("holders", [])),
                  self.told[name], f"GPUs of {name} as GpuNode says")
        print(f"    {watcher.samples} looks at the pods, {sum(s.samples for s in samplers.values())} at the nodes; "
              + "; ".join(f"{n}: allocatable {[a for _, a in s.seen]}, kubelet {s.kubelet_seen}"
                          for n, s in samplers.items()), flush=True)
        return samplers

    def agents(self, stop_first, number):
        for name, world in self.fleet.worlds.items():
            before = self.fleet.agent[name]
            if stop_first:
                before.end(number)
            after = self.fleet.next_agent(name, self.new)
            world.wait_registered(after)
            if not stop_first:
                time.sleep(1)
                equal(before.end(number), 0, "exit code of the agent that was replaced")

    def steady(self, samplers):
        for name, one in samplers.items():
            equal((one.seen, one.kubelet_seen), ([(4, 4)], [4]), f"allocatable of {name} over time")
            check(not one.problems, f"the sampler of {name}: {one.problems[:3]}")

    def back(self, samplers):
        """A kubelet takes the devices of a plugin that is gone out at once; they must all be back."""
        for name, one in samplers.items():
            equal((one.seen[-1], one.kubelet_seen[-1]), ((4, 4), 4), f"allocatable of {name} at the end")
            check(all(c == 4 for c, _ in one.seen), f"capacity of {name}: {one.seen}")

    def controller(self, number, surge):
        self.number += 1
        name = f"berth-{self.number}"
        began = time.monotonic()
        if surge:
            after = self.fleet.controller(name, self.new, leads=False)
            time.sleep(2)
            check(not after.leads(), "two controllers lead")
            began = time.monotonic()
        code = self.leader.end(number)
        if number == signal.SIGTERM:
            equal(code, 0, "exit code of the controller that was replaced")
        if not surge:
            after = self.fleet.controller(name, self.new, leads=False)
        wait(f"{name} leads", after.leads)
        print(f"    {name} leads {time.monotonic() - began:.1f} s after the other was told to go", flush=True)
        self.leader = after


STEPS, step = steps()


@step("agents, rolling: the new one registers, then SIGTERM for the old; allocatable never drops")
def agents_rolling(up):
    up.steady(up.watched(lambda: up.agents(False, signal.SIGTERM)))


@step("controller, rolling: the new one waits, then SIGTERM for the old")
def controller_rolling(up):
    up.steady(up.watched(lambda: up.controller(signal.SIGTERM, True)))


@step("agents: SIGTERM, then the new one starts; pods are untouched and all GPUs are back")
def agents_stop_start(up):
    up.back(up.watched(lambda: up.agents(True, signal.SIGTERM)))


@step("agents: kill -9, then the new one starts; pods are untouched and all GPUs are back")
def agents_killed(up):
    up.back(up.watched(lambda: up.agents(True, signal.SIGKILL)))


@step("controller: kill -9, then the new one starts and waits for the lease")
def controller_killed(up):
    up.steady(up.watched(lambda: up.controller(signal.SIGKILL, False)))


@step("the gang that waited all the while is admitted, on the GPUs that the decision names")
def queue_goes_on(up):
    fleet = up.fleet
    equal(fleet.pods("waits"), [], "pods of the Job that waits")
    began = time.monotonic()
    fleet.delete_job("runs")
    pods = fleet.wait_running("waits", 2)
    # Equal pods that start at once may have each other's: a kubelet does not say for which it asks.
    equal(sorted(fleet.told(p) for p in pods), sorted(planned(p)[1] for p in pods), "GPUs in the containers")
    print(f"    it runs {time.monotonic() - began:.1f} s after the other was deleted", flush=True)


@step("the agents' journals hold what runs, and no placement was lost")
def journal_is_whole(up):
    pods = up.fleet.pods("waits")
    for name, agent in up.fleet.agent.items():
        def noted(agent=agent):
            with open(os.path.join(agent.state, "allocations.jsonl"), encoding="utf-8") as f:
                return {json.loads(line).get("pod") for line in f if line.strip()}
        want = {f"default/{p['metadata']['name']}/main" for p in pods if planned(p)[0] == name}
        wait(f"the journal of {name} holds {want}", lambda noted=noted, want=want: noted() >= want)
        equal(sum(v for _, v in agent.metrics("berth_agent_hint_differences_total")), 0.0,
              f"placements of {name} that the kubelet did not follow")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("berth")
    parser.add_argument("--to", help="the new version")
    options = parser.parse_args()
    passed, problem = 0, None
    with Fleet(options.berth) as fleet:
        new = options.to
        if new is None:
            new = fleet.path("berth-new")
            shutil.copy(options.berth, new)
        up = Upgrade(fleet, os.path.abspath(new))
        try:
            up.prepare()
            for title, function in STEPS:
                print(f"{title}", flush=True)
                began = time.monotonic()
                function(up)
                passed += 1
                print(f"    seen, {time.monotonic() - began:.1f} s", flush=True)
        except (AssertionError, Timeout) as e:
            problem = str(e)
            print(f"--- not seen: {problem}\n{fleet.logs()}", flush=True)
    print(f"{passed} of {len(STEPS)} checks of an upgrade passed", flush=True)
    return 1 if problem else 0


if __name__ == "__main__":
    if "-h" in sys.argv or "--help" in sys.argv:
        sys.exit(main())
    sys.exit(isolate.run(main))
