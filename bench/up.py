#!/usr/bin/env python3
"""How soon `berth up` is ready, and what 100 nodes with 1,000 pods cost.

    bench/up.py [--berth build/release/berth] [--rounds 5]

Ready: from the start of the process until the API server answers a list of nodes that holds all of
them (best and median of the rounds). Memory: resident size of the one process, API server, nodes,
controller and database together, when 1,000 pods run.
"""
import argparse
import base64
import http.client
import json
import os
import re
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

POLL_S = 0.005


class Api:
    def __init__(self, kubeconfig):
        text = open(kubeconfig, encoding="utf-8").read()
        find = lambda key: re.search(rf"{key}: (\S+)", text).group(1)
        url = urllib.parse.urlparse(find("server"))
        context = ssl.create_default_context(
            cadata=base64.b64decode(find("certificate-authority-data")).decode())
        self.connection = http.client.HTTPSConnection(url.hostname, url.port, context=context,
                                                      timeout=60)
        self.headers = {"Authorization": "Bearer " + find("token"),
                        "Content-Type": "application/json"}

    def call(self, method, path, body=None):
        self.connection.request(method, path, body and json.dumps(body), self.headers)
        answer = self.connection.getresponse()
        data = json.loads(answer.read())
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {data.get('message')}")
        return data


def resident_mb(pid):
    for line in open(f"/proc/{pid}/status", encoding="ascii"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def wait(deadline_s, ready):
    """Polls until ready() gives something true; how long it took."""
    start = time.monotonic()
    while time.monotonic() - start < deadline_s:
        try:
            if ready():
                return time.monotonic() - start
        except (OSError, AttributeError, RuntimeError, http.client.HTTPException):
            pass
        signal.sigtimedwait([], POLL_S)
    sys.exit(f"not ready after {deadline_s} s")


def start(berth, folder, gpus, data=True):
    kubeconfig = os.path.join(folder, "kubeconfig")
    command = [berth, "up", "--gpus", str(gpus), "--kubeconfig", kubeconfig]
    command += ["--data", os.path.join(folder, "data")] if data else ["--in-memory"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    return process, kubeconfig


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.wait(60)


def ready_seconds(berth, gpus):
    with tempfile.TemporaryDirectory() as folder:
        process, kubeconfig = start(berth, folder, gpus)
        nodes = (gpus + 7) // 8
        took = wait(60, lambda: len(Api(kubeconfig).call("GET", "/api/v1/nodes")["items"]) == nodes)
        stop(process)
        return took


def pod(name):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "bench"},
            "spec": {"schedulerName": "berth", "containers": [
                {"name": "main", "image": "busybox", "resources": {
                    "requests": {"cpu": "1", "memory": "1Gi"}, "limits": {}}}]}}


def memory_mb(berth, nodes, pods):
    with tempfile.TemporaryDirectory() as folder:
        process, kubeconfig = start(berth, folder, nodes * 8)
        wait(60, lambda: len(Api(kubeconfig).call("GET", "/api/v1/nodes")["items"]) == nodes)
        api = Api(kubeconfig)
        api.call("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace",
                                                "metadata": {"name": "bench"}})
        empty = resident_mb(process.pid)
        for i in range(pods):
            one = pod(f"p-{i}")
            if i % 2 == 0 and i // 2 < nodes * 8:
                one["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1"
            api.call("POST", "/api/v1/namespaces/bench/pods", one)
        path = "/api/v1/namespaces/bench/pods?fieldSelector=status.phase%3DRunning"
        wait(120, lambda: len(api.call("GET", path)["items"]) == pods)
        full = resident_mb(process.pid)
        stop(process)
        return empty, full


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--berth", default="build/release/berth")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    for gpus in (32, 800):
        took = [ready_seconds(args.berth, gpus) for _ in range(args.rounds)]
        print(f"ready with {gpus // 8} nodes: best {min(took):.2f} s, median "
              f"{statistics.median(took):.2f} s of {args.rounds}", flush=True)
    empty, full = memory_mb(args.berth, 100, 1000)
    print(f"100 nodes: {empty:.0f} MB; with 1,000 running pods {full:.0f} MB")


if __name__ == "__main__":
    main()
