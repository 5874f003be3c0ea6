#!/usr/bin/env python3
"""A real API server in trouble: it dies and comes back, forgets its history, and has others who write the same objects.

    server_trouble_test.py BERTH [ServerTrouble.test_...]
"""
import random
import signal
import threading

import rig

JOBS = 40


class ServerTrouble(rig.Test):
    def jobs(self, r, count=JOBS, **how):
        for i in range(count):
            r.job("team", f"job-{i}", gpus=1 + i % 4, **how)

    def finished(self, r):
        return sum(1 for j in r.api.items("/apis/batch/v1/namespaces/team/jobs") if rig.is_true(j, "Complete"))

    def writes(self, r):
        return sum(1 for e in r.audit() if e["user"]["username"] == "berth" and e["responseStatus"]["code"] < 300)

    def test_server_dies(self):
        """kill -9 of the API server, three times, while Jobs pass through a queue: the controller goes on by itself."""
        with rig.Rig(self) as r:
            r.nodes(2)
            r.namespace("team")
            r.queue("q", "team", 16)
            one = r.controller("berth", "--no-election", leads=False)
            self.jobs(r, queue="q", seconds=0.5)
            away = []
            for _ in range(3):
                done = self.finished(r)
                r.wait("some more Jobs finish", lambda: self.finished(r) > min(done, JOBS - 1))
                r.server_dies(2)
                wrote = self.writes(r)
                away.append(r.wait("it goes on", lambda: self.writes(r) > wrote or self.finished(r) == JOBS))
            r.wait("all Jobs finish", lambda: self.finished(r) == JOBS)
            self.assertTrue(one.running(), "the controller ended")
            r.nothing_wrong()
            self.assertEqual(len(r.bindings()), JOBS)
            self.figure("went on " + ", ".join(f"{s:.1f}" for s in away) + " s after the server was ready")

    def test_leader_outlives_a_short_absence(self):
        """With an election: who led leads on, or another does; nothing is bound twice."""
        with rig.Rig(self) as r:
            r.nodes(4)
            r.namespace("team")
            first = r.controller("berth")
            second = r.controller("berth-standby", leads=False)
            r.server_dies(1)
            r.job("team", "after", pods=8, gpus=4)
            took = r.wait("the pods are bound", lambda: len(r.bound("team")) == 8)
            self.assertTrue(first.running() or second.running())
            r.nothing_wrong()
            self.figure(f"bound {took:.1f} s later by " + " and ".join(
                sorted({u for names in r.bindings().values() for u in names})))

    def test_history_is_gone(self):
        """While the controller hears nothing the server dies and its history goes: it lists again, misses nothing."""
        with rig.Rig(self) as r:
            r.nodes(4)
            r.namespace("team")
            one = r.controller("berth", "--no-election", leads=False)
            r.job("team", "before", pods=4, gpus=4)
            r.wait("the first pods are bound", lambda: len(r.bound("team")) == 4)
            one.signal(signal.SIGSTOP)
            r.server_dies()  # its streams end here: it hears of nothing that follows
            r.job("team", "during", pods=6, gpus=4)
            r.api.delete("/apis/batch/v1/namespaces/team/jobs/before?propagationPolicy=Background")
            r.wait("only the new pods are there", lambda: len(r.pods("team")) == 6 and all(
                p["metadata"]["name"].startswith("during") for p in r.pods("team")))
            r.cluster.compact()
            r.server_dies()  # and what its caches still knew is gone
            one.signal(signal.SIGCONT)
            # Room for six is there only because the first four left.
            took = r.wait("the pods are bound", lambda: len(r.bound("team")) == 6)
            r.wait("a watch was told that its history is gone", lambda: told(one) > 0)
            r.nothing_wrong()
            self.figure(f"{told(one):.0f} watches were told 410; bound {took:.1f} s after it woke")

    def test_conflict_storm(self):
        """Others patch the same Workloads, Jobs and pods all the time."""
        with rig.Rig(self) as r:
            r.nodes(2)
            r.namespace("team")
            r.queue("q", "team", 16)
            stop, writes = threading.Event(), []
            storm = [threading.Thread(target=patch_all, args=(r, stop, writes, seed), daemon=True) for seed in range(3)]
            for one in storm:
                one.start()
            controller = r.controller("berth", "--no-election", leads=False)
            self.jobs(r, queue="q", seconds=0.5)
            took = r.wait("all Jobs finish", lambda: self.finished(r) == JOBS)
            stop.set()
            for one in storm:
                one.join()
            self.assertTrue(controller.running())
            r.nothing_wrong()
            self.assertEqual(len(r.bindings()), JOBS)
            for workload in r.workloads("team"):
                self.assertTrue(rig.is_true(workload, "Admitted"), workload["metadata"]["name"])
            conflicts = [e for e in r.audit() if e["user"]["username"] == "berth" and
                         e["responseStatus"]["code"] == 409]
            self.figure(f"{JOBS} Jobs in {took:.1f} s beside {sum(writes)} writes of others; "
                        f"{len(conflicts)} conflicts for the controller")


def told(controller):
    return controller.metric("berth_kube_watch_restarts_total", reason="expired")


def patch_all(r, stop, writes, seed):
    """Annotations of everything that lives in the namespace."""
    api, chance, count = rig.Api(r.cluster.kubeconfig_of("load")), random.Random(seed), 0
    kinds = ["/api/v1/namespaces/team/pods", "/apis/batch/v1/namespaces/team/jobs",
             f"{rig.KUEUE}/namespaces/team/workloads"]
    while not stop.is_set():
        path = chance.choice(kinds)
        try:
            for thing in api.items(path):
                if stop.is_set():
                    break
                api.merge(f"{path}/{thing['metadata']['name']}",
                          {"metadata": {"annotations": {f"storm/{seed}": str(count)}}})
                count += 1
        except (OSError, rig.Refused):
            pass  # it is gone, or was changed by another
    writes.append(count)


if __name__ == "__main__":
    rig.main(__doc__)
