#!/usr/bin/env python3
"""status, gpus, queue, fit, preempted, doctor, snapshot and version on clusters that answer.

    views_test.py BERTH

Standard library only. One cluster is `berth up --in-memory`; another is a server of our own that refuses,
pages and forgets as a real one may.
"""
import csv
import http.server
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crash"))
from cluster import Api, Process, wait_for  # noqa: E402

LIMIT_S = 300


def berth(*arguments, kubeconfig=None, program=None, environment=None):
    command = [program or BERTH, *arguments]
    if kubeconfig:
        command += ["--kubeconfig", kubeconfig]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False,
                          env=environment, stdin=subprocess.DEVNULL)


def ask(kubeconfig, method, path, body=None):
    api = Api(kubeconfig)
    try:
        return api.call(method, path, body) if body else api.get(path)
    finally:
        api.close()


def job(name, pods, gpus, **spec):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"parallelism": pods, "completions": pods, **spec,
                     "template": {"spec": {"restartPolicy": "Never", "containers": [
                         {"name": "c", "image": "i", "env": [{"name": "TOKEN", "value": "hunter2"}],
                          "resources": {"limits": {"nvidia.com/gpu": gpus}}}]}}}}


class OnBerthUp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.kubeconfig = os.path.join(cls.folder.name, "kubeconfig")
        cls.up = Process([BERTH, "up", "--in-memory", "--gpus", "32", "--port", "0", "--page", "none",
                          "--kubeconfig", cls.kubeconfig], os.path.join(cls.folder.name, "log"))
        wait_for("nodes", lambda: len(ask(cls.kubeconfig, "GET", "/api/v1/nodes")["items"]) == 4)
        wait_for("GpuNodes", lambda: len(ask(
            cls.kubeconfig, "GET", "/apis/berth.dev/v1alpha1/gpunodes")["items"]) == 4)
        wait_for("ready nodes", lambda: cls.show("gpus")["gpus"]["free"] == 32)
        wait_for("the queue", lambda: len(cls.show("queue")["queues"]) == 1)
        cls.empty_doctor = cls.run_view("doctor")
        cls.submit(job("large", 3, 8, activeDeadlineSeconds=3600))
        wait_for("three pods that run", lambda: cls.show("status")["gpus"]["used"] == 24)
        cls.submit(job("waits", 2, 8))
        wait_for("a Workload that waits", lambda: cls.show("status")["waiting"])

    @classmethod
    def tearDownClass(cls):
        cls.up.terminate()
        cls.folder.cleanup()

    @classmethod
    def submit(cls, manifest):
        status, body = ask(cls.kubeconfig, "POST",
                           "/apis/batch/v1/namespaces/default/jobs", manifest)
        assert status == 201, body

    @classmethod
    def run_view(cls, *arguments):
        return berth(*arguments, kubeconfig=cls.kubeconfig)

    @classmethod
    def show(cls, *arguments):
        done = cls.run_view(*arguments, "-o", "json")
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def test_a_fresh_cluster_is_healthy(self):
        self.assertEqual(self.empty_doctor.returncode, 0, self.empty_doctor.stdout)
        self.assertIn("healthy", self.empty_doctor.stdout)

    def test_states_add_up_and_agree_with_the_pods(self):
        fleet = self.show("gpus")
        gpus = fleet["gpus"]
        self.assertEqual(gpus["discovered"], 32)
        self.assertEqual(sum(gpus[s] for s in ("used", "free", "unhealthy", "reserved", "unknown")), 32)
        held = {}
        for node in fleet["nodes"]:
            for holder in node["holders"]:
                held[holder["pod"]] = (node["name"], holder["gpus"])
        pods = [p for p in ask(self.kubeconfig, "GET", "/api/v1/pods")["items"] if p["spec"].get("nodeName")]
        self.assertEqual(len(pods), 3)
        for pod in pods:
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            indices = [int(i) for i in pod["metadata"]["annotations"]["berth.dev/gpus"].split(",")]
            self.assertEqual(held[name], (pod["spec"]["nodeName"], indices))

    def test_status_and_queue_say_who_waits(self):
        status = self.run_view("status")
        self.assertEqual(status.returncode, 0, status.stderr)
        self.assertIn("used 24   free 8", status.stdout)
        self.assertIn("1 workload, 16 GPUs", status.stdout)
        queue = self.run_view("queue")
        self.assertIn("waits:", queue.stdout)
        for line in (status.stdout + queue.stdout).splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_fit_now_later_and_never(self):
        self.assertEqual(self.run_view("fit", "--gpus", "4").returncode, 0)
        later = self.run_view("fit", "--gpus", "8", "--pods", "2", "--priority-class", "")
        self.assertEqual(later.returncode, 10, later.stdout)
        never = self.run_view("fit", "--gpus", "8", "--pods", "9")
        self.assertEqual(never.returncode, 30, never.stdout)
        self.assertEqual(self.show("fit", "--gpus", "4")["verdict"], "now")
        self.assertEqual(len(ask(self.kubeconfig, "GET", "/apis/batch/v1/jobs")["items"]), 2)  # nothing was made

    def test_a_snapshot_shows_the_same_cluster(self):
        path = os.path.join(self.folder.name, "snapshot.json")
        done = self.run_view("snapshot", "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn("managedFields", text)
        self.assertNotIn("hunter2", text)
        self.assertNotIn('"kind":"Secret"', text)
        rows = lambda text: list(csv.DictReader(io.StringIO(text)))
        live = rows(self.run_view("gpus", "-o", "csv").stdout)
        saved = rows(berth("gpus", "-o", "csv", "-f", path).stdout)
        loads = ("busy_percent", "memory_used_mib", "memory_mib")  # asked of the agents, so not in a snapshot
        without = lambda table: [{k: v for k, v in row.items() if k not in loads} for row in table]
        self.assertEqual(without(live), without(saved))
        self.assertEqual(len(saved), 32)
        self.assertTrue(any(row["busy_percent"] for row in live))
        self.assertFalse(any(row[name] for row in saved for name in loads))
        waiting = json.loads(berth("status", "-o", "json", "-f", path).stdout)["waiting"]
        self.assertEqual([w["reason"] for w in waiting],
                         [w["reason"] for w in self.show("status")["waiting"]])

    def test_watch_goes_on_until_it_is_stopped(self):
        child = subprocess.Popen([BERTH, "status", "--watch", "--every", "1", "--kubeconfig", self.kubeconfig],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            seen = 0
            for line in child.stdout:
                self.assertNotIn("\x1b", line)  # no terminal: nothing is cleared
                seen += line.startswith("32 GPUs")
                if seen == 2:
                    break
            self.assertEqual(seen, 2)
            child.send_signal(signal.SIGINT)
            child.communicate(timeout=LIMIT_S)
            self.assertEqual(child.returncode, 0)
        finally:
            child.kill()

    def test_version_and_the_plugin_of_kubectl(self):
        self.assertIn("kubernetes  v1.", self.run_view("version").stdout)
        plugin = os.path.join(os.path.dirname(BERTH), "kubectl-berth")
        self.assertTrue(os.path.islink(plugin))
        help_text = berth("fit", "--help", program=plugin).stdout
        self.assertIn("kubectl berth fit --gpus 8", help_text)
        shown = berth("status", "-n", "default", kubeconfig=self.kubeconfig, program=plugin)
        self.assertIn("32 GPUs", shown.stdout)
        environment = {**os.environ, "KUBECONFIG": self.kubeconfig}
        self.assertIn("32 GPUs", berth("status", environment=environment).stdout)

    def test_names_that_are_near(self):
        self.assertIn("begin so: large-", self.run_view("why-no-gpu", "large").stderr)
        self.assertIn("nothing named nope was preempted", self.run_view("preempted", "nope").stdout)
        typo = self.run_view("status", "--outptu", "json")
        self.assertEqual(typo.returncode, 2)
        self.assertIn("found option --outptu, which status does not have; did you mean --output?", typo.stderr)

    def test_nothing_was_preempted_and_names_of_queues_are_checked(self):
        self.assertIn("nothing was preempted", self.run_view("preempted", "-A").stdout)
        self.assertEqual(self.run_view("queue", "nope").returncode, 1)


class Bash:
    """An interactive bash on a terminal of its own, as somebody types at it."""

    def __init__(self, environment):
        child, self.terminal = pty.fork()
        if child == 0:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)
        self.child = child

    def read_until(self, wanted, limit_s=60):
        seen, end = "", time.monotonic() + limit_s
        while not re.search(wanted, seen):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.terminal], [], [], left)[0]:
                raise AssertionError(f"no {wanted!r} in {seen!r}")
            seen += os.read(self.terminal, 65536).decode(errors="replace")
        return seen

    def type(self, keys, wanted):
        os.write(self.terminal, keys.encode())
        seen = self.read_until(wanted)
        os.write(self.terminal, b"\x15echo cleared; echo\n")  # the line is dropped
        self.read_until("cleared\r\n")
        return seen

    def close(self):
        os.close(self.terminal)
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)


