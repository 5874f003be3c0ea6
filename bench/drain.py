#!/usr/bin/env python3
"""From pods that wait to pods that are bound, through HTTP: how fast, and what the controller pays.

    bench/drain.py [embedded|real] [--pods 10000] [--nodes 1000] [--berth build/release/berth]
                   [--stream] [--kubelets]

embedded: `berth up --no-controller` serves the API, `berth controller` is a process of its own.
real:     etcd and kube-apiserver of test/kubernetes; the floor (bindings posted with every answer
          known beforehand, one connection a thread) is measured in the same run.

All pods exist before the controller starts, unless --stream: then they are created while it runs, and
the time counts from the first creation. Nodes are objects without a kubelet, unless --kubelets
(embedded only): then simulated ones start the pods, and their writes count against the same cores.
Bound is what the API says at the end; the rate is over the time from the first to the last binding.
CPU and memory (highest resident size) are of the controller's process, which also shows its metrics
ten times a second. One JSON line at the end. On a machine so slow that an embedded run takes longer
than 40 s, nodes without a kubelet are lost as silent, and the rest is not bound.
"""
import argparse
import base64
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "test", "kubernetes"))
TICKS = os.sysconf("SC_CLK_TCK")
GPUS = 16  # of a node


def pause(seconds):
    signal.sigtimedwait([], seconds)


class Api:
    def __init__(self, kubeconfig):
        text = open(kubeconfig, encoding="utf-8").read()
        if text.lstrip().startswith("{"):
            config = json.loads(text)
            cluster = config["clusters"][0]["cluster"]
            server, authority = cluster["server"], cluster["certificate-authority-data"]
            token = config["users"][0]["user"]["token"]
        else:
            find = lambda key: re.search(rf"{key}: (\S+)", text).group(1)
            server, authority = find("server"), find("certificate-authority-data")
            token = find("token")
        self.url = urllib.parse.urlparse(server)
        self.context = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
        self.headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}

    def connect(self):
        return http.client.HTTPSConnection(self.url.hostname, self.url.port, context=self.context,
                                           timeout=120)

    def call(self, method, path, body=None, connection=None):
        own = connection or self.connect()
        own.request(method, path, body and json.dumps(body), self.headers)
        answer = own.getresponse()
        data = answer.read()
        if connection is None:
            own.close()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {data[:300]!r}")
        return json.loads(data)

    def many(self, calls, threads=6):
        """Posts all of them; seconds it took."""
        calls, lock, errors = iter(calls), threading.Lock(), []

        def work():
            connection = self.connect()
            while not errors:
                with lock:
                    one = next(calls, None)
                if one is None:
                    return
                try:
                    self.call("POST", *one, connection=connection)
                except Exception as error:  # pylint: disable=broad-except
                    errors.append(error)

        workers = [threading.Thread(target=work) for _ in range(threads)]
        start = time.monotonic()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if errors:
            raise errors[0]
        return time.monotonic() - start

    def all_pods(self):
        items, token = [], ""
        while True:
            page = self.call("GET", "/api/v1/namespaces/default/pods?limit=2000"
                             + (f"&continue={urllib.parse.quote(token)}" if token else ""))
            items += page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                return items


def node(name, rack):
    amounts = {"cpu": "128", "memory": "2Ti", "pods": "110", "nvidia.com/gpu": str(GPUS),
               "ephemeral-storage": "1Ti"}
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {
                "kubernetes.io/hostname": name, "topology.kubernetes.io/rack": rack,
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                "nvidia.com/gpu.count": str(GPUS), "nvidia.com/gpu.memory": "81559"}},
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady",
                 "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                 "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}


def pod(name, scheduler):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": "drain"}},
            "spec": {"schedulerName": scheduler, "restartPolicy": "Never", "containers": [
                {"name": "c", "image": "i", "resources": {
                    "requests": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"},
                    "limits": {"nvidia.com/gpu": "1"}}}]}}


