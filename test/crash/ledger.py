"""What must hold whatever is killed: the ledger of acknowledged writes, and the rules of pods.

The ledger is told of every write before it is sent and of its answer; verify() reads everything
again and compares. observe() judges every list of pods that is seen, from whichever process.
"""
import threading
import time

from cluster import Failure, Gone

PARTIAL_GANG_S = 60
SLOW_MACHINE_S = 120  # on top, before a gang that is partly bound counts as left behind

NAMESPACE = "crash"
PATHS = {
    "ConfigMap": f"/api/v1/namespaces/{NAMESPACE}/configmaps",
    "Pod": f"/api/v1/namespaces/{NAMESPACE}/pods",
    "Job": f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs",
}


def head(kind, name, labels=None, annotations=None):
    versions = {"Job": "batch/v1"}
    meta = {"name": name, "namespace": NAMESPACE}
    if labels:
        meta["labels"] = labels
    if annotations:
        meta["annotations"] = annotations
    return {"apiVersion": versions.get(kind, "v1"), "kind": kind, "metadata": meta}


def pod_spec(gpus):
    return {"schedulerName": "berth", "restartPolicy": "Never", "containers": [
        {"name": "main", "image": "busybox", "resources": {
            "requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": str(gpus)}}}]}


def pod(name, gpus, seconds):
    body = head("Pod", name, annotations={"sim.berth.dev/run-seconds": str(seconds)})
    body["spec"] = pod_spec(gpus)
    return body


def job(name, pods, gpus, seconds, gang=False, queue=None):
    body = head("Job", name, {"kueue.x-k8s.io/queue-name": queue} if queue else None,
                {"berth.dev/gang": "true"} if gang else None)
    body["spec"] = {"suspend": bool(queue), "parallelism": pods, "completions": pods, "template": {
        "metadata": {"annotations": {"sim.berth.dev/run-seconds": str(seconds)}},
        "spec": pod_spec(gpus)}}
    return body


def config_map(name, value):
    body = head("ConfigMap", name)
    body["data"] = {"value": value}
    return body


