#!/usr/bin/env python3
"""What is shipped, installed on a real API server as users install it, and berth at work from it.

    install_test.py BERTH [Install.test_...]

helm and kubectl are the real ones. There is no node that could start pods, so the test does what a kubelet would: it
runs the program with the arguments and the environment of the Deployment and a token of its account, and writes the
EndpointSlice of the webhook's Service. conversion_test.py uses the same.
"""
import base64
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request

import rig
from cluster import free_ports, tools

ROOT = os.path.normpath(os.path.join(rig.HERE, "..", ".."))
CHART = os.path.join(ROOT, "deploy", "chart", "berth")
PLAIN = os.path.join(ROOT, "deploy", "berth.yaml")
NS = "berth-system"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOOK = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/berth"
# Webhooks are called at an address of a Service's endpoint; there is nobody who routes addresses of Services.
ROUTED = ["--enable-aggregator-routing=true"]


def own_address():
    """Of this machine, not loopback, which no endpoint may have. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(("192.0.2.254", 9))
        return s.getsockname()[0]


class Shipped(rig.Rig):
    def __init__(self, test, **options):
        super().__init__(test, crds=(), rbac=True, api_flags=ROUTED, **options)

    def helm(self, *arguments, fails=False):
        environment = {**self.cluster.environment(), "HELM_CACHE_HOME": self.cluster.path("helm"),
                       "HELM_CONFIG_HOME": self.cluster.path("helm"), "HELM_DATA_HOME": self.cluster.path("helm")}
        done = subprocess.run([os.path.join(tools("helm"), "helm"), *arguments], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if (done.returncode != 0) != fails:
            raise AssertionError(f"helm {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stderr if fails else done.stdout

    def template(self, *flags, fails=False, chart=CHART):
        return self.helm("template", "berth", chart, "--namespace", NS, "--kube-version", "1.34.0", *flags,
                         fails=fails)

    def install(self, *flags, verb="install"):
        return self.helm(verb, "berth", CHART, "--namespace", NS, "--create-namespace", *flags)

    def uninstall(self):
        hook = Hook(self)
        hook.start()
        self.helm("uninstall", "berth", "--namespace", NS, "--timeout", "120s")
        hook.join()
        self.test.assertEqual(hook.code, 0, hook.text)

    def token(self, account):
        return self.api.post(f"/api/v1/namespaces/{NS}/serviceaccounts/{account}/token",
                             {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                              "spec": {"expirationSeconds": 3600}})["status"]["token"]

    def pod_of_deployment(self, name, *instead, when_ready=False):
        """What a kubelet would start for the Deployment, as a process; and its webhook becomes an endpoint, at once or
        as in a cluster when it is ready.

        Two pods of one machine cannot have the same port: `instead` are arguments that take the place of others; the
        port for probes is always another one.
        """
        instead = [*instead, f"--health=127.0.0.1:{free_ports(1)[0]}"]
        spec = self.api.get(f"/apis/apps/v1/namespaces/{NS}/deployments/berth-controller")["spec"]["template"]["spec"]
        container = spec["containers"][0]
        environment = {"POD_NAME": name}
        for one in container.get("env", []):
            if "value" in one:
                environment[one["name"]] = one["value"]
            else:
                self.test.assertIn(one["name"], environment, "the test does not know this variable")
        arguments = [re.sub(r"\$\((\w+)\)", lambda m: environment[m.group(1)], a) for a in container["args"]
                     if a.split("=")[0] not in {b.split("=")[0] for b in instead}]
        kubeconfig = self.cluster.write_kubeconfig(name, self.token(spec["serviceAccountName"]))
        one = Pod(self, name, [*arguments, *instead], {**environment, "KUBECONFIG": kubeconfig, "PATH": "/usr/bin"})
        self.controllers.append(one)
        port = next((p["containerPort"] for p in container["ports"] if p["name"] == "webhook"), None)
        for flag in instead:
            port = int(flag.split(":")[1]) if flag.startswith("--webhook=") else port
        if when_ready:
            self.wait(f"{name} is ready", one.ready)
        if port:
            self.endpoint(name, port)
        return one

    def endpoint(self, name, port):
        self.api.post(f"/apis/discovery.k8s.io/v1/namespaces/{NS}/endpointslices", {
            "metadata": {"name": f"berth-webhook-{name}", "labels": {"kubernetes.io/service-name": "berth-webhook"}},
            "addressType": "IPv4", "ports": [{"name": "webhook", "port": port, "protocol": "TCP"}],
            "endpoints": [{"addresses": [own_address()], "conditions": {"ready": True}}]})

    def wait_for_kinds(self):
        """Every kind in each of its versions: the server begins with them one by one."""
        crds = [crd["spec"] for crd in self.api.items(CRDS)]
        paths = [f"/apis/{crd['group']}/{version['name']}/{crd['names']['plural']}"
                 for crd in crds for version in crd["versions"] if version["served"]]
        self.wait("queues are served", lambda: self.has(rig.KUEUE) and all(self.has(path) for path in paths))

    def has(self, path):
        try:
            self.api.get(path)
            return True
        except rig.Refused as e:
            if e.status != 404:
                raise
            return False

    def marks(self, ns="team"):
        """Who schedules a pod with a GPU that says nothing: asked and not made."""
        spec = rig.pod_spec()
        del spec["schedulerName"]
        pod = self.api.post(f"/api/v1/namespaces/{ns}/pods?dryRun=All", {"metadata": {"name": "probe"}, "spec": spec})
        return pod["spec"]["schedulerName"]

    def users_job(self):
        """Of somebody in `team` who knows the queue q and nothing of berth: its two pods of 4 GPUs are bound."""
        self.wait("the webhook is asked", lambda: self.marks() == "berth")
        spec = rig.pod_spec(4)
        del spec["schedulerName"]
        self.api.post("/apis/batch/v1/namespaces/team/jobs", {
            "metadata": {"name": "train", "labels": {rig.QUEUE: "q"}},
            "spec": {"parallelism": 2, "completions": 2, "template": {"spec": spec}}})
        self.wait("both pods are bound", lambda: len(self.bound("team")) == 2)

    def kinds(self, group):
        """What people wrote of them; the server's own notes, its status, come when they come."""
        return {c["metadata"]["name"]: json.dumps(
            [c["spec"], [c["metadata"].get(k) for k in ("uid", "generation", "labels", "annotations")]], sort_keys=True)
            for c in self.api.items(CRDS) if c["spec"]["group"] == group}

    def delete_kinds(self, group):
        """And waits. An API server whose first look at a kind's objects fails ("storage is (re)initializing") may look
        again only five minutes later, as it takes no notice of its own note of it; any other change makes it look."""
        for name in self.kinds(group):
            self.api.delete(f"{CRDS}/{name}")

        def gone():
            left = [c for c in self.api.items(CRDS) if c["spec"]["group"] == group]
            for c in left:
                if rig.condition(c, "Terminating").get("reason") == "InstanceDeletionFailed":
                    self.kubectl("annotate", "--overwrite", "crd", c["metadata"]["name"], f"look={time.time()}",
                                 check=False)
            return not left
        return self.wait(f"the kinds of {group} are gone", gone, step_s=1)


