#!/usr/bin/env python3
"""Kueue's kinds between v1beta1 and v1beta2 on a real API server, converted by the controller's webhook.

    conversion_test.py BERTH [Conversion.test_...]

Installed from the chart as install_test.py does it: there is no node that could start pods, so the test runs the
program with the arguments of the Deployment, and of the hook that comes before an uninstall.
"""
import base64
import json
import re
import threading
import time

import rig
from cluster import free_ports
from install_test import CRDS, HOOK, NS, Shipped, ports

GROUP = "/apis/kueue.x-k8s.io"
CONVERTED = ("clusterqueues", "localqueues", "multikueueclusters", "workloads")


def queue(name, version, **spec):
    return {"apiVersion": f"kueue.x-k8s.io/{version}", "kind": "ClusterQueue", "metadata": {"name": name},
            "spec": {"namespaceSelector": {}, **spec}}


class Rig(Shipped):
    def conversion(self, kind):
        return self.api.get(f"{CRDS}/{kind}.kueue.x-k8s.io")["spec"]["conversion"]

    def converts(self):
        return [k for k in CONVERTED if self.conversion(k)["strategy"] == "Webhook"]

    def cq(self, version, name=""):
        return f"{GROUP}/{version}/clusterqueues" + (f"/{name}" if name else "")

    def spec(self, version, name):
        return self.api.get(self.cq(version, name))["spec"]

    def replica(self, name, *flags, when_ready=True):
        metrics, webhook = free_ports(2)
        return self.pod_of_deployment(name, f"--metrics=127.0.0.1:{metrics}", f"--webhook=:{webhook}", *flags,
                                      when_ready=when_ready)

    def leaves(self, pod):
        """As a kubelet and the endpoints' controller do it: its address goes first."""
        self.api.delete(f"/apis/discovery.k8s.io/v1/namespaces/{NS}/endpointslices/berth-webhook-{pod.user}")
        rig.pause(5)  # preStop
        return pod.stop()


class Traffic(threading.Thread):
    """Writes in v1beta2 and reads what it wrote in v1beta1, again and again."""

    def __init__(self, r):
        super().__init__(daemon=True)
        self.api, self.path = rig.Api(r.cluster.kubeconfig_of("load")), r.cq
        self.stopped, self.done, self.wrong = threading.Event(), 0, []

    def run(self):
        while not self.stopped.wait(0.02):
            want = f"round-{self.done}"
            try:
                self.api.merge(self.path("v1beta2", "busy"), {"spec": {"cohortName": want}})
                seen = self.api.get(self.path("v1beta1", "busy"))["spec"].get("cohort")
                if seen != want:
                    self.wrong.append(f"{seen} for {want}")
            except (rig.Refused, OSError) as e:
                self.wrong.append(str(e))
            self.done += 1


