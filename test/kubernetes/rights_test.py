#!/usr/bin/env python3
"""deploy/rbac on a real API server: the controller with those rights alone, and agents kept to their own node.

    rights_test.py BERTH [Rights.test_...]
"""
import os

import rig
from cluster import free_ports

RBAC = os.path.join(rig.HERE, "..", "..", "deploy", "rbac")
ACCOUNT = "system:serviceaccount:berth-system:"
ROLES = "/apis/rbac.authorization.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# Granted and not used below, and why.
UNUSED = {
    ("", "nodes", "get"): "a node that refuses pods again and again",
    ("", "nodes", "patch"): "a node that refuses pods again and again",
    ("batch", "jobs/status", "patch"): "a Job that starts anew",
    ("scheduling.volcano.sh", "podgroups/status", "patch"): "no such group in this test",
    ("scheduling.run.ai", "podgroups/status", "patch"): "no such group in this test",
    ("scheduling.k8s.io", "podgroups/status", "patch"): "no such group in this test",
    ("events.k8s.io", "events", "patch"): "an event that repeats",
    ("kueue.x-k8s.io", "workloads", "patch"): "a Workload that was preempted, or is to stay away",
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "create"):
        "asked by the API server itself when a patch makes it",
    ("", "secrets", "patch"): "an authority of the webhook that is due",
}


