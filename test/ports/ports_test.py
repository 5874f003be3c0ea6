#!/usr/bin/env python3
"""What somebody without credentials can do to the ports of the shipped program: the controller's webhook, metrics, page and
health, the agent's metrics and health. Its memory stays small, probes are answered, and so is whoever asks something.

    ports_test.py BERTH [--any-memory]
"""
import json
import os
import re
import resource
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

LIMIT_SECONDS = 120
MOST_RSS_MB, MOST_GROWTH_MB = 150, 62
LITTLE_MB = 32
ATTACK_BYTES, ATTACK_CONNECTIONS = 384 << 20, 300  # whichever comes first
NAMES = {"metrics": "/metrics", "health": "/healthz", "page": "/", "webhook": "/mutate"}
TLS = ssl.create_default_context()
TLS.check_hostname = False
TLS.verify_mode = ssl.CERT_NONE
REVIEW = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
    "uid": "8d1f2a34-0000-4000-8000-000000000001", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": "CREATE",
    "resource": {"group": "", "version": "v1", "resource": "pods"}, "namespace": "team",
    "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}}}, separators=(",", ":")).encode()


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def wait(what, holds, child=None):
    end = time.monotonic() + LIMIT_SECONDS
    while not holds():
        if time.monotonic() > end or (child is not None and child.poll() is not None):
            raise AssertionError(f"never: {what}")
        time.sleep(0.05)


