#!/usr/bin/env python3
"""berth why on a real API server: the controller answers through the proxy of its Service, and each caller sees what
he may. Without the controller what the caller may list is looked at.

    why_test.py BERTH [Why.test_...]
"""
import json
import os
import socket
import subprocess

import rig
from cluster import free_ports

RBAC = os.path.join(rig.HERE, "..", "..", "deploy", "rbac")
ROLES = "/apis/rbac.authorization.k8s.io/v1"
ASKS = {"apiGroups": [""], "resources": ["services/proxy"], "resourceNames": ["https:berth-page:443"],
        "verbs": ["get"]}
WAITS = 10


def own_address():
    """One that is not loopback: an API server does not proxy to that."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))  # nothing is sent
            return s.getsockname()[0]
        except OSError:
            return None


def patched(tree, operations):
    """RFC 6902, as far as berth writes it."""
    tree = json.loads(json.dumps(tree))
    for each in operations:
        keys = [k.replace("~1", "/").replace("~0", "~") for k in each["path"].split("/")[1:]]
        at = tree
        for key in keys[:-1]:
            at = at[int(key)] if isinstance(at, list) else at[key]
        last = int(keys[-1]) if isinstance(at, list) and keys[-1] != "-" else keys[-1]
        if each["op"] == "remove":
            del at[last]
        elif isinstance(at, list):
            at.insert(len(at) if last == "-" else last, each["value"])
        else:
            at[last] = each["value"]
    return tree


class Why(rig.Test):
    def setUp(self):
        self.address = own_address()
        if not self.address or self.address.startswith("127."):
            self.skipTest("this machine has no address but loopback")

    def apply(self, r):
        for name in ("namespace", "controller", "page"):
            r.kubectl("apply", "--server-side", "--validate=strict", "-f", os.path.join(RBAC, name + ".yaml"))

    def account(self, r, name, *rules, ns="team"):
        """A kubeconfig: it may ask the controller, and what the rules say in the namespace."""
        r.api.post("/api/v1/namespaces/team/serviceaccounts", {"metadata": {"name": name}})
        subject = [{"kind": "ServiceAccount", "name": name, "namespace": "team"}]
        for where, granted in (("berth-system", [ASKS]), (ns, list(rules))):
            if not granted:
                continue
            r.api.post(f"{ROLES}/namespaces/{where}/roles", {"metadata": {"name": name}, "rules": granted})
            r.api.post(f"{ROLES}/namespaces/{where}/rolebindings", {
                "metadata": {"name": name}, "subjects": subject,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}})
        return self.kubeconfig(r, "team", name)

    def kubeconfig(self, r, ns, name):
        token = r.api.post(f"/api/v1/namespaces/{ns}/serviceaccounts/{name}/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600}})["status"]["token"]
        return r.cluster.write_kubeconfig(name, token)

    def service(self, r, port):
        r.api.post("/api/v1/namespaces/berth-system/services", {
            "metadata": {"name": "berth-page"}, "spec": {"ports": [{"name": "page", "port": 443, "targetPort": port}]}})
        # An API server proxies to addresses of pods alone: one stands for the controller.
        r.api.post("/api/v1/namespaces/berth-system/pods", {
            "metadata": {"name": "berth-controller-0"},
            "spec": {"schedulerName": "nobody", "containers": [{"name": "controller", "image": "localhost/berth"}]}})
        r.api.call("PATCH", "/api/v1/namespaces/berth-system/pods/berth-controller-0/status", {
            "status": {"phase": "Running", "podIP": self.address, "podIPs": [{"ip": self.address}]}}, patch="merge")
        r.api.post("/apis/discovery.k8s.io/v1/namespaces/berth-system/endpointslices", {
            "metadata": {"name": "berth-page-1", "labels": {"kubernetes.io/service-name": "berth-page"}},
            "addressType": "IPv4", "ports": [{"name": "page", "port": port, "protocol": "TCP"}],
            "endpoints": [{"addresses": [self.address], "conditions": {"ready": True}, "targetRef": {
                "kind": "Pod", "namespace": "berth-system", "name": "berth-controller-0"}}]})

    def why(self, kubeconfig, *words):
        done = subprocess.run([rig.berth, "why", *words, "--kubeconfig", kubeconfig], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.returncode, done.stdout, done.stderr

    def world(self, r):
        """Two teams on one node: the other one holds most of it."""
        self.apply(r)
        r.nodes(1)
        for ns in ("team", "secret"):
            r.namespace(ns)
        for ns, name, gpus in (("secret", "holder", 6), ("team", "want", 8)):
            r.api.post(f"/api/v1/namespaces/{ns}/pods", {"metadata": {"name": name}, "spec": rig.pod_spec(gpus)})
        port = free_ports(1)[0]
        # The account of the controller needs no more than deploy/rbac says.
        one = r.controller("berth-controller", "--page", f"{self.address}:{port}",
                           kubeconfig=self.kubeconfig(r, "berth-system", "berth-controller"))
        self.service(r, port)
        page = "/api/v1/namespaces/berth-system/services/https:berth-page:443/proxy/"
        r.wait("the API server knows the Service", lambda: "Error" not in r.kubectl("get", "--raw", page, check=False),
               60, 0.5)
        r.wait("the other team holds the node", lambda: len(r.bound("secret")) == 1)
        return one

    def answered(self, r, kubeconfig, *words):
        """Once the API server knows the Service."""
        found = []

        def asked():
            found[:] = self.why(kubeconfig, *words)
            return found[0] == WAITS

        r.wait("an answer", asked, 60, 0.5)
        return found

    def test_standards_of_namespaces(self):
        """What berth says of templates under Pod Security Standards is what the server says of their pods."""
        good = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"}}
        adds = {f"adds-{c.lower().replace('_', '-')}": ({}, {**good, "capabilities": {"drop": ["ALL"], "add": [c]}})
                for c in ("SYS_PTRACE", "IPC_LOCK", "CHOWN", "NET_BIND_SERVICE")}
        volumes = {f"volume-{kind.lower()}": ({"volumes": [{"name": "v", kind: body}]}, good) for kind, body in (
            ("hostPath", {"path": "/x"}), ("nfs", {"server": "a", "path": "/x"}), ("emptyDir", {}),
            ("configMap", {"name": "c"}))}
        contexts = {name: ({"securityContext": context}, good) for name, context in {
            "sysctl": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]},
            "safe-sysctl": {"sysctls": [{"name": "net.ipv4.tcp_rmem", "value": "1"}]},
            "selinux": {"seLinuxOptions": {"type": "spc_t"}}, "selinux-level": {"seLinuxOptions": {"level": "s0"}},
            "apparmor": {"appArmorProfile": {"type": "Unconfined"}}, "user": {"runAsUser": 0},
            "seccomp": {"seccompProfile": {"type": "Unconfined"}}}.items()}
        pods = {"plain": ({}, {}), "good": ({}, good), "privileged": ({}, {"privileged": True}),
                "host-network": ({"hostNetwork": True}, good), "host-pid": ({"hostPID": True}, good),
                "root": ({}, {**good, "runAsUser": 0}), "may-be-root": ({}, {**good, "runAsNonRoot": False}),
                "in-the-pod": ({"securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}},
                               {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}),
                **adds, **volumes, **contexts}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {
            "allocatable": {"cpu": "8", "memory": "64Gi", "pods": "9", "nvidia.com/gpu": "8"},
            "conditions": [{"type": "Ready", "status": "True"}]}}
        with rig.Rig(self, controllers=None) as r:
            fixed = 0
            for standard in ("baseline", "restricted"):
                r.namespace(standard, **{"pod-security.kubernetes.io/enforce": standard})
                ns = r.api.get(f"/api/v1/namespaces/{standard}")
                for name, (spec, context) in pods.items():
                    spec = {**rig.pod_spec(1), **spec}
                    spec["containers"] = [{**spec["containers"][0], "securityContext": context}]
                    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": standard},
                           "spec": spec}
                    try:
                        r.api.post(f"/api/v1/namespaces/{standard}/pods?dryRun=All", pod)
                        refused = ""
                    except rig.Refused as e:
                        refused = str(e)
                    path = r.cluster.path("pod.json")
                    with open(path, "w", encoding="utf-8") as f:
                        json.dump({"apiVersion": "v1", "kind": "List", "items": [node, ns, pod]}, f)
                    done = subprocess.run([rig.berth, "why", "pod", f"{standard}/{name}", "-f", path, "-o", "json"],
                                          text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
                    answer = json.loads(done.stdout)
                    says = "Pod Security Standard" in answer["line"]
                    self.assertEqual(says, bool(refused), f"{standard} {name}: {refused or answer['line']}")
                    for fix in answer["fixes"]:
                        change = fix["changes"][0]
                        if fix["kind"] != "security-context" or "patch" not in change:
                            continue
                        fixed += 1
                        r.api.post(f"/api/v1/namespaces/{standard}/pods?dryRun=All", patched(pod, change["patch"]))
            self.assertGreater(fixed, 15)
            self.figure(f"{2 * len(pods)} pods under two standards, {fixed} templates mended and taken")

    def test_each_caller_sees_what_he_may(self):
        with rig.Rig(self, controllers=None, rbac=True, audit="reads") as r:
            one = self.world(r)
            read = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
            user, stranger = self.account(r, "user", read), self.account(r, "stranger")
            admin = r.cluster.kubeconfig

            _, out, err = self.answered(r, admin, "pod", "team/want", "-o", "json")
            whole = json.loads(out)
            self.assertEqual([h["pod"] for h in whole["holders"]], ["secret/holder"], out + err)
            self.assertEqual(whole["evidence"]["partial"], [])
            self.assertIn("node-0", out)

            code, out, err = self.why(user, "pod", "team/want", "-o", "json")
            self.assertEqual(code, WAITS, out + err)
            mine = json.loads(out)
            for name in ("secret", '"holder', "/holder", "node-0"):
                self.assertNotIn(name, out.replace('"holders"', ""))
            self.assertEqual([h["pod"] for h in mine["holders"]], ["another team"])
            code, out, err = self.why(user, "pod", "team/want", "--holders", "-o", "json")
            self.assertEqual([h["pod"] for h in json.loads(out)["holders"]], ["another team"], out + err)
            self.assertEqual((mine["verdict"], mine["reason"], mine["need"]), (
                whole["verdict"], whole["reason"], whole["need"]))
            self.assertEqual(list(mine), list(whole), "the same shape")
            self.assertEqual(len(mine["evidence"]["partial"]), 2)
            code, out, err = self.why(user, "want", "-n", "team")
            self.assertEqual(code, WAITS, out + err)
            self.assertIn("you may not see the names of pods in other namespaces", out)
            self.assertLessEqual(max(map(len, out.splitlines())), 80)

            # What he may not get is refused, with a next step, whether it is there or not.
            for caller, subject in ((user, "secret/holder"), (user, "secret/none"), (stranger, "team/want")):
                code, out, err = self.why(caller, "pod", subject)
                self.assertEqual((code, out), (1, ""), err)
                self.assertIn("you may not get pod " + subject, err)
                self.assertIn("kubectl auth can-i get pods -n", err)
            code, out, err = self.why(user, "pod", "team/none")
            self.assertEqual((code, out), (1, ""), err)

            # Straight at it: the certificate is its own, so nobody vouches for it.
            code, out, err = self.why(user, "pod", "team/want", "--controller", f"https://{self.address}:1")
            self.assertIn("--controller", err)

            # Without it: what the caller may list, and that the view is partial.
            self.assertEqual(one.stop(), 0)
            code, out, err = self.why(admin, "pod", "team/want", "-o", "json")
            self.assertEqual((code, json.loads(out)["evidence"]["partial"]), (WAITS, []), err)
            self.assertEqual(list(json.loads(out)), list(whole), "the same shape")
            code, out, err = self.why(user, "pod", "team/want")
            self.assertIn("you may not see nodes", out + err)
            self.figure("an administrator, a user and a stranger, with and without the controller")

    def test_rules_of_the_server_with_and_without_the_controller(self):
        """Jobs whose pods nobody can make: a quota of the namespace, an account that does not exist."""
        jobs = "/apis/batch/v1/namespaces/team/jobs"
        gpus = "requests." + rig.GPU
        with rig.Rig(self, controllers=None, rbac=True, audit="reads") as r:
            one = self.world(r)
            r.api.post("/api/v1/namespaces/team/resourcequotas", {
                "metadata": {"name": "gold"}, "spec": {"hard": {gpus: "9"}}})
            r.job("team", "train", pods=2, gpus=1)
            r.job("team", "plain", pods=1, gpus=0)
            spec = {**rig.pod_spec(0), "serviceAccountName": "usr"}
            r.api.post(jobs, {"metadata": {"name": "nobody"}, "spec": {"template": {"spec": spec}}})
            read = {"apiGroups": ["", "batch"], "resources": ["pods", "jobs"], "verbs": ["get", "list"]}
            rules = {"apiGroups": [""], "resources": ["resourcequotas", "serviceaccounts"], "verbs": ["list"]}
            narrow, wide = self.account(r, "narrow", read), self.account(r, "user", read, rules)
            admin = r.cluster.kubeconfig
            self.answered(r, admin, "job", "team/train")
            want = {"train": (10, "WaitingForQuota", "the ResourceQuota gold allows 9"),
                    "nobody": (20, "Misconfigured", "the ServiceAccount usr does not exist")}
            asked = {}
            for name, (code, reason, words) in want.items():
                for who in (admin, wide):
                    got, out, err = self.why(who, "job", "team/" + name, "-o", "json")
                    answer = json.loads(out)
                    self.assertEqual((got, answer["reason"]), (code, reason), out + err)
                    self.assertIn(words, answer["line"])
                    asked.setdefault(name, answer)
                got, out, err = self.why(narrow, "job", "team/" + name, "-o", "json")
                self.assertEqual((got, json.loads(out)["reason"]), (code, reason), out + err)
                self.assertIn("that you may not list is in its way", json.loads(out)["line"])
                for secret in ("gold", "allows 9", "user"):
                    self.assertNotIn(secret, out)
            titles = [f["title"] for f in asked["nobody"]["fixes"]]
            self.assertIn("serviceAccountName user instead of usr", titles)
            self.assertEqual(self.why(admin, "job", "team/plain")[0], WAITS)
            # What makes pods and has made none is found by lists, by its kind and by its name alone.
            template = {"metadata": {"labels": {"app": "serve"}}, "spec": {**rig.pod_spec(1), "restartPolicy": "Always"}}
            r.api.post("/apis/apps/v1/namespaces/team/deployments", {
                "metadata": {"name": "serve"},
                "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "serve"}}, "template": template}})
            for words in (("deployment", "team/serve"), ("team/serve",)):
                got, out, err = self.why(admin, *words, "-o", "json")
                self.assertEqual((got, json.loads(out)["reason"]), (WAITS, "WaitingForQuota"), out + err)
            # The same rights as the others of deploy/rbac: nothing was refused.
            refused = [e for e in r.audit() if e["responseStatus"]["code"] == 403 and
                       e["user"]["username"] == "system:serviceaccount:berth-system:berth-controller"]
            self.assertEqual({e["objectRef"]["resource"] for e in refused} - {"namespaces"}, set())

            self.assertEqual(one.stop(), 0)
            for name, with_it in asked.items():
                code, out, err = self.why(admin, "job", "team/" + name, "-o", "json", "--no-controller")
                answer = json.loads(out)
                self.assertEqual(code, want[name][0], out + err)
                for field in ("verdict", "line", "reason", "stage", "also", "need"):
                    self.assertEqual(answer[field], with_it[field], name)
                self.assertEqual([f["title"] for f in answer["fixes"]], [f["title"] for f in with_it["fixes"]], name)
                self.assertEqual([f["changes"] for f in answer["fixes"]], [f["changes"] for f in with_it["fixes"]], name)
            self.figure("a quota and an account explained alike, to those who may list them and to one who may not")


if __name__ == "__main__":
    rig.main(__doc__)
