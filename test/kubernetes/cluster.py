#!/usr/bin/env python3
"""A throw-away control plane on loopback: etcd and kube-apiserver, on wish kube-controller-manager and kube-scheduler.

As a command it runs another one against it:

    cluster.py run [--controllers LIST] [--groups] [--keep] -- COMMAND...   KUBECONFIG, BERTH_ETCD and PATH are set
    cluster.py serve [--controllers LIST]                                   until a signal or the end of input
    ... --version 1.34                                                      of server and controllers, instead of 1.37
    ... --nodes N [--gpus N]                                                that KWOK looks after

As a module: `with Cluster() as cluster:` and then cluster.kubeconfig, cluster.url, cluster.token,
cluster.bin. Ports are free ones; data lives in a temporary folder that goes with the cluster. One token
per user of USERS, so that an audit log says who did what; all of them may do everything. With
rbac=True others may do what their roles say: service accounts, whose kubeconfigs write_kubeconfig() makes.
audit=True logs writes, audit="reads" everything. kwok=True runs KWOK: pods that are bound to nodes with KWOK's
annotation (add_nodes() makes such) run at once, and end after the seconds of their annotation test/seconds.
"""
import argparse
import base64
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
USERS = ["admin", "kube-controller-manager", "kube-scheduler", "berth", "berth-standby", "load", "kwok"]
VERSIONS = {"1.37": "", "1.34": "-1.34"}  # how build-tools names the programs
GPU = "nvidia.com/gpu"
FAKE = ("kwok.x-k8s.io/node", "fake")
GROUPS = ["--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1beta1=true"]
READY_SECONDS = 180  # a loaded machine takes its time


def tools(*programs):
    """The folder with the pinned programs; builds what is missing."""
    out = subprocess.run([os.path.join(HERE, "build-tools"), *programs], check=True,
                         stdout=subprocess.PIPE, text=True)
    return out.stdout.strip()


def free_ports(count):
    """Nobody keeps them for us: whoever starts a server on one has to be ready to try another."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def stages():
    """What KWOK does: its nodes are ready; a pod runs, ends, and is let go."""
    gone = {"key": ".metadata.deletionTimestamp", "operator": "Exists"}
    here = {**gone, "operator": "DoesNotExist"}
    def phase(name):
        return {"key": ".status.phase", "operator": "In", "values": [name]}
    def container(ready, state):
        return ("containerStatuses:\n{{ range .spec.containers }}- name: {{ .name | Quote }}\n"
                "  image: {{ .image | Quote }}\n  imageID: \"\"\n"
                f"  ready: {ready}\n  restartCount: 0\n  state: {state}\n{{{{ end }}}}")
    now = "{{ Now | Quote }}"
    runs = (f"phase: Running\nstartTime: {now}\nconditions:\n" + "".join(
        f"- {{type: {kind}, status: \"True\", lastTransitionTime: {now}}}\n"
        for kind in ("Initialized", "Ready", "ContainersReady")) +
            container("true", f"{{running: {{startedAt: {now}}}}}"))
    ends = (f"phase: Succeeded\nconditions:\n- {{type: Ready, status: \"False\", lastTransitionTime: {now}}}\n" +
            container("false", f"{{terminated: {{exitCode: 0, startedAt: {now}, finishedAt: {now}}}}}"))
    ready = f"conditions:\n- {{type: Ready, status: \"True\", reason: Kwok, lastTransitionTime: {now}}}\n"
    seconds = ".metadata.annotations[\"test/seconds\"]"
    for kind, name, conditions, next_, delay in (
            # Without a stage of nodes KWOK looks after none of them.
            ("Node", "ready", [{"key": ".status.conditions.[] | select( .type == \"Ready\" ) | .status",
                                "operator": "NotIn", "values": ["True"]}], {"statusTemplate": ready}, None),
            ("Pod", "runs", [here, phase("Pending")], {"statusTemplate": runs}, None),
            ("Pod", "ends", [here, phase("Running"), {"key": seconds, "operator": "Exists"}], {"statusTemplate": ends},
             {"durationMilliseconds": 1000, "durationFrom": {"expressionFrom": f"{seconds} + \"s\""}}),
            ("Pod", "goes", [gone], {"delete": True}, None)):
        yield {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": f"{kind}-{name}".lower()},
               "spec": {"resourceRef": {"apiGroup": "v1", "kind": kind}, "selector": {"matchExpressions": conditions},
                        "next": next_, **({"delay": delay} if delay else {})}}


def kwok_node(name, gpus=8, labels=None):
    """A Node and its status."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    amounts = {GPU: str(gpus), "cpu": "64", "memory": "512Gi", "pods": "110"}
    return ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": dict([FAKE]), "labels": {
        "kubernetes.io/hostname": name, **(labels or {})}}},
            {"status": {"capacity": amounts, "allocatable": amounts, "conditions": [
                {"type": "Ready", "status": "True", "reason": "Kwok", "message": "", "lastHeartbeatTime": now,
                 "lastTransitionTime": now}]}})


