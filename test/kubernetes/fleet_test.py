#!/usr/bin/env python3
"""`berth controller` and real Jobs on a fleet that KWOK looks after, and on Kubernetes 1.34.

    fleet_test.py BERTH [TEST...]

KWOK (sigs.k8s.io/kwok) lets the pods of nodes run that exist as objects only: the scheduler's and the controllers' side
is the real one, at a size that no single machine has.
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import rig  # noqa: E402
from rig import GPU, is_true  # noqa: E402

NODES = int(os.environ.get("BERTH_FLEET_NODES", "100"))


class Fleet(rig.Test):
    def wait(self, r, what, ready):
        """A controller that lost its lease on a busy machine is started again, as its Deployment does it."""
        def alive():
            if not r.controllers[-1].running():
                r.controller("berth", leads=False)
            return ready()
        r.wait(what, alive, 600)

    def test_jobs_on_a_hundred_nodes(self):
        """More gangs than fit wait in a queue, run as others end, and all end; nothing is given twice."""
        with rig.Rig(self, kwok=True) as r:
            began = time.monotonic()
            r.cluster.add_nodes(NODES, 8)
            r.controller("berth")
            r.namespace("team")
            r.queue("team", "team", NODES * 8)
            jobs = NODES // 5 + 4  # of 5 nodes each: four more than fit
            started = time.monotonic()
            for i in range(jobs):
                r.job("team", f"gang-{i}", pods=5, gpus=8, queue="team", seconds=5)
            self.wait(r, "the quota is full", lambda: len(r.bound("team")) >= NODES)
            self.figure(f"{NODES} nodes there after {started - began:.1f} s; {NODES} pods of 8 GPUs bound "
                        f"{time.monotonic() - started:.1f} s after the first Job was made")
            r.nothing_wrong()
            def done():
                return all(is_true(job, "Complete") for job in r.api.items("/apis/batch/v1/namespaces/team/jobs"))
            self.wait(r, "every Job is complete", done)
            self.figure(f"{jobs} gangs of 5 pods complete after {time.monotonic() - started:.1f} s")
            r.nothing_wrong()
            self.assertEqual(len(r.bindings()), 5 * jobs)
            self.wait(r, "Workloads are finished", lambda: all(is_true(w, "Finished") for w in r.workloads("team")))

    def test_a_deployment_and_a_node_that_goes(self):
        with rig.Rig(self, kwok=True) as r:
            r.cluster.add_nodes(10, 8)
            r.controller("berth")
            ns = r.namespace("serve")
            template = {"metadata": {"labels": {"app": "d"}}, "spec": {**rig.pod_spec(2), "restartPolicy": "Always"}}
            r.api.post(f"/apis/apps/v1/namespaces/{ns}/deployments", {"metadata": {"name": "d"}, "spec": {
                "replicas": 20, "selector": {"matchLabels": {"app": "d"}}, "template": template}})
            self.wait(r, "all run", lambda: sum(p["status"].get("phase") == "Running" for p in r.pods(ns)) == 20)
            gone = r.bound(ns)[0]["spec"]["nodeName"]
            r.api.merge(f"/api/v1/nodes/{gone}", {"spec": {"unschedulable": True}})
            for pod in r.bound(ns):
                if pod["spec"]["nodeName"] == gone:
                    r.api.delete(f"/api/v1/namespaces/{ns}/pods/{pod['metadata']['name']}")
            self.wait(r, "all run elsewhere", lambda: sum(
                p["status"].get("phase") == "Running" and p["spec"]["nodeName"] != gone for p in r.bound(ns)) == 20)
            r.nothing_wrong()


class Older(rig.Test):
    def test_kubernetes_1_34(self):
        """A gang, and a Job that waits in a queue until another is done."""
        with rig.Rig(self, version="1.34") as r:
            version = r.api.get("/version")["gitVersion"]
            self.assertTrue(version.startswith("v1.34."), version)
            r.nodes(2, gpus=8)
            leader = r.controller("berth")
            ns = r.namespace("team")
            r.pod_group(ns, "g", 2)
            r.job(ns, "gang", pods=2, gpus=4, group="g")
            r.wait("the gang runs", lambda: len([p for p in r.pods(ns) if p["status"]["phase"] == "Running"]) == 2)
            r.queue("small", ns, 4)
            r.job(ns, "first", pods=2, gpus=2, queue="small", seconds=5)
            r.wait("the first runs", lambda: len(r.pods(ns, **{"batch.kubernetes.io/job-name": "first"})) == 2)
            r.job(ns, "second", pods=2, gpus=2, queue="small", seconds=1)
            r.wait("both are done", lambda: all(
                is_true(r.api.get(f"/apis/batch/v1/namespaces/{ns}/jobs/{name}"), "Complete")
                for name in ("first", "second")))
            r.nothing_wrong()
            self.assertTrue(leader.running())
            self.figure(f"on {version}: {len(r.bindings())} pods bound, each once; {GPU} of 2 nodes")


if __name__ == "__main__":
    rig.main(__doc__)
