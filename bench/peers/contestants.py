"""How each contestant is started on a Rig, and how its pods, gangs and queues look.

Client limits are raised for all (5,000 requests a second, bursts of 10,000; berth has none). Packing is asked
for where it is a setting, so that all fill nodes alike. None runs with leader election.
"""
import glob
import os
import subprocess

from measure import GPU, HERE, ROOT, control_plane, free_port, pod

QPS, BURST = 5000, 10000
KUEUE_API = "/apis/kueue.x-k8s.io/v1beta2"
QUEUE = "kueue.x-k8s.io/queue-name"


def build(*programs):
    """The folder with the peers' programs; builds what is missing."""
    tool = os.path.join(ROOT, "test", "kubernetes", "build-tools")
    return subprocess.run([tool, "--modules", os.path.join(HERE, "modules"), *programs], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.strip()


def module(path):
    """Where Go keeps the sources of a module (capitals are written as ! and the small letter)."""
    cache = subprocess.run(["go", "env", "GOMODCACHE"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    return os.path.join(cache, "".join("!" + c.lower() if c.isupper() else c for c in path))


class Contestant:
    users, api_flags, programs = [], [], []
    needs_queues = False  # also where the workload is not about them
    notes = {}  # work: what is to be known of it

    def prepare(self, rig):
        """What stands before the load: kinds and queues."""

    def queues(self, rig, each):
        """Queues "a" and "b" of so many GPUs each; what one does not use the other may borrow."""

    def gang(self, name, size):
        """(path, object) of a gang's own object, or None; its pods carry gang=name."""

    def gang_path(self, name):
        """Of the object that says how a gang fares."""
        return f"{self.gang(name, 1)[0]}/{name}"


class Kube(Contestant):
    name, version, users = "kube-scheduler", "1.37.1", ["kube-scheduler"]
    api_flags = list(control_plane.GROUPS)
    notes = {"b": "gate GenericWorkload (beta, off by default)", "c": "gate GenericWorkload",
             "d": "no queues: preemption by priority"}

    def queues(self, rig, each):
        for name, value in (("a", 1000), ("b", 2000)):
            rig.api.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses",
                         {"metadata": {"name": f"of-{name}"}, "value": value})

    def start(self, rig):
        config = rig.cluster.path("scheduler.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"""apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {rig.cluster.kubeconfig_of('kube-scheduler')}, qps: {QPS}, burst: {BURST}}}
leaderElection: {{leaderElect: false}}
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{{name: {GPU}, weight: 10}}, {{name: cpu, weight: 1}}]
""")
        program = os.path.join(control_plane.tools("kube-scheduler"), "kube-scheduler")
        gates = [flag for flag in self.api_flags if "gates" in flag]  # it waits for kinds that the server lacks
        rig.spawn("kube-scheduler", [program, "--config", config, "--secure-port=0", *gates])

    def pod(self, name, gpus=1, queue=None, gang=None, size=0):
        body = pod(name, gpus, "default-scheduler")
        if queue:
            body["spec"]["priorityClassName"] = f"of-{queue}"
        if gang:
            body["spec"]["schedulingGroup"] = {"podGroupName": gang}
        return body

    def gang(self, name, size):
        return "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups", {
            "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": name},
            "spec": {"schedulingPolicy": {"gang": {"minCount": size}}}}


class KueueQueues:
    """Queues of Kueue, for Kueue and for berth: the same objects for both."""

    @staticmethod
    def make(rig, names, each):
        kind = lambda what: {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": what}
        # 128 CPUs and 2 TiB a node, as many as there are: GPUs decide.
        amounts = {GPU: each, "cpu": each * 16, "memory": f"{each * 256}Gi"}
        flavors = [{"name": "default", "resources": [{"name": k, "nominalQuota": v} for k, v in amounts.items()]}]
        rig.api.call("POST", f"{KUEUE_API}/resourceflavors", {**kind("ResourceFlavor"), "metadata": {"name": "default"}})
        for name in names:
            rig.api.call("POST", f"{KUEUE_API}/clusterqueues", {
                **kind("ClusterQueue"), "metadata": {"name": name}, "spec": {
                    "namespaceSelector": {}, "cohortName": "all", "preemption": {"reclaimWithinCohort": "Any"},
                    "resourceGroups": [{"coveredResources": list(amounts), "flavors": flavors}]}})
            rig.api.call("POST", f"{KUEUE_API}/namespaces/default/localqueues", {
                **kind("LocalQueue"), "metadata": {"name": name}, "spec": {"clusterQueue": name}})

    @staticmethod
    def gang_path(name):
        return f"{KUEUE_API}/namespaces/default/workloads/{name}"

    @staticmethod
    def label(body, queue, gang=None, size=0):
        """As Kueue's webhook leaves a pod, but for the finalizer, which Kueue alone takes away."""
        meta = body["metadata"]
        meta["labels"].update({QUEUE: queue, "kueue.x-k8s.io/managed": "true"})
        body["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
        if gang:
            meta["labels"]["kueue.x-k8s.io/pod-group-name"] = gang
            meta["annotations"]["kueue.x-k8s.io/pod-group-total-count"] = str(size)
        return body


class Kueue(Kube):
    name, version, users = "kueue", "0.19.2 + kube-scheduler 1.37.1", ["kueue", "kube-scheduler"]
    api_flags, programs, needs_queues = [], ["kueue"], True
    notes = {"b": "admitted as a whole, bound pod by pod", "c": "admitted by quota, then waits in kube-scheduler"}

    def prepare(self, rig):
        rig.apply(*sorted(glob.glob(module("sigs.k8s.io/kueue@v0.19.2") + "/config/components/crd/bases/*.yaml")))
        rig.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "kueue-system"}})

    def queues(self, rig, each):
        KueueQueues.make(rig, ("a", "b"), each)

    def start(self, rig):
        webhook, health = free_port(), free_port()
        # Kueue looks for a certificate of its metrics in /etc, metrics or not: it gets an /etc of its own.
        etc = rig.cluster.path("kueue-etc")
        certificates = etc + "/kueue/metrics/certs"
        if not os.path.exists(certificates):
            os.makedirs(certificates)
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost",
                            "-keyout", f"{certificates}/tls.key", "-out", f"{certificates}/tls.crt"], check=True,
                           stderr=subprocess.DEVNULL)
        config = rig.cluster.path("kueue.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"""apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: kueue-system
health: {{healthProbeBindAddress: "127.0.0.1:{health}"}}
metrics: {{bindAddress: "0"}}
webhook: {{host: 127.0.0.1, port: {webhook}, certDir: {certificates}}}
leaderElection: {{leaderElect: false}}
controller:
  groupKindConcurrency: {{Pod: 20, Workload.kueue.x-k8s.io: 20, LocalQueue.kueue.x-k8s.io: 5,
    ClusterQueue.kueue.x-k8s.io: 5, ResourceFlavor.kueue.x-k8s.io: 1}}
clientConnection: {{qps: {QPS}, burst: {BURST}}}
internalCertManagement: {{enable: false}}
integrations: {{frameworks: [pod]}}
featureGates: {{VisibilityOnDemand: false, DisableWaitForPodsReady: true}}
""")
        rig.spawn("kueue", ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc && exec "$@"', etc,
                            os.path.join(build("kueue"), "kueue"), "--config", config, "--kubeconfig",
                            rig.cluster.kubeconfig_of("kueue"), "--zap-log-level", "error"])
        super().start(rig)

    def pod(self, name, gpus=1, queue=None, gang=None, size=0):
        body = KueueQueues.label(pod(name, gpus, "default-scheduler"), queue or "a", gang, size)
        body["metadata"]["finalizers"] = ["kueue.x-k8s.io/managed"]
        return body

    def gang(self, name, size):
        return None

    def gang_path(self, name):
        return KueueQueues.gang_path(name)


class Kai(Contestant):
    name, version = "kai", "0.12.0"
    users = ["kai", "kai-binder", "kai-podgrouper"]
    programs, needs_queues = ["kai-scheduler", "kai-binder", "kai-podgrouper"], True
    API = "/apis/scheduling.run.ai"

    def prepare(self, rig):
        crds = module("github.com/NVIDIA/KAI-scheduler@v0.12.0") + "/deployments/kai-scheduler/crds/*.yaml"
        rig.apply(*sorted(glob.glob(crds)))
        for name in ("kai-scheduler", "kai-resource-reservation"):
            rig.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        for name, value in (("train", 50), ("build-preemptible", 75), ("build", 100), ("inference", 125)):
            rig.api.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses",
                         {"metadata": {"name": name}, "value": value})

    def queues(self, rig, each):
        for name, quota in (("all", -1), ("a", each), ("b", each)):
            amount = lambda of: {"quota": of, "limit": -1, "overQuotaWeight": 1}
            rig.api.call("POST", f"{self.API}/v2/queues", {
                "apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name},
                "spec": ({} if name == "all" else {"parentQueue": "all"}) | {"resources": {
                    "cpu": amount(-1), "memory": amount(-1), "gpu": amount(quota)}}})

    def start(self, rig):
        programs = build(*self.programs)
        listen = lambda: f"127.0.0.1:{free_port()}"
        common = lambda user: ["--kubeconfig", rig.cluster.kubeconfig_of(user), "--qps", str(QPS), "--burst",
                               str(BURST), "--max-concurrent-reconciles", "100", "--metrics-bind-address", listen(),
                               "--health-probe-bind-address", listen()]
        rig.spawn("kai-podgrouper", [f"{programs}/kai-podgrouper", *common("kai-podgrouper")])
        rig.spawn("kai-binder", [f"{programs}/kai-binder", *common("kai-binder"), "--fake-gpu-nodes"])
        rig.spawn("kai-scheduler", [
            f"{programs}/kai-scheduler", "--qps", str(QPS), "--burst", str(BURST), "--schedule-period", "1s",
            "--leader-elect=false", "--listen-address", listen(), "--plugin-server-port", str(free_port()), "--v", "1"],
            {"NAMESPACE": "kai-scheduler", "KUBECONFIG": rig.cluster.kubeconfig_of("kai")})

    def pod(self, name, gpus=1, queue=None, gang=None, size=0):
        body = pod(name, gpus, "kai-scheduler")
        body["metadata"]["labels"]["kai.scheduler/queue"] = queue or "a"
        if gang:
            body["metadata"]["annotations"]["pod-group-name"] = gang
        return body

    def gang(self, name, size):
        return f"{self.API}/v2alpha2/namespaces/default/podgroups", {
            "apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"name": name},
            "spec": {"minMember": size, "queue": "a", "priorityClassName": "train"}}


class Volcano(Contestant):
    name, version, users = "volcano", "1.14.1", ["volcano", "volcano-controllers"]
    programs = ["volcano-scheduler", "volcano-controller-manager"]
    notes = {"d": "actions reclaim and preempt, plugin capacity"}
    API = "/apis/scheduling.volcano.sh/v1beta1"

    def prepare(self, rig):
        crds = module("volcano.sh/volcano@v1.14.1") + "/config/crd"
        rig.apply(*sorted(glob.glob(crds + "/volcano/bases/*.yaml") + glob.glob(crds + "/jobflow/bases/*.yaml")))
        self.reclaims = False

    def queues(self, rig, each):
        self.reclaims = True
        for name in ("a", "b"):
            rig.api.call("POST", f"{self.API}/queues", {
                "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name},
                "spec": {"weight": 1, "reclaimable": True, "parent": "root", "deserved": {
                    GPU: str(each), "cpu": str(each * 16), "memory": f"{each * 256}Gi"}}})

    def start(self, rig):
        config = rig.cluster.path("volcano.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"""actions: "enqueue, allocate, {'reclaim, ' if self.reclaims else ''}backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: {'capacity' if self.reclaims else 'proportion'}
  - name: nodeorder
  - name: binpack
    arguments:
      binpack.weight: 10
      binpack.resources: {GPU}
      binpack.resources.{GPU}: 8
""")
        programs = build(*self.programs)
        common = lambda user: [
            "--kubeconfig", rig.cluster.kubeconfig_of(user), "--kube-api-qps", str(QPS), "--kube-api-burst", str(BURST),
            "--leader-elect=false", "--listen-address", f"127.0.0.1:{free_port()}", "--healthz-address",
            f"127.0.0.1:{free_port()}"]
        rig.spawn("volcano-controllers", [
            f"{programs}/volcano-controller-manager", *common("volcano-controllers"), "--worker-threads-for-podgroup",
            "20", "--scheduler-name", "volcano"])
        rig.spawn("volcano-scheduler", [
            f"{programs}/volcano-scheduler", *common("volcano"), "--schedule-period", "200ms", "--scheduler-conf", config,
            "--percentage-nodes-to-find", "0", "--v", "1"])

    def pod(self, name, gpus=1, queue=None, gang=None, size=0):
        body = pod(name, gpus, "volcano")
        if queue:
            body["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] = queue
        if gang:
            body["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = gang
        return body

    def gang(self, name, size):
        return f"{self.API}/namespaces/default/podgroups", {
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": name},
            "spec": {"minMember": size, "queue": "default"}}


class Berth(Contestant):
    name, version, users = "berth", "", ["berth"]
    notes = {"d": "Kueue's queues"}
    program, flags = "", []

    def prepare(self, rig):
        rig.apply(*[os.path.join(ROOT, "deploy", "crds", f"{name}.yaml")
                    for name in ("kueue", "coscheduling", "gpunodes")])

    def queues(self, rig, each):
        KueueQueues.make(rig, ("a", "b"), each)

    def start(self, rig):
        rig.spawn("berth", [self.program, "controller", "--kubeconfig", rig.cluster.kubeconfig_of("berth"),
                            "--no-election", "--log-level", "warn", *self.flags])

    def pod(self, name, gpus=1, queue=None, gang=None, size=0):
        body = pod(name, gpus, "berth")
        if queue:
            KueueQueues.label(body, queue)
        if gang:
            body["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = gang
        return body

    def gang(self, name, size):
        return "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups", {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": name},
            "spec": {"minMember": size}}


class BerthQueues(Berth):
    """berth with the very objects that Kueue gets: every pod waits in a queue and has a Workload."""
    name, needs_queues = "berth-queues", True
    notes = {"*": "the same objects as Kueue"}

    def pod(self, name, gpus=1, queue=None, gang=None, size=0):
        return KueueQueues.label(pod(name, gpus, "berth"), queue or "a", gang, size)

    def gang(self, name, size):
        return None

    def gang_path(self, name):
        return KueueQueues.gang_path(name)


ALL = [Berth, BerthQueues, Kube, Kueue, Kai, Volcano]