class InABash(unittest.TestCase):
    """Completion as bash does it: what a Tab adds to the line."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.kubeconfig = os.path.join(self.folder.name, "kubeconfig")
        self.up = Process([BERTH, "up", "--in-memory", "--gpus", "8", "--port", "0", "--page", "none",
                           "--kubeconfig", self.kubeconfig], os.path.join(self.folder.name, "log"))
        wait_for("the queue", lambda: "default" in berth(
            "queue", "--kubeconfig", self.kubeconfig, "-o", "json").stdout)
        status, body = ask(self.kubeconfig, "POST", "/apis/batch/v1/namespaces/default/jobs",
                           job("unlike-any-other", 1, 8))
        self.assertEqual(status, 201, body)
        self.bash = Bash({**os.environ, "KUBECONFIG": self.kubeconfig, "TERM": "dumb", "PS1": "$ ",
                          "PATH": os.path.dirname(BERTH) + ":" + os.environ["PATH"]})
        self.bash.type("source <(berth completion bash)\n", r"completion bash\)\r\n")

    def tearDown(self):
        self.bash.close()
        self.up.terminate()
        self.folder.cleanup()

    def test_tab_completes_commands_options_values_names_and_files(self):
        for keys, line in (("berth statu\t", "berth status "),
                           ("berth status --outp\t", "berth status --output "),
                           ("berth status -o js\t", "berth status -o json "),
                           ("berth status --output=js\t", "berth status --output=json "),
                           ("berth why unl\t", "berth why unlike-any-other "),
                           ("berth why job/unl\t", "berth why job/unlike-any-other "),
                           ("berth -n kube-pu\t", "berth -n kube-public "),
                           ("berth queue def\t", "berth queue default "),
                           ("berth lint " + self.folder.name + "/kubec\t", "/kubeconfig ")):
            with self.subTest(keys):
                self.bash.type(keys, re.escape(line))


def node(name):
    return {"metadata": {"name": name, "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                                                  "nvidia.com/gpu.count": "8"}},
            "status": {"allocatable": {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"},
                       "conditions": [{"type": "Ready", "status": "True"}]}}


def pod(name, on):
    return {"metadata": {"name": name, "namespace": "mine"},
            "spec": {"nodeName": on, "containers": [
                {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}}


class Refusing(http.server.BaseHTTPRequestHandler):
    """Nodes in pages, one of whose tokens expires; pods of one namespace alone; no Kueue; no events."""
    protocol_version = "HTTP/1.1"
    expired = False
    asked = []

    def log_message(self, *arguments):
        pass

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, status, reason):
        self.answer(status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status,
                             "reason": reason, "message": reason})

    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        Refusing.asked.append(self.path)
        if url.path == "/version":
            return self.answer(200, {"major": "1", "minor": "37", "gitVersion": "v1.37.9"})
        if url.path == "/api/v1/nodes":
            return self.nodes(query)
        if url.path == "/api/v1/namespaces/mine/pods":
            return self.answer(200, {"kind": "PodList", "apiVersion": "v1", "metadata": {},
                                     "items": [pod("p0", "n0")]})
        if url.path in ("/api/v1/pods", "/apis/batch/v1/jobs", "/apis/events.k8s.io/v1/events"):
            return self.refuse(403, "Forbidden")
        if url.path.startswith("/apis/events.k8s.io/"):
            return self.refuse(403, "Forbidden")
        if "kueue" in url.path or "volcano" in url.path:
            return self.refuse(404, "NotFound")
        if url.path.endswith("persistentvolumes"):
            return self.refuse(500, "InternalError")
        return self.answer(200, {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": []})

    def nodes(self, query):
        names = ["n0", "n1", "n2"]
        if "limit" in query and not Refusing.expired:
            if "continue" not in query:
                return self.answer(200, {"kind": "NodeList", "apiVersion": "v1",
                                         "metadata": {"continue": "token"}, "items": [node("n0")]})
            Refusing.expired = True
            return self.refuse(410, "Expired")
        return self.answer(200, {"kind": "NodeList", "apiVersion": "v1", "metadata": {},
                                 "items": [node(name) for name in names]})


class OnAServerThatRefuses(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.folder = tempfile.TemporaryDirectory()
        cls.kubeconfig = cls.write_config("kubeconfig", cls.server.server_address[1])

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()
        cls.server.server_close()
        cls.folder.cleanup()

    @classmethod
    def write_config(cls, name, port):
        path = os.path.join(cls.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                       "clusters": [{"name": "s", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
                       "users": [{"name": "u", "user": {}}],
                       "contexts": [{"name": "c", "context": {"cluster": "s", "user": "u",
                                                              "namespace": "mine"}}]}, file)
        return path

    def test_what_may_be_seen_is_shown_and_the_rest_is_named(self):
        Refusing.expired = False
        shown = berth("gpus", "-o", "json", kubeconfig=self.kubeconfig)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        fleet = json.loads(shown.stdout)
        self.assertEqual(fleet["gpus"]["discovered"], 24)  # each node once, though the list began again
        self.assertEqual(fleet["gpus"]["used"], 8)
        self.assertIn("partial view", shown.stderr)
        doctor = json.loads(berth("doctor", "-o", "json", kubeconfig=self.kubeconfig).stdout)
        self.assertIn("pods in other namespaces", doctor["notSeen"])
        self.assertTrue(any(s.startswith("persistentvolumes (500") for s in doctor["notSeen"]), doctor["notSeen"])
        self.assertIn("events.events.k8s.io", doctor["notSeen"])
        self.assertFalse(any("kueue" in s for s in doctor["notSeen"]))  # it has none: nothing is hidden
        self.assertFalse(any("secrets" in path for path in Refusing.asked))

    def test_a_partial_snapshot_stays_partial(self):
        text = berth("snapshot", kubeconfig=self.kubeconfig).stdout
        path = os.path.join(self.folder.name, "s.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        shown = berth("status", "-f", path)
        self.assertIn("pods in other namespaces", shown.stderr)

    def test_nobody_at_home(self):
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as other:
            port = other.server_address[1]
        closed = self.write_config("closed", port)
        for command in ("status", "gpus", "queue", "doctor", "preempted", "snapshot", "version", "fit"):
            done = berth(command, kubeconfig=closed)
            self.assertEqual(done.returncode, 1, command)
            self.assertTrue(done.stderr.startswith("berth: "), done.stderr)
        for command in (("status",), ("why", "x"), ("why-no-gpu", "x"), ("version",), ("snapshot",),
                        ("run", "--image", "own")):
            self.assertIn("is the cluster up? --kubeconfig", berth(*command, kubeconfig=closed).stderr, command)


if __name__ == "__main__":
    BERTH = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
