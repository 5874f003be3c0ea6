#!/usr/bin/env python3
"""Manifests under deploy/ hold to policy.py, which is tried on what it must refuse; standard library only."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from plain_yaml import NotPlain, documents  # noqa: E402
from policy import check  # noqa: E402

DEPLOY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy")


def role(rule, kind="ClusterRole"):
    return documents(f"kind: {kind}\nmetadata: {{name: r}}\nrules:\n  - {rule}\n")


def shipped():
    out = []
    for folder, _, names in os.walk(DEPLOY):
        if os.path.basename(folder) == "crds":
            continue  # kinds grant nothing
        for name in sorted(names):
            if name.endswith(".yaml"):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as f:
                    try:
                        out += [(os.path.relpath(path, DEPLOY), one) for one in documents(f.read())]
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

    def test_agents_write_no_pods(self):
        agents = [o for _, o in shipped() if o["kind"] == "ClusterRole" and o["metadata"]["name"] == "berth-agent"]
        self.assertEqual(len(agents), 1)
        for rule in agents[0]["rules"]:
            if any(r.split("/")[0] == "pods" for r in rule["resources"]):
                self.assertLessEqual(set(rule["verbs"]), {"get", "list", "watch"})


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

    def test_pods(self):
        safe = "allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}"
        text = ("kind: DaemonSet\nmetadata: {name: d}\nspec:\n  template:\n    spec:\n      %s: %s\n"
                "      containers:\n        - name: c\n          securityContext: {%s}\n")
        self.refuses(documents(text % ("hostPID", "true", safe)), "hostPID")
        self.refuses(documents(text % ("hostPID", "false", "privileged: true, " + safe)), "privileged")
        self.refuses(documents(text % ("hostPID", "false", "capabilities: {drop: [ALL]}")), "Escalation")
        self.refuses(documents(text % ("hostPID", "false", "allowPrivilegeEscalation: false")), "drop all")
        self.assertEqual(check(documents(text % ("hostPID", "false", safe))), [])

    def test_webhooks(self):
        text = ("kind: MutatingWebhookConfiguration\nmetadata: {name: w}\nwebhooks:\n- name: a\n"
                "  sideEffects: None\n  %s\n  %s\n")
        self.refuses(documents(text % ("timeoutSeconds: 30", "namespaceSelector: {matchLabels: {a: b}}")), "1..10")
        self.refuses(documents(text % ("timeoutSeconds: 5", "failurePolicy: Ignore")), "everything")


class PlainYaml(unittest.TestCase):
    def test_reads(self):
        text = ("# c\na: 1 # one\nb:\n- x\n- k: v\n  l: [p, 'q r',\n      \"s\"]\n- {m: [n], o: true}\n"
                "c: >-\n  two\n  lines\nd: \"#no comment\"\ne:\n---\n---\nf: v1:2\n")
        self.assertEqual(documents(text), [
            {"a": 1, "b": ["x", {"k": "v", "l": ["p", "q r", "s"]}, {"m": ["n"], "o": True}], "c": "two lines",
             "d": "#no comment", "e": None}, {"f": "v1:2"}])

    def test_refuses(self):
        for text in ("a: &x 1", "a: *x", "a: !t 1", "a:\n\tb: 1", "a: 1\na: 2", "a: [1", "a\n", "a: 1\n  b: 2"):
            with self.subTest(text=text), self.assertRaises(NotPlain):
                documents(text)


if __name__ == "__main__":
    unittest.main()