class Hook(threading.Thread):
    """Runs what the pod of the Job before an uninstall would run."""

    def __init__(self, r):
        super().__init__(daemon=True)
        self.rig, self.code, self.text = r, None, "never asked for"
        self.api = rig.Api(r.cluster.kubeconfig)

    def run(self):
        pods = f"/api/v1/namespaces/{NS}/pods"
        for _ in range(600):
            found = [p for p in self.api.items(pods) if p["metadata"]["name"].startswith("berth-end-conversion")]
            if found:
                break
            rig.pause(0.2)
        else:
            return
        spec = found[0]["spec"]
        kubeconfig = self.rig.cluster.write_kubeconfig("hook", self.rig.token(spec["serviceAccountName"]))
        done = subprocess.run([rig.berth, *spec["containers"][0]["args"]], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env={"KUBECONFIG": kubeconfig, "PATH": "/usr/bin"}, cwd="/")
        self.code, self.text = done.returncode, done.stdout
        status = rig.Kubelets.status("Succeeded" if self.code == 0 else "Failed", "False")
        status["status"]["containerStatuses"][0]["name"] = spec["containers"][0]["name"]
        self.api.call("PATCH", f"{pods}/{found[0]['metadata']['name']}/status", status, patch="strategic")


class Pod(rig.Controller):
    """`berth` with the arguments that a Deployment gives it."""

    def __init__(self, rig_, name, arguments, environment):
        self.user, self.arguments = name, arguments
        metrics = next(a for a in arguments if a.startswith("--metrics="))
        self.port = int(metrics.rsplit(":", 1)[1])
        health = next(a for a in arguments if a.startswith("--health="))
        self.health = int(health.rsplit(":", 1)[1])
        self.log = rig_.cluster.path(f"pod-{name}.log")
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen([rig.berth, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          env=environment, cwd="/")

    def ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/readyz", timeout=10) as answer:
                return answer.status == 200
        except urllib.error.HTTPError:
            return False


def ports(count=2):
    metrics, webhook = free_ports(count)
    return ["--set", f"controller.metricsPort={metrics}", "--set", f"webhook.port={webhook}"]


class Install(rig.Test):
    def test_chart(self):
        """Lint, the rendered manifests, and values that are refused with the place where they are wrong."""
        with Shipped(self, controllers=None) as r:
            self.assertIn("0 chart(s) failed", r.helm("lint", "--strict", CHART))
            done = subprocess.run([os.path.join(ROOT, "scripts", "render-manifests"), "--check"], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 0, done.stdout)
            for value, place in (("controller.replica=3", "replica"), ("webhook.failurePolicy=Maybe", "failurePolicy"),
                                 ("agent.capabilities={SYS_PTRACE}", "capabilities"), ("webhook.port=80", "port"),
                                 ("controller.replicas=0", "replicas"), ("crds.kueues=true", "kueues"),
                                 ("typo.a=1", "typo"), ("controller.resources.limits=null", "resources"),
                                 ("controller.healthPort=8080", "and controller.metricsPort are both 8080"),
                                 ("controller.healthPort=9443", "and webhook.port are both 9443"),
                                 ("page.enabled=true,page.port=8080", "page.port are both 8080"),
                                 ("agent.healthPort=9400", "and agent.metricsPort are both 9400")):
                self.assertIn(place, r.template("--set", value, fails=True), value)
            # The page asks agents where they serve.
            self.assertIn("--agent-port=9500", r.template("--set", "page.enabled=true,agent.metricsPort=9500"))
            # Everything that is off by default renders too, and is known to the server.
            everything = ["--set", "page.enabled=true", "--set", "agent.runtimeClassName=nvidia",
                          "--set", "agent.driverRoot=/run/nvidia/driver", "--set", "agent.capabilities={SYS_ADMIN}",
                          "--set", "webhook.certificateSecret=w", "--set", "page.certificateSecret=p",
                          "--set", "agent.config.version=v1", "--set", "controller.preemption=false",
                          "--set", "controller.queues=false", "--set", "image.pullSecrets={a}",
                          "--set", "priorityClasses.workloads[0].name=train",
                          "--set", "priorityClasses.workloads[0].value=1000"]
            for name in sorted(os.listdir(os.path.join(ROOT, "deploy", "crds"))):
                everything += ["--set", f"crds.{name[:-5]}=true"]
            path = r.cluster.path("everything.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(r.template(*everything))
            r.api.post("/api/v1/namespaces", {"metadata": {"name": NS}})
            r.api.post("/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "nvidia"}, "handler": "nvidia"})
            out = r.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", path)
            self.assertEqual(out.count("customresourcedefinition"), 36)
            self.assertEqual(r.template("--set", "podMonitor.enabled=true").count("kind: PodMonitor"), 2)
            # A package of the chart has what its links point to.
            r.helm("package", CHART, "--destination", r.cluster.folder)
            package = next(name for name in os.listdir(r.cluster.folder) if name.endswith(".tgz"))
            self.assertEqual(r.template(), r.template(chart=r.cluster.path(package)))

    def test_plain_manifests(self):
        """deploy/berth.yaml: tried, applied, applied again without a change, and at work."""
        with Shipped(self) as r:
            r.kubectl("apply", "--validate=strict", "-f", os.path.join(ROOT, "deploy", "rbac", "namespace.yaml"))
            how = ("--server-side", "--validate=strict", "-f", PLAIN)
            r.kubectl("apply", "--dry-run=server", *how)
            r.kubectl("apply", *how)
            r.kubectl("create", "--validate=strict", "-f", os.path.join(ROOT, "deploy", "crds", "kueue.yaml"))
            r.wait_for_kinds()
            before = r.api.get(f"/apis/apps/v1/namespaces/{NS}/deployments/berth-controller")["metadata"]
            r.kubectl("apply", *how)
            after = r.api.get(f"/apis/apps/v1/namespaces/{NS}/deployments/berth-controller")["metadata"]
            self.assertEqual(before["generation"], after["generation"])
            metrics, webhook = free_ports(2)
            one = r.pod_of_deployment("plain-0", f"--metrics=127.0.0.1:{metrics}", f"--webhook=:{webhook}")
            self.work(r, one)

    def work(self, r, one):
        """A Job of a user who knows a queue and nothing of berth is held, admitted and bound."""
        r.nodes(2)
        r.namespace("team", **{"berth.dev/managed": "true"})
        r.queue("q", "team", 8)
        r.wait("it leads", lambda: r.leads(one), 90)
        r.wait("it is ready", one.ready)
        r.users_job()
        self.assertEqual({u for users in r.bindings().values() for u in users},
                         {f"system:serviceaccount:{NS}:berth-controller"})
        self.assertEqual(len(r.workloads("team")), 1)
        refused = [e for e in r.audit() if e["responseStatus"]["code"] == 403 and
                   e["objectRef"]["resource"] != "namespaces"]
        self.assertEqual(refused, [])
        r.nothing_wrong()

    def test_helm(self):
        """Installed, at work, upgraded, uninstalled under running pods, installed again."""
        with Shipped(self) as r:
            flags = ports()
            r.install(*flags)
            r.wait_for_kinds()
            one = r.pod_of_deployment("helm-0")
            self.work(r, one)
            bundle = r.api.get(HOOK)["webhooks"][0]["clientConfig"]["caBundle"]
            r.install(*flags, "--set", "controller.replicas=3", "--set", "webhook.timeoutSeconds=7", verb="upgrade")
            hook = r.api.get(HOOK)["webhooks"][0]
            self.assertEqual((hook["clientConfig"]["caBundle"], hook["timeoutSeconds"]), (bundle, 7))
            self.assertEqual(r.marks(), "berth")
            running = sorted(p["metadata"]["uid"] for p in r.bound("team"))
            r.uninstall()
            self.assertEqual(one.stop(), 0)
            self.assertFalse(r.has(HOOK))
            self.assertFalse(r.has(f"/apis/apps/v1/namespaces/{NS}/deployments/berth-controller"))
            rig.pause(2)
            self.assertEqual(sorted(p["metadata"]["uid"] for p in r.bound("team")), running)
            self.assertTrue(r.has("/apis/batch/v1/namespaces/team/jobs/train"))
            self.assertEqual(len(r.workloads("team")), 1)
            self.assertTrue(r.has(f"{rig.KUEUE}/clusterqueues/q"))
            r.api.delete(f"/apis/discovery.k8s.io/v1/namespaces/{NS}/endpointslices/berth-webhook-helm-0")
            r.install(*ports())
            again = r.pod_of_deployment("helm-1")
            r.wait("it leads", lambda: r.leads(again), 90)
            r.wait("the webhook is asked", lambda: r.marks() == "berth")
            self.assertEqual(sorted(p["metadata"]["uid"] for p in r.bound("team")), running)
            r.nothing_wrong()

    def test_page(self):
        """The page with the rights that come with it: open to who may see, closed to who may not."""
        with Shipped(self) as r:
            port = free_ports(1)[0]
            r.install(*ports(), "--set", "page.enabled=true", "--set", f"page.port={port}")
            r.wait_for_kinds()
            one = r.pod_of_deployment("page-0")
            r.wait("it leads", lambda: r.leads(one), 90)
            self.assertEqual(self.page(port, "/", None), 200)
            self.assertEqual(self.page(port, "/api/page", None), 401)
            self.assertEqual(self.page(port, "/api/page", r.token("berth-agent")), 403)
            r.wait("the page is shown", lambda: self.page(port, "/api/page", r.cluster.token()) == 200)
            refused = [e for e in r.audit() if e["responseStatus"]["code"] == 403 and
                       e["objectRef"]["resource"] != "namespaces"]
            self.assertEqual(refused, [])

    @staticmethod
    def page(port, path, token):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=60)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            return connection.getresponse().status
        finally:
            connection.close()

    def kueue_comes(self, r):
        """As Kueue's own manifests would: the kinds again, with the mark of their generator."""
        out = r.kubectl("create", "--dry-run=client", "-o", "json", "-f", os.path.join(
            ROOT, "deploy", "crds", "kueue.yaml"))
        decoder, at, kinds = json.JSONDecoder(), 0, []
        while at < len(out.rstrip()):
            one, at = decoder.raw_decode(out, at)
            at += len(out[at:]) - len(out[at:].lstrip())
            kinds += one["items"] if one["kind"] == "List" else [one]
        for one in kinds:
            one["metadata"].setdefault("annotations", {})["controller-gen.kubebuilder.io/version"] = "v0.18.0"
            for version in one["spec"]["versions"]:
                version["schema"]["openAPIV3Schema"]["description"] = "of Kueue"
        path = r.cluster.path("kueue.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"apiVersion": "v1", "kind": "List", "items": kinds}, f)
        r.kubectl("apply", "--server-side", "--force-conflicts", "-f", path)
        self.assertEqual(len(kinds), 11)

    def test_kinds_of_kueue_stay(self):
        """Kueue first: install, upgrade and uninstall leave its kinds as they are. Kueue later: so does an upgrade."""
        with Shipped(self, controllers=None) as r:
            self.kueue_comes(r)
            before = r.kinds("kueue.x-k8s.io")
            r.install()
            self.assertTrue(r.has(f"{CRDS}/gpunodes.berth.dev"))
            r.install("--set", "controller.replicas=3", verb="upgrade")
            r.helm("uninstall", "berth", "--namespace", NS, "--no-hooks")  # nobody makes pods of Jobs here
            self.assertEqual(r.kinds("kueue.x-k8s.io"), before)
            self.assertTrue(r.has(f"{CRDS}/gpunodes.berth.dev"))
            r.delete_kinds("kueue.x-k8s.io")
            r.install()
            ours = r.kinds("kueue.x-k8s.io")
            self.assertEqual(len(ours), 11)
            self.kueue_comes(r)
            theirs = r.kinds("kueue.x-k8s.io")
            self.assertFalse(set(ours.values()) & set(theirs.values()))
            r.install("--set", "controller.replicas=3", verb="upgrade")
            self.assertEqual(r.kinds("kueue.x-k8s.io"), theirs)

    def test_upgrade_brings_new_kinds(self):
        """What crds/ of helm would not do: a chart whose kind has another field brings it to the cluster."""
        with Shipped(self, controllers=None) as r:
            newer = r.cluster.path("chart")
            shutil.copytree(CHART, newer)  # links become what they point to
            path = os.path.join(newer, "files", "crds", "gpunodes.yaml")
            with open(path, encoding="utf-8") as f:
                text = f.read()
            changed = text.replace("            spec:\n", "            colour: {type: string}\n            spec:\n", 1)
            self.assertNotEqual(text, changed)
            with open(path, "w", encoding="utf-8") as f:
                f.write(changed)
            kind = f"{CRDS}/gpunodes.berth.dev"
            r.install()
            self.assertNotIn("colour", json.dumps(r.api.get(kind)))
            r.helm("upgrade", "berth", newer, "--namespace", NS)
            schema = r.api.get(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            self.assertEqual(schema["properties"]["colour"], {"type": "string"})

    def test_versions_of_kinds(self):
        """Kinds with two versions: what is written in either is read in both, and nothing is lost on the way."""
        with Shipped(self, controllers=None) as r:
            for name in ("kueue", "kubeflow"):
                r.kubectl("create", "--validate=strict", "-f", os.path.join(ROOT, "deploy", "crds", name + ".yaml"))
            r.wait_for_kinds()
            two = [c for c in r.api.items(CRDS) if len([v for v in c["spec"]["versions"] if v["served"]]) > 1]
            self.assertEqual(len(two), 12)
            r.namespace("team")
            for kind in two:
                self.both_versions(r, kind)

    def both_versions(self, r, kind):
        spec, group = kind["spec"], kind["spec"]["group"]
        self.assertEqual(spec["conversion"]["strategy"], "None")
        versions = [v["name"] for v in spec["versions"]]
        shapes = [json.dumps(v["schema"]["openAPIV3Schema"], sort_keys=True) for v in spec["versions"]]
        self.assertEqual(len(set(shapes)), 1, f"{kind['metadata']['name']}: two shapes and no conversion")
        place = f"/namespaces/team/{spec['names']['plural']}" if spec["scope"] == "Namespaced" \
            else f"/{spec['names']['plural']}"
        for written, read in (versions, versions[::-1]):
            body = {"apiVersion": f"{group}/{written}", "kind": spec["names"]["kind"],
                    "metadata": {"name": f"by-{written}", "labels": {"a": "b"}}, **SPECS.get(spec["names"]["kind"], {})}
            made = r.api.post(f"/apis/{group}/{written}{place}?fieldValidation=Strict", body)
            seen = r.api.get(f"/apis/{group}/{read}{place}/by-{written}")
            self.assertEqual(seen["apiVersion"], f"{group}/{read}")
            for field in ("spec", "value", "description"):
                self.assertEqual(seen.get(field), made.get(field), kind["metadata"]["name"])
            # Written back in the other version, as kubectl edit does.
            seen["metadata"]["labels"] = {"a": "c"}
            r.api.call("PUT", f"/apis/{group}/{read}{place}/by-{written}?fieldValidation=Strict", seen)
            back = r.api.get(f"/apis/{group}/{written}{place}/by-{written}")
            self.assertEqual((back["metadata"]["labels"], back.get("spec")), ({"a": "c"}, made.get("spec")))
            self.assertEqual(len(r.api.items(f"/apis/{group}/{read}{place}?labelSelector=a=c")),
                             1 if written == versions[0] else 2)

    def test_certificate_is_renewed(self):
        """Two replicas through several authorities, asked all the time, with failurePolicy Fail: nobody is refused."""
        life = 24
        with Shipped(self) as r:
            r.kubectl("apply", "--server-side", "-f", os.path.join(ROOT, "deploy", "rbac", "namespace.yaml"))
            r.kubectl("apply", "--server-side", "-f", PLAIN)
            r.namespace("team", **{"berth.dev/managed": "true"})
            for name in ("one", "two"):
                metrics, webhook = free_ports(2)
                r.pod_of_deployment(name, f"--metrics=127.0.0.1:{metrics}", f"--webhook=:{webhook}",
                                    f"--webhook-authority-seconds={life}")
            for pod in r.controllers:
                r.wait(f"{pod.user} is ready", pod.ready)
            r.wait("the webhook is asked", lambda: r.marks() == "berth")
            r.api.call("PATCH", HOOK, {"webhooks": [{"name": "pods.berth.dev", "failurePolicy": "Fail"}]},
                       patch="strategic")
            r.wait("the webhook is asked", lambda: r.marks() == "berth")
            asking = Asking(r)
            asking.start()
            bundles, authorities, end = set(), set(), time.monotonic() + 3 * life
            while time.monotonic() < end:
                bundle = base64.b64decode(r.api.get(HOOK)["webhooks"][0]["clientConfig"]["caBundle"]).decode()
                bundles.add(bundle)
                authorities |= set(re.findall(r"-----BEGIN.*?-----END CERTIFICATE-----", bundle, re.S))
                self.assertLessEqual(bundle.count("BEGIN"), 2)
                rig.pause(0.5)
            asking.stopped.set()
            asking.join()
            self.figure(f"{asking.asked} questions in {3 * life} s, {len(asking.wrong)} without an answer; "
                        f"{len(authorities)} authorities, {len(bundles)} bundles")
            self.assertEqual(asking.wrong, [])
            self.assertGreater(asking.asked, 20)
            self.assertGreaterEqual(len(authorities), 3)
            for pod in r.controllers:
                self.assertTrue(pod.running(), pod.text())
                self.assertGreaterEqual(pod.text().count("a new certificate of the webhook"), 3, pod.text())

    def test_certificate_is_lost(self):
        """The Secret is deleted, then spoilt, and the bundle is taken away: each heals by itself."""
        with Shipped(self) as r:
            r.kubectl("apply", "--server-side", "-f", os.path.join(ROOT, "deploy", "rbac", "namespace.yaml"))
            r.kubectl("apply", "--server-side", "-f", PLAIN)
            r.namespace("team", **{"berth.dev/managed": "true"})
            metrics, webhook = free_ports(2)
            pod = r.pod_of_deployment("one", f"--metrics=127.0.0.1:{metrics}", f"--webhook=:{webhook}",
                                      "--webhook-authority-seconds=120")
            r.wait("the webhook is asked", lambda: r.marks() == "berth")
            secret = f"/api/v1/namespaces/{NS}/secrets/berth-webhook"
            for what, break_it in (
                    ("the Secret is deleted", lambda: r.api.delete(secret)),
                    ("the Secret is spoilt", lambda: r.api.merge(secret, {"data": {"ca.crt": "AAAA", "ca.key": None}})),
                    ("the bundle is gone", lambda: r.api.call("PATCH", HOOK, {"webhooks": [
                        {"name": "pods.berth.dev", "clientConfig": {"caBundle": None}}]}, patch="strategic"))):
                before = r.api.get(secret)["metadata"]["resourceVersion"]
                break_it()
                r.wait(f"{what}: it is mended", lambda: self.mended(r, secret, before, "bundle" in what))
                r.wait(f"{what}: the webhook is asked", lambda: r.marks() == "berth")
            self.assertTrue(pod.running(), pod.text())

    def test_certificate_of_others(self):
        """A certificate that is given is served as it is, and nothing is kept or trusted by ourselves."""
        with Shipped(self) as r:
            r.kubectl("apply", "--server-side", "-f", os.path.join(ROOT, "deploy", "rbac", "namespace.yaml"))
            r.kubectl("apply", "--server-side", "-f", PLAIN)
            r.namespace("team", **{"berth.dev/managed": "true"})
            certificate, key = r.cluster.path("tls.crt"), r.cluster.path("tls.key")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key,
                            "-out", certificate, "-days", "2", "-subj", "/CN=mine",
                            "-addext", f"subjectAltName=DNS:berth-webhook.{NS}.svc"], check=True, capture_output=True)
            metrics, webhook = free_ports(2)
            pod = r.pod_of_deployment("one", f"--metrics=127.0.0.1:{metrics}", f"--webhook=:{webhook}",
                                      f"--webhook-cert={certificate}", f"--webhook-key={key}")
            r.wait("it is ready", pod.ready)
            self.assertEqual(r.marks(), "default-scheduler")  # nobody trusts it yet
            with open(certificate, "rb") as f:
                bundle = base64.b64encode(f.read()).decode()
            r.api.call("PATCH", HOOK, {"webhooks": [{"name": "pods.berth.dev", "clientConfig": {"caBundle": bundle}}]},
                       patch="strategic")
            r.wait("the webhook is asked", lambda: r.marks() == "berth")
            self.assertFalse(r.has(f"/api/v1/namespaces/{NS}/secrets/berth-webhook"))
            self.assertEqual(r.api.get(HOOK)["webhooks"][0]["clientConfig"]["caBundle"], bundle)

    @staticmethod
    def mended(r, secret, before, only_bundle):
        if not r.has(secret):
            return False
        held = r.api.get(secret)
        certificate = base64.b64decode(held.get("data", {}).get("ca.crt", "")).decode(errors="replace")
        bundle = base64.b64decode(r.api.get(HOOK)["webhooks"][0]["clientConfig"].get("caBundle", "")).decode()
        changed = only_bundle or held["metadata"]["resourceVersion"] != before
        return changed and "BEGIN CERTIFICATE" in certificate and certificate in bundle


class Asking(threading.Thread):
    """New connections now and then, as API servers that restart make them; old ones in between."""

    def __init__(self, r):
        super().__init__(daemon=True)
        self.rig, self.stopped, self.asked, self.wrong = r, threading.Event(), 0, []
        self.api = rig.Api(r.cluster.kubeconfig_of("load"))

    def run(self):
        spec = rig.pod_spec()
        del spec["schedulerName"]
        while not self.stopped.wait(0.05):
            self.asked += 1
            try:
                pod = self.api.post("/api/v1/namespaces/team/pods?dryRun=All",
                                    {"metadata": {"name": "probe"}, "spec": spec})
                if pod["spec"]["schedulerName"] != "berth":
                    self.wrong.append(pod["spec"]["schedulerName"])
            except (rig.Refused, OSError) as e:
                self.wrong.append(str(e))


POD = {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
# What the kinds ask for at least, and a field that the two versions of Kueue spell differently where there is one.
SPECS = {
    "ClusterQueue": {"spec": {"cohortName": "all", "namespaceSelector": {}}},
    "Cohort": {"spec": {"parentName": "root"}},
    "LocalQueue": {"spec": {"clusterQueue": "q"}},
    "Workload": {"spec": {"queueName": "q", "podSets": [{"name": "main", "count": 1, **POD}]}},
    "WorkloadPriorityClass": {"value": 7, "description": "d"},
    "Topology": {"spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}},
    "AdmissionCheck": {"spec": {"controllerName": "example.com/c"}},
    "ProvisioningRequestConfig": {"spec": {"provisioningClassName": "c"}},
    "MultiKueueConfig": {"spec": {"clusters": ["a"]}},
    "MultiKueueCluster": {"spec": {"kubeConfig": {"location": "s", "locationType": "Secret"}}},
    "MPIJob": {"spec": {"mpiReplicaSpecs": {"Launcher": {"replicas": 1, **POD}}}},
}


if __name__ == "__main__":
    rig.main(__doc__)
