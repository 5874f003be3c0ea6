#!/usr/bin/env python3
"""The controller beside others on a real API server: Kueue's kinds and lease, kube-scheduler, a missing webhook.

    beside_others_test.py BERTH [Beside.test_...]
"""
import threading
import time
import unittest

import rig
from cluster import free_ports

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kueue-system/leases"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Lease(threading.Thread):
    """Kueue's leader, as far as its lease shows it."""

    def __init__(self, r):
        super().__init__(daemon=True)
        self.api, self.stopped = rig.Api(r.cluster.kubeconfig_of("load")), threading.Event()
        r.namespace("kueue-system")
        self.api.post(LEASE, {"metadata": {"name": "c1f6bfd2.kueue.x-k8s.io"}, "spec": {
            "holderIdentity": "kueue-0_1", "leaseDurationSeconds": 5, "renewTime": now()}})

    def run(self):
        while not self.stopped.wait(1):
            self.api.merge(LEASE + "/c1f6bfd2.kueue.x-k8s.io", {"spec": {"renewTime": now()}})

    def stop(self):
        self.stopped.set()
        self.join()


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())


class Beside(rig.Test):
    def kinds(self, r):
        """As they were written; their status is the API server's, which may still be at it."""
        return {c["metadata"]["name"]: (c["metadata"]["uid"], c["metadata"]["generation"], c["spec"],
                                        c["metadata"].get("annotations"), c["metadata"].get("labels"))
                for c in r.api.items(CRDS)}

    def test_kueue_kinds_are_left_alone(self):
        """The controller makes and changes no CustomResourceDefinition, also through the life of a Job."""
        with rig.Rig(self) as r:
            r.nodes(1)
            r.namespace("team")
            before = self.kinds(r)
            r.queue("q", "team", 8)
            r.controller("berth")
            r.job("team", "one", gpus=4, queue="q", seconds=0.5)
            r.wait("the Job finishes", lambda: rig.is_true(
                r.api.get("/apis/batch/v1/namespaces/team/jobs/one"), "Complete"))
            self.assertEqual(before, self.kinds(r))
            self.assertGreaterEqual(len(before), 8)
            writes = [e for e in r.audit("customresourcedefinitions") if e["user"]["username"] == "berth"]
            self.assertEqual(writes, [])

    def test_kueue_is_at_work(self):
        """While Kueue's lease is renewed its queues are left to it; berth takes over when it ends."""
        with rig.Rig(self) as r:
            r.nodes(2)
            r.namespace("team")
            lease = Lease(r)
            lease.start()
            r.queue("q", "team", 8)
            r.controller("berth")
            r.job("team", "queued", gpus=4, queue="q")
            r.job("team", "plain", gpus=4)
            r.wait("the pod without a queue is bound", lambda: len(r.bound("team")) == 1)
            rig.pause(12)  # longer than rules of time are looked at
            writes = [e["objectRef"] for e in r.audit() if e["user"]["username"] == "berth" and
                      e["objectRef"].get("apiGroup") in ("kueue.x-k8s.io", "batch")]
            self.assertEqual(writes, [])
            self.assertTrue(r.api.get("/apis/batch/v1/namespaces/team/jobs/queued")["spec"]["suspend"])
            lease.stop()
            took = r.wait("the queued Job runs", lambda: len(r.bound("team")) == 2)
            self.figure(f"Kueue's queues were taken over {took:.1f} s after its last renewal (lease of 5 s)")
            # It comes back: what runs stays, and nothing new is admitted.
            lease = Lease.__new__(Lease)
            threading.Thread.__init__(lease, daemon=True)
            lease.api, lease.stopped = rig.Api(r.cluster.kubeconfig_of("load")), threading.Event()
            lease.start()
            rig.pause(3)
            r.job("team", "later", gpus=4, queue="q")
            rig.pause(12)
            self.assertEqual(len(r.bound("team")), 2)
            self.assertTrue(r.api.get("/apis/batch/v1/namespaces/team/jobs/later")["spec"]["suspend"])
            lease.stop()
            r.nothing_wrong()

    def test_kube_scheduler_keeps_its_pods(self):
        """Two schedulers on the same nodes: each binds its own, and berth sees what the other took."""
        with rig.Rig(self, scheduler=True) as r:
            r.nodes(2)
            r.namespace("team")
            r.controller("berth")
            r.job("team", "theirs", pods=4, gpus=2, scheduler="default-scheduler")
            r.wait("the others' pods are bound", lambda: len(r.bound("team")) == 4)
            r.job("team", "ours", pods=4, gpus=2)
            r.wait("all pods are bound", lambda: len(r.bound("team")) == 8)
            r.job("team", "waits", pods=1, gpus=1)
            r.wait("no GPU is left", lambda: any(
                rig.condition(p, "PodScheduled").get("reason") == "Unschedulable" for p in r.pods("team")))
            r.nothing_wrong()
            for (_, pod), users in r.bindings().items():
                self.assertEqual(users, ["kube-scheduler" if pod.startswith("theirs") else "berth"], pod)
            waiting = next(p for p in r.pods("team") if p["metadata"]["name"].startswith("waits"))
            self.assertNotIn("nodeName", waiting["spec"])
            touched = [e for e in r.audit("pods") if e["user"]["username"] == "berth" and
                       e["objectRef"].get("name", "").startswith("theirs")]
            self.assertEqual(touched, [], "berth wrote a pod of another scheduler")

    def test_webhook_was_down(self):
        """Pods and Jobs made while the webhook was away, in a managed namespace: nothing hangs half-way."""
        with rig.Rig(self, scheduler=True) as r:
            r.nodes(2)
            r.namespace("team", **{"berth.dev/managed": "true"})
            r.queue("q", "team", 8)
            where = f"127.0.0.1:{free_ports(1)[0]}"
            flags = ("--webhook", where, "--webhook-url", f"https://{where}")
            one = r.controller("berth", *flags)
            r.wait("the webhook is asked", lambda: self.scheduler_of(r) == "berth")
            one.kill()
            # failurePolicy Ignore: the API server goes on without it.
            self.job_of_a_user(r, "missed", None)
            self.job_of_a_user(r, "missed-queue", "q")
            r.wait("kube-scheduler takes what nobody marked", lambda: any(
                p["metadata"]["name"].startswith("missed-") for p in r.bound("team")))
            r.controller("berth", *flags)
            r.wait("the webhook is asked again", lambda: self.scheduler_of(r) == "berth")
            self.job_of_a_user(r, "seen", None)
            self.job_of_a_user(r, "seen-queue", "q")
            r.wait("what came after runs", lambda: {"seen", "seen-queue"} <= self.running(r))
            r.wait("what was missed runs", lambda: {"missed", "missed-queue"} <= self.running(r))
            r.nothing_wrong()
            by = {}
            for (_, pod), users in r.bindings().items():
                by.setdefault(pod.rsplit("-", 1)[0], set()).update(users)
            self.assertEqual(by["seen"], {"berth"})
            self.assertEqual(by["seen-queue"], {"berth"})
            self.assertEqual(by["missed"], {"kube-scheduler"})
            self.figure("bound by: " + ", ".join(f"{job} {'+'.join(sorted(who))}" for job, who in sorted(by.items())))

    def test_job_that_slipped_past(self):
        """A Job that names a queue, and runs before the controller sees it, is stopped and waits its turn."""
        with rig.Rig(self) as r:
            r.nodes(2)
            r.namespace("team")
            r.queue("q", "team", 8)
            r.job("team", "early", gpus=2, queue="q", suspend=False, scheduler="default-scheduler")
            r.wait("its pod is there", lambda: r.pods("team"))
            first = r.pods("team")[0]["metadata"]
            r.api.post(f"/api/v1/namespaces/team/pods/{first['name']}/binding", {
                "metadata": {"name": first["name"]}, "target": {"kind": "Node", "name": "node-0"}})
            r.wait("it runs", lambda: "early" in self.running(r))
            r.controller("berth")
            r.wait("it holds quota", lambda: self.holders(r) == {"early"})
            r.wait("its Job goes on", lambda: not r.api.get(
                "/apis/batch/v1/namespaces/team/jobs/early")["spec"].get("suspend"))
            r.wait("its first pod is gone", lambda: first["uid"] not in {
                p["metadata"]["uid"] for p in r.pods("team")})

    @staticmethod
    def holders(r):
        return {w["metadata"]["ownerReferences"][0]["name"] for w in r.workloads("team")
                if rig.is_true(w, "Admitted")}

    @staticmethod
    def scheduler_of(r):
        pod = r.api.post("/api/v1/namespaces/team/pods?dryRun=All", {
            "metadata": {"name": "probe"}, "spec": {k: v for k, v in rig.pod_spec().items() if k != "schedulerName"}})
        return pod["spec"]["schedulerName"]

    @staticmethod
    def job_of_a_user(r, name, queue):
        spec = {k: v for k, v in rig.pod_spec(2).items() if k != "schedulerName"}
        r.api.post("/apis/batch/v1/namespaces/team/jobs", {
            "metadata": {"name": name, "labels": {rig.QUEUE: queue} if queue else {}},
            "spec": {"template": {"spec": spec}}})

    @staticmethod
    def running(r):
        return {p["metadata"]["labels"]["job-name"] for p in r.bound("team") if p["status"]["phase"] == "Running"}


if __name__ == "__main__":
    rig.main(__doc__)