class Ledger:
    def __init__(self):
        self.acknowledged = {}  # (kind, name) -> (uid, version, value)
        self.doubtful = {}      # (kind, name) -> [(method, value)] of writes without an answer
        self.deleted = set()    # (kind, name); names are not used again
        self.uids = {}          # uid -> (kind, name)
        self.latest = 0         # highest resourceVersion ever seen
        self.writes = 0
        self.lock = threading.Lock()
        self.watching = threading.Lock()
        self.observed = 0       # version of the latest list of pods
        self.places = {}        # uid of a pod -> (node, gpus)
        self.partial_since = {}  # name of a gang -> monotonic time
        self.gangs = {}          # name of a job that is a gang -> pods

    # ---- writes ----

    def write(self, api, method, kind, name, body=None):
        """True: acknowledged. None: no answer. False: refused, nothing changed."""
        value = (body or {}).get("data", {}).get("value")
        key = (kind, name)
        path = PATHS[kind] if method == "POST" else f"{PATHS[kind]}/{name}"
        try:
            status, answer = api.call(method, path, body)
        except Gone:
            self.doubtful.setdefault(key, []).append((method, value))
            return None
        if status >= 500 or status in (401, 429):
            self.doubtful.setdefault(key, []).append((method, value))
            return None
        if status >= 300:
            return False
        self.writes += 1
        if method == "DELETE":
            self.acknowledged.pop(key, None)
            self.deleted.add(key)
            return True
        uid, version = self.seen(kind, answer)
        if key in self.acknowledged and self.acknowledged[key][0] != uid:
            raise Failure(f"{kind} {name} changed its uid from {self.acknowledged[key][0]} to {uid}")
        if key in self.acknowledged and self.acknowledged[key][1] >= version:
            raise Failure(f"{kind} {name}: an acknowledged write has version {version}, the one "
                          f"before it {self.acknowledged[key][1]}")
        self.acknowledged[key] = (uid, version, value)
        return True

    def seen(self, kind, thing):
        meta = thing["metadata"]
        uid, version = meta["uid"], int(meta["resourceVersion"])
        with self.lock:
            owner = self.uids.setdefault(uid, (kind, meta["name"]))
            if owner != (kind, meta["name"]):
                raise Failure(f"uid {uid} of {kind} {meta['name']} was that of {owner}")
            self.latest = max(self.latest, version)
        return uid, version

    # ---- after a restart ----

    def verify(self, api):
        """Everything acknowledged is there; versions went on."""
        highest_before = self.latest
        for kind, path in PATHS.items():
            found = api.get(path)
            if int(found["metadata"]["resourceVersion"]) < highest_before:
                raise Failure(f"{path}: version {found['metadata']['resourceVersion']} after "
                              f"{highest_before} was seen")
            self.verify_kind(kind, {item["metadata"]["name"]: item for item in found["items"]})
        self.doubtful.clear()

    def verify_kind(self, kind, items):
        for (a_kind, name), (uid, version, value) in list(self.acknowledged.items()):
            if a_kind != kind:
                continue
            item = items.get(name)
            maybe = self.doubtful.get((kind, name), [])
            if item is None:
                if any(method == "DELETE" for method, _ in maybe):
                    del self.acknowledged[(kind, name)]
                    continue
                raise Failure(f"{kind} {name} was acknowledged with version {version} and is gone")
            now_uid, now_version = self.seen(kind, item)
            if now_uid != uid or now_version < version:
                raise Failure(f"{kind} {name} was {uid} version {version}, is {now_uid} version "
                              f"{now_version}")
            now_value = item.get("data", {}).get("value")
            allowed = [value] + [v for method, v in maybe if method != "DELETE"]
            if value is not None and now_value not in allowed:
                raise Failure(f"{kind} {name} was acknowledged as {value}, is {now_value}")
            self.acknowledged[(kind, name)] = (uid, now_version, now_value)
        for (a_kind, name), _ in self.doubtful.items():
            if a_kind == kind and name in items and (kind, name) not in self.acknowledged:
                uid, version = self.seen(kind, items[name])
                value = items[name].get("data", {}).get("value")
                self.acknowledged[(kind, name)] = (uid, version, value)
        for a_kind, name in self.deleted:
            if a_kind == kind and name in items:
                raise Failure(f"{kind} {name} was deleted and is there again")

    # ---- pods ----

    def observe(self, pods):
        """A list of all pods at one version. One that another thread has overtaken is let go."""
        with self.watching:
            version = int(pods["metadata"]["resourceVersion"])
            if version < self.observed:
                return
            self.observed = version
            self.judge(pods["items"])

    def judge(self, pods):
        taken = {}
        bound_of = {}
        for item in pods:
            uid, _ = self.seen("Pod", item)
            name = item["metadata"]["name"]
            node = item["spec"].get("nodeName")
            phase = item.get("status", {}).get("phase")
            marks = item["metadata"].get("annotations", {})
            gpus = tuple(int(g) for g in marks.get("berth.dev/gpus", "").split(",") if g)
            if phase == "Failed":
                raise Failure(f"pod {name} failed: {item['status'].get('reason')} "
                              f"{item['status'].get('message')}")
            owner = item["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name")
            if owner in self.gangs and "deletionTimestamp" not in item["metadata"]:
                bound_of.setdefault(owner, []).append(bool(node))
            if not node:
                if uid in self.places:
                    raise Failure(f"pod {name} was bound to {self.places[uid][0]} and is not")
                continue
            before = self.places.setdefault(uid, (node, gpus))
            if before != (node, gpus):
                raise Failure(f"pod {name} moved from {before} to {(node, gpus)}")
            asked = int(item["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])
            if len(gpus) != asked:
                raise Failure(f"pod {name} asks for {asked} GPUs and was given {gpus}")
            if phase == "Succeeded":
                continue
            for gpu in gpus:
                other = taken.setdefault((node, gpu), name)
                if other != name:
                    raise Failure(f"GPU {gpu} of {node} is given to {other} and {name}")
        self.judge_gangs(bound_of)

    def judge_gangs(self, bound_of):
        now = time.monotonic()
        for name, bound in bound_of.items():
            # Some bound and some not, or some of the whole not there yet while others run.
            if any(bound) and sum(bound) < self.gangs[name]:
                since = self.partial_since.setdefault(name, now)
                if now - since > PARTIAL_GANG_S + SLOW_MACHINE_S:
                    raise Failure(f"gang {name} has {sum(bound)} of {self.gangs[name]} pods bound "
                                  f"for {now - since:.0f} s")
            else:
                self.partial_since.pop(name, None)

    def restart_clocks(self):
        """Nobody can finish a gang while everybody is dead."""
        self.partial_since.clear()

    def finished(self, api):
        """True when every job and pod that was acknowledged has come to its end."""
        found = api.get(PATHS["Pod"])
        self.observe(found)
        pods = found["items"]
        jobs = {item["metadata"]["name"]: item for item in api.get(PATHS["Job"])["items"]}
        phases = {item["metadata"]["name"]: item.get("status", {}).get("phase") for item in pods}
        waiting = []
        for kind, name in self.acknowledged:
            if kind == "Pod" and phases.get(name) != "Succeeded":
                waiting.append(f"pod {name} {phases.get(name)}")
            if kind == "Job":
                conditions = {c["type"]: c["status"]
                              for c in jobs[name].get("status", {}).get("conditions", [])}
                if conditions.get("Failed") == "True":
                    raise Failure(f"job {name} failed")
                if conditions.get("Complete") != "True":
                    waiting.append(f"job {name}")
        self.waiting = waiting
        return not waiting
