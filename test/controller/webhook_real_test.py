#!/usr/bin/env python3
"""The controller's webhook on any API server: registered over HTTPS, it changes pods and Jobs of managed namespaces.

    webhook_real_test.py BERTH      KUBECONFIG names the cluster

`test/kubernetes/cluster.py run -- test/controller/webhook_real_test.py build/release/berth` runs it on a real one.
"""
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))
from api_client import Server  # noqa: E402

LIMIT_SECONDS = 120
GPU = {"limits": {"nvidia.com/gpu": 1}}
QUEUE = "kueue.x-k8s.io/queue-name"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def pod_spec(resources, **more):
    return {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "resources": resources}], **more}


def job(name, resources, labels=None):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels or {}},
            "spec": {"template": {"spec": pod_spec(resources)}}}


class Webhook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server.from_kubeconfig(os.environ["KUBECONFIG"])
        for name, labels in (("managed", {"berth.dev/managed": "true"}), ("free", {})):
            cls.call("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        where = f"127.0.0.1:{free_port()}"
        cls.log = tempfile.TemporaryFile()
        cls.controller = subprocess.Popen(
            [BERTH, "controller", "--kubeconfig", os.environ["KUBECONFIG"], "--no-election",
             "--webhook", where, "--webhook-url", f"https://{where}", "--refuse-bypasses"],
            stdout=cls.log, stderr=cls.log)
        cls.wait_registered()

    @classmethod
    def tearDownClass(cls):
        cls.controller.terminate()
        cls.code = cls.controller.wait(60)
        cls.log.seek(0)
        if cls.code:
            print(cls.log.read().decode(errors="replace"), file=sys.stderr)
            raise AssertionError(f"the controller ended with {cls.code}")

    @classmethod
    def call(cls, method, path, body=None):
        status, _, text = cls.server.request(method, path, None if body is None else json.dumps(body))
        assert status < 300, (method, path, status, text)
        return json.loads(text)

    @classmethod
    def wait_registered(cls):
        """The server takes a moment before it asks a new webhook."""
        end = time.monotonic() + LIMIT_SECONDS
        while True:
            path = "/api/v1/namespaces/managed/pods?dryRun=All"
            pod = cls.call("POST", path, {"metadata": {"name": "probe"}, "spec": pod_spec(GPU)})
            if pod["spec"]["schedulerName"] == "berth":
                return
            if time.monotonic() > end or cls.controller.poll() is not None:
                cls.log.seek(0)
                raise AssertionError("the webhook is not asked: " + cls.log.read().decode(errors="replace"))
            time.sleep(0.2)

    def made(self, ns, kind, body):
        group = "/apis/batch/v1" if kind == "jobs" else "/api/v1"
        return self.call("POST", f"{group}/namespaces/{ns}/{kind}", body)["spec"]

    def test_pod_with_a_gpu(self):
        spec = self.made("managed", "pods", {"metadata": {"name": "gpu"}, "spec": pod_spec(GPU)})
        self.assertEqual(spec["schedulerName"], "berth")

    def test_pod_without_a_gpu(self):
        spec = self.made("managed", "pods", {"metadata": {"name": "plain"}, "spec": pod_spec({})})
        self.assertEqual(spec["schedulerName"], "default-scheduler")

    def test_pod_that_names_a_scheduler(self):
        body = {"metadata": {"name": "other"}, "spec": pod_spec(GPU, schedulerName="mine")}
        self.assertEqual(self.made("managed", "pods", body)["schedulerName"], "mine")

    def test_other_namespaces_are_left_alone(self):
        spec = self.made("free", "pods", {"metadata": {"name": "gpu"}, "spec": pod_spec(GPU)})
        self.assertEqual(spec["schedulerName"], "default-scheduler")
        spec = self.made("free", "jobs", job("queued", GPU, {QUEUE: "q"}))
        self.assertFalse(spec.get("suspend", False))

    def test_job_with_gpus(self):
        spec = self.made("managed", "jobs", job("plain", GPU))
        self.assertEqual(spec["template"]["spec"]["schedulerName"], "berth")
        self.assertFalse(spec.get("suspend", False))

    def test_job_of_a_queue_is_held(self):
        spec = self.made("managed", "jobs", job("queued", GPU, {QUEUE: "q"}))
        self.assertEqual(spec["template"]["spec"]["schedulerName"], "berth")
        self.assertTrue(spec["suspend"])

    def answer(self, method, path, body, kind="application/json"):
        status, headers, text = self.server.request(method, path, json.dumps(body), {"Content-Type": kind})
        return status, json.loads(text).get("message", ""), {k.lower(): v for k, v in headers.items()}.get("warning", "")

    def test_ways_around_the_books(self):
        """A pod reaches no GPU that it did not ask for; where berth does not look after it, it is not judged."""
        visible = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
        extra = {"name": "x", "image": "i"}
        rows = {
            "env[0]": {"containers": [{**extra, "env": visible}]},
            "initContainers[0].env[0]": {"initContainers": [{**extra, "env": visible}]},
            "initContainers[0].securityContext.privileged": {"initContainers": [
                {**extra, "restartPolicy": "Always", "securityContext": {"privileged": True}}]},
            "containers[0].securityContext.privileged": {"containers": [{**extra, "securityContext": {"privileged": True}}]},
            "volumes[0].hostPath": {"volumes": [{"name": "v", "hostPath": {"path": "/dev/nvidia0"}}]},
            "hostPID": {"hostPID": True},
        }
        for i, (where, change) in enumerate(rows.items()):
            pod = {"metadata": {"name": f"around-{i}"}, "spec": {**pod_spec({}), **change}}
            status, message, warning = self.answer("POST", "/api/v1/namespaces/managed/pods", pod)
            self.assertEqual(status, 403, message)
            self.assertIn(where, message)
            self.assertIn(where, warning)
            status, message, _ = self.answer("POST", "/api/v1/namespaces/free/pods", pod)
            if "privileged" in where and status == 422:  # a server may refuse it by itself, after the webhook
                self.assertIn("disallowed by cluster policy", message)
                continue
            self.assertEqual(status, 201, message)
        template = {"spec": {**pod_spec({}), **rows["env[0]"]}}
        status, message, _ = self.answer("POST", "/apis/batch/v1/namespaces/managed/jobs", {
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "around"}, "spec": {"template": template}})
        self.assertEqual(status, 403, message)
        self.assertIn("spec.template.spec.containers[0].env[0]", message)

    def test_ways_around_the_books_later(self):
        self.made("managed", "pods", {"metadata": {"name": "debugged"}, "spec": pod_spec({})})
        path = "/api/v1/namespaces/managed/pods/debugged/ephemeralcontainers"
        for more, want in (({"securityContext": {"privileged": True}}, 403), ({}, 200)):
            status, message, _ = self.answer("PATCH", path, {"spec": {"ephemeralContainers": [
                {"name": "e", "image": "i", **more}]}}, "application/strategic-merge-patch+json")
            self.assertEqual(status, want, message)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BERTH = os.path.abspath(sys.argv.pop(1))
    unittest.main()
