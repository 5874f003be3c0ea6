#!/usr/bin/env python3
"""The web page as `berth up` and `berth controller` serve it: files, headers, facts, waiting, and who may not see it.

    page_test.py BERTH
"""
import base64
import http.client
import http.server
import json
import os
import re
import shlex
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))
from api_client import Server  # noqa: E402

LIMIT_SECONDS = 120


def job(name, pods, gpus, seconds=3600):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"parallelism": pods, "completions": pods,
                     "template": {"metadata": {"annotations": {"sim.berth.dev/run-seconds": str(seconds)}},
                                  "spec": {"restartPolicy": "Never", "containers": [
                                      {"name": "c", "image": "i",
                                       "resources": {"limits": {"nvidia.com/gpu": gpus}}}]}}}}


class PageOfUp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        kubeconfig = os.path.join(cls.folder.name, "kubeconfig")
        cls.up = subprocess.Popen([BERTH, "up", "--in-memory", "--gpus", "16", "--page", "0", "--kubeconfig", kubeconfig],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        cls.printed = ""
        for line in cls.up.stdout:
            cls.printed += line
            if line.startswith("ready"):
                break
        found = re.search(r"open http://127\.0\.0\.1:(\d+)", cls.printed)
        assert found, cls.printed
        cls.port = int(found[1])
        with open(kubeconfig, encoding="utf-8") as f:
            config = dict(re.findall(r"(server|token|certificate-authority-data): (\S+)", f.read()))
        authority = base64.b64decode(config["certificate-authority-data"]).decode()
        cls.server = Server(config["server"], config["token"], authority)

    @classmethod
    def tearDownClass(cls):
        cls.up.terminate()
        cls.up.communicate(timeout=60)
        cls.folder.cleanup()
        assert cls.up.returncode == 0, cls.up.returncode

    def get(self, path, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_SECONDS)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()

    def page(self, after=0):
        status, headers, text = self.get(f"/api/page?after={after}")
        self.assertEqual(status, 200, text)
        self.assertEqual(headers["Content-Type"], "application/json")
        return json.loads(text)

    def wait_for(self, what, holds):
        end = time.monotonic() + LIMIT_SECONDS
        page = self.page()
        while not holds(page):
            self.assertLess(time.monotonic(), end, f"no page with {what}: {json.dumps(page)[:3000]}")
            page = self.page(page["revision"])
        return page

    def create(self, body):
        status, _, text = self.server.request("POST", "/apis/batch/v1/namespaces/default/jobs", json.dumps(body))
        self.assertLess(status, 300, text)

    def test_files_have_a_strict_policy(self):
        for path, kind in (("/", "text/html"), ("/page.js", "text/javascript"), ("/page.css", "text/css")):
            status, headers, text = self.get(path)
            self.assertEqual(status, 200)
            self.assertTrue(headers["Content-Type"].startswith(kind))
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
            self.assertNotIn("unsafe", headers["Content-Security-Policy"])
            self.assertGreater(len(text), 300)
        self.assertNotRegex(self.get("/")[2], r"https?://")

    def test_a_foreign_name_is_refused(self):
        for host in ("evil.example", "evil.example:8080", "127.0.0.1.evil.example"):
            self.assertEqual(self.get("/api/page", Host=host)[0], 403, host)
        self.assertEqual(self.get("/api/page", Host="")[0], 400)
        for host in ("localhost", f"localhost:{self.port}", "127.0.0.1", "[::1]:9"):
            self.assertEqual(self.get("/", Host=host)[0], 200, host)

    def test_bad_requests(self):
        self.assertEqual(self.get("/api/page", method="POST")[0], 405)
        self.assertEqual(self.get("/api/page?after=x")[0], 400)
        self.assertEqual(self.get("/api/page?after=-1")[0], 400)
        self.assertEqual(self.get("/api/nothing")[0], 404)
        self.assertEqual(self.get("/../etc/passwd")[0], 400)

    def test_states_sum_up_and_nodes_have_cells(self):
        page = self.page()
        self.assertEqual(page["version"], "berth.dev/page/v1")
        gpus = page["gpus"]
        self.assertEqual(gpus["total"], 16)
        self.assertEqual(gpus["total"], sum(gpus[s] for s in ("used", "free", "unhealthy", "reserved", "unknown")))
        self.assertEqual(sum(len(n["states"]) for n in page["nodes"]), 16)
        for node in page["nodes"]:
            self.assertEqual({len(node["states"])}, {len(node["busy"]), len(node["holder"]), len(node["clique"])})

    def test_what_runs_and_what_waits(self):
        self.create(job("small", 2, 4))
        self.create(job("huge", 1, 64))
        page = self.wait_for("the small job and the huge one", lambda p: any(
            w["name"] == "small" and w["state"] == "running" and w["running"] == 2 for w in p["workloads"]) and any(
            w["name"] == "huge" and w["state"] == "waiting" for w in p["workloads"]))
        huge = next(w for w in page["workloads"] if w["name"] == "huge")
        self.assertEqual((huge["kind"], huge["gpus"]), ("Job", 64))
        self.assertTrue(huge["reason"])
        self.assertIn(huge["reason"], {r["reason"] for r in page["pending"]})
        held = [page["pods"][h]["name"] for n in page["nodes"] for h in n["holder"] if h >= 0]
        self.assertEqual(len([p for p in held if p.startswith("default/small-")]), 8)
        self.assertTrue(any(q["waiting"] for q in page["queues"]))
        page = self.wait_for("hours held", lambda p: any(t["team"] == "default" and t["heldHours"] > 0 for t in p["usage"]["teams"]))
        total = page["usage"]["total"]
        self.assertAlmostEqual(total["heldHours"], total["busyHours"] + total["idleHours"] + total["unknownHours"])

    def test_a_reader_waits_for_news(self):
        page = self.page()
        while True:  # until nothing changes by itself for a moment
            begin = time.monotonic()
            following = self.page(page["revision"])
            if time.monotonic() - begin > 5 or following["revision"] == page["revision"]:
                break
            page = following
        answers = []
        reader = threading.Thread(target=lambda: answers.append(self.page(following["revision"])))
        reader.start()
        self.create(job("news", 1, 1))
        reader.join(LIMIT_SECONDS)
        self.assertGreater(answers[0]["revision"], following["revision"])


class PageOfController(unittest.TestCase):
    """Over TLS, and only to tokens that the cluster knows and lets see pods and GpuNodes."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.kubeconfig = os.path.join(cls.folder.name, "kubeconfig")
        cls.up = subprocess.Popen([BERTH, "up", "--in-memory", "--gpus", "8", "--no-controller", "--kubeconfig", cls.kubeconfig],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in cls.up.stdout:
            if line.startswith("ready"):
                break
        with open(cls.kubeconfig, encoding="utf-8") as f:
            config = dict(re.findall(r"(server|token|certificate-authority-data): (\S+)", f.read()))
        cls.token = config["token"]
        cls.server = Server(config["server"], cls.token, base64.b64decode(config["certificate-authority-data"]).decode())
        cls.inputs = os.path.join(cls.folder.name, "decision inputs")
        cls.controller = subprocess.Popen([BERTH, "controller", "--kubeconfig", cls.kubeconfig, "--no-election", "--page", "127.0.0.1:0",
                                           "--decision-inputs", cls.inputs],
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in cls.controller.stdout:
            if "serving the page" in line:
                cls.port = int(re.search(r"port=(\d+)", line)[1])
                break

    @classmethod
    def tearDownClass(cls):
        for process in (cls.controller, cls.up):
            process.terminate()
            process.communicate(timeout=60)
            assert process.returncode == 0, process.returncode
        cls.folder.cleanup()

    def get(self, path, token=None):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=LIMIT_SECONDS, context=context)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def test_facts_need_a_token(self):
        self.assertEqual(self.get("/")[0], 200)  # the page itself holds nothing
        for path in ("/api/page", "/api/why?kind=Pod&namespace=a&name=b"):
            self.assertEqual(self.get(path)[0], 401)
            status, text = self.get(path, "stranger")
            self.assertEqual(status, 403, text)
            self.assertIn("does not know this token", text)

    def test_a_known_token_sees_the_cluster(self):
        end = time.monotonic() + LIMIT_SECONDS
        while True:
            status, text = self.get("/api/page", self.token)
            self.assertEqual(status, 200, text)
            page = json.loads(text)
            if page["gpus"]["total"] == 8:
                break
            self.assertLess(time.monotonic(), end, text)
        self.assertEqual({b for n in page["nodes"] for b in n["busy"]}, {-1})  # nobody measures
        status, text = self.get("/api/why?kind=Job&namespace=default&name=none", self.token)
        self.assertEqual(status, 404, text)

    def test_the_decision_behind_an_answer_can_be_made_again(self):
        status, _, text = self.server.request(
            "POST", "/apis/batch/v1/namespaces/default/jobs", json.dumps(job("big", 1, 64)))
        self.assertLess(status, 300, text)
        end = time.monotonic() + LIMIT_SECONDS
        while True:
            status, text = self.get("/api/why?kind=job&namespace=default&name=big", self.token)
            evidence = json.loads(text)["evidence"] if status == 200 else {}
            replay = evidence.get("replay", "")
            if replay.startswith("berth replay"):
                break
            self.assertLess(time.monotonic(), end, text)
        answer, words = text, shlex.split(replay)
        self.assertEqual((words[:3], words[3]), (["berth", "replay", self.inputs], "--at"))
        self.assertEqual(evidence["decision"], words[4])
        self.assertRegex(evidence["decided"], r"^\d{4}-\d\d-\d\dT")
        self.assertGreater(int(evidence["cluster"]), 0)
        _, text = self.get("/api/why?kind=job&namespace=default&name=big&output=table", self.token)
        self.assertRegex(text, r"evidence decision [0-9a-f]{16}, \d\d:\d\d:\d\d, cluster \d+;")
        status, text = self.get("/api/why?kind=job&namespace=default&name=big&holders=all", self.token)
        self.assertEqual((status, json.loads(text)["reason"]), (200, json.loads(answer)["reason"]))
        status, text = self.get("/api/why?kind=job&namespace=default&name=big&holders=1", self.token)
        self.assertEqual((status, text.strip()), (400, "holders: want all, or leave it out"))
        done = subprocess.run([BERTH, *words[1:]], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(json.loads(done.stdout)["id"], words[4])


class PageWithAgents(unittest.TestCase):
    """How busy GPUs are, from the pages of the agents: one of two nodes has an agent, a real one over simulated GPUs."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path = lambda name: os.path.join(cls.folder.name, name)
        cls.kubeconfig = path("kubeconfig")
        cls.processes = []
        up = cls.start(["up", "--in-memory", "--gpus", "16", "--no-controller", "--kubeconfig", cls.kubeconfig])
        cls.read_until(up, "ready")
        with open(cls.kubeconfig, encoding="utf-8") as f:
            config = dict(re.findall(r"(server|token|certificate-authority-data): (\S+)", f.read()))
        cls.token = config["token"]
        cls.server = Server(config["server"], cls.token, base64.b64decode(config["certificate-authority-data"]).decode())
        with open(path("fleet.yaml"), "w", encoding="utf-8") as f:
            json.dump({"pools": [{"name": "gpu", "count": 2, "model": "NVIDIA-H100-80GB-HBM3", "gpus": 8}]}, f)
        for name in ("kubelet", "state"):
            os.makedirs(path(name))
        agent = cls.start(["agent", "--source", "sim=" + path("fleet.yaml"), "--node-name", "gpu-0", "--kubelet-dir", path("kubelet"),
                           "--no-cdi", "--state-dir", path("state"), "--metrics", "127.0.0.2:0"])
        port = re.search(r"port=(\d+)", cls.read_until(agent, "serving metrics"))[1]
        for node, address in (("gpu-0", "127.0.0.2"), ("gpu-1", "127.0.0.3")):
            patch = {"status": {"addresses": [{"type": "InternalIP", "address": address}]}}
            status, _, text = cls.server.request("PATCH", f"/api/v1/nodes/{node}/status", json.dumps(patch),
                                                 {"Content-Type": "application/merge-patch+json"})
            assert status == 200, text
        cls.pretend(int(port))
        controller = cls.start(["controller", "--kubeconfig", cls.kubeconfig, "--no-election", "--page", "127.0.0.1:0",
                                "--agent-port", port])
        cls.port = int(re.search(r"port=(\d+)", cls.read_until(controller, "serving the page"))[1])

    @classmethod
    def pretend(cls, port):
        """A tenant's pod with the labels of an agent, which would say that the GPUs of gpu-1 are busy."""
        cls.asked = []

        class Liar(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                cls.asked.append(self.path)
                body = "".join(f'DCGM_FI_DEV_GPU_UTIL{{gpu="{i}"}} 99\n' for i in range(8)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        cls.liar = http.server.ThreadingHTTPServer(("127.0.0.4", port), Liar)
        threading.Thread(target=cls.liar.serve_forever, daemon=True).start()
        pod = {"metadata": {"name": "liar", "labels": {
            "app.kubernetes.io/name": "berth", "app.kubernetes.io/component": "agent"}}, "spec": {
                "nodeName": "gpu-1", "serviceAccountName": "berth-agent", "containers": [{"name": "c", "image": "i"}]}}
        account = {"metadata": {"name": "berth-agent"}}
        status, _, text = cls.server.request("POST", "/api/v1/namespaces/default/serviceaccounts", json.dumps(account))
        assert status == 201, text
        path = "/api/v1/namespaces/default/pods"
        status, _, text = cls.server.request("POST", path, json.dumps(pod))
        assert status == 201, text
        # Its kubelet is a simulated one, and gives it another address.
        end, mine = time.monotonic() + LIMIT_SECONDS, {"status": {"podIP": "127.0.0.4", "podIPs": [{"ip": "127.0.0.4"}]}}
        while json.loads(text)["status"].get("phase") != "Running":
            assert time.monotonic() < end, text
            text = cls.server.request("GET", path + "/liar")[2]
        status, _, text = cls.server.request("PATCH", path + "/liar/status", json.dumps(mine),
                                             {"Content-Type": "application/merge-patch+json"})
        assert status == 200 and json.loads(text)["status"]["podIP"] == "127.0.0.4", text

    @classmethod
    def start(cls, command):
        cls.processes.append(subprocess.Popen([BERTH, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        return cls.processes[-1]

    @staticmethod
    def read_until(process, words):
        seen = ""
        for line in process.stdout:
            seen += line
            if words in line:
                return line
        raise AssertionError(f"it ended before it said {words}: {seen}")

    @classmethod
    def tearDownClass(cls):
        for process in reversed(cls.processes):
            process.terminate()
            process.communicate(timeout=60)
            assert process.returncode == 0, process.args
        cls.liar.shutdown()
        cls.folder.cleanup()

    def page(self):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=LIMIT_SECONDS, context=context)
        try:
            connection.request("GET", "/api/page", headers={"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            text = answer.read().decode()
            self.assertEqual(answer.status, 200, text)
            return json.loads(text)
        finally:
            connection.close()

    def test_what_agents_tell(self):
        status, _, text = self.server.request("POST", "/apis/batch/v1/namespaces/default/jobs", json.dumps(job("both", 2, 8)))
        self.assertEqual(status, 201, text)
        end = time.monotonic() + LIMIT_SECONDS
        while True:
            page = self.page()
            busy = {n["name"]: n["busy"] for n in page["nodes"]}
            if page["telemetry"]["nodes"] == 1 and page["gpus"]["used"] == 16 and min(busy["gpu-0"]) >= 0:
                break
            self.assertLess(time.monotonic(), end, (page["telemetry"], page["gpus"], busy))
        self.assertEqual(len(busy["gpu-0"]), 8)
        self.assertTrue(all(0 <= b <= 100 for b in busy["gpu-0"]), busy)
        self.assertEqual(set(busy["gpu-1"]), {-1})  # nobody answers there, and a liar is not asked
        self.assertEqual(self.asked, [])
        self.assertEqual(page["telemetry"]["silent"], 1)
        self.assertTrue(page["telemetry"]["oldest"])
        self.assertTrue(page["trend"])


if __name__ == "__main__":
    BERTH = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