class Program:
    """A process of ours with ports by name; tls: those of them that speak it."""

    def __init__(self, arguments, ports, tls=(), descriptors=None, bug_at=None):
        def limited():
            if descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
        self.ports, self.tls = ports, tls
        self.log = tempfile.TemporaryFile()
        environment = dict(os.environ, **({"BERTH_BUG_AT": bug_at} if bug_at else {}))
        self.child = subprocess.Popen([BERTH, *arguments], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                      preexec_fn=limited, env=environment)

    def connect(self, name, from_address="127.0.0.1", speaking=True):
        s = socket.create_connection(("127.0.0.1", self.ports[name]), timeout=20, source_address=(from_address, 0))
        return TLS.wrap_socket(s) if speaking and name in self.tls else s

    def send(self, name, data, **more):
        """The status of the answer, or 0."""
        try:
            with self.connect(name, **more) as s:
                try:
                    s.sendall(data)
                except OSError:
                    pass  # the answer came before we were done
                got = b""
                while not re.match(rb"HTTP/1\.1 \d+ ", got):
                    more_bytes = s.recv(65536)
                    if not more_bytes:
                        return 0
                    got += more_bytes
                return int(got[9:12])
        except OSError:
            return 0

    def ask(self, name, **more):
        body = REVIEW if name == "webhook" else b""
        head = f"{'POST' if body else 'GET'} {NAMES[name]} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
        if body:
            head += f"Content-Length: {len(body)}\r\n"
        return self.send(name, head.encode() + b"\r\n" + body, **more)

    def read(self, name):
        with self.connect(name) as s:
            s.sendall(f"GET {NAMES[name]} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())
            return b"".join(iter(lambda: s.recv(65536), b"")).decode()

    def logged(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode(errors="replace")

    def rss_mb(self):
        with open(f"/proc/{self.child.pid}/status", encoding="ascii") as f:
            return int(re.search(r"VmRSS:\s+(\d+) kB", f.read())[1]) / 1024

    def most_mb(self):
        """The most it ever held."""
        with open(f"/proc/{self.child.pid}/status", encoding="ascii") as f:
            return int(re.search(r"VmHWM:\s+(\d+) kB", f.read())[1]) / 1024

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        code = self.child.wait(LIMIT_SECONDS)
        with self.log as log:
            log.seek(0)
            if code:
                print(log.read().decode(errors="replace")[-4000:], file=sys.stderr)
                raise AssertionError(f"{self.child.args[1]} ended with {code}")


class Flood:
    """Connections that send a large request and never finish it, and come again when they are cut."""

    def __init__(self, program, name, path, count=64, announced=31 << 20):
        self.program, self.name = program, name
        self.head = f"POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {announced}\r\n\r\n".encode()
        self.left, self.most_rss, self.opened, self.sent = {}, 0.0, 0, 0
        self.selector, self.block, self.announced = selectors.DefaultSelector(), b"x" * 262144, announced
        self.count = count

    def open(self):
        try:
            s = self.program.connect(self.name)
            s.sendall(self.head)
            s.setblocking(False)
        except OSError:
            return
        self.opened += 1
        self.left[s] = self.announced - 1
        self.selector.register(s, selectors.EVENT_WRITE)

    def drop(self, s):
        self.selector.unregister(s)
        del self.left[s]
        s.close()

    def run(self):
        end = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < end and self.sent < ATTACK_BYTES and self.opened < ATTACK_CONNECTIONS:
            while len(self.left) < self.count and time.monotonic() < end:
                self.open()
            for key, _ in self.selector.select(0.05):
                s = key.fileobj
                try:
                    done = s.send(self.block[:min(len(self.block), self.left[s])])
                    self.left[s] -= done
                    self.sent += done
                except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                    continue
                except OSError:
                    self.drop(s)
                    continue
                if self.left[s] == 0:
                    self.selector.unregister(s)  # all but the last byte is there
            self.most_rss = max(self.most_rss, self.program.rss_mb())
        return self

    def close(self):
        for s in self.left:
            s.close()
        self.selector.close()


class Ports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        path = folder.name
        cls.kubeconfig = os.path.join(path, "kubeconfig")
        cls.up = cls.start(["up", "--in-memory", "--gpus", "8", "--kubeconfig", cls.kubeconfig], {},
                           bug_at="http-request:5")
        wait("berth up is ready", lambda: os.path.exists(cls.kubeconfig), cls.up.child)
        cls.controller = cls.start_controller(bug_at="http-request")
        fleet = os.path.join(path, "fleet.yaml")
        with open(fleet, "w", encoding="utf-8") as f:
            json.dump({"pools": [{"name": "node", "count": 1, "model": "NVIDIA-H100-80GB-HBM3", "gpus": 8}]}, f)
        metrics, health = free_ports(2)
        cls.agent = cls.start(["agent", "--source", f"sim={fleet}", "--node-name", "node-0", "--kubelet-dir", path,
                               "--cdi-dir", path, "--state-dir", os.path.join(path, "state"),
                               "--metrics", f"127.0.0.1:{metrics}", "--health", f"127.0.0.1:{health}"],
                              {"metrics": metrics, "health": health}, bug_at="http-request")
        wait("the agent is served", lambda: cls.agent.ask("health") == 200, cls.agent.child)

    @classmethod
    def start(cls, *arguments, **more):
        one = Program(*arguments, **more)
        cls.addClassCleanup(one.stop)
        return one

    @classmethod
    def start_controller(cls, **more):
        ports = dict(zip(NAMES, free_ports(len(NAMES))))
        at = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
        one = cls.start(["controller", "--kubeconfig", cls.kubeconfig, "--no-election", "--metrics", at["metrics"],
                         "--health", at["health"], "--page", at["page"], "--webhook", at["webhook"],
                         "--webhook-url", f"https://{at['webhook']}/mutate"],
                        ports, tls=("webhook", "page"), **more)
        wait("the controller is served", lambda: one.ask("health") == 200, one.child)
        wait("the webhook is served", lambda: one.ask("webhook") == 200, one.child)
        return one

    def probed(self, program, what):
        begin = time.monotonic()
        self.assertEqual(program.ask("health"), 200, what)
        self.assertLess(time.monotonic() - begin, 1, what)

    def test_a_mistake_of_the_program_is_survived(self):
        """Each of them met one at its first requests, logged it with its place, counts it, and is there for the others' tests."""
        for program in (self.up, self.controller, self.agent):
            with self.subTest(program=program.child.args[1]):
                wait("a request came", lambda: "bug survived" in program.logged(), program.child)
                self.assertRegex(program.logged(), r"bug survived.*edge/serve/http_connection\.cc:\d+")
                self.assertIsNone(program.child.poll())
                if program.ports:
                    self.assertRegex(program.read("metrics"),
                                     r'berth_bug_total\{site="edge/serve/http_connection\.cc:\d+"\} 1\n')

    def test_unfinished_requests(self):
        """60 of them took a controller from 96 to 2,247 MB in 6 s."""
        for program, name, path in ((self.controller, "webhook", "/mutate"), (self.controller, "webhook", "/convert"),
                                    (self.controller, "metrics", "/metrics"), (self.controller, "page", "/api/page"),
                                    (self.agent, "metrics", "/metrics"), (self.agent, "health", "/healthz")):
            with self.subTest(program=program.child.args[1], name=name, path=path):
                size = {"/convert": 31, "/mutate": 39}.get(path, 7) << 20
                before = program.rss_mb()
                flood = Flood(program, name, path, announced=size)
                try:
                    flood.run()
                    self.assertGreater(flood.opened, 60)
                    self.probed(program, "while requests are unfinished")
                    self.assertEqual(program.ask(name), 200)
                    self.assertLess(flood.most_rss, MOST_RSS_MB)
                    self.assertLess(flood.most_rss - before, MOST_GROWTH_MB)
                finally:
                    flood.close()

    def test_a_review_of_100_mb(self):
        head = "POST /mutate HTTP/1.1\r\nHost: h\r\n"
        begin = f"{head}Content-Length: {100 << 20}\r\n\r\n".encode()
        self.assertEqual(self.controller.send("webhook", begin), 413)
        chunk = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
        chunks = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunk * 44
        self.assertIn(self.controller.send("webhook", chunks), (413, 0))  # 0: the end was faster than the answer
        self.assertLess(self.controller.rss_mb(), MOST_RSS_MB)
        for program, name in ((self.controller, "metrics"), (self.agent, "metrics"), (self.controller, "health")):
            body = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx"
            self.assertEqual(program.send(name, body), 413)

    def review(self, pod):
        """What the webhook says to it, in an AdmissionReview as an API server writes one; pod: the fields of its spec."""
        body = REVIEW.replace(b'"spec":{', b'"spec":{' + pod, 1)
        with self.controller.connect("webhook") as s:
            s.sendall(f"POST /mutate HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
                      .encode() + body)
            got = b"".join(iter(lambda: s.recv(65536), b""))
        self.assertTrue(got.startswith(b"HTTP/1.1 200 "), got[:300])
        return json.loads(got.split(b"\r\n\r\n", 1)[1])["response"]

    def test_reviews_as_large_as_an_api_server_sends(self):
        """It writes "<" as six bytes: a pod of 1.4 MB passed by unseen as a review of 8.7."""
        rows = {
            "escapes": b'"args":["' + b"\\u003c" * 6_400_000 + b'"]',
            "text": b'"args":["\\n' + b"x" * (38 << 20) + b'"]',
            "values": b'"args":[' + b",".join([b'""'] * 10_000_000) + b"]",
            "members": b'"o":{' + b",".join(b'"%06x":0' % i for i in range(3_000_000)) + b"}",
        }
        for name, pod in rows.items():
            with self.subTest(name):
                said = self.review(b'"hostPID":true,' + pod + b",")
                self.assertIn("hostPID" if name in ("escapes", "text") else "too large", said["warnings"][0])
                self.assertLess(self.controller.most_mb(), MOST_RSS_MB)

    def test_silent_connections(self):
        """64 of them to the agent, 4,100 to the controller and 520 to the page made probes fail."""
        silent = []
        try:
            for program in (self.agent, self.controller):
                for name in program.ports:
                    many = [program.connect(name, speaking=False) for _ in range(600 if name == "page" else 150)]
                    silent += [(name, s) for s in many]
                    self.probed(program, f"while {name} is full of silent connections")
                    self.assertEqual(program.ask(name), 200, name)
                    self.assertEqual(program.ask(name, from_address="127.0.0.7"), 200, name)
            # Without a word none of them lives for long.
            end = time.monotonic() + 12
            for name, s in silent:
                s.settimeout(max(end - time.monotonic(), 0.01))
                try:
                    s.recv(1)
                except ConnectionError:
                    pass
                except TimeoutError:
                    self.fail(f"a silent connection to {name} lives on")
        finally:
            for _, s in silent:
                s.close()

    def test_little_memory(self):
        """A controller that may have 32 MB more than it has at rest goes on under requests that want gigabytes."""
        one = self.start_controller()
        with open(f"/proc/{one.child.pid}/status", encoding="ascii") as f:
            has = int(re.search(r"VmData:\s+(\d+) kB", f.read())[1]) << 10
        most = has + (LITTLE_MB << 20)
        resource.prlimit(one.child.pid, resource.RLIMIT_DATA, (most, most))
        for name, path, size in (("webhook", "/mutate", 39 << 20), ("page", "/api/page", 7 << 20), ("metrics", "/metrics", 7 << 20)):
            flood = Flood(one, name, path, announced=size)
            try:
                flood.run()
                self.assertGreater(flood.opened, 60)
                self.probed(one, f"with little memory, {name}")
                self.assertEqual(one.ask("metrics"), 200)
                self.assertEqual(one.ask(name), 200)
            finally:
                flood.close()
        self.assertIsNone(one.child.poll())

    def test_few_descriptors(self):
        """A process that may have 128 files keeps enough of them for its work, for probes and for metrics."""
        one = self.start_controller(descriptors=128)
        silent = []
        try:
            for i in range(100):
                for name in NAMES:
                    silent.append(one.connect(name, speaking=False, from_address=f"127.0.1.{i % 50 + 1}"))
            self.assertLess(len(os.listdir(f"/proc/{one.child.pid}/fd")), 128)
            self.probed(one, "with few descriptors")
            for name in NAMES:
                self.assertEqual(one.ask(name), 200, name)
        finally:
            for s in silent:
                s.close()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BERTH = os.path.abspath(sys.argv.pop(1))
    if "--any-memory" in sys.argv:
        sys.argv.remove("--any-memory")
        MOST_RSS_MB = MOST_GROWTH_MB = LITTLE_MB = 1 << 20
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    unittest.main()
