"""`berth up` as the control plane of a real node, in the place of cluster.Cluster: server, Jobs and controller are one process.

    with Embedded(berth) as cluster, nodes.Node(cluster=cluster) as node: ...
"""
import json
import os
import signal
import subprocess
import time

import isolate


class Embedded:
    def __init__(self, berth):
        self.berth, self.process = berth, None
        self.kubeconfig = os.path.join(isolate.folder(), "up.kubeconfig")
        self.url, self.secret = "", ""

    def __enter__(self):
        fleet = os.path.join(isolate.folder(), "fleet.yaml")
        with open(fleet, "w", encoding="utf-8") as f:
            f.write("pools: [{name: simulated, count: 1}]\n")  # without GPUs: those are the real node's
        with open(os.path.join(isolate.folder(), "up.log"), "wb") as log:
            self.process = subprocess.Popen(
                isolate.DIE_WITH_PARENT + [self.berth, "up", "--nodes", fleet, "--in-memory", "--page", "none",
                                           "--kubeconfig", self.kubeconfig, "--log-level", "info"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while not self.read_kubeconfig():
            if self.process.poll() is not None or time.monotonic() > end:
                raise OSError("berth up does not answer: " + self.log())
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def read_kubeconfig(self):
        """It is written when the server listens, as block YAML."""
        try:
            with open(self.kubeconfig, encoding="utf-8") as f:
                fields = dict(line.strip().lstrip("- ").split(": ", 1) for line in f if ": " in line)
        except FileNotFoundError:
            return False
        self.url, self.secret = fields.get("server", "").strip('"'), fields.get("token", "").strip('"')
        return bool(self.url and self.secret)

    def token(self, _user="admin"):
        return self.secret

    def kubeconfig_of(self, _user):
        return self.kubeconfig

    def environment(self):
        return {**os.environ, "KUBECONFIG": self.kubeconfig}

    def log(self):
        with open(os.path.join(isolate.folder(), "up.log"), encoding="utf-8", errors="replace") as f:
            return f.read()
