"""Processes of berth under test, and a client for them that knows what was acknowledged.

Standard library only. Every wait has a deadline that is generous, and none is a measurement.
"""
import base64
import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import threading
import time
import urllib.parse

DEADLINE_S = 300  # for whatever must happen in the end, on a machine that may be very slow


class Failure(Exception):
    """Something that must hold does not."""


class Gone(Exception):
    """No answer: the request may have been carried out, or not."""


def pause(seconds):
    threading.Event().wait(seconds)


def wait_for(what, ready, deadline_s=DEADLINE_S, step_s=0.02):
    """Polls until ready() is true. Failure names what did not come."""
    end = time.monotonic() + deadline_s
    while True:
        try:
            found = ready()
            if found:
                return found
        except Gone:
            pass
        if time.monotonic() > end:
            raise Failure(f"{what} did not come within {deadline_s} s")
        pause(step_s)


class Api:
    """One connection. A refused request is an answer; a lost one raises Gone."""

    def __init__(self, kubeconfig, timeout_s=60):
        try:
            with open(kubeconfig, encoding="utf-8") as file:
                text = file.read()
            find = lambda key: re.search(rf"{key}: (\S+)", text).group(1)
            self.url = urllib.parse.urlparse(find("server"))
            self.context = ssl.create_default_context(
                cadata=base64.b64decode(find("certificate-authority-data")).decode())
            self.token = find("token")
        except (OSError, AttributeError) as error:
            raise Gone(str(error)) from error
        self.timeout_s = timeout_s
        self.connection = None

    def send(self, method, path, body=None, content_type="application/json"):
        if self.connection is None:
            self.connection = http.client.HTTPSConnection(
                self.url.hostname, self.url.port, context=self.context, timeout=self.timeout_s)
        headers = {"Authorization": "Bearer " + self.token, "Content-Type": content_type}
        try:
            self.connection.request(method, path, body and json.dumps(body), headers)
            return self.connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Gone(repr(error)) from error

    def call(self, method, path, body=None, content_type="application/json"):
        answer = self.send(method, path, body, content_type)
        try:
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Gone(repr(error)) from error
        try:
            return answer.status, json.loads(data)
        except ValueError:
            return answer.status, {"message": data.decode(errors="replace")}

    def get(self, path):
        status, found = self.call("GET", path)
        if status >= 500 or status in (401, 429):
            raise Gone(f"{path}: {status}")
        if status != 200:
            raise Failure(f"GET {path}: {status} {found.get('message')}")
        return found

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


class Process:
    """A berth process. Its output goes to a file, which a failure shows the end of."""

    all = []  # so that none outlives the test

    def __init__(self, command, log, crash_at=None):
        environment = dict(os.environ)
        environment.pop("BERTH_CRASH_AT", None)
        if crash_at:
            environment["BERTH_CRASH_AT"] = crash_at
        self.command = command
        self.log = log
        with open(log, "ab") as out:
            out.write(f"---- {' '.join(command)} {crash_at or ''}\n".encode())
            out.flush()
            self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                          env=environment)
        Process.all.append(self)

    def running(self):
        return self.child.poll() is None

    def must_run(self):
        if not self.running():
            raise Failure(f"{self.command[1]} ended by itself with {self.child.returncode}")

    def kill(self):
        if self.running():
            self.child.send_signal(signal.SIGKILL)
        return self.child.wait(DEADLINE_S)

    def stop_and_go(self, seconds):
        """Hears nothing and says nothing for a while."""
        self.child.send_signal(signal.SIGSTOP)
        try:
            pause(seconds)
        finally:
            self.child.send_signal(signal.SIGCONT)

    def terminate(self):
        if self.running():
            self.child.send_signal(signal.SIGTERM)
        try:
            return self.child.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise Failure(f"{self.command[1]} does not stop when asked") from None


class Cluster:
    """`berth up` on one data folder, started again and again."""

    def __init__(self, berth, folder, gpus=32, controller=True):
        self.berth, self.folder, self.gpus = berth, folder, gpus
        self.controller = controller
        self.data = os.path.join(folder, "data")
        self.kubeconfig = os.path.join(self.data, "kubeconfig")
        self.process = None

    def start(self, crash_at=None, port=0):
        try:
            os.remove(self.kubeconfig)  # or the port of the last run would be taken for this one's
        except FileNotFoundError:
            pass
        command = [self.berth, "up", "--gpus", str(self.gpus), "--data", self.data,
                   "--port", str(port)]
        if not self.controller:
            command.append("--no-controller")
        self.process = Process(command, os.path.join(self.folder, "up.log"), crash_at)

    def await_ready(self):
        """False: it died first, as a crash point may have it."""
        nodes = (self.gpus + 7) // 8

        def ready():
            if not self.process.running():
                return "died"
            found = Api(self.kubeconfig).get("/api/v1/nodes")["items"]
            return "ready" if len(found) == nodes else None

        return wait_for("a cluster with its nodes", ready) == "ready"

    def api(self):
        return Api(self.kubeconfig)

    def port(self):
        return self.api().url.port
