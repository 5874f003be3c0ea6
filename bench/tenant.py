#!/usr/bin/env python3
"""One tenant makes the decision hard, another one wants a pod: how long it waits, through HTTP.

    bench/tenant.py [--pods 200] [--terms 300] [--nodes 100] [--victims 20] [--berth build/release/berth] [--smoke]

`berth up --no-controller` serves the API, `berth controller` with its lease is a process of its own. The
first tenant posts pods with so many anti-affinity terms each; then, while the controller works on them,
the second posts pods one after the other. Printed as one JSON line: seconds from the posting of each to its
binding (median and worst), how often the lease changed hands, CPU and memory of the controller. A second
line is the same with 100 terms in each pod, which are few enough for a pod and too many for a namespace, and a third
with ten namespaces that each bring as many as they may. In a fourth both have a queue, the first posts
--jobs Jobs of 500 shapes, and the wait is from the posting of the second one's Job to its pod's binding; in a
fifth it posts three Jobs of 75,000 pods with 3,000 labels and tolerations each.
"""
import argparse
import json
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from drain import pause, served, usage  # noqa: E402


def hard_pod(number, terms):
    affinity = [{"topologyKey": "kubernetes.io/hostname",
                 "labelSelector": {"matchLabels": {"app": f"x{number * terms + t}"}}} for t in range(terms)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"hard-{number}"},
            "spec": {"schedulerName": "berth",
                     "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": affinity}},
                     "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}


def plain_pod(name):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"schedulerName": "berth", "containers": [
                {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}


def kueue(kind, ns, name, spec):
    """Where and what to post for an object of Kueue."""
    where = f"namespaces/{ns}/" if ns else ""
    return (f"/apis/kueue.x-k8s.io/v1beta2/{where}{kind.lower()}s",
            {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec})


def queue(name):
    """A queue of half a node for a namespace, as objects to post."""
    covered = ["cpu", "memory", "nvidia.com/gpu"]
    quotas = [{"name": what, "nominalQuota": much} for what, much in zip(covered, ["1000", "4Ti", "4"])]
    groups = [{"coveredResources": covered, "flavors": [{"name": "any", "resources": quotas}]}]
    return [kueue("ClusterQueue", "", name, {"namespaceSelector": {}, "resourceGroups": groups}),
            kueue("LocalQueue", name, "q", {"clusterQueue": name})]


def job(name, gpus, cpus, pods):
    return {"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "q"}},
            "spec": {"suspend": True, "parallelism": pods, "completions": pods, "template": {"spec": {
                "restartPolicy": "Never", "schedulerName": "berth", "containers": [
                    {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpus), "memory": "1Gi"},
                                                              "limits": {"nvidia.com/gpu": str(gpus)}}}]}}}}


def giant(name, pods, rules):
    """A Job of pods that ask for next to nothing, with a template that is long."""
    out = job(name, 0, 0, pods)
    template = out["spec"]["template"]
    template["metadata"] = {"labels": {f"label-{n}": "x" for n in range(rules)}}
    template["spec"]["tolerations"] = [{"key": f"taint-{n}", "operator": "Exists"} for n in range(rules)]
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1m"}}
    return out


def bound(api, name):
    """Whether the victim's pod, or the pod of its Job, has a node."""
    pods = api.call("GET", "/api/v1/namespaces/victim/pods?labelSelector=batch.kubernetes.io/job-name%3D" + name)["items"]
    if not pods and not name.startswith("job"):
        pods = [api.call("GET", "/api/v1/namespaces/victim/pods/" + name)]
    return any(pod["spec"].get("nodeName") for pod in pods)


def run(options, tenants, pods, terms, jobs=0, giants=0):
    with served(options.berth, options.nodes) as (api, control):
        names = [f"tenant-{n}" for n in range(tenants)] + ["victim"]
        api.many([("/api/v1/namespaces", {"metadata": {"name": name}}) for name in names])
        queued = jobs or giants
        if queued:
            api.many([kueue("ResourceFlavor", "", "any", {})] + [post for name in names for post in queue(name)])
        controller = control()
        api.many([(f"/api/v1/namespaces/{name}/pods", hard_pod(n, terms))
                  for n in range(pods) for name in names[:-1]])
        api.many([("/apis/batch/v1/namespaces/tenant-0/jobs",
                   job(f"flood-{n}", 1 + n % 8, 1 + n // 8 % 8, 1 + n // 64 % 8)) for n in range(jobs)])
        api.many([("/apis/batch/v1/namespaces/tenant-0/jobs", giant(f"giant-{n}", 75_000, 3_000))
                  for n in range(giants)])
        waits = []
        for n in range(options.victims):
            start = time.monotonic()
            name = f"job-{n}" if queued else f"v{n}"
            if queued:
                api.call("POST", "/apis/batch/v1/namespaces/victim/jobs", job(name, 1, 1, 1))
            else:
                api.call("POST", "/api/v1/namespaces/victim/pods", plain_pod(name))
            while not bound(api, name):
                waited = time.monotonic() - start
                if waited > 120:
                    raise RuntimeError("a pod of the other tenant is not bound after two minutes")
                pause(0.01)
            waits.append(time.monotonic() - start)
            if queued:
                api.call("DELETE", f"/apis/batch/v1/namespaces/victim/jobs/{name}")
        lease = api.call("GET", "/apis/coordination.k8s.io/v1/namespaces/berth-system/leases/berth-controller")
        cpu, memory = usage(controller.pid)
        print(json.dumps({"tenants": tenants, "pods": pods, "terms": terms, "jobs": jobs, "giants": giants, "nodes": options.nodes,
                          "median_s": round(statistics.median(waits), 3), "worst_s": round(max(waits), 3),
                          "lease_transitions": lease["spec"]["leaseTransitions"],
                          "controller_cpu_s": round(cpu, 2), "controller_mb": round(memory)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--berth", default="build/release/berth")
    parser.add_argument("--pods", type=int, default=200)
    parser.add_argument("--terms", type=int, default=300)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--victims", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=3000)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    if options.smoke:
        options.pods, options.nodes, options.victims, options.jobs = 20, 10, 2, 50
    run(options, 1, options.pods, options.terms)
    run(options, 1, options.pods, 100)
    run(options, 1 if options.smoke else 10, min(options.pods, 40), 100)
    run(options, 1, 0, 0, options.jobs)
    run(options, 1, 0, 0, giants=3)


if __name__ == "__main__":
    main()
