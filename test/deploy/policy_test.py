#!/usr/bin/env python3
"""Manifests under deploy/ hold to policy.py, which is tried on what it must refuse; standard library only."""
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from plain_yaml import NotPlain, documents  # noqa: E402
from policy import WORKLOADS, check  # noqa: E402

DEPLOY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy")


def role(rule, kind="ClusterRole"):
    return documents(f"kind: {kind}\nmetadata: {{name: r}}\nrules:\n  - {rule}\n")


def without_kinds(text):
    """Kinds grant nothing, and are written in more of YAML than is read here."""
    return "\n---\n".join(one for one in re.split(r"(?m)^---$", text)
                          if not re.search(r"(?m)^kind: CustomResourceDefinition$", one))


def shipped():
    """The rights, and berth.yaml, which is what the chart gives."""
    out = []
    paths = [os.path.join(DEPLOY, "berth.yaml")]
    paths += sorted(os.path.join(DEPLOY, "rbac", name) for name in os.listdir(os.path.join(DEPLOY, "rbac")))
    for path in paths:
        with open(path, encoding="utf-8") as f:
            try:
                out += [(os.path.relpath(path, DEPLOY), one) for one in documents(without_kinds(f.read()))]
            except NotPlain as e:
                raise AssertionError(f"{path}: {e}") from e
    return out


