#!/usr/bin/env python3
"""What manifests hold in secret shows nowhere: not in files, logs, pages, metrics or answers of berth.

    secrets_test.py BERTH

Standard library only. A word of its own is planted in every field where people put tokens, on an embedded cluster
with a controller (decision log and inputs, page, metrics, webhook) and an agent as processes. Then everything they
wrote or say is searched for the words. What may show: names, labels, images, messages of conditions and of events.
What holds everything by its nature is searched for nothing, but must be its owner's alone: the store of `berth up`.
"""
import json
import os
import re
import ssl
import stat
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crash"))
from cluster import Api, Process, wait_for  # noqa: E402

LIMIT_S = 120
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
QUEUE = "kueue.x-k8s.io/queue-name"


class Words:
    """Each field gets a word of its own, so that a finding says where it came from."""

    def __init__(self):
        self.all = []

    def __call__(self, field):
        self.all.append(f"hunter{len(self.all)}-of-{field}-")
        return self.all[-1]


def first(word, of):
    return {"name": "first", "image": "i", "command": ["run", word(of + "-command")],
            "args": ["--token=" + word(of + "-arg")], "env": [{"name": "TOKEN", "value": word(of + "-env")}]}


def container(word, gpus, of):
    probe = {"httpGet": {"path": "/", "port": 80, "httpHeaders": [
        {"name": "Authorization", "value": "Bearer " + word(of + "-header")}]}}
    return {**first(word, of), "name": "c", "livenessProbe": probe,
            "readinessProbe": {"exec": {"command": ["check", word(of + "-probe")]}},
            "lifecycle": {"preStop": {"exec": {"command": ["stop", word(of + "-hook")]}}},
            "resources": {"limits": {"nvidia.com/gpu": gpus}}}


def notes(word, of):
    return {"example.com/token": word(of + "-annotation"), LAST_APPLIED: json.dumps({"x": word(of + "-applied")})}


def pod_spec(word, gpus, of):
    return {"schedulerName": "berth", "restartPolicy": "Never", "containers": [container(word, gpus, of)],
            "initContainers": [first(word, of + "-init")], "volumes": [
                {"name": "v", "csi": {"driver": "d", "volumeAttributes": {"password": word(of + "-csi")}}},
                {"name": "w", "flexVolume": {"driver": "a/b", "options": {"password": word(of + "-flex")}}}]}


def pod(word, name, gpus, labels=None):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": name, "annotations": notes(word, name), "labels": labels or {}}, "spec": pod_spec(word, gpus, name)}


