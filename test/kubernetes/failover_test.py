#!/usr/bin/env python3
"""The controller dies, on a real API server: in the middle of a gang, alone, and with another one waiting.

    failover_test.py BERTH [Failover.test_...]
"""
import signal
import threading

import rig
from bind_gate import BindGate

GANG = 8


class Failover(rig.Test):
    def gang(self, r, pods=GANG):
        r.pod_group("team", "train", pods)
        r.job("team", "train", pods=pods, gpus=4, group="train")

    def half_bound(self, r, gate):
        r.wait("half of the gang is bound", lambda: len(r.bound("team")) == GANG // 2 and gate.waiting)

    def test_leader_dies_between_bindings(self):
        """Another leader finishes the gang: all are bound, none of them twice, by two users."""
        with rig.Rig(self) as r:
            r.nodes(4)
            r.namespace("team")
            gate = BindGate(GANG // 2)
            try:
                gate.register(r, "team")
                leader = r.controller("berth")
                r.controller("berth-standby", leads=False)
                self.gang(r)
                self.half_bound(r, gate)
                leader.kill()
                gate.open()
                took = r.wait("the whole gang is bound", lambda: len(r.bound("team")) == GANG)
            finally:
                gate.close()
            r.nothing_wrong()
            users = [u for names in r.bindings().values() for u in names]
            self.assertEqual(sorted(set(users)), ["berth", "berth-standby"])
            self.figure(f"{users.count('berth')} of {GANG} bound by the first, the rest {took:.1f} s after its death")

    def test_rest_has_no_place(self):
        """The other leader finds no place for the rest: within the bound nobody of the gang is bound."""
        with rig.Rig(self) as r:
            r.nodes(4)
            r.namespace("team")
            r.namespace("other")
            gate = BindGate(GANG // 2)
            try:
                gate.register(r, "team")
                leader = r.controller("berth")
                self.gang(r)
                self.half_bound(r, gate)
                leader.kill()
                gate.open()
                used = {p["spec"]["nodeName"] for p in r.bound("team")}
                for node in ("node-0", "node-1", "node-2", "node-3"):
                    r.api.merge(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
                r.controller("berth-standby")
                took = r.wait("none of the gang is bound", lambda: not r.bound("team"))
                # Pods that its Job makes anew wait together.
                r.wait("the gang is there again", lambda: len(
                    [p for p in r.pods("team") if "deletionTimestamp" not in p["metadata"]]) == GANG)
                self.assertEqual(r.bound("team"), [])
                for node in ("node-0", "node-1", "node-2", "node-3"):
                    r.api.merge(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None}})
                r.wait("the whole gang is bound", lambda: len(r.bound("team")) == GANG)
            finally:
                gate.close()
            r.nothing_wrong()
            self.figure(f"half a gang on {len(used)} nodes was undone {took:.1f} s after a new leader came")

    def test_restart_between_bindings(self):
        with rig.Rig(self) as r:
            r.nodes(4)
            r.namespace("team")
            gate = BindGate(GANG // 2)
            try:
                gate.register(r, "team")
                first = r.controller("berth", "--no-election", leads=False)
                self.gang(r)
                self.half_bound(r, gate)
                first.kill()
                gate.open()
                r.controller("berth", "--no-election", leads=False)
                took = r.wait("the whole gang is bound", lambda: len(r.bound("team")) == GANG)
            finally:
                gate.close()
            r.nothing_wrong()
            self.figure(f"the rest was bound {took:.1f} s after the start")

    def test_leader_that_was_held_up(self):
        """A leader that hears nothing for longer than its lease writes nothing when it wakes, and ends."""
        with rig.Rig(self) as r:
            r.nodes(4)
            r.namespace("team")
            first = r.controller("berth")
            standby = r.controller("berth-standby", leads=False)
            first.signal(signal.SIGSTOP)
            r.job("team", "one", pods=4, gpus=4)
            took = r.wait("the other leads", lambda: r.leads(standby))
            r.wait("its pods are bound", lambda: len(r.bound("team")) == 4)
            r.job("team", "two", pods=4, gpus=4)
            first.signal(signal.SIGCONT)
            r.wait("all pods are bound", lambda: len(r.bound("team")) == 8)
            r.wait("the first ended", lambda: not first.running())
            r.nothing_wrong()
            self.assertEqual({u for names in r.bindings().values() for u in names}, {"berth-standby"})
            self.figure(f"the lead was taken {took:.1f} s after the leader fell silent")

    def test_restarts_under_load(self):
        """Killed five times while 60 Jobs pass through a queue of 16 GPUs: each runs once, quota holds."""
        with rig.Rig(self) as r:
            r.nodes(2)
            r.namespace("team")
            r.queue("q", "team", 16)
            stop = threading.Event()
            most = []
            watcher = threading.Thread(target=watch_use, args=(r, stop, most), daemon=True)
            watcher.start()
            one = r.controller("berth", "--no-election", leads=False)
            for i in range(60):
                r.job("team", f"job-{i}", gpus=1 + i % 4, queue="q", seconds=0.5)
            for _ in range(5):
                done = finished(r)
                r.wait("some more Jobs finish", lambda: finished(r) > done or finished(r) == 60)
                one.kill()
                one = r.controller("berth", "--no-election", leads=False)
            took = r.wait("all Jobs finish", lambda: finished(r) == 60)
            stop.set()
            watcher.join()
            r.nothing_wrong()
            self.assertEqual(len(r.bindings()), 60)
            self.assertLessEqual(max(most), 16)
            self.figure(f"60 Jobs and 5 kills; the most GPUs in use {max(most)} of 16; {took:.1f} s after the last")


def finished(r):
    return sum(1 for j in r.api.items("/apis/batch/v1/namespaces/team/jobs") if rig.is_true(j, "Complete"))


def watch_use(r, stop, most):
    api = rig.Api(r.cluster.kubeconfig)
    most.append(0)
    while not stop.wait(0.05):
        try:
            pods = api.items("/api/v1/namespaces/team/pods")
        except OSError:
            continue
        most.append(sum(int(p["spec"]["containers"][0]["resources"]["limits"][rig.GPU]) for p in pods
                        if p["spec"].get("nodeName") and p["status"].get("phase") in ("Pending", "Running")))


if __name__ == "__main__":
    rig.main(__doc__)