PODS = "/api/v1/namespaces/default/pods"


def post_nodes(api, count):
    api.many([("/api/v1/nodes", node(f"n{i:05d}", f"r{i // 16:03d}")) for i in range(count)])


def pods_named(prefix, count, scheduler):
    return [(PODS, pod(f"{prefix}{i:05d}", scheduler)) for i in range(count)]


def usage(pid):
    """CPU seconds so far, and the highest resident size in MB."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        high = re.search(r"VmHWM:\s+(\d+)", f.read()).group(1)
    return (int(fields[11]) + int(fields[12])) / TICKS, int(high) / 1024


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Controller:
    def __init__(self, berth, kubeconfig, folder):
        self.port = free_port()
        self.log = os.path.join(folder, "controller.log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [berth, "controller", "--kubeconfig", kubeconfig, "--no-election", "--log-level",
                 "warn", "--metrics", f"127.0.0.1:{self.port}"], stdout=log, stderr=log)

    def metrics(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
            connection.close()
        except (OSError, http.client.HTTPException):
            return {}
        out = {}
        for line in text.splitlines():
            if line.startswith("berth_controller_"):
                name, value = line.rsplit(" ", 1)
                out[name] = float(value)
        return out

    def bound(self):
        return int(self.metrics().get("berth_controller_bound_total", 0))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def drain(api, berth, kubeconfig, args, folder):
    """Starts the controller and waits until everything is bound."""
    calls = pods_named("p", args.pods, "berth")
    if not args.stream:
        api.many(calls)
    start = time.monotonic()
    controller = Controller(berth, kubeconfig, folder)
    creator = None
    if args.stream:
        while controller.process.poll() is None and not controller.metrics():
            pause(0.02)
        start = time.monotonic()
        creator = threading.Thread(target=api.many, args=(calls,))
        creator.start()
    first = last = None
    seen = 0
    while seen < args.pods:
        pause(0.1)
        if controller.process.poll() is not None:
            sys.exit("the controller ended: " + open(controller.log, encoding="utf-8").read()[-2000:])
        now, count = time.monotonic(), controller.bound()
        if count > seen:
            first = first or (now, count)
            last = now
            seen = count
        if now - (last or start) > args.patience:
            print(f"stopped after {args.patience} s without a binding", file=sys.stderr)
            break
    if creator:
        creator.join()
    cpu, high = usage(controller.process.pid)
    metrics = controller.metrics()
    controller.stop()
    writes = {re.search(r'for="(\w+)"', k).group(1): int(v) for k, v in metrics.items()
              if k.startswith("berth_controller_writes_total")}
    bound = sum(1 for one in api.all_pods()
                if one["spec"].get("nodeName") and one["metadata"]["name"].startswith("p"))
    span = max(1e-9, (last or start) - (start if args.stream else (first or (start, 0))[0]))
    counted = seen if args.stream else seen - (first or (0, 0))[1]
    return {"pods": args.pods, "nodes": args.nodes, "bound": bound,
            "first_s": round((first or (start, 0))[0] - start, 2),
            "all_s": round((last or start) - start, 2), "bound_per_s": round(counted / span),
            "bound_per_s_from_start": round(seen / max(1e-9, (last or start) - start)),
            "controller_cpu_ms_per_pod": round(1000 * cpu / max(1, seen), 3),
            "controller_peak_mb": round(high), "writes": writes,
            "writes_per_pod": round(sum(writes.values()) / max(1, seen), 3),
            "cycles": int(metrics.get("berth_controller_cycles_total", 0))}


@contextlib.contextmanager
def served(berth, nodes):
    """`berth up --no-controller` with so many nodes of 8 GPUs: its Api, and a function that starts `berth controller`."""
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "kubeconfig")
        with open(os.path.join(folder, "log"), "wb") as log:
            started = [subprocess.Popen([berth, "up", "--no-controller", "--gpus", str(8 * nodes), "--data", folder,
                                         "--page", "none"], stdout=log, stderr=log)]

            def control():
                started.append(subprocess.Popen([berth, "controller", "--kubeconfig", config], stdout=log, stderr=log))
                return started[-1]

            try:
                while not os.path.exists(config):
                    pause(0.05)
                    if started[0].poll() is not None:
                        raise RuntimeError(open(log.name, encoding="utf-8").read())
                api = Api(config)
                while len(api.call("GET", "/api/v1/nodes")["items"]) < nodes:
                    pause(0.1)
                yield api, control
            finally:
                for process in reversed(started):
                    process.terminate()
                    process.wait(60)


def embedded(args):
    with tempfile.TemporaryDirectory() as folder:
        fleet = os.path.join(folder, "fleet.yaml")
        count, gpus = (args.nodes, GPUS) if args.kubelets else (1, 1)
        with open(fleet, "w", encoding="utf-8") as f:
            f.write(f"pools: [{{name: s, count: {count}, gpus: {gpus}, "
                    "model: NVIDIA-H100-80GB-HBM3}]\n")
        kubeconfig = os.path.join(folder, "kubeconfig")
        server = subprocess.Popen(
            [args.berth, "up", "--no-controller", "--in-memory", "--nodes", fleet, "--kubeconfig",
             kubeconfig], stdout=subprocess.DEVNULL)
        try:
            start = time.monotonic()
            while True:
                try:
                    api = Api(kubeconfig)
                    if len(api.call("GET", "/api/v1/nodes?limit=5000")["items"]) >= count:
                        break
                except (OSError, AttributeError, RuntimeError, http.client.HTTPException):
                    pass
                if server.poll() is not None or time.monotonic() - start > 120:
                    sys.exit("berth up is not ready")
                pause(0.05)
            # Kept from the measurement: a node with one GPU that the simulator owns.
            if not args.kubelets:
                post_nodes(api, args.nodes)
            before = usage(server.pid)[0]
            result = drain(api, args.berth, kubeconfig, args, folder)
            result["server_cpu_ms_per_pod"] = round(
                1000 * (usage(server.pid)[0] - before) / max(1, result["bound"]), 3)
            result["server_peak_mb"] = round(usage(server.pid)[1])
            return {"mode": "embedded", **result}
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)


def real(args):
    from cluster import Cluster  # pylint: disable=import-outside-toplevel,import-error
    with tempfile.TemporaryDirectory() as folder, Cluster() as cluster:
        api = Api(cluster.kubeconfig)
        post_nodes(api, args.nodes)
        server = next(p for name, p in cluster.processes if name == "kube-apiserver")
        count = min(args.pods, args.floor_pods)
        api.many(pods_named("f", count, "nobody"))
        bindings = [(f"{PODS}/f{i:05d}/binding",
                     {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": f"f{i:05d}"},
                      "target": {"apiVersion": "v1", "kind": "Node",
                                 "name": f"n{i % args.nodes:05d}"}}) for i in range(count)]
        floor = count / api.many(bindings)
        connection = api.connect()
        for i in range(count):
            api.call("DELETE", f"{PODS}/f{i:05d}?gracePeriodSeconds=0", connection=connection)
        before = usage(server.pid)[0]
        result = drain(api, args.berth, cluster.kubeconfig_of("berth"), args, folder)
        result["server_cpu_ms_per_pod"] = round(
            1000 * (usage(server.pid)[0] - before) / max(1, result["bound"]), 3)
        return {"mode": "real", **result, "floor_per_s": round(floor),
                "of_floor": round(result["bound_per_s"] / floor, 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", nargs="?", choices=["embedded", "real"], default="embedded")
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--floor-pods", type=int, default=6_000)
    parser.add_argument("--berth", default="build/release/berth")
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--kubelets", action="store_true")
    parser.add_argument("--patience", type=float, default=60)
    args = parser.parse_args()
    print(json.dumps(embedded(args) if args.mode == "embedded" else real(args)))


if __name__ == "__main__":
    main()