class Conversion(rig.Test):
    def installed(self, r, *flags):
        r.install(*ports(), *flags)
        r.wait_for_kinds()

    def test_each_client_sees_its_own_fields(self):
        with Rig(self) as r:
            self.installed(r)
            # Before a controller has come nothing is asked for: what was written is shown.
            r.api.post(r.cq("v1beta1"), queue("early", "v1beta1", cohort="a"))
            self.assertEqual(r.spec("v1beta2", "early").get("cohort"), "a")
            one = r.replica("one")
            took = r.wait("kinds are converted", lambda: len(r.converts()) == 4)
            kept = [c["metadata"]["name"] for c in r.api.items(CRDS) if c["spec"]["group"] == "kueue.x-k8s.io" and
                    c["spec"]["conversion"]["strategy"] == "None"]
            self.assertEqual(len(kept), 7)
            r.wait("queues are read in both versions", lambda: self.reads(r))
            self.fields(r)
            self.watches(r)
            self.managers(r)
            self.early(r)
            r.wait("it leads", lambda: r.leads(one), 90)
            self.works(r)
            failed = one.metric("berth_conversion_reviews_total", result="failed")
            asked = one.metric("berth_conversion_reviews_total", result="ok")
            self.assertEqual(failed, 0)
            self.figure(f"asked to convert {took:.0f} s after the start; {asked:.0f} reviews answered, none failed")
            refused = [e for e in r.audit() if e["responseStatus"]["code"] == 403 and
                       e["objectRef"]["resource"] != "namespaces"]
            self.assertEqual(refused, [])

    def test_work_goes_on_meanwhile(self):
        """Jobs are queued and finish while the kinds begin to be converted, and end to be."""
        with Rig(self) as r:
            self.installed(r)
            r.nodes(4)
            r.namespace("team")
            r.queue("q", "team", 16)
            one = r.replica("one", "--webhook-authority-seconds=240")
            r.wait("it leads", lambda: r.leads(one), 90)
            names = []

            def until(what, ready):
                for _ in range(60):
                    names.append(f"j{len(names)}")
                    r.job("team", names[-1], gpus=1, queue="q", seconds=1)
                    rig.pause(1)
                    if ready():
                        return
                self.fail(what)

            until("it begins", lambda: len(r.converts()) == 4)
            until("five more", lambda: len(names) % 5 == 0)
            for kind in CONVERTED:
                r.api.merge(f"{CRDS}/{kind}.kueue.x-k8s.io", {"metadata": {"labels": {"berth.dev/conversion": None}}})
            until("it ends", lambda: not r.converts())
            until("five more", lambda: len(names) % 5 == 0)
            left = set(names)

            def finished():
                for name in sorted(left):
                    if rig.is_true(r.api.get(f"/apis/batch/v1/namespaces/team/jobs/{name}"), "Complete"):
                        left.discard(name)
                return not left
            try:
                took = r.wait("all Jobs finish", finished)
            except AssertionError:
                for name in sorted(left)[:2]:
                    print(name, json.dumps(r.api.get(f"/apis/batch/v1/namespaces/team/jobs/{name}")))
                print(json.dumps(r.workloads("team")[-2:]))
                raise
            self.figure(f"{len(names)} Jobs, the last {took:.0f} s after the end")
            r.nothing_wrong()

    @staticmethod
    def reads(r):
        try:
            return len(r.api.items(r.cq("v1beta1"))) == len(r.api.items(r.cq("v1beta2")))
        except rig.Refused:
            return False

    def fields(self, r):
        path = r.cluster.path("queue.yaml")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(queue("team", "v1beta1", cohort="org", admissionChecks=["prov"], flavorFungibility={
                "whenCanBorrow": "Borrow", "whenCanPreempt": "TryNextFlavor"}), f)
        r.kubectl("apply", "--validate=strict", "-f", path)
        seen = r.spec("v1beta2", "team")
        self.assertEqual((seen["cohortName"], seen.get("cohort")), ("org", None))
        self.assertEqual(seen["admissionChecksStrategy"], {"admissionChecks": [{"name": "prov"}]})
        self.assertEqual(seen["flavorFungibility"],
                         {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"})
        # Edited in one, read in the other; applied again by who wrote it first.
        r.api.merge(r.cq("v1beta2", "team"), {"spec": {"cohortName": "other"}})
        self.assertEqual(r.spec("v1beta1", "team")["cohort"], "other")
        self.assertNotIn("cohortName", r.spec("v1beta1", "team"))
        r.kubectl("apply", "-f", path)
        self.assertEqual(r.spec("v1beta2", "team")["cohortName"], "org")
        r.kubectl("patch", "clusterqueues.v1beta1.kueue.x-k8s.io", "team", "--type=json",
                  "-p", '[{"op":"replace","path":"/spec/cohort","value":"patched"}]')
        self.assertEqual(r.spec("v1beta2", "team")["cohortName"], "patched")
        self.assertIn("patched", r.kubectl("get", "clusterqueues.v1beta1.kueue.x-k8s.io", "team"))
        self.assertIn("patched", r.kubectl("get", "clusterqueues.v1beta2.kueue.x-k8s.io", "team"))
        r.namespace("plain")
        work = f"{GROUP}/%s/namespaces/plain/workloads"
        r.api.post(work % "v1beta1" + "?fieldValidation=Strict", {
            "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": {"name": "w"}, "spec": {
                "queueName": "nobody", "active": False, "priorityClassName": "p",
                "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
                "podSets": [{"name": "main", "count": 2, "template": {"spec": {"containers": []}}, "topologyRequest": {
                    "podsetSliceRequiredTopologyConstraints": [{"topology": "t", "size": 2}]}}]}})
        domains = [{"values": ["r", "n2"], "count": 1}, {"values": ["r", "n1"], "count": 1}]
        r.api.merge(work % "v1beta1" + "/w/status", {"status": {
            "accumulatedPastExexcutionTimeSeconds": 5, "admission": {"clusterQueue": "q", "podSetAssignments": [
                {"name": "main", "topologyAssignment": {"levels": ["a", "b"], "domains": domains}}]}}})
        seen = r.api.get(work % "v1beta2" + "/w")
        self.assertEqual(seen["spec"]["priorityClassRef"],
                         {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "p"})
        self.assertEqual(seen["status"]["accumulatedPastExecutionTimeSeconds"], 5)
        self.assertIn("slices", seen["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"])
        seen["metadata"]["labels"] = {"edited": "yes"}
        r.api.call("PUT", work % "v1beta2" + "/w?fieldValidation=Strict", seen)
        back = r.api.get(work % "v1beta1" + "/w")
        self.assertEqual(back["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"]["domains"], domains)
        self.assertEqual(back["spec"]["podSets"][0]["topologyRequest"],
                         {"podsetSliceRequiredTopologyConstraints": [{"topology": "t", "size": 2}]})
        r.api.delete(work % "v1beta2" + "/w")

    def watches(self, r):
        version = r.api.get(r.cq("v1beta1"))["metadata"]["resourceVersion"]
        watch = r.api.watch(r.cq("v1beta1") + f"?watch=1&resourceVersion={version}")
        try:
            for i in range(3):
                r.api.merge(r.cq("v1beta2", "team"), {"spec": {"cohortName": f"w{i}"}})
                event = watch.next(60)
                while event is not None and event["object"]["metadata"]["name"] != "team":
                    event = watch.next(60)
                self.assertEqual((event["object"]["apiVersion"], event["object"]["spec"]["cohort"]),
                                 ("kueue.x-k8s.io/v1beta1", f"w{i}"))
        finally:
            watch.close()

    def managers(self, r):
        """Who manages a field in one version is found in the other."""
        first, second = (r.cq(v, "shared") + "?fieldManager=" for v in ("v1beta1", "v1beta2"))
        r.api.call("PATCH", first + "a", queue("shared", "v1beta1", cohort="x"), patch="apply")
        r.api.call("PATCH", second + "b", queue("shared", "v1beta2", cohortName="x"), patch="apply")
        with self.assertRaises(rig.Refused) as refused:
            r.api.call("PATCH", second + "b", queue("shared", "v1beta2", cohortName="y"), patch="apply")
        self.assertEqual(refused.exception.status, 409)
        self.assertIn(".spec.cohort", str(refused.exception))
        r.api.call("PATCH", second + "b&force=true", queue("shared", "v1beta2", cohortName="y"), patch="apply")
        self.assertEqual(r.spec("v1beta1", "shared")["cohort"], "y")
        # The same manager in the other version, without the field: it goes.
        r.api.call("PATCH", first + "b", queue("shared", "v1beta1"), patch="apply")
        self.assertNotIn("cohortName", r.spec("v1beta2", "shared"))

    def early(self, r):
        """What was written before: v1beta1's clients see it, and their next write brings it into the other form."""
        self.assertEqual(r.spec("v1beta1", "early")["cohort"], "a")
        self.assertEqual(r.spec("v1beta2", "early")["cohort"], "a")
        seen = r.api.get(r.cq("v1beta1", "early"))
        r.api.call("PUT", r.cq("v1beta1", "early"), seen)
        self.assertEqual((r.spec("v1beta2", "early").get("cohort"), r.spec("v1beta2", "early")["cohortName"]),
                         (None, "a"))

    def works(self, r):
        """Queues of a client of v1beta1, and a Job in them: borrowed within the cohort that v1beta1 calls cohort."""
        r.nodes(2)
        r.namespace("team", **{"berth.dev/managed": "true"})
        r.api.post(f"{GROUP}/v1beta1/resourceflavors", {
            "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ResourceFlavor", "metadata": {"name": "default"}})
        for name, gpus in (("poor", 0), ("rich", 8)):
            r.api.post(r.cq("v1beta1"), queue(name, "v1beta1", cohort="org", resourceGroups=[
                {"coveredResources": [rig.GPU], "flavors": [{"name": "default", "resources": [
                    {"name": rig.GPU, "nominalQuota": gpus}]}]}]))
        r.api.post(f"{GROUP}/v1beta1/namespaces/team/localqueues", {
            "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue", "metadata": {"name": "q"},
            "spec": {"clusterQueue": "poor"}})
        r.users_job()
        usage = r.wait("v1beta1 sees what is used", lambda: r.api.get(
            f"{GROUP}/v1beta1/namespaces/team/localqueues/q").get("status", {}).get("flavorUsage"))
        self.assertIsNotNone(usage)
        r.nothing_wrong()

    def test_what_a_write_costs(self):
        """The same patches in both versions, without a conversion and with it: calls of the webhook are counted."""
        count = 200
        with Rig(self) as r:
            self.installed(r)
            r.namespace("plain")
            forms = {"ClusterQueue": r.cq, "Workload": lambda v: f"{GROUP}/{v}/namespaces/plain/workloads"}
            pod = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
            specs = {"ClusterQueue": {"namespaceSelector": {}}, "Workload": {
                "queueName": "nobody", "active": False, "podSets": [{"name": "main", "count": 1, "template": pod}]}}
            cases = {}  # {what: (path, most calls for a write)}
            for kind, form in forms.items():
                for name, version, most in (("old", "v1beta1", 10), ("new", "v1beta2", 1.1)):
                    r.api.post(form(version), {"apiVersion": f"kueue.x-k8s.io/{version}", "kind": kind,
                                               "metadata": {"name": name}, "spec": specs[kind]})
                    cases[f"{kind} {version}"] = (f"{form(version)}/{name}", most)
                cases[f"{kind} v1beta2 of what v1beta1 wrote"] = (form("v1beta2") + "/old", 5)

            def calls():
                return sum(one.metric("berth_conversion_reviews_total") for one in r.controllers)

            def writes(path):
                """Calls and milliseconds for each."""
                r.api.merge(path, {"metadata": {"labels": {"round": "first"}}})
                asked, begin = calls(), time.monotonic()
                for i in range(count):
                    r.api.merge(path, {"metadata": {"labels": {"round": str(i)}}})
                took = time.monotonic() - begin
                rig.pause(1)  # what caches ask for comes after the answer
                return (calls() - asked) / count, 1000 * took / count

            before = {what: writes(path) for what, (path, _) in cases.items()}
            r.replica("one")
            r.wait("kinds are converted", lambda: len(r.converts()) == 4)
            r.wait("queues are read in both versions", lambda: self.reads(r))
            for what, (path, most) in cases.items():
                asked, took = writes(path)
                self.figure(f"{what}: {asked:.2f} calls a write, {took:.1f} ms instead of {before[what][1]:.1f}")
                self.assertLess(asked, most, what)

    def test_replicas_and_certificates_come_and_go(self):
        """Authorities of 24 s and replicas that are replaced: no read of v1beta1 fails."""
        life = 24
        with Rig(self) as r:
            self.installed(r)
            pods = [r.replica(name, f"--webhook-authority-seconds={life}") for name in ("one", "two")]
            r.wait("kinds are converted", lambda: len(r.converts()) == 4)
            r.api.post(r.cq("v1beta2"), queue("busy", "v1beta2", cohortName="start"))
            r.wait("queues are read in both versions", lambda: self.reads(r))
            traffic = Traffic(r)
            traffic.start()
            authorities = set()
            for name in ("three", "four"):
                for _ in range(life):
                    bundle = base64.b64decode(r.conversion("workloads")["webhook"]["clientConfig"]["caBundle"]).decode()
                    authorities |= set(re.findall(r"-----BEGIN.*?-----END CERTIFICATE-----", bundle, re.S))
                    rig.pause(1)
                pods.append(r.replica(name, f"--webhook-authority-seconds={life}"))
                self.assertEqual(r.leaves(pods.pop(0)), 0)
            traffic.stopped.set()
            traffic.join()
            self.figure(f"{traffic.done} rounds, {len(traffic.wrong)} wrong; {len(authorities)} authorities")
            self.assertEqual(traffic.wrong, [])
            self.assertGreater(traffic.done, 20)
            self.assertGreaterEqual(len(authorities), 2)

    def test_uninstall_and_what_is_switched_off(self):
        with Rig(self) as r:
            flags = ports()
            r.install(*flags)
            r.wait_for_kinds()
            looks = "--webhook-authority-seconds=240"  # every 4 s
            one = r.pod_of_deployment("one", looks)
            r.wait("kinds are converted", lambda: len(r.converts()) == 4)
            r.api.post(r.cq("v1beta1"), queue("team", "v1beta1", cohort="org"))
            r.api.call("PATCH", r.cq("v1beta1", "applied") + "?fieldManager=a",
                       queue("applied", "v1beta1", cohort="org"), patch="apply")
            r.wait("queues are read in both versions", lambda: self.reads(r))
            # A value that is switched off ends it, whoever runs.
            r.install(*flags, "--set", "webhook.conversion=false", verb="upgrade")
            r.wait("nothing is converted", lambda: not r.converts())
            self.assertEqual(r.spec("v1beta1", "team")["cohortName"], "org")
            r.install(*flags, verb="upgrade")
            r.wait("kinds are converted", lambda: len(r.converts()) == 4)
            self.dead(r, one)
            r.uninstall()
            self.assertEqual(r.converts(), [])
            self.assertFalse(r.has(HOOK))
            for version in ("v1beta1", "v1beta2"):
                r.wait(f"{version} is read", lambda: self.readable(r, version))
                self.assertEqual(r.spec(version, "team")["cohortName"], "org")
            r.api.delete(f"/apis/discovery.k8s.io/v1/namespaces/{NS}/endpointslices/berth-webhook-one")
            r.install(*ports())
            again = r.pod_of_deployment("again", looks)
            r.wait("kinds are converted", lambda: len(r.converts()) == 4)
            r.wait("queues are read in both versions", lambda: self.reads(r))
            self.assertEqual(r.spec("v1beta1", "team")["cohort"], "org")
            # Who throws the kinds away with nobody left to convert them is not held up.
            again.kill()
            self.assertEqual(len(r.converts()), 4)
            self.figure(f"kinds and queues were gone after {r.delete_kinds('kueue.x-k8s.io'):.0f} s")

    @staticmethod
    def readable(r, version):
        try:
            return r.has(r.cq(version, "team"))
        except rig.Refused:
            return False

    def dead(self, r, one):
        """No controller: v1beta2 is read and written on, v1beta1 is not written."""
        one.kill()
        r.api.merge(r.cq("v1beta2", "team"), {"metadata": {"labels": {"while": "away"}}})
        self.assertEqual(r.spec("v1beta2", "team")["cohortName"], "org")
        with self.assertRaises(rig.Refused) as refused:
            r.api.merge(r.cq("v1beta1", "team"), {"spec": {"cohort": "lost"}})
        self.assertIn("conversion webhook", str(refused.exception))
        self.assertEqual(r.spec("v1beta2", "team")["cohortName"], "org")
        # Who applied in v1beta1 can be asked for only there.
        with self.assertRaises(rig.Refused) as refused:
            r.api.call("PATCH", r.cq("v1beta2", "applied") + "?fieldManager=b",
                       queue("applied", "v1beta2", cohortName="other"), patch="apply")
        self.assertIn("conversion webhook", str(refused.exception))

    def test_kinds_of_others_are_left(self):
        """Without the label, or with the mark of Kueue's generator: never written."""
        with Rig(self) as r:
            self.installed(r)
            generated = {"metadata": {"annotations": {"controller-gen.kubebuilder.io/version": "v0.18.0"}}}
            r.api.merge(f"{CRDS}/workloads.kueue.x-k8s.io", generated)
            r.api.merge(f"{CRDS}/localqueues.kueue.x-k8s.io", {"metadata": {"labels": {"berth.dev/conversion": None}}})
            theirs = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {
                "service": {"namespace": "kueue-system", "name": "kueue-webhook-service", "path": "/convert"}}}}
            r.api.merge(f"{CRDS}/multikueueclusters.kueue.x-k8s.io", {"spec": {"conversion": theirs}})
            before = r.kinds("kueue.x-k8s.io")
            r.replica("one")
            r.wait("queues are converted", lambda: r.conversion("clusterqueues")["strategy"] == "Webhook")
            rig.pause(2)
            after = r.kinds("kueue.x-k8s.io")
            self.assertEqual([n for n in before if before[n] != after[n]], ["clusterqueues.kueue.x-k8s.io"])

    def test_nobody_reaches_it(self):
        """A Service without endpoints: the conversion is ended again, and reads go on as without it."""
        with Rig(self) as r:
            self.installed(r)
            r.api.post(r.cq("v1beta2"), queue("team", "v1beta2", cohortName="org"))
            one = r.replica("one", "--webhook-authority-seconds=24")
            r.api.delete(f"/apis/discovery.k8s.io/v1/namespaces/{NS}/endpointslices/berth-webhook-one")
            r.wait("it was tried and ended", lambda: "no conversion for an hour" in one.text())
            r.wait("nothing is converted", lambda: not r.converts())
            r.wait("v1beta1 is read", lambda: self.readable(r, "v1beta1"))
            self.assertTrue(one.running())


if __name__ == "__main__":
    rig.main(__doc__)
