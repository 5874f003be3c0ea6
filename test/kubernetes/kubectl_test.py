#!/usr/bin/env python3
"""kubectl 1.37 drives an API server as people do: the embedded one or the real one.

    kubectl_test.py --name embedded|real [--kubeconfig FILE]

Every check is one command line and what must come of it; the server is thrown away afterwards.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster  # noqa: E402

WAIT = 60  # seconds for what must happen

POD = """{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "%s", "labels": {"app": "%s"}},
 "spec": {"nodeName": "%s", "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "i"}]}}"""
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: klamps.kubectl.example.com
spec:
  group: kubectl.example.com
  scope: Namespaced
  names: {plural: klamps, singular: klamp, kind: Klamp, shortNames: [klp]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Watts, type: integer, jsonPath: .spec.watts}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            description: What the lamp shall do.
            properties:
              watts: {type: integer, maximum: 100, description: Power of the lamp.}
"""
LAMP = """
apiVersion: kubectl.example.com/v1
kind: Klamp
metadata: {name: desk}
spec: {watts: 60}
"""


def configmap(name, data):
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})


class Checks:
    def __init__(self, kubectl, kubeconfig):
        self.kubectl, self.done, self.failed = kubectl, 0, []
        self.cache = tempfile.TemporaryDirectory(prefix="kubectl-")
        self.environment = {**os.environ, "KUBECONFIG": kubeconfig, "HOME": self.cache.name,
                            "KUBECACHEDIR": self.cache.name}

    def run(self, *arguments, text=None, environment=None):
        return subprocess.run([self.kubectl, *arguments], input=text or "", capture_output=True, text=True,
                              timeout=10 * WAIT, env={**self.environment, **(environment or {})})

    def note(self, name, good, detail):
        self.done += 1
        if not good:
            self.failed.append(name)
            print(f"FAIL {name}\n     {detail}")

    def ok(self, line, *wanted, text=None, lacks=(), environment=None):
        """The command succeeds and its output holds every wanted text."""
        out = self.run(*split(line), text=text, environment=environment)
        missing = [w for w in wanted if w not in out.stdout + out.stderr]
        found = [w for w in lacks if w in out.stdout + out.stderr]
        self.note(line, out.returncode == 0 and not missing and not found,
                  f"exit code {out.returncode}, missing {missing}, unwanted {found}; "
                  f"stdout {out.stdout[-1500:]!r} stderr {out.stderr[-1500:]!r}")
        return out.stdout

    def refused(self, line, *wanted, text=None, code=1):
        """The command fails with a message, not with a crash."""
        out = self.run(*split(line), text=text)
        missing = [w for w in wanted if w not in out.stdout + out.stderr]
        self.note(line, out.returncode == code and not missing and "panic" not in out.stderr,
                  f"exit code {out.returncode} (wanted {code}), missing {missing}; "
                  f"stdout {out.stdout[-800:]!r} stderr {out.stderr[-800:]!r}")


def split(line):
    """Words; a word in single quotes may hold spaces."""
    out, quoted = [], False
    for part in line.split("'"):
        out += [part] if quoted else part.split()
        quoted = not quoted
    return out


def about_the_server(k):
    k.ok("version", "Server Version: v1.3")
    k.ok("cluster-info", "Kubernetes control plane", "is running at")
    k.ok("api-resources", "deployments", "deploy", "apps/v1", "customresourcedefinitions", "true")
    k.ok("api-resources --namespaced=false -o name", "nodes", "namespaces", lacks=["configmaps"])
    k.ok("api-resources --api-group=batch", "jobs", "cronjobs", lacks=["deployments"])
    k.ok("api-versions", "apps/v1", "batch/v1", "resource.k8s.io/v1", "policy/v1")
    k.ok("get --raw /readyz", "ok")
    k.ok("get --raw /version", "gitVersion")
    k.ok("auth can-i create pods", "yes")
    k.ok("auth can-i delete nodes", "yes")
    k.ok("auth whoami", "Username")


def apply_on_the_client(k):
    k.ok("create namespace t", "namespace/t created")
    k.ok("get ns t -o name", "namespace/t")
    k.ok("-n t apply -f -", "configmap/a created", text=configmap("a", {"k": "v", "l": "w"}))
    k.ok("-n t apply -f -", "configmap/a unchanged", text=configmap("a", {"k": "v", "l": "w"}))
    k.ok("-n t apply -f -", "configmap/a configured", text=configmap("a", {"k": "x"}))
    k.ok("-n t get cm a -o jsonpath={.data}", '{"k":"x"}', lacks=["w"])
    k.refused("-n t diff -f -", '-  k: x', '+  k: z', text=configmap("a", {"k": "z"}))
    k.ok("-n t diff -f -", text=configmap("a", {"k": "x"}))
    k.ok("-n t apply --dry-run=server -f -", "configured (server dry run)", text=configmap("a", {"k": "y"}))
    k.ok("-n t get cm a -o jsonpath={.data.k}", "x")
    k.refused("-n t apply -f -", 'unknown field "dota"', text=configmap("b", {}).replace('"data"', '"dota"'))
    k.refused("-n t create -f -", "AlreadyExists", text=configmap("a", {}))
    k.ok("-n t replace -f -", "configmap/a replaced", text=configmap("a", {"r": "1"}))


def apply_on_the_server(k):
    k.ok("-n t apply --server-side -f -", "configmap/s serverside-applied", text=configmap("s", {"k": "v"}))
    k.ok("-n t apply --server-side -f -", "serverside-applied", text=configmap("s", {"k": "v2"}))
    k.refused("-n t apply --server-side --field-manager=other -f -", 'conflict with "kubectl": .data.k',
              text=configmap("s", {"k": "w"}))
    k.ok("-n t apply --server-side --field-manager=other --force-conflicts -f -", "serverside-applied",
         text=configmap("s", {"k": "w"}))
    k.ok("-n t get cm s -o yaml --show-managed-fields", "manager: other", "operation: Apply")


def reading(k):
    for name in "pqrst":
        k.run("-n", "t", "create", "configmap", f"page-{name}", "--from-literal=k=v")
    k.ok("-n t get cm", "NAME", "DATA", "AGE", "page-p")
    k.ok("-n t get cm --chunk-size=2 -o name", "page-p", "page-q", "page-r", "page-s", "page-t")
    k.ok("-n t get cm page-p page-q -o name", "page-p", "page-q", lacks=["page-r"])
    k.ok("get cm -A --field-selector metadata.name=page-p", "NAMESPACE", "page-p", lacks=["page-q"])
    k.ok("-n t get cm --sort-by=.metadata.name -o custom-columns=N:.metadata.name", "N\n", "page-p")
    k.ok("-n t get cm a -o json", '"kind": "ConfigMap"')
    k.ok("-n t get cm a -o yaml", "kind: ConfigMap", "resourceVersion:")
    k.ok("-n t get cm -o 'go-template={{range .items}}{{.metadata.name}},{{end}}'", "page-p,page-q,")
    k.ok("-n t get cm a -o wide", "NAME")
    k.refused("-n t get cm nope", 'Error from server (NotFound): configmaps "nope" not found')
    k.refused("get nothings", 'the server doesn\'t have a resource type "nothings"')
    k.ok("-n t get cm nope --ignore-not-found")
    k.ok("-n t get all", "No resources found in t namespace.")
    k.ok("explain pod.spec.containers", "FIELD: containers", "image", "imagePullPolicy")
    k.ok("explain job.spec.parallelism", "FIELD: parallelism", "integer")
    k.ok("explain deployment --recursive", "strategy", "rollingUpdate")
    k.refused("explain pod.spec.nope", "nope")


def changing(k):
    k.ok("-n t label cm a x=y", "configmap/a labeled")
    k.refused("-n t label cm a x=z", "already has a value")
    k.ok("-n t label cm a x=z --overwrite", "labeled")
    k.ok("-n t get cm -l x=z --show-labels", "x=z", lacks=["page-p"])
    k.ok("-n t label cm a x-", "unlabeled")
    k.ok("-n t annotate cm a note=hello", "annotated")
    k.ok("-n t patch cm a --type merge -p '{\"data\":{\"m\":\"1\"}}'", "configmap/a patched")
    k.ok("-n t patch cm a --type json -p '[{\"op\":\"add\",\"path\":\"/data/j\",\"value\":\"1\"}]'", "patched")
    k.ok("-n t patch cm a -p '{\"data\":{\"s\":\"1\"}}'", "patched")
    k.ok("-n t patch cm a -p '{\"data\":{\"s\":\"1\"}}'", "patched (no change)")
    k.ok("-n t get cm a -o jsonpath={.data.m}{.data.j}{.data.s}", "111")
    k.ok("-n t edit cm a", "configmap/a edited", environment={"KUBE_EDITOR": "sed -i s/hello/goodbye/"})
    k.ok("-n t get cm a -o jsonpath={.metadata.annotations.note}", "goodbye")
    k.ok("-n t wait cm/a --for=jsonpath={.data.m}=1 --timeout=60s", "condition met")
    k.ok("-n t delete cm a", 'configmap "a" deleted')
    k.ok("-n t delete cm a --ignore-not-found")
    k.refused("-n t delete cm a", "NotFound")
    k.ok("-n t delete cm page-p page-q", "page-p", "page-q")


def workloads(k):
    k.ok("-n t create deployment d --image=one --replicas=0", "deployment.apps/d created")
    k.ok("-n t get deploy d", "READY", "UP-TO-DATE", "0/0")
    k.ok("-n t scale deployment d --replicas=2", "deployment.apps/d scaled")
    k.refused("-n t scale deployment d --replicas=9 --current-replicas=7", "Expected replicas to be 7, was 2")
    k.ok("-n t get deploy d --subresource=scale -o jsonpath={.spec.replicas}", "2")
    k.ok("-n t set image deployment/d one=two", "image updated")
    k.ok("-n t set env deployment/d A=b", "env updated")
    k.ok("-n t set resources deployment/d --limits=nvidia.com/gpu=1", "resource requirements updated")
    k.ok("-n t rollout restart deployment/d", "restarted")
    k.ok("-n t rollout pause deployment/d", "paused")
    k.ok("-n t rollout resume deployment/d", "resumed")
    k.ok("-n t describe deployment d", "two", "StrategyType:", "nvidia.com/gpu:")
    k.ok("-n t create job j --image=i -- train --steps 5", "job.batch/j created")
    k.ok("-n t get job j", "STATUS", "COMPLETIONS", "0/1")
    k.ok("-n t describe job j", "Parallelism:", "Completions:")
    k.ok("-n t create cronjob c --image=i '--schedule=0 0 1 1 *'", "cronjob.batch/c created")
    k.ok("-n t create job from-c --from=cronjob/c", "job.batch/from-c created")
    k.ok("-n t patch deployment d --subresource=status --type merge -p '{\"status\":{\"observedGeneration\":1}}'",
         "patched")
    k.ok("-n t wait deploy/d --for=jsonpath={.status.observedGeneration}=1 --timeout=60s", "condition met")
    k.ok("-n t delete deployment d --cascade=orphan --wait=false", "deleted")
    k.ok("-n t delete job j --cascade=background", "deleted")


def other_kinds(k):
    k.ok("-n t create secret generic pw --from-literal=p=q", "secret/pw created")
    k.ok("-n t describe secret pw", "p:  1 bytes")
    k.ok("-n t create serviceaccount robot", "serviceaccount/robot created")
    k.ok("-n t create quota q --hard=pods=50", "resourcequota/q created")
    k.ok("-n t create role r --verb=get --resource=pods", "role.rbac.authorization.k8s.io/r created")
    k.ok("-n t create rolebinding rb --role=r --user=u", "rolebinding.rbac.authorization.k8s.io/rb created")
    k.ok("-n t create service clusterip web --tcp=80", "service/web created")
    k.ok("create priorityclass high --value=1000", "priorityclass.scheduling.k8s.io/high created")
    k.ok("-n t create poddisruptionbudget guard --selector=app=held --min-available=1",
         "poddisruptionbudget.policy/guard created")
    k.ok("-n t get pdb guard", "MIN AVAILABLE", "ALLOWED DISRUPTIONS")
    k.ok("apply -f -", "customresourcedefinition.apiextensions.k8s.io/klamps.kubectl.example.com created", text=CRD)
    k.ok("wait crd klamps.kubectl.example.com --for=condition=Established --timeout=60s", "condition met")
    k.ok("-n t apply -f -", "klamp.kubectl.example.com/desk created", text=LAMP)
    k.ok("-n t get klp", "NAME", "WATTS", "desk", "60")
    k.refused("-n t apply -f -", "should be less than or equal to 100", text=LAMP.replace("60", "600"))
    k.ok("explain klamp.spec", "What the lamp shall do.", "watts")
    k.ok("-n t delete klamp desk", "deleted")


def pods_and_nodes(k):
    node = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "%s"}}'
    k.ok("create -f -", "node/kn1 created", text=node % "kn1")
    k.ok("patch node kn1 --subresource=status --type merge -p "
         "'{\"status\":{\"capacity\":{\"nvidia.com/gpu\":\"8\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}'",
         "patched")
    k.ok("get nodes kn1", "STATUS", "Ready")
    k.ok("wait node kn1 --for=condition=Ready --timeout=60s", "condition met")
    k.ok("describe node kn1", "Capacity:", "nvidia.com/gpu:")
    k.ok("taint node kn1 dedicated=gpu:NoSchedule", "node/kn1 tainted")
    k.ok("taint node kn1 dedicated-", "node/kn1 untainted")
    k.ok("-n t run waiting --image=i --restart=Never", "pod/waiting created")
    k.ok("-n t get pod waiting -o wide", "Pending", "NODE", "<none>")
    k.ok("-n t describe pod waiting", "Image:", "Status:")
    k.ok("-n t create -f -", "pod/loose created", text=POD % ("loose", "loose", "kn1"))
    k.ok("-n t create -f -", "pod/held created", text=POD % ("held", "held", "kn1"))
    k.ok("-n t patch pod held --subresource=status --type merge -p "
         "'{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}'", "patched")
    k.ok("get pods -A --field-selector spec.nodeName=kn1 -o name", "pod/loose", "pod/held", lacks=["waiting"])
    k.refused("-n t logs loose", "rror")
    k.refused("-n t logs nope", 'pods "nope" not found')
    k.refused("-n t exec loose -- true", "rror")
    k.refused("top nodes", "Metrics API not available")
    k.ok("cordon kn1", "node/kn1 cordoned")
    k.ok("get node kn1", "SchedulingDisabled")
    k.ok("uncordon kn1", "node/kn1 uncordoned")
    k.ok("-n t patch pdb guard --subresource=status --type merge -p "
         "'{\"status\":{\"observedGeneration\":1,\"disruptionsAllowed\":0,\"currentHealthy\":1,\"desiredHealthy\":1,\"expectedPods\":1}}'",
         "patched")
    # The budget refuses for ever, so the drain ends at its deadline whatever the machine's speed.
    k.refused("drain kn1 --force --timeout=3s", "evicting pod t/loose", "disruption budget")
    k.ok("-n t get pods -o name", "pod/held", lacks=["pod/loose"])
    k.ok("-n t delete pdb guard", "deleted")
    k.ok("drain kn1 --force --timeout=60s", "node/kn1 drained")
    k.ok("-n t get pods -o name", "pod/waiting", lacks=["pod/held"])
    k.ok("-n t delete pod waiting --grace-period=0 --force", "force deleted")
    k.ok("delete node kn1", "deleted")


def watching(k):
    """get -w in the background sees what others do."""
    lines, came = [], threading.Condition()
    process = subprocess.Popen([k.kubectl, "-n", "t", "get", "cm", "-l", "w=1", "-w", "-o",
                                "jsonpath={.metadata.name}={.data.k};"],
                               stdout=subprocess.PIPE, text=True, env=k.environment)

    def read():
        while True:
            byte = process.stdout.read(1)
            with came:
                lines.append(byte)
                came.notify_all()
            if not byte:
                return

    threading.Thread(target=read, daemon=True).start()

    def sees(text):
        with came:
            seen = came.wait_for(lambda: text in "".join(lines), WAIT)
        k.note(f"get -w sees {text}", seen, "".join(lines))

    try:
        labelled = configmap("seen", {"k": "1"}).replace('"name"', '"labels": {"w": "1"}, "name"')
        k.ok("-n t create -f -", "created", text=labelled)
        sees("seen=1;")
        k.ok("-n t patch cm seen --type merge -p '{\"data\":{\"k\":\"2\"}}'", "patched")
        sees("seen=2;")
        k.ok("-n t delete cm seen", "deleted")
    finally:
        process.kill()
        process.wait()


def endings(k):
    held = configmap("stuck", {}).replace('"name"', '"finalizers": ["x.io/hold"], "name"')
    k.ok("-n t create -f -", "created", text=held)
    k.ok("-n t delete cm stuck --wait=false", "deleted")
    k.ok("-n t get cm stuck -o jsonpath={.metadata.deletionTimestamp}", "20")
    waiter = subprocess.Popen([k.kubectl, "-n", "t", "wait", "cm/stuck", "--for=delete", "--timeout=120s"],
                              stdout=subprocess.PIPE, text=True, env=k.environment)
    k.ok("-n t patch cm stuck --type merge -p '{\"metadata\":{\"finalizers\":null}}'", "patched")
    out, _ = waiter.communicate(timeout=3 * WAIT)
    # It may have looked only after the object was gone; both answers are the truth.
    k.note("wait --for=delete", waiter.returncode == 0 or "condition met" in out, out)
    k.ok("-n t delete cm --all", "deleted")
    k.ok("-n t create -f -", "event/e created", text=json.dumps({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "Tested", "type": "Normal",
        "message": "all is well", "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "t", "name": "p"},
        "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1}))
    k.ok("-n t get events", "LAST SEEN", "Tested", "all is well")
    k.ok("-n t events --for=pod/p", "Tested")
    k.ok("delete namespace t --wait=false", 'namespace "t" deleted')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--name", default="real")
    parser.add_argument("--kubeconfig", default=os.environ.get("KUBECONFIG"))
    options = parser.parse_args()
    k = Checks(os.path.join(cluster.tools("kubectl"), "kubectl"), os.path.abspath(options.kubeconfig))
    for part in (about_the_server, apply_on_the_client, apply_on_the_server, reading, changing, workloads,
                 other_kinds, pods_and_nodes, watching, endings):
        part(k)
    k.cache.cleanup()
    print(f"kubectl on {options.name}: {k.done} checks, {k.done - len(k.failed)} passed, {len(k.failed)} failed")
    return 1 if k.failed else 0


if __name__ == "__main__":
    sys.exit(main())