class Secrets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.umask(0)  # what is narrow is so by berth's own doing
        cls.folder = tempfile.TemporaryDirectory()
        cls.kubeconfig = cls.path("kubeconfig")
        cls.word = Words()
        Process([BERTH, "up", "--data", cls.path("data"), "--gpus", "16", "--port", "0", "--page", "none",
                 "--no-controller", "--kubeconfig", cls.kubeconfig], cls.path("up.log"))
        wait_for("nodes", lambda: len(cls.get("/api/v1/nodes")["items"]) == 2)
        cls.start_others()
        cls.plant()

    @classmethod
    def tearDownClass(cls):
        for process in reversed(Process.all):
            process.terminate()
        cls.folder.cleanup()

    @classmethod
    def path(cls, *parts):
        return os.path.join(cls.folder.name, *parts)

    @classmethod
    def start_others(cls):
        """Logs say everything they can."""
        Process([BERTH, "controller", "--kubeconfig", cls.kubeconfig, "--no-election", "--log-level", "debug",
                 "--decision-log", cls.path("decided", "log"), "--decision-inputs", cls.path("decided", "inputs"),
                 "--page", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--webhook", "127.0.0.1:0", "--webhook-url",
                 "https://127.0.0.1:9", "--agent-port", "0"], cls.path("controller.log"))
        with open(cls.path("fleet.yaml"), "w", encoding="utf-8") as f:
            json.dump({"pools": [{"name": "gpu", "count": 2, "model": "NVIDIA-H100-80GB-HBM3", "gpus": 8}]}, f)
        os.makedirs(cls.path("kubelet"))
        Process([BERTH, "agent", "--source", "sim=" + cls.path("fleet.yaml"), "--node-name", "gpu-0", "--kubelet-dir",
                 cls.path("kubelet"), "--no-cdi", "--state-dir", cls.path("agent"), "--metrics", "127.0.0.1:0",
                 "--kubeconfig", cls.kubeconfig, "--log-level", "debug"], cls.path("agent.log"))
        for name, of in (("page", "controller"), ("metrics", "controller"), ("metrics", "agent")):
            setattr(cls, f"{of}_{name}", wait_for(f"the {name} of the {of}", lambda: cls.port(of, name)))

    @classmethod
    def port(cls, of, name):
        found = re.search(rf"serving (?:the )?{name}\b.*port=(\d+)", cls.text_of(cls.path(of + ".log")))
        return found and int(found[1])

    @staticmethod
    def text_of(path):
        with open(path, encoding="utf-8") as f:
            return f.read()

    @classmethod
    def get(cls, path):
        api = Api(cls.kubeconfig)
        try:
            return api.get(path)
        finally:
            api.close()

    @classmethod
    def send(cls, method, path, body, kind="application/json"):
        api = Api(cls.kubeconfig)
        try:
            status, answer = api.call(method, path, body, kind)
        finally:
            api.close()
        assert status < 300, (path, answer)
        return answer

    @classmethod
    def plant(cls):
        word, send = cls.word, cls.send
        pods = "/api/v1/namespaces/default/pods"
        send("POST", pods, pod(word, "runs", 1, {"team": "label-that-shows"}))
        send("POST", pods, pod(word, "waits", 64))
        send("POST", "/apis/batch/v1/namespaces/default/jobs", {
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "queued", "labels": {QUEUE: "default"}, "annotations": notes(word, "job")},
            "spec": {"suspend": True, "template": {
                "metadata": {"annotations": notes(word, "template")}, "spec": pod_spec(word, 64, "job")}}})
        send("POST", "/api/v1/persistentvolumes", {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v", "annotations": notes(word, "volume")},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "mountOptions": [
                "password=" + word("mount")], "csi": {"driver": "d", "volumeHandle": "h", "volumeAttributes": {
                    "password": word("volume-csi")}}}})
        send("POST", "/apis/storage.k8s.io/v1/storageclasses", {
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "p",
            "metadata": {"name": "s", "annotations": notes(word, "class")}, "parameters": {"password": word("class")}})
        for kind, name in (("secrets", "s"), ("configmaps", "c")):
            send("POST", f"/api/v1/namespaces/default/{kind}", {
                "metadata": {"name": name}, "stringData" if kind == "secrets" else "data": {"x": word(kind)}})
        for path in ("/api/v1/nodes/gpu-1", "/api/v1/namespaces/default"):
            send("PATCH", path, {"metadata": {"annotations": notes(word, path.split("/")[3])}},
                 "application/merge-patch+json")
        wait_for("the pod runs", lambda: cls.get(pods + "/runs")["status"].get("phase") == "Running")
        status = cls.get(pods + "/runs")["status"]["containerStatuses"]
        status[0]["lastState"] = {"terminated": {"exitCode": 1, "reason": "Error", "message": word("last-words")}}
        send("PATCH", pods + "/runs/status", {"status": {"containerStatuses": status}}, "application/merge-patch+json")
        wait_for("a Workload", lambda: cls.get("/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads")["items"])
        wait_for("reasons", lambda: any(c.get("reason") == "Unschedulable" for c in cls.get(
            pods + "/waits")["status"].get("conditions", [])))

    def fetch(self, url, token=None):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_S, context=context) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.read().decode()

    def berth(self, *arguments):
        done = subprocess.run([BERTH, *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                              stdin=subprocess.DEVNULL)
        return done.stdout + done.stderr

    def said(self):
        """(what, text) of everything that berth says and writes."""
        token = Api(self.kubeconfig).token
        page = f"https://127.0.0.1:{self.controller_page}"
        stranger = self.word("bearer")
        for path in ("/api/page", "/api/why?kind=pod&namespace=default&name=waits"):
            yield f"refusal of {path}", self.fetch(page + path, stranger)
        for path in ("/api/page", "/metrics", "/api/page?token=" + self.word("query")):
            yield path, self.fetch(page + path, token)
        for kind, name in (("pod", "waits"), ("pod", "runs"), ("job", "queued"), ("node", "gpu-1"), ("queue", "default")):
            for output in ("json", "table"):
                path = f"/api/why?kind={kind}&namespace=default&name={name}&output={output}&holders=all"
                yield path, self.fetch(page + path, token)
        for of in ("controller", "agent"):
            url = f"http://127.0.0.1:{getattr(self, of + '_metrics')}"
            yield f"metrics of the {of}", self.fetch(url + "/metrics", stranger)
        snapshot = self.path("snapshot.json")
        yield "berth snapshot", self.berth("snapshot", "-o", snapshot, "--kubeconfig", self.kubeconfig)
        for where in (["--kubeconfig", self.kubeconfig], ["-f", snapshot]):
            for command in (["status"], ["gpus"], ["queue"], ["queue", "default"], ["preempted"], ["doctor"], ["fit", "--gpus", "64"],
                            ["why", "pod", "default/waits"], ["why", "job", "default/queued"],
                            ["why-no-gpu", "default/runs"]):
                for output in ([], ["-o", "json"]):
                    yield " ".join(["berth", *command, *output, where[0]]), self.berth(*command, *output, *where)
        yield "berth plan", self.berth("plan", "-f", snapshot, "-o", "json")
        yield "berth replay", self.berth("replay", self.path("decided", "inputs"))
        for folder, _, names in os.walk(self.folder.name):
            for name in names:
                file = os.path.join(folder, name)
                if not file.startswith(self.path("data")) and file != self.kubeconfig:
                    with open(file, "rb") as f:
                        yield file, f.read().decode(errors="replace")

    def test_nothing_shows(self):
        token = Api(self.kubeconfig).token
        words = self.word.all
        planted = "".join(json.dumps(self.get(path)) for path in (
            "/api/v1/pods", "/apis/batch/v1/jobs", "/api/v1/nodes", "/api/v1/namespaces", "/api/v1/persistentvolumes",
            "/apis/storage.k8s.io/v1/storageclasses", "/api/v1/configmaps",
            "/apis/kueue.x-k8s.io/v1beta2/workloads"))
        hidden = [word for word in words if word not in planted]
        self.assertEqual(hidden, [word for word in words if "-of-secrets-" in word], "a field was not taken")
        seen, found = 0, []
        texts = []
        for what, text in self.said():
            seen += 1
            texts.append(text)
            found += [f"{what}: {word}" for word in [*words, token] if word in text]
        self.assertEqual(found, [])
        self.assertGreater(seen, 60)
        self.assertGreaterEqual(len(words), 50)
        everything = "\n".join(texts)
        for shown in ("label-that-shows", "default/waits", '"kind":"StorageClass"', '"op":"decide"'):
            self.assertIn(shown, everything)  # or nothing was looked at

    def test_files_are_their_owners_alone(self):
        for name in ("decided", "data"):
            self.assertEqual(stat.S_IMODE(os.stat(self.path(name)).st_mode), 0o700, name)
        held = [self.path("decided", "log"), self.path("decided", "inputs"), self.kubeconfig]
        held += [self.path("data", name) for name in os.listdir(self.path("data"))]
        self.assertIn(self.path("data", "state.db"), held)
        for file in held:
            self.assertEqual(stat.S_IMODE(os.stat(file).st_mode), 0o600, file)

    def test_files_from_before_are_narrowed(self):
        """Out of a backup, say, or written by a version that left them to the umask."""
        data, names = self.path("again"), ("token", "ca.key", "state.db")
        for start in ("first", "second"):
            log = self.path(f"again.{start}.log")
            up = Process([BERTH, "up", "--data", data, "--gpus", "8", "--port", "0", "--page", "none"], log)
            wait_for(f"the {start} start", lambda: "ready in" in self.text_of(log))
            for name in names:
                self.assertEqual(stat.S_IMODE(os.stat(os.path.join(data, name)).st_mode), 0o600, name)
            up.terminate()
            for name in names:
                os.chmod(os.path.join(data, name), 0o644)

    def test_links_are_refused(self):
        """In a folder that others may write to, somebody else would choose where the lines go."""
        target, link = self.path("of-somebody-else"), self.path("link")
        with open(target, "w", encoding="utf-8") as f:
            f.write("kept")
        os.symlink(target, link)
        for option in ("--decision-log", "--decision-inputs"):
            done = subprocess.run([BERTH, "controller", "--kubeconfig", self.kubeconfig, option, link],
                                  capture_output=True, text=True, timeout=LIMIT_S, check=False)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("is a symbolic link; want the file itself", done.stderr)
        with open(target, encoding="utf-8") as f:
            self.assertEqual(f.read(), "kept")

    def test_arguments_when_they_are_asked_for(self):
        text = self.berth("snapshot", "--with-arguments", "--kubeconfig", self.kubeconfig)
        for field in ("runs-arg", "runs-command", "runs-annotation", "runs-probe"):
            self.assertTrue(any(f"-of-{field}-" in word and word in text for word in self.word.all), field)
        for field in ("runs-env", "runs-applied", "secrets"):
            self.assertFalse(any(f"-of-{field}-" in word and word in text for word in self.word.all), field)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BERTH = os.path.abspath(sys.argv.pop(1))
    unittest.main()
