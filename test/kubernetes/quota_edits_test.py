#!/usr/bin/env python3
"""Quota that changes while Jobs pass through, on a real API server.

    quota_edits_test.py BERTH [QuotaEdits.test_...]
"""
import random
import threading
import time

import rig

JOBS = 80


class Admissions(threading.Thread):
    """Every change of the Workloads of a namespace, as the API tells it: who holds how much, and since when."""

    def __init__(self, r, ns):
        super().__init__(daemon=True)
        self.watch = rig.Api(r.cluster.kubeconfig).watch(f"{rig.KUEUE}/namespaces/{ns}/workloads?watch=1&allowWatchBookmarks=false")
        self.holds, self.admitted = {}, []  # admitted: (moment, GPUs in use with it)

    def run(self):
        try:
            while (event := self.watch.next(600)) is not None:
                self.take(event)
        except Exception:  # closed
            pass

    def take(self, event):
        thing = event["object"]
        name = thing["metadata"]["name"]
        admission = thing.get("status", {}).get("admission")
        over = event["type"] == "DELETED" or rig.is_true(thing, "Finished") or not admission
        before = self.holds.pop(name, 0)
        if over:
            return
        self.holds[name] = sum(int(s["resourceUsage"][rig.GPU]) for s in admission["podSetAssignments"])
        if not before:
            self.admitted.append((time.monotonic(), sum(self.holds.values())))

    def close(self):
        self.watch.close()
        self.join()


class QuotaEdits(rig.Test):
    def finished(self, r):
        return sum(1 for j in r.api.items("/apis/batch/v1/namespaces/team/jobs") if rig.is_true(j, "Complete"))

    def test_edits_under_load(self):
        """Never more is let in than the largest quota of the last seconds; all Jobs finish in the end."""
        with rig.Rig(self) as r:
            r.nodes(4)
            r.namespace("team")
            r.queue("q", "team", 16)
            seen = Admissions(r, "team")
            seen.start()
            r.controller("berth", "--no-election", leads=False)
            for i in range(JOBS):
                r.job("team", f"job-{i}", gpus=1 + i % 4, queue="q", seconds=0.3)
            edits, chance = [(time.monotonic() - 60, 16)], random.Random(7)
            while self.finished(r) < JOBS * 3 // 4:
                quota = chance.choice([0, 4, 6, 12, 16, 24, 32])
                r.set_quota("q", quota)
                edits.append((time.monotonic(), quota))
                rig.pause(1.5)
                if quota < 4 and chance.random() < 0.5:
                    continue
            r.set_quota("q", 32)
            edits.append((time.monotonic(), 32))
            r.wait("all Jobs finish", lambda: self.finished(r) == JOBS)
            seen.close()
            r.nothing_wrong()
            self.assertEqual(len(r.bindings()), JOBS)
            for moment, used in seen.admitted:
                self.assertLessEqual(used, most_allowed(edits, moment), f"admitted at {moment}: {edits}")
            self.figure(f"{JOBS} Jobs, {len(edits)} edits, {len(seen.admitted)} admissions, at most "
                        f"{max(used for _, used in seen.admitted)} GPUs in use")

    def test_below_what_is_used(self):
        """Holders stay, nobody is let in until enough left."""
        with rig.Rig(self) as r:
            r.nodes(2)
            r.namespace("team")
            r.queue("q", "team", 8)
            r.controller("berth", "--no-election", leads=False)
            for i in range(2):
                r.job("team", f"holder-{i}", gpus=4, queue="q")
            r.wait("both run", lambda: len(r.bound("team")) == 2)
            r.set_quota("q", 4)
            r.job("team", "late", gpus=2, queue="q")
            r.wait("the third waits for quota", lambda: any(
                rig.condition(w, "QuotaReserved").get("reason") == "WaitingForQuota" for w in r.workloads("team")))
            self.assertEqual(len(r.bound("team")), 2)
            r.api.delete("/apis/batch/v1/namespaces/team/jobs/holder-0?propagationPolicy=Background")
            rig.pause(3)
            self.assertEqual(len(r.bound("team")), 1, "4 of 4 are in use")
            r.set_quota("q", 6)
            r.wait("the third runs", lambda: len(r.bound("team")) == 2)
            r.nothing_wrong()

    def test_queue_comes_and_goes(self):
        """A queue that is drained lets its Jobs stop; they run again when it opens, and wait when it is gone."""
        with rig.Rig(self) as r:
            r.nodes(2)
            r.namespace("team")
            r.queue("q", "team", 8)
            r.controller("berth", "--no-election", leads=False)
            for i in range(2):
                r.job("team", f"job-{i}", gpus=4, queue="q")
            r.wait("both run", lambda: len(r.bound("team")) == 2)
            r.api.merge(f"{rig.KUEUE}/clusterqueues/q", {"spec": {"stopPolicy": "HoldAndDrain"}})
            r.wait("both are stopped", lambda: not r.pods("team"))
            jobs = r.api.items("/apis/batch/v1/namespaces/team/jobs")
            self.assertTrue(all(j["spec"]["suspend"] for j in jobs))
            r.api.merge(f"{rig.KUEUE}/clusterqueues/q", {"spec": {"stopPolicy": "None"}})
            r.wait("both run again", lambda: len(r.bound("team")) == 2)
            r.nothing_wrong()


def most_allowed(edits, moment):
    """The largest quota that the controller may have known of: that of now, and those of the last seconds."""
    slack = 5.0  # for a watch and a write on a loaded machine
    recent = [q for at, q in edits if moment - slack <= at <= moment + 0.5]
    current = [q for at, q in edits if at <= moment - slack][-1:]
    return max(recent + current)


if __name__ == "__main__":
    rig.main(__doc__)