class NotReady(Exception):
    pass


class Cluster:
    def __init__(self, controllers=None, api_flags=(), audit=False, keep=False, base=None, rbac=False,
                 scheduler=False, version="1.37", kwok=False):
        self.kwok, self.programs = kwok, {}
        for program in ("kube-apiserver", "kube-controller-manager"):
            self.programs[program] = program + VERSIONS[version]
        programs = ["etcd", self.programs["kube-apiserver"]]
        if controllers:
            programs.append(self.programs["kube-controller-manager"])
        if kwok:
            programs.append("kwok")
        if scheduler:
            programs.append("kube-scheduler")
        self.rbac, self.scheduler = rbac, scheduler
        self.bin = tools(*programs)
        self.controllers, self.api_flags, self.audit, self.keep = controllers, list(api_flags), audit, keep
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = tempfile.mkdtemp(prefix="kubernetes-", dir=base or memory)
        self.processes = []
        self.url = self.etcd = ""
        self.api_port = 0

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def token(self, user="admin"):
        return f"token-of-{user}"

    @property
    def kubeconfig(self):
        return self.path("admin.kubeconfig")

    def kubeconfig_of(self, user):
        return self.path(f"{user}.kubeconfig")

    def __enter__(self):
        try:
            for attempt in range(3):
                try:
                    return self.start()
                except NotReady:
                    self.stop_processes()
                    if attempt == 2:
                        raise
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()

    def spawn(self, program, *flags):
        log = open(self.path(program + ".log"), "ab")
        file = os.path.join(self.bin, self.programs.get(program, program))
        process = subprocess.Popen([file, *flags], stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL, cwd=self.folder)
        log.close()
        self.processes.append((program, process))
        return process

    def start(self):
        shutil.rmtree(self.path("etcd"), ignore_errors=True)
        client, peer, api = free_ports(3)
        self.etcd, self.url = f"http://127.0.0.1:{client}", f"https://127.0.0.1:{api}"
        peer_url = f"http://127.0.0.1:{peer}"
        self.spawn("etcd", "--data-dir", self.path("etcd"), "--listen-client-urls", self.etcd,
                   "--advertise-client-urls", self.etcd, "--listen-peer-urls", peer_url,
                   "--initial-advertise-peer-urls", peer_url, "--initial-cluster", f"default={peer_url}",
                   "--unsafe-no-fsync", "--log-level", "warn")
        self.write_files()
        self.api_port = api
        self.start_api_server()
        self.write_kubeconfigs()
        if self.controllers:
            self.spawn("kube-controller-manager", "--kubeconfig",
                       self.kubeconfig_of("kube-controller-manager"), "--leader-elect=false",
                       "--service-account-private-key-file", self.path("sa.key"),
                       "--use-service-account-credentials=false", "--secure-port=0",
                       f"--controllers={self.controllers}")
        if self.scheduler:
            self.spawn("kube-scheduler", "--kubeconfig", self.kubeconfig_of("kube-scheduler"),
                       "--leader-elect=false", "--secure-port=0")
        if self.kwok:
            with open(self.path("kwok.yaml"), "w", encoding="utf-8") as f:
                f.write("\n---\n".join(json.dumps(stage) for stage in stages()))
            self.spawn("kwok", "--kubeconfig", self.kubeconfig_of("kwok"), "--config", self.path("kwok.yaml"),
                       "--manage-nodes-with-annotation-selector", "=".join(FAKE),
                       "--node-lease-duration-seconds", "0")
        return self

    def add_nodes(self, count, gpus=8, prefix="node-"):
        """That KWOK looks after; over one connection, because a hundred handshakes take a while."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", self.api_port, context=context, timeout=60)
        def send(method, path, body, kind="application/json"):
            connection.request(method, path, json.dumps(body), {
                "Authorization": f"Bearer {self.token()}", "Content-Type": kind})
            answer = connection.getresponse()
            text = answer.read().decode()
            if answer.status >= 300:
                raise OSError(f"{method} {path}: {text}")
        for i in range(count):
            node, status = kwok_node(f"{prefix}{i}", gpus)
            send("POST", "/api/v1/nodes", node)
            send("PATCH", f"/api/v1/nodes/{prefix}{i}/status", status, "application/merge-patch+json")
        connection.close()

    def start_api_server(self):
        """Also after kill_api_server(): where it was, with what etcd and the certificates hold."""
        self.spawn("kube-apiserver", *self.api_server_flags(self.api_port))
        self.wait_ready(self.api_port)

    def kill_api_server(self):
        """As a crash: it says goodbye to nobody."""
        for entry in [e for e in self.processes if e[0] == "kube-apiserver"]:
            entry[1].kill()
            entry[1].wait()
            self.processes.remove(entry)

    def compact(self):
        """The server forgets its history, as it does by itself every five minutes."""
        def etcd(path, body):
            request = urllib.request.Request(f"{self.etcd}/v3/{path}", json.dumps(body).encode())
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)

        revision = etcd("kv/range", {"key": "AA=="})["header"]["revision"]
        encoded = [base64.b64encode(text.encode()).decode() for text in ("compact_rev_key", revision)]
        etcd("kv/put", {"key": encoded[0], "value": encoded[1]})
        etcd("kv/compaction", {"revision": revision})

    def write_files(self):
        with open(self.path("tokens.csv"), "w", encoding="utf-8") as f:
            for user in USERS:
                f.write(f'{self.token(user)},{user},{user},"system:masters"\n')
        if not os.path.exists(self.path("sa.key")):
            subprocess.run(["openssl", "genrsa", "-out", self.path("sa.key"), "2048"], check=True,
                           stderr=subprocess.DEVNULL)
        with open(self.path("audit.yaml"), "w", encoding="utf-8") as f:
            f.write("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n"
                    + ("" if self.audit == "reads" else "- level: None\n  verbs: [get, list, watch]\n") +
                    "- level: Metadata\n")

    def api_server_flags(self, port):
        # Without a controller-manager nobody makes service accounts or removes the taint of new nodes,
        # so the plugins that need them are off.
        flags = [f"--etcd-servers={self.etcd}", "--bind-address=127.0.0.1", f"--secure-port={port}",
                 "--advertise-address=127.0.0.1", f"--cert-dir={self.path('certificates')}",
                 f"--service-account-key-file={self.path('sa.key')}",
                 f"--service-account-signing-key-file={self.path('sa.key')}",
                 "--service-account-issuer=https://kubernetes.default.svc",
                 "--authorization-mode=" + ("RBAC" if self.rbac else "AlwaysAllow"),
                 "--anonymous-auth=false",
                 f"--token-auth-file={self.path('tokens.csv')}", "--endpoint-reconciler-type=none",
                 "--max-requests-inflight=0", "--max-mutating-requests-inflight=0",
                 "--enable-priority-and-fairness=false",
                 "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
                 "--service-cluster-ip-range=10.96.0.0/16"]
        if self.audit:
            flags += [f"--audit-policy-file={self.path('audit.yaml')}",
                      f"--audit-log-path={self.path('audit.log')}"]
        return flags + self.api_flags

    def get(self, port, path):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token()}"})
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()

    def wait_ready(self, port):
        end = time.monotonic() + READY_SECONDS
        # The namespace "default" is made after /readyz says yes.
        for path in ("/readyz", "/api/v1/namespaces/default"):
            while self.get(port, path) != 200:
                for program, process in self.processes:
                    if process.poll() is not None:
                        raise NotReady(f"{program} ended: {self.tail(program)}")
                if time.monotonic() > end:
                    raise NotReady(f"no {path} after {READY_SECONDS} s: {self.tail('kube-apiserver')}")
                time.sleep(0.1)

    def tail(self, program):
        with open(self.path(program + ".log"), encoding="utf-8", errors="replace") as f:
            return "".join(f.readlines()[-15:])

    def write_kubeconfigs(self):
        for user in USERS:
            self.write_kubeconfig(user, self.token(user))

    def write_kubeconfig(self, user, token):
        """Its path; the token is that of a user or of a service account."""
        with open(self.path("certificates", "apiserver.crt"), "rb") as f:
            authority = base64.b64encode(f.read()).decode()
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": self.url, "certificate-authority-data": authority}}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}]}
        with open(self.kubeconfig_of(user), "w", encoding="utf-8") as f:
            json.dump(config, f, indent=1)
        return self.kubeconfig_of(user)

    def environment(self):
        return {**os.environ, "KUBECONFIG": self.kubeconfig, "BERTH_ETCD": self.etcd,
                "PATH": self.bin + os.pathsep + os.environ.get("PATH", "")}

    def kubectl(self, *arguments, check=True):
        """What it printed, errors too; AssertionError when it failed."""
        done = subprocess.run(["kubectl", *arguments], env=self.environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stdout}")
        return done.stdout

    def stop_processes(self):
        for _, process in reversed(self.processes):
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        self.processes = []

    def stop(self):
        self.stop_processes()
        if self.keep:
            print(f"kept {self.folder}", file=sys.stderr)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["run", "serve"])
    parser.add_argument("--controllers", help="run kube-controller-manager with these ('*': all)")
    parser.add_argument("--keep", action="store_true", help="leave data and logs behind")
    parser.add_argument("--version", default="1.37", choices=sorted(VERSIONS))
    parser.add_argument("--nodes", type=int, default=0, help="that KWOK looks after")
    parser.add_argument("--gpus", type=int, default=8, help="of each of them")
    parser.add_argument("--groups", action="store_true", help="with Kubernetes' own pod groups, which are off as yet")
    arguments = sys.argv[1:]
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    options, command = parser.parse_args(arguments[:cut]), arguments[cut + 1:]
    # A stopped test must not leave servers behind: the signal becomes an exception, `with` does the rest.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.what == "run" and not command:
        parser.error("no command")
    with Cluster(controllers=options.controllers, keep=options.keep, version=options.version, kwok=options.nodes > 0,
                 api_flags=GROUPS if options.groups else ()) as cluster:
        cluster.add_nodes(options.nodes, options.gpus)
        if options.what == "run":
            return subprocess.run(command, env=cluster.environment()).returncode
        print(json.dumps({"kubeconfig": cluster.kubeconfig, "url": cluster.url, "etcd": cluster.etcd,
                          "bin": cluster.bin}), flush=True)
        try:
            sys.stdin.read()
        except KeyboardInterrupt:
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
