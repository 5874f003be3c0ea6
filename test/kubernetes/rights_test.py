#!/usr/bin/env python3
"""deploy/rbac on a real API server: the controller with those rights alone, and agents kept to their own node.

    rights_test.py BERTH [Rights.test_...]
"""
import json
import os
import time

import rig
from cluster import free_ports

RBAC = os.path.join(rig.HERE, "..", "..", "deploy", "rbac")
ACCOUNT = "system:serviceaccount:berth-system:"
ROLES = "/apis/rbac.authorization.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NODE = "/api/v1/nodes/node-0"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
GPU_NODES = "/apis/berth.dev/v1alpha1/gpunodes"
POLICIES = "/apis/berth.dev/v1alpha1/berthpolicies"
GPU_NODE = {"apiVersion": "berth.dev/v1alpha1", "kind": "GpuNode"}
# What says which workload, group and queue a pod is of.
MARKS = ("kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/pod-group-total-count", "kueue.x-k8s.io/workload",
         "kai.scheduler/queue", "kai.scheduler/subgroup-name", "scheduling.volcano.sh/group-name",
         "scheduling.volcano.sh/group-min-member", "volcano.sh/task-spec", "scheduling.k8s.io/group-name",
         "scheduling.x-k8s.io/pod-group", "batch.kubernetes.io/controller-uid", "job-name", "controller-uid",
         "pod-group-name", "runai/queue")
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
        for name in ("namespace", "controller", "controller-fence", "pod-fence", "agent", "agent-fence"):
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
        crds = ("kueue", "coscheduling", "gpunodes", "berthpolicies", "jobset", "appwrapper")
        with rig.Rig(self, crds=crds, rbac=True, audit="reads") as r:
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
            self.policy(r)
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
        self.makers(r)
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

    def makers(self, r):
        """Kinds that wait as a whole: told to start with their place, and ended by whoever runs them."""
        template = {"spec": rig.pod_spec(1)}
        thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "pods": template}
        made = [("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [
                    {"name": "w", "replicas": 2, "template": {"spec": {"template": template}}}]}),
                ("workload.codeflare.dev/v1beta2", "AppWrapper", {"components": [
                    {"podSets": [{"path": "template.pods"}], "template": thing}]})]
        paths = []
        for version, kind, spec in made:
            where = f"/apis/{version}/namespaces/team/{kind.lower()}s"
            r.api.post(where, {"apiVersion": version, "kind": kind, "spec": spec,
                               "metadata": {"name": "whole", "labels": {rig.QUEUE: "q"}}})
            paths.append(f"{where}/whole")
        for path in paths:
            r.wait(f"{path} starts", lambda: r.api.get(path)["spec"].get("suspend") is False)
        started = r.api.get(paths[0])["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        self.assertEqual(started["metadata"]["labels"]["kueue.x-k8s.io/podset"], "w")
        told = r.api.get(paths[1])["spec"]["components"][0]["podSetInfos"]
        self.assertEqual(told[0]["labels"]["kueue.x-k8s.io/podset"], "whole-0")
        for path in paths:
            r.api.delete(path)
        r.wait("their Workloads are gone", lambda: not r.workloads("team"))

    def preemption(self, r):
        """24 GPUs, 21 taken: one with a higher priority needs a node of its own."""
        r.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})

        def posted():
            """The server's own cache has the class a moment later."""
            try:
                return r.api.post("/api/v1/namespaces/team/pods", {
                    "metadata": {"name": "urgent"}, "spec": {**rig.pod_spec(8), "priorityClassName": "high"}})
            except rig.Refused as refused:
                if "no PriorityClass" not in str(refused):
                    raise
                return None

        r.wait("the server knows the class", posted)
        r.wait("the urgent pod is bound", lambda: any(p["metadata"]["name"] == "urgent" for p in r.bound("team")))
        r.api.post("/api/v1/namespaces/team/pods", {"metadata": {"name": "huge"}, "spec": rig.pod_spec(64)})
        r.wait("somebody waits", lambda: rig.condition(
            r.api.get("/api/v1/namespaces/team/pods/huge"), "PodScheduled").get("reason") == "Unschedulable")

    def policy(self, r):
        """What is in force says so; the server refuses what cannot be read, and drops nothing unsaid for kubectl."""
        policy = {"apiVersion": "berth.dev/v1alpha1", "kind": "BerthPolicy", "metadata": {"name": "default"}}
        classes = [{"name": "web", "match": {"namespaces": ["team"]}, "strategy": "Spread", "spreadOver": "rack"}]
        for spec in ({"placement": {"packing": "Best"}}, {"queues": {"minRuntime": "-1m"}},
                     {"placement": {"classes": [{**classes[0], "strategy": "Pack"}]}},
                     {"placement": {"classes": [*classes, *classes]}}, {"queues": {"maxEvictionsPerHour": 65}}):
            self.assertEqual(self.answer(lambda spec=spec: r.api.post(POLICIES, {**policy, "spec": spec})), 422, spec)
        self.assertEqual(self.answer(lambda: r.api.post(
            POLICIES + "?fieldValidation=Strict", {**policy, "spec": {"pools": []}})), 400)
        r.api.post(POLICIES, {**policy, "spec": {"placement": {"classes": classes}, "queues": {"minRuntime": "1m"}}})
        r.wait("the policy is in force", lambda: rig.is_true(r.api.get(POLICIES + "/default"), "InForce"))
        self.assertTrue(rig.is_true(r.api.get(POLICIES + "/default"), "Valid"))

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

    def agents(self, r):
        """A client with the token of the agent of node-0, and one with a token that names no node."""
        self.apply(r)
        r.nodes(2)
        spec = {**rig.pod_spec(0), "serviceAccountName": "berth-agent", "nodeName": "node-0"}
        pod = r.api.post("/api/v1/namespaces/berth-system/pods", {"metadata": {"name": "agent"}, "spec": spec})
        of_pod = rig.Api(r.cluster.write_kubeconfig("agent", self.token(r, "berth-agent", pod)))
        by_hand = rig.Api(r.cluster.write_kubeconfig("by-hand", self.token(r, "berth-agent")))
        self.fences_stand(r, of_pod)
        return of_pod, by_hand

    def fences_stand(self, r, of_agent):
        """The server takes a moment before it asks new policies: one refusal of each. Dry: what came through before that
        would be there, and a change that changes nothing is never refused."""
        label = {"metadata": {"labels": {"node-restriction.kubernetes.io/x": "1"}}}
        event = self.event("berth-agent", {"kind": "Pod", "name": "x", "namespace": "default", "apiVersion": "v1"})
        r.wait("the fence stands", lambda: self.answer(lambda: of_agent.merge(
            "/api/v1/nodes/node-1?dryRun=All", {"metadata": {"labels": {"nvidia.com/x": "1"}}})) == 422)
        r.wait("fields are fenced", lambda: self.answer(
            lambda: of_agent.merge("/api/v1/nodes/node-0?dryRun=All", label)) == 422)
        r.wait("events are fenced", lambda: self.answer(lambda: of_agent.post(EVENTS, event)) == 422)
        r.wait("GpuNodes are fenced", lambda: self.answer(lambda: of_agent.post(
            GPU_NODES + "?dryRun=All", {**GPU_NODE, "metadata": {"name": "node-0"}, "spec": {"reservedGpus": [0]}})) == 422)

    @staticmethod
    def event(controller, regarding, **more):
        return {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"generateName": "e-"}, "action": "Monitoring",
                "reason": "Told", "type": "Warning", "note": "n", "reportingController": controller,
                "reportingInstance": "i", "eventTime": "2026-01-01T00:00:00.000000Z", "regarding": regarding, **more}

    def check(self, rows):
        for i, (want, call) in enumerate(rows):
            self.assertEqual(self.answer(call), want, f"row {i}")
        self.figure(f"{len(rows)} requests answered as the roles and the fences say")

    def test_an_agent_writes_its_own_node_alone(self):
        with rig.Rig(self, controllers=None, rbac=True) as r:
            of_pod, by_hand = self.agents(r)
            label = {"metadata": {"labels": {"nvidia.com/gpu.product": "x"}}}
            status = {"status": {"conditions": [{"type": "GpuHealthy", "status": "True"}]}}

            def made(name, **more):
                return {**GPU_NODE, "metadata": {"name": name, **more}}

            def owner(kind, name):
                return [{"apiVersion": "v1", "kind": kind, "name": name, "uid": "0a0a0a0a-0000-4000-8000-000000000000"}]

            own = {"kind": "Node", "name": "node-0", "apiVersion": "v1"}
            self.check([
                (200, lambda: of_pod.merge(NODE, label)),
                (200, lambda: of_pod.call("PATCH", NODE + "/status", status, patch="strategic")),
                (422, lambda: of_pod.call("PATCH", "/api/v1/nodes/node-1/status", status, patch="strategic")),
                (422, lambda: of_pod.post(GPU_NODES, made("node-1"))),
                (422, lambda: of_pod.post(GPU_NODES, made("node-0", ownerReferences=owner("Node", "node-1")))),
                (422, lambda: of_pod.post(GPU_NODES, made("node-0", ownerReferences=owner("Pod", "node-0")))),
                (422, lambda: of_pod.post(GPU_NODES, made("node-0", finalizers=["a.io/b"]))),
                (200, lambda: of_pod.post(GPU_NODES, made("node-0", ownerReferences=owner("Node", "node-0")))),
                (200, lambda: of_pod.merge(GPU_NODES + "/node-0/status", {"status": {"driverVersion": "580.1"}})),
                (422, lambda: of_pod.merge(GPU_NODES + "/node-0", {"metadata": {"labels": {"a": "b"}}})),
                (422, lambda: of_pod.merge(GPU_NODES + "/node-0", {"spec": {"reservedGpus": [1]}})),
                (422, lambda: by_hand.merge(NODE, label)),
                (200, lambda: of_pod.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-0")),
                (403, lambda: of_pod.get("/api/v1/namespaces/berth-system/pods/agent")),
                (403, lambda: of_pod.get(NODE)),
                (403, lambda: of_pod.merge("/api/v1/namespaces/berth-system/pods/agent", label)),
                (403, lambda: of_pod.post("/api/v1/namespaces/berth-system/pods", {"metadata": {"name": "x"},
                                                                                   "spec": rig.pod_spec(0)})),
                (403, lambda: of_pod.get("/api/v1/secrets")),
                (403, lambda: of_pod.get("/api/v1/namespaces/berth-system/secrets/berth-webhook")),
                (403, lambda: of_pod.post("/api/v1/nodes", {"metadata": {"name": "node-9"}})),
                (403, lambda: of_pod.delete(NODE)),
                (403, lambda: of_pod.get(NODE + "/proxy/healthz")),
                (200, lambda: of_pod.post(EVENTS, self.event("berth-agent", own))),
                (422, lambda: of_pod.post(EVENTS, self.event("kubelet", own))),
                (422, lambda: of_pod.post(EVENTS, self.event("berth-agent", {**own, "name": "node-1"}))),
                (422, lambda: of_pod.post(EVENTS, self.event("berth-agent", own, related=own))),
                (422, lambda: by_hand.post(EVENTS, self.event("berth-agent", own))),
                (403, lambda: of_pod.post(EVENTS.replace("default", "kube-system"), self.event("berth-agent", own))),
                (403, lambda: of_pod.post("/api/v1/namespaces/default/events", {
                    "metadata": {"generateName": "e-"}, "involvedObject": own, "source": {"component": "kubelet"}})),
            ])

    def test_an_agent_changes_what_is_its_own_of_the_node(self):
        """Every field of a Node, by each kind of patch and by both ways in."""
        with rig.Rig(self, controllers=None, rbac=True) as r:
            of_pod, _ = self.agents(r)
            r.api.merge(NODE, {"metadata": {"labels": {"a.io/b": "c"}, "annotations": {"a.io/b": "c"}}, "spec": {"taints": [
                {"key": "berth.dev/agent-not-ready", "effect": "NoSchedule"}, {"key": "a.io/b", "effect": "NoSchedule"}]}})
            taints = r.api.get(NODE)["spec"]["taints"]
            ready = {"type": "Ready", "status": "False", "reason": "r", "message": "m"}

            def merged(body, path=NODE):
                return lambda: of_pod.merge(path, body)

            def labelled(key, value="x"):
                return {"metadata": {"labels": {key: value}}}

            def applied(body):
                return lambda: of_pod.call("PATCH", NODE + "?fieldManager=m&force=true", {
                    "apiVersion": "v1", "kind": "Node", **body}, patch="apply")

            def strategic(body, path=NODE + "/status"):
                return lambda: of_pod.call("PATCH", path, body, patch="strategic")

            refused = [merged(labelled(key), path) for path in (NODE, NODE + "/status") for key in (
                "node-restriction.kubernetes.io/x", "node-role.kubernetes.io/control-plane", "kubernetes.io/hostname",
                "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type", "berth.dev/x", "x.nvidia.com/y",
                "nvidia.com/mig.config", "nvidia.com/gpu.deploy.driver", "feature.node.kubernetes.io/cpu-x", "a.io/new")]
            refused += [merged(labelled("a.io/b", None)), merged(labelled("kubernetes.io/hostname", None))]
            refused += [applied({"metadata": {"name": "node-0", "labels": {"node-role.kubernetes.io/x": ""}}})]
            for metadata in ({"annotations": {"x": "y"}}, {"annotations": {"a.io/b": None}}, {"finalizers": ["a.io/b"]},
                             {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}]}):
                refused += [merged({"metadata": metadata}, path) for path in (NODE, NODE + "/status")]
            refused += [merged({"spec": spec}) for spec in (
                {"unschedulable": True}, {"providerID": "x://y"}, {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]},
                {"taints": [*taints, {"key": "x", "effect": "NoExecute"}]}, {"taints": [taints[0]]}, {"taints": None},
                {"taints": [*taints, {"key": "berth.dev/rejecting", "effect": "NoSchedule"}]},
                {"taints": [{**taints[0], "value": "x"}, taints[1]]})]
            refused += [merged({"status": status}, NODE + "/status") for status in (
                {"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]}, {"allocatable": {rig.GPU: "64"}},
                {"capacity": {rig.GPU: "64"}}, {"capacity": {"cpu": "1"}}, {"phase": "Terminated"},
                {"nodeInfo": {"kubeletVersion": "v0"}}, {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}},
                {"images": [{"names": ["x"]}]}, {"volumesInUse": ["x"]}, {"conditions": []}, {"conditions": None})]
            refused += [strategic({"status": {"conditions": [one]}}) for one in (
                ready, {**ready, "type": "MemoryPressure", "status": "True"}, {**ready, "type": "Made"},
                {"type": "Ready", "$patch": "delete"})]
            allowed = [merged(labelled(key), path) for path in (NODE, NODE + "/status") for key in (
                "nvidia.com/gpu.product", "gpu.nvidia.com/nvlink-enabled", "feature.node.kubernetes.io/pci-10de.present",
                "feature.node.kubernetes.io/kernel-version.full", "nvidia.com/mig.config.state")]
            allowed += [applied({"metadata": {"name": "node-0", "labels": {"nvidia.com/gpu.count": "8"}}}),
                        merged(labelled("nvidia.com/gpu.product", None))]
            allowed += [strategic({"status": {"conditions": [one]}}) for one in (
                {**ready, "type": "GpuReady"}, {**ready, "type": "GpuHealthy"}, {"type": "GpuHealthy", "$patch": "delete"})]
            allowed += [lambda: of_pod.call("PATCH", NODE, [
                {"op": "test", "path": "/spec/taints", "value": taints},
                {"op": "replace", "path": "/spec/taints", "value": [taints[1]]}], patch="json")]
            self.check([(422, call) for call in refused] + [(200, call) for call in allowed])
            node = r.api.get(NODE)
            self.assertEqual(node["spec"]["taints"], [taints[1]])
            self.assertEqual(node["status"]["allocatable"][rig.GPU], "8")

    def test_the_controller_changes_what_is_its_own(self):
        """Pods of others are deleted and let go; those of the system are not, and no image is exchanged."""
        with rig.Rig(self, controllers=None, rbac=True) as r:
            self.apply(r)
            r.nodes(1)
            api = rig.Api(r.cluster.write_kubeconfig("account", self.token(r, "berth-controller")))
            r.namespace("team")
            spec = {**rig.pod_spec(1), "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
            paths = {}
            for ns in ("team", "kube-system", "berth-system"):
                paths[ns] = f"/api/v1/namespaces/{ns}/pods/p"
                r.api.post(paths[ns][:-2], {"metadata": {"name": "p", "finalizers": ["a.io/b"], "labels": {"a": "b"}},
                                            "spec": spec})
            pod, rejecting = paths["team"], {"key": "berth.dev/rejecting", "value": "1", "effect": "NoSchedule"}
            other = {"key": "a.io/b", "effect": "NoSchedule"}
            r.api.merge(NODE, {"spec": {"taints": [other]}})
            cordon = {"spec": {"unschedulable": True}}
            r.wait("nodes are fenced", lambda: self.answer(lambda: api.merge(NODE + "?dryRun=All", cordon)) == 422)
            r.wait("pods are fenced", lambda: self.answer(
                lambda: api.delete(paths["kube-system"] + "?dryRun=All")) == 422)

            def strategic(path, body):
                return lambda: api.call("PATCH", path, body, patch="strategic")

            def image(kind):
                return {"spec": {kind: [{"name": "c", "image": "evil"}]}}

            condition = {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}}
            gates = {"spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/admission", "$patch": "delete"}],
                              "nodeSelector": {"a": "b"}}}
            self.check([
                *[(422, lambda path=paths[ns]: api.delete(path)) for ns in ("kube-system", "berth-system")],
                *[(422, strategic(paths[ns], gates)) for ns in ("kube-system", "berth-system")],
                (422, strategic(pod, image("containers"))),
                (422, strategic(pod, {"metadata": {"labels": {"a": "c"}}})),
                (422, strategic(pod, {"metadata": {"annotations": {"berth.dev/gpus": "0"}}})),
                (422, strategic(pod, {"metadata": {"finalizers": ["c.io/d"]}})),
                (422, strategic(pod, {"metadata": {"ownerReferences": [
                    {"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "u"}]}})),
                (422, strategic(pod, {"spec": {"activeDeadlineSeconds": 1}})),
                (422, strategic(pod + "/status", {"status": {"phase": "Succeeded"}})),
                (422, strategic(pod + "/status", {"metadata": {"labels": {"a": "c"}}})),
                (200, strategic(pod + "/status", condition)),
                (200, strategic(paths["kube-system"] + "/status", condition)),
                (200, strategic(pod, gates)),
                (200, strategic(pod, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.io/b"]}})),
                (200, lambda: api.delete(pod)),
                (422, lambda: api.merge(NODE, cordon)),
                (422, lambda: api.merge(NODE, {"metadata": {"labels": {"a": "b"}}})),
                (422, lambda: api.merge(NODE, {"metadata": {"annotations": {"a": "b"}}})),
                (422, lambda: api.merge(NODE, {"spec": {"taints": []}})),
                (422, lambda: api.merge(NODE, {"spec": {"taints": [other, {**other, "key": "c"}]}})),
                (422, lambda: api.merge(NODE, {"spec": {"taints": [other, {**rejecting, "effect": "NoExecute"}]}})),
                (403, lambda: api.merge(NODE + "/status", {"status": {"phase": "x"}})),
                (200, lambda: api.merge(NODE, {"spec": {"taints": [other, rejecting]}})),
                (200, lambda: api.merge(NODE, {"spec": {"taints": [other]}})),
            ])

    def test_annotations_of_gpus_stand_once_a_pod_has_a_node(self):
        """Whoever asks: the administrator here. Other annotations change, and so do those of pods that wait."""
        with rig.Rig(self, controllers=None, crds=(), rbac=True) as r:
            self.apply(r)
            r.nodes(1)
            r.namespace("team")
            pods = "/api/v1/namespaces/team/pods"
            for name, node in (("waits", None), ("runs", "node-0")):
                spec = rig.pod_spec()
                if node:
                    spec["nodeName"] = node
                r.api.post(pods, {"metadata": {"name": name, "annotations": {"gpu-fraction": "0.5"}}, "spec": spec})

            def change(name, annotations, way=""):
                return self.answer(lambda: r.api.merge(f"{pods}/{name}{way}", {"metadata": {"annotations": annotations}}))

            r.wait("the policy is in force", lambda: change("runs", {"gpu-fraction": str(time.time())}) == 422)
            rows = [("runs", {"gpu-fraction": None}, 422), ("runs", {"gpu-fraction": "x"}, 422),
                    ("runs", {"berth.dev/gpus": "0,1,2,3,4,5,6,7"}, 422), ("runs", {"gpu-memory": "1"}, 422),
                    ("runs", {"gpu-fraction-num-devices": "8"}, 422), ("runs", {"berth.dev/charged-to": "kueue/q"}, 422),
                    ("runs", {"a.io/b": "c"}, 200), ("runs", {"a.io/b": None}, 200),
                    ("waits", {"gpu-fraction": "0.6"}, 200), ("waits", {"gpu-fraction": None, "gpu-memory": "1000"}, 200)]
            rows = [(*row, way) for way in ("", "/status") for row in rows]
            for name, annotations, status, way in rows:
                with self.subTest(pod=name, annotations=annotations, way=way):
                    self.assertEqual(change(name, annotations, way), status)
            self.figure(f"{len(rows)} changes, as they should be")

    def test_a_pod_with_gpus_counts_for_what_let_it_in(self):
        """Its owner and its queue stand once it has a node; of pods that wait, or have no GPUs, they do not."""
        with rig.Rig(self, controllers=None, crds=(), rbac=True) as r:
            self.apply(r)
            r.nodes(1)
            r.namespace("team")
            pods, owner = "/api/v1/namespaces/team/pods", {"apiVersion": "v1", "kind": "ConfigMap", "name": "o"}
            owner["uid"] = r.api.post("/api/v1/namespaces/team/configmaps", {"metadata": {"name": "o"}})["metadata"]["uid"]
            for name in ("waits", "runs", "sidecar", "plain", "free"):
                spec = rig.pod_spec(0 if name in ("sidecar", "plain") else 1)
                if name == "sidecar":  # which has the GPU
                    spec["initContainers"] = [{**rig.pod_spec()["containers"][0], "name": "s", "restartPolicy": "Always"}]
                if name != "waits":
                    spec["nodeName"] = "node-0"
                meta = {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "q", "a": "b"}}
                if name != "free":
                    meta["ownerReferences"] = [dict(owner, controller=True)]
                r.api.post(pods, {"metadata": meta, "spec": spec})

            def change(name, way="", **meta):
                return self.answer(lambda: r.api.merge(f"{pods}/{name}{way}", {"metadata": meta}))

            queue = {"kueue.x-k8s.io/queue-name": None}
            r.wait("the policy is in force",
                   lambda: change("runs", labels={"kueue.x-k8s.io/queue-name": f"q{time.time()}"}) == 422)
            rows = [("runs", {kind: {key: "x"}}, 422) for kind in ("labels", "annotations") for key in MARKS]
            rows += [("runs", {"labels": queue}, 422), ("runs", {"labels": {"a": "c"}}, 200),
                     ("sidecar", {"labels": queue}, 422), ("sidecar", {"labels": {"a": "c"}}, 200),
                     ("runs", {"annotations": {"kueue.x-k8s.io/retriable-in-group": "false"}}, 200),
                     ("runs", {"labels": {"kueue.x-k8s.io/retriable-in-group": "false"}}, 422)]
            rows = [(*row, way) for way in ("", "/status") for row in rows]
            rows += [(name, {"ownerReferences": owners}, status, "") for name, owners, status in (
                ("runs", None, 422), ("runs", [owner], 422), ("runs", [dict(owner, controller=True, name="p")], 422),
                ("runs", [dict(owner, controller=True, apiVersion="batch/v1")], 422),
                ("runs", [dict(owner, controller=True, blockOwnerDeletion=False)], 200), ("sidecar", None, 422),
                ("free", [dict(owner, controller=True)], 422), ("free", [owner], 200), ("plain", None, 200),
                ("plain", [dict(owner, controller=True)], 200), ("waits", None, 200))]
            rows += [("plain", {"labels": queue}, 200, ""), ("waits", {"labels": queue}, 200, "/status")]
            for name, meta, status, way in rows:
                with self.subTest(pod=name, meta=meta, way=way):
                    self.assertEqual(change(name, way, **meta), status)
            self.kubernetes_itself_may(r, owner)
            self.figure(f"{len(rows)} changes, as they should be")

    def kubernetes_itself_may(self, r, owner):
        """A kubelet tells how pods do; a controller lets go of one and takes another on."""
        for name in ("runs", "sidecar"):
            r.api.call("PATCH", f"/api/v1/namespaces/team/pods/{name}/status", r.kubelets.status("Running", "False"),
                       patch="strategic")
        for name, owners in (("runs", None), ("free", [dict(owner, controller=True)])):
            r.kubectl("patch", "pod", name, "--namespace", "team", "--type=merge", "--as-group=system:masters",
                      "--as=system:serviceaccount:kube-system:generic-garbage-collector",
                      "--patch", json.dumps({"metadata": {"ownerReferences": owners}}))

    def test_the_controller_binds_and_writes_no_more(self):
        """Pods of the system it binds nowhere, and with a Binding comes what berth writes and nothing else."""
        with rig.Rig(self, controllers=None, crds=(), rbac=True) as r:
            self.apply(r)
            zone = {"topology.kubernetes.io/zone": "z"}
            r.nodes(1, labels=zone)
            r.namespace("team")
            api = rig.Api(r.cluster.write_kubeconfig("account", self.token(r, "berth-controller")))
            for ns, name in (("team", "a"), ("team", "b"), ("kube-system", "a"), ("berth-system", "a")):
                r.api.post(f"/api/v1/namespaces/{ns}/pods", {"metadata": {"name": name}, "spec": rig.pod_spec()})

            def bind(ns, name="a", who=api, dry="", **meta):
                return lambda: who.post(f"/api/v1/namespaces/{ns}/pods/{name}/binding{dry}", {
                    "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **meta},
                    "target": {"apiVersion": "v1", "kind": "Node", "name": "node-0"}})

            written = {"berth.dev/gpus": "0", "berth.dev/charged-to": "kueue/q"}
            r.wait("bindings are fenced", lambda: self.answer(bind("kube-system", dry="?dryRun=All")) == 422)
            self.check([
                (422, bind("kube-system")),
                (422, bind("team", labels={"a": "b"})),
                (422, bind("team", labels={rig.QUEUE: "q"}, annotations=written)),
                *[(422, bind("team", annotations={**written, key: "x"})) for key in (
                    "a.io/b", "gpu-fraction", "berth.dev/other", "scheduling.k8s.io/group-name")],
                (200, bind("team", annotations=written)),
                (200, bind("team", "b")),
                (200, bind("berth-system", annotations=written)),
                (200, bind("kube-system", who=r.api, labels={"a": "b"})),
            ])
            meta = r.api.get("/api/v1/namespaces/team/pods/a")["metadata"]
            self.assertEqual((meta["annotations"], meta["labels"]), (written, zone))

    def test_no_pod_is_too_long_to_be_judged(self):
        """The time that the fences take grows with a pod, not with its square: its author must not make it one that the
        controller cannot send away, nor a patch of his cost the server a minute."""
        with rig.Rig(self, controllers=None, rbac=True) as r:
            self.apply(r)
            r.nodes(1)
            r.namespace("team")
            api = rig.Api(r.cluster.write_kubeconfig("account", self.token(r, "berth-controller")))
            r.wait("pods are fenced", lambda: self.answer(lambda: api.delete(
                "/api/v1/namespaces/berth-system/pods/none?dryRun=All")) in (404, 422))

            def took(call):
                start = time.monotonic()
                self.assertEqual(self.answer(call), 200)
                return time.monotonic() - start

            def times(many):
                path = f"/api/v1/namespaces/team/pods/p{many}"
                r.api.post("/api/v1/namespaces/team/pods", {
                    "metadata": {"name": f"p{many}", "finalizers": [f"a.io/{n}" for n in range(many)]},
                    "spec": {**rig.pod_spec(1), "nodeName": "node-0"}})
                told = {"status": {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}}
                labels = {"metadata": {"labels": {f"l{n}": "x" for n in range(many // 4)}}}
                self.assertEqual(self.answer(lambda: r.api.merge(path + "?dryRun=All", labels)), 200 if many < 2_100 else 422)
                return [min(took(call) for _ in range(3)) for call in (
                    lambda: api.call("PATCH", path + "/status?dryRun=All", told, patch="strategic"),
                    lambda: api.delete(path + "?dryRun=All"))]

            few, many = times(2_000), times(20_000)
            for what, one, ten in zip(("status", "delete"), few, many):
                self.figure(f"{what}: {ten:.2f} s for 20,000 finalizers, {one:.2f} s for 2,000")
                self.assertLess(ten, max(40 * one, 5), what)  # 21 and 34 s where each was looked for among all

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