class Shipped(unittest.TestCase):
    def test_nothing_is_wrong(self):
        objects = shipped()
        self.assertGreaterEqual(len(objects), 10)
        self.assertEqual([f"{path}: {line}" for path, one in objects for line in check([one])], [])

    def test_all_names_meet(self):
        """A binding of a role or an account that is not shipped grants nothing, or grants it to somebody else."""
        objects = [one for _, one in shipped()]
        there = {(o["kind"], o["metadata"]["name"]) for o in objects}
        for one in objects:
            if not one["kind"].endswith("RoleBinding"):
                continue
            self.assertIn((one["roleRef"]["kind"], one["roleRef"]["name"]), there)
            for subject in one["subjects"]:
                self.assertIn((subject["kind"], subject["name"]), there)
                self.assertEqual(subject["namespace"], "berth-system")

    def test_events_of_agents_are_in_one_namespace(self):
        roles = [o for path, o in shipped() if o["kind"] == "Role" and o["metadata"]["name"] == "berth-agent"]
        self.assertEqual([o["metadata"]["namespace"] for o in roles], ["default"] * 2)

    def test_agents_write_no_pods(self):
        agents = [o for _, o in shipped() if o["kind"] == "ClusterRole" and o["metadata"]["name"] == "berth-agent"]
        self.assertEqual(len(agents), 2)  # rbac/ and berth.yaml
        for agent in agents:
            for rule in agent["rules"]:
                if any(r.split("/")[0] == "pods" for r in rule["resources"]):
                    self.assertLessEqual(set(rule["verbs"]), {"list", "watch"})
                self.assertNotIn("events", rule["resources"], "of one namespace alone")

    def test_every_policy_is_bound_and_fails_closed(self):
        objects = [o for path, o in shipped() if path == "berth.yaml"]
        bound = {o["spec"]["policyName"]: o["spec"]["validationActions"] for o in objects
                 if o["kind"] == "ValidatingAdmissionPolicyBinding"}
        policies = [o for o in objects if o["kind"] == "ValidatingAdmissionPolicy"]
        self.assertEqual(bound, {o["metadata"]["name"]: ["Deny"] for o in policies})
        self.assertEqual(len(policies), 9)
        for one in policies:
            self.assertEqual(one["spec"]["failurePolicy"], "Fail")
            conditions = [c["expression"] for c in one["spec"]["matchConditions"]]
            if one["metadata"]["name"].startswith("berth-pod-"):  # labels and annotations change by both ways in
                self.assertEqual([rule["resources"] for rule in one["spec"]["matchConstraints"]["resourceRules"]],
                                 [["pods", "pods/status"]])
            if one["metadata"]["name"] == "berth-pod-gpus":  # everybody's, where annotations of a placed pod change
                self.assertEqual(len(conditions), 2)
                self.assertIn("nodeName", conditions[0])
                self.assertIn("annotations", conditions[1])
                continue
            if one["metadata"]["name"] == "berth-pod-owner":  # everybody's but Kubernetes' controllers', of pods with GPUs
                self.assertEqual(len(conditions), 4)
                self.assertIn("nodeName", conditions[0])
                self.assertIn("nvidia.com/", conditions[1])
                self.assertIn("kube-system", conditions[2])
                for field in ("labels", "annotations", "ownerReferences"):
                    self.assertIn(field, conditions[3])
                continue
            # Of berth's own accounts alone: nobody else's writes wait for them.
            account = one["metadata"]["name"].split("-")[1]
            self.assertEqual(conditions, [
                f'request.userInfo.username == "system:serviceaccount:berth-system:berth-{account}"'])

    def test_marks_are_those_of_the_program(self):
        """What berth holds a bound pod to is what nobody may change of it."""
        with open(os.path.join(DEPLOY, "..", "src", "kinds", "live_pod.cc"), encoding="utf-8") as f:
            body = re.search(r"(?s)bool is_mark\(.*?\n}\n", f.read()).group(0)
        fence = next(o for path, o in shipped() if path == os.path.join("rbac", "pod-fence.yaml") and
                     o["kind"] == "ValidatingAdmissionPolicy" and o["metadata"]["name"] == "berth-pod-owner")
        held = {v["name"]: set(re.findall(r'"([^"]+)"', v["expression"])) for v in fence["spec"]["variables"]}
        self.assertEqual(held["prefixes"] | held["marks"], set(re.findall(r'"([^"]+)"', body)))
        self.assertTrue(all(key.endswith("/") for key in held["prefixes"]))

    def test_rights_are_those_of_rbac(self):
        """Which the tests on a real API server are run with."""
        def rights(folder):
            return {(o["kind"], o["metadata"]["name"]): {k: v for k, v in o.items() if k != "metadata"}
                    for path, o in shipped() if path.startswith(folder) and o["kind"] != "Namespace"}

        ours, given = rights("rbac"), rights("berth.yaml")
        optional = {key for key in ours if key[1] == "berth-page"}
        self.assertEqual({k: given[k] for k in ours.keys() - optional}, {k: ours[k] for k in ours.keys() - optional})
        self.assertGreaterEqual(len(ours), 8)

    def test_manifests_are_rendered_anew(self):
        done = subprocess.run([os.path.join(DEPLOY, "..", "scripts", "render-manifests"), "--fresh"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_workloads(self):
        kinds = {o["kind"]: o for path, o in shipped() if path == "berth.yaml" and o["kind"] in WORKLOADS}
        self.assertEqual(set(kinds), {"Deployment", "DaemonSet"})
        self.assertEqual(kinds["DaemonSet"]["spec"]["updateStrategy"],
                         {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
        self.assertGreaterEqual(kinds["Deployment"]["spec"]["replicas"], 2)
        budgets = [o for path, o in shipped() if o["kind"] == "PodDisruptionBudget"]
        self.assertEqual([b["spec"]["selector"] for b in budgets], [kinds["Deployment"]["spec"]["selector"]])

    def test_probes_have_a_port_of_their_own(self):
        """Whoever fills the port of metrics, or of the webhook, must not make a kubelet kill the pod."""
        for one in (o for path, o in shipped() if path == "berth.yaml" and o["kind"] in WORKLOADS):
            for container in one["spec"]["template"]["spec"]["containers"]:
                ports = {p["name"]: p["containerPort"] for p in container["ports"]}
                for probe in ("livenessProbe", "readinessProbe"):
                    self.assertEqual(container[probe]["httpGet"]["port"], "health", one["metadata"]["name"])
                self.assertIn(f"--health=:{ports['health']}", container["args"])
                self.assertEqual(len(set(ports.values())), len(ports))

    def test_every_port_has_a_rule_of_the_network(self):
        """Metrics for those who are named; the webhook for anybody, because who the API server is nobody says."""
        objects = [o for path, o in shipped() if path == "berth.yaml"]
        policies = {o["metadata"]["name"]: o["spec"] for o in objects if o["kind"] == "NetworkPolicy"}
        for one in (o for o in objects if o["kind"] in WORKLOADS):
            spec = policies.pop(one["metadata"]["name"])
            self.assertEqual(spec["podSelector"], one["spec"]["selector"])
            self.assertEqual(spec["policyTypes"], ["Ingress"])
            rules = {port["port"]: rule.get("from") for rule in spec["ingress"] for port in rule["ports"]}
            ports = {p["name"] for c in one["spec"]["template"]["spec"]["containers"] for p in c["ports"]}
            self.assertEqual(set(rules), ports - {"health"})  # a kubelet reaches its own pods without one
            self.assertEqual(rules["metrics"], [
                {"podSelector": {"matchLabels": {"app.kubernetes.io/name": "berth"}}},
                {"namespaceSelector": {"matchLabels": {"berth.dev/metrics": "true"}}}])
        self.assertEqual(policies, {})

    def test_values_name_every_file_of_kinds(self):
        with open(os.path.join(DEPLOY, "chart", "berth", "values.schema.json"), encoding="utf-8") as f:
            schema = json.load(f)
        names = {name[:-5] for name in os.listdir(os.path.join(DEPLOY, "crds"))}
        self.assertEqual(set(schema["properties"]["crds"]["properties"]), names)
        with open(os.path.join(DEPLOY, "chart", "berth", "values.yaml"), encoding="utf-8") as f:
            values = documents(f.read())[0]
        self.assertEqual(set(values["crds"]), names)
        self.same_fields(schema, values, "values")

    def same_fields(self, schema, value, where):
        """Every value is described, and every description has a value."""
        if not isinstance(value, dict) or "properties" not in schema:
            return
        self.assertIs(schema.get("additionalProperties"), False, where)
        self.assertEqual(set(schema["properties"]) - {"global"}, set(value), where)
        for key, one in value.items():
            self.same_fields(schema["properties"][key], one, f"{where}.{key}")

    def test_version_is_the_programs(self):
        with open(os.path.join(DEPLOY, "..", "CMakeLists.txt"), encoding="utf-8") as f:
            version = re.search(r"project\(berth VERSION ([0-9.]+)", f.read()).group(1)
        with open(os.path.join(DEPLOY, "chart", "berth", "Chart.yaml"), encoding="utf-8") as f:
            chart = documents(f.read())[0]
        self.assertEqual((chart["version"], chart["appVersion"]), (version, version))


class Policy(unittest.TestCase):
    def refuses(self, objects, line):
        found = check(objects)
        self.assertEqual(len(found), 1, found)
        self.assertIn(line, found[0])

    def test_rules(self):
        rows = [
            ("apiGroups: ['']\n    resources: [pods]\n    verbs: ['*']", "verb *"),
            ("apiGroups: ['']\n    resources: ['*']\n    verbs: [get]", "resource *"),
            ("apiGroups: ['*']\n    resources: [pods]\n    verbs: [get]", "wildcard"),
            ("apiGroups: ['']\n    resources: [pods/*]\n    verbs: [get]", "pods/*"),
            ("apiGroups: ['']\n    resources: [secrets]\n    resourceNames: [a]\n    verbs: [get]", "whole cluster"),
            ("apiGroups: ['']\n    resources: [pods/exec]\n    verbs: [create]", "pods/exec"),
            ("apiGroups: ['']\n    resources: [nodes/proxy]\n    verbs: [get]", "nodes/proxy"),
            ("apiGroups: ['']\n    resources: [pods]\n    verbs: [create]", "makes pods"),
            ("apiGroups: [rbac.authorization.k8s.io]\n    resources: [roles]\n    verbs: [escalate]", "escalate"),
            ("apiGroups: [rbac.authorization.k8s.io]\n    resources: [roles]\n    verbs: [bind]", "bind"),
            ("apiGroups: [rbac.authorization.k8s.io]\n    resources: [clusterroles]\n    verbs: [patch]", "roles"),
            ("apiGroups: ['']\n    resources: [configmaps]\n    verbs: [impersonate]", "impersonate"),
            ("apiGroups: [admissionregistration.k8s.io]\n    resources: [mutatingwebhookconfigurations]\n"
             "    verbs: [patch]", "not named"),
            ("nonResourceURLs: [/metrics]\n    verbs: [get]", "paths"),
            ("apiGroups: ['']\n    resources: [serviceaccounts]\n    verbs: [create]", "resource serviceaccounts"),
            ("apiGroups: ['']\n    resources: [serviceaccounts]\n    verbs: [list, patch]", "resource serviceaccounts"),
            ("apiGroups: ['']\n    resources: [serviceaccounts/token]\n    verbs: [list]", "serviceaccounts/token"),
        ]
        for rule, line in rows:
            with self.subTest(rule=rule):
                self.refuses(role(rule), line)

    def test_secrets_of_a_namespace(self):
        one = "apiGroups: ['']\n    resources: [secrets]\n    "
        self.refuses(role(one + "verbs: [get]", "Role"), "not named")
        self.refuses(role(one + "resourceNames: [a]\n    verbs: [list]", "Role"), "lists secrets")
        self.assertEqual(check(role(one + "resourceNames: [a]\n    verbs: [get]", "Role")), [])
        self.assertEqual(check(role(one + "verbs: [create]", "Role")), [])

    def test_bindings(self):
        text = ("kind: ClusterRoleBinding\nmetadata: {name: b}\nroleRef: {kind: ClusterRole, name: %s}\n"
                "subjects:\n- {kind: %s, name: %s}\n")
        self.refuses(documents(text % ("cluster-admin", "ServiceAccount", "a")), "cluster-admin")
        self.refuses(documents(text % ("r", "Group", "system:authenticated")), "system:authenticated")
        self.refuses(documents(text % ("r", "ServiceAccount", "default")), "default")
        self.assertEqual(check(documents(text % ("r", "ServiceAccount", "a"))), [])

    def pod(self, kind="Deployment", name="d", **changes):
        """A workload that is as it should be, but for what is changed; None takes a field away."""
        container = {"name": "c", "image": "i:1", "livenessProbe": {"exec": 1}, "readinessProbe": {"exec": 1},
                     "resources": {"requests": {"cpu": 1, "memory": 1}, "limits": {"memory": 1}},
                     "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                         "capabilities": {"drop": ["ALL"]}}}
        pod = {"serviceAccountName": "a", "containers": [container],
               "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}}
        for path, value in changes.items():
            target, keys = pod, path.split("__")
            for key in keys[:-1]:
                target = target[0][key] if isinstance(target, list) else target.setdefault(key, {})
            target = target[0] if isinstance(target, list) else target
            if value is None:
                del target[keys[-1]]
            else:
                target[keys[-1]] = value
        return [{"kind": kind, "metadata": {"name": name}, "spec": {"template": {"spec": pod}}}]

    def test_pods(self):
        self.assertEqual(check(self.pod()), [])
        inside = "containers__securityContext__"
        for line, changes in [
                ("hostPID", {"hostPID": True}), ("hostNetwork", {"hostNetwork": True}), ("hostIPC", {"hostIPC": True}),
                ("default account", {"serviceAccountName": None}),
                ("is privileged", {inside + "privileged": True}),
                ("Escalation", {inside + "allowPrivilegeEscalation": None}),
                ("readOnlyRoot", {inside + "readOnlyRootFilesystem": False}),
                ("drop all", {inside + "capabilities": {"drop": ["NET_RAW"]}}),
                ("capability SYS_ADMIN", {inside + "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}}),
                ("runAsNonRoot", {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}),
                ("seccomp", {"securityContext": {"runAsNonRoot": True}}),
                ("no requests of cpu", {"containers__resources__requests": {"memory": 1}}),
                ("no requests of memory", {"containers__resources__requests": {"cpu": 1}}),
                ("no limits of memory", {"containers__resources__limits": {"cpu": 1}}),
                ("no livenessProbe", {"containers__livenessProbe": None}),
                ("no readinessProbe", {"containers__readinessProbe": None}),
                ("port 80 of the host", {"containers__ports": [{"containerPort": 80, "hostPort": 80}]}),
                ("without a version", {"containers__image": "i:latest"}),
                ("without a version", {"containers__image": "i"}),
                ("hostPath /etc", {"volumes": [{"name": "v", "hostPath": {"path": "/etc"}}]})]:
            with self.subTest(line=line):
                self.refuses(self.pod(**changes), line)

    def test_what_agents_may(self):
        """The agent's own exceptions are the agent's alone, and go so far."""
        agent = {"kind": "DaemonSet", "name": "berth-agent", "containers__name": "agent",
                 "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}
        path = {"name": "v", "hostPath": {"path": "/var/lib/kubelet/pod-resources"}}
        read = [{"name": "v", "mountPath": "/p", "readOnly": True}]
        capabilities = {"drop": ["ALL"], "add": ["SYS_ADMIN"]}
        self.assertEqual(check(self.pod(**agent, volumes=[path], containers__volumeMounts=read,
                                        containers__securityContext__capabilities=capabilities)), [])
        self.refuses(self.pod(**agent, volumes=[path], containers__volumeMounts=[{"name": "v", "mountPath": "/p"}]),
                     "pod-resources may be written")
        self.refuses(self.pod(**agent, volumes=[{"name": "v", "hostPath": {"path": "/"}}]), "hostPath /")
        capabilities = {"drop": ["ALL"], "add": ["SYS_PTRACE"]}
        self.refuses(self.pod(**agent, containers__securityContext__capabilities=capabilities), "capability SYS_PTRACE")
        self.refuses(self.pod(volumes=[path], containers__volumeMounts=read), "hostPath /var/lib/kubelet/pod-resources")

    def test_webhooks(self):
        text = ("kind: MutatingWebhookConfiguration\nmetadata: {name: w}\nwebhooks:\n- name: a\n"
                "  sideEffects: None\n  %s\n  %s\n")
        self.refuses(documents(text % ("timeoutSeconds: 30", "namespaceSelector: {matchLabels: {a: b}}")), "1..10")
        self.refuses(documents(text % ("timeoutSeconds: 5", "failurePolicy: Ignore")), "everything")


class PlainYaml(unittest.TestCase):
    def test_reads(self):
        text = ("# c\na: 1 # one\nb:\n- x\n- k: v\n  l: [p, 'q r',\n      \"s\"]\n- {m: [n], o: true}\n"
                "c: >-\n  two\n  lines\nd: \"#no comment\"\ng: '\"a\" +\n  b'\ne:\n---\n---\nf: v1:2\n"
                "h: it goes\n  on and\n  on\ni: 'a ''b'''\n")
        self.assertEqual(documents(text), [
            {"a": 1, "b": ["x", {"k": "v", "l": ["p", "q r", "s"]}, {"m": ["n"], "o": True}], "c": "two lines",
             "d": "#no comment", "g": '"a" + b', "e": None}, {"f": "v1:2", "h": "it goes on and on", "i": "a 'b'"}])

    def test_refuses(self):
        for text in ("a: &x 1", "a: *x", "a: !t 1", "a:\n\tb: 1", "a: 1\na: 2", "a: [1", "a\n", "a: 1\n  b: 2"):
            with self.subTest(text=text), self.assertRaises(NotPlain):
                documents(text)


if __name__ == "__main__":
    unittest.main()