class Rights(rig.Test):
    def apply(self, r):
        for name in ("namespace", "controller", "agent", "agent-fence"):
            r.kubectl("apply", "--server-side", "--validate=strict", "-f", os.path.join(RBAC, name + ".yaml"))

    def token(self, r, account, pod=None):
        spec = {"expirationSeconds": 3600}
        if pod:
            spec["boundObjectRef"] = {"kind": "Pod", "apiVersion": "v1", "name": pod["metadata"]["name"],
                                      "uid": pod["metadata"]["uid"]}
        return r.api.post(f"/api/v1/namespaces/berth-system/serviceaccounts/{account}/token",
                          {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                           "spec": spec})["status"]["token"]

    def granted(self, r, name):
        out = set()
        roles = [r.api.get(f"{ROLES}/clusterroles/{name}")]
        try:
            roles.append(r.api.get(f"{ROLES}/namespaces/berth-system/roles/{name}"))
        except rig.Refused:
            pass
        for role in roles:
            for rule in role["rules"]:
                out |= {(g, what, v) for g in rule["apiGroups"] for what in rule["resources"] for v in rule["verbs"]}
        return out

    def test_the_whole_life_of_workloads(self):
        """A Job in a queue, a gang, a Deployment, a queued pod, a preemption: no refusal, and no spare right."""
        with rig.Rig(self, rbac=True, audit="reads") as r:
            self.apply(r)
            r.nodes(3)
            r.namespace("team", **{"berth.dev/managed": "true"})
            r.queue("q", "team", 8)
            where = f"127.0.0.1:{free_ports(1)[0]}"
            kubeconfig = r.cluster.write_kubeconfig("account", self.token(r, "berth-controller"))
            one = r.controller("account", "--webhook", where, "--webhook-url", f"https://{where}",
                               kubeconfig=kubeconfig)
            r.wait("the webhook is asked", lambda: self.marked(r))
            self.workloads(r)
            self.preemption(r)
            r.wait("kinds are converted", lambda: r.api.get(f"{CRDS}/workloads.kueue.x-k8s.io")[
                "spec"]["conversion"]["strategy"] == "Webhook")
            self.assertTrue(one.running(), one.text())
            self.assertEqual(one.stop(), 0)
            r.nothing_wrong()
            self.judge(r)

    def marked(self, r):
        spec = rig.pod_spec()
        del spec["schedulerName"]
        pod = r.api.post("/api/v1/namespaces/team/pods?dryRun=All", {"metadata": {"name": "probe"}, "spec": spec})
        return pod["spec"]["schedulerName"] == "berth"

    def workloads(self, r):
        r.job("team", "queued", pods=2, gpus=2, queue="q", seconds=1)  # first: with the others, there is no room for it
        r.wait("the queued Job finishes", lambda: rig.is_true(
            r.api.get("/apis/batch/v1/namespaces/team/jobs/queued"), "Complete"))
        r.pod_group("team", "gang", 4)
        r.job("team", "gang", pods=4, gpus=4, group="gang")
        spec = rig.pod_spec(2)
        del spec["schedulerName"], spec["restartPolicy"]
        r.api.post("/apis/apps/v1/namespaces/team/deployments", {
            "metadata": {"name": "serve"}, "spec": {
                "replicas": 2, "selector": {"matchLabels": {"app": "serve"}},
                "template": {"metadata": {"labels": {"app": "serve"}}, "spec": spec}}})
        gated = {**rig.pod_spec(1), "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
        r.api.post("/api/v1/namespaces/team/pods", {
            "metadata": {"name": "alone", "labels": {rig.QUEUE: "q", "kueue.x-k8s.io/managed": "true"}}, "spec": gated})
        r.wait("the others run", lambda: len([p for p in r.bound("team") if p["status"]["phase"] == "Running"]) == 7)
        r.wait("the Workload is finished", lambda: any(rig.is_true(w, "Finished") for w in r.workloads("team")))

    def preemption(self, r):
        """24 GPUs, 21 taken: one with a higher priority needs a node of its own."""
        r.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
        r.api.post("/api/v1/namespaces/team/pods", {
            "metadata": {"name": "urgent"}, "spec": {**rig.pod_spec(8), "priorityClassName": "high"}})
        r.wait("the urgent pod is bound", lambda: any(p["metadata"]["name"] == "urgent" for p in r.bound("team")))
        r.api.post("/api/v1/namespaces/team/pods", {"metadata": {"name": "huge"}, "spec": rig.pod_spec(64)})
        r.wait("somebody waits", lambda: rig.condition(
            r.api.get("/api/v1/namespaces/team/pods/huge"), "PodScheduled").get("reason") == "Unschedulable")

    def judge(self, r):
        mine = [e for e in r.audit() if e["user"]["username"] == ACCOUNT + "berth-controller"]
        used, refused = set(), set()
        for event in mine:
            about = event["objectRef"]
            what = about["resource"] + ("/" + about["subresource"] if "subresource" in about else "")
            right = (about.get("apiGroup", ""), what, event["verb"])
            if event["responseStatus"]["code"] == 403:
                refused.add(right)
            else:
                used.add(right)
        # Its namespace is there: it asks all the same.
        self.assertEqual(refused - {("", "namespaces", "create")}, set())
        granted = self.granted(r, "berth-controller")
        self.assertEqual(used - granted, set(), "allowed by somebody else's role")
        # Collections come by watches; lists are for servers, and histories, that do not give them.
        lists = {(group, what, "list") for group, what, verb in used if verb == "watch"}
        self.assertEqual(granted - used - lists - set(UNUSED), set(), "granted and never used")
        self.figure(f"{len(mine)} requests, {len(granted)} rights, {len(granted - used)} of them not used here")

    def test_an_agent_writes_its_own_node_alone(self):
        with rig.Rig(self, controllers=None, rbac=True) as r:
            self.apply(r)
            r.nodes(2)
            spec = {**rig.pod_spec(0), "serviceAccountName": "berth-agent", "nodeName": "node-0"}
            pod = r.api.post("/api/v1/namespaces/berth-system/pods", {"metadata": {"name": "agent"}, "spec": spec})
            of_pod = rig.Api(r.cluster.write_kubeconfig("agent", self.token(r, "berth-agent", pod)))
            by_hand = rig.Api(r.cluster.write_kubeconfig("by-hand", self.token(r, "berth-agent")))
            label = {"metadata": {"labels": {"berth.dev/x": "1"}}}
            r.wait("the fence stands", lambda: self.answer(lambda: of_pod.merge("/api/v1/nodes/node-1", label)) == 422)
            gpu_node = {"apiVersion": "berth.dev/v1alpha1", "kind": "GpuNode"}
            status = {"status": {"conditions": [{"type": "GpusHealthy", "status": "True"}]}}
            gpus = "/apis/berth.dev/v1alpha1/gpunodes"

            def made(name):
                return {**gpu_node, "metadata": {"name": name}}

            rows = [
                (200, lambda: of_pod.merge("/api/v1/nodes/node-0", label)),
                (200, lambda: of_pod.call("PATCH", "/api/v1/nodes/node-0/status", status, patch="strategic")),
                (422, lambda: of_pod.call("PATCH", "/api/v1/nodes/node-1/status", status, patch="strategic")),
                (200, lambda: of_pod.post(gpus, made("node-0"))),
                (422, lambda: of_pod.post(gpus, made("node-1"))),
                (200, lambda: of_pod.merge(gpus + "/node-0", {"metadata": {"labels": {"a": "b"}}})),
                (422, lambda: by_hand.merge("/api/v1/nodes/node-0", label)),
                (200, lambda: of_pod.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-0")),
                (403, lambda: of_pod.merge("/api/v1/namespaces/berth-system/pods/agent", label)),
                (403, lambda: of_pod.post("/api/v1/namespaces/berth-system/pods", {"metadata": {"name": "x"},
                                                                                   "spec": rig.pod_spec(0)})),
                (403, lambda: of_pod.get("/api/v1/secrets")),
                (403, lambda: of_pod.get("/api/v1/namespaces/berth-system/secrets/berth-webhook")),
                (403, lambda: of_pod.delete("/api/v1/nodes/node-0")),
                (403, lambda: of_pod.get("/api/v1/nodes/node-0/proxy/healthz")),
            ]
            for i, (want, call) in enumerate(rows):
                self.assertEqual(self.answer(call), want, f"row {i}")
            self.figure(f"{len(rows)} requests answered as the roles and the fence say")

    def test_the_controller_cannot_do_more(self):
        with rig.Rig(self, controllers=None, crds=(), rbac=True) as r:
            self.apply(r)
            r.namespace("team")
            r.api.post("/api/v1/namespaces/team/secrets", {"metadata": {"name": "s"}})
            api = rig.Api(r.cluster.write_kubeconfig("account", self.token(r, "berth-controller")))
            hooks = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
            rows = [
                lambda: api.get("/api/v1/secrets"),
                lambda: api.get("/api/v1/namespaces/team/secrets/s"),
                lambda: api.get("/api/v1/namespaces/berth-system/secrets"),
                lambda: api.get("/api/v1/configmaps"),
                lambda: api.post("/api/v1/namespaces/team/pods", {"metadata": {"name": "x"}, "spec": rig.pod_spec()}),
                lambda: api.post("/api/v1/namespaces", {"metadata": {"name": "x"}}),
                lambda: api.post(hooks, {"metadata": {"name": "other"}}),
                lambda: api.merge(hooks + "/other", {"metadata": {"labels": {"a": "b"}}}),
                lambda: api.post(f"{ROLES}/clusterrolebindings", {
                    "metadata": {"name": "x"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io",
                                                           "kind": "ClusterRole", "name": "cluster-admin"}}),
                lambda: api.post("/api/v1/namespaces/berth-system/serviceaccounts/berth-agent/token", {}),
                lambda: api.delete("/api/v1/nodes/n"),
                lambda: api.get(CRDS),
                lambda: api.merge(f"{CRDS}/cohorts.kueue.x-k8s.io", {"metadata": {"labels": {"a": "b"}}}),
                lambda: api.delete(f"{CRDS}/workloads.kueue.x-k8s.io"),
            ]
            for i, call in enumerate(rows):
                self.assertEqual(self.answer(call), 403, f"row {i}")
            self.figure(f"{len(rows)} requests were refused")

    @staticmethod
    def answer(call):
        try:
            call()
            return 200
        except rig.Refused as e:
            return e.status


if __name__ == "__main__":
    rig.main(__doc__)
