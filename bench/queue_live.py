#!/usr/bin/env python3
"""What one Job of a queue costs the controller on a cluster that is full: one leaves, one comes.

    bench/queue_live.py [--nodes 250] [--waiting 0] [--queues 10] [--forms 1] [--pairs 20] [--settle 5]
                        [--berth build/release/berth] [--smoke]

`berth up --no-controller` serves the API with simulated nodes of 8 GPUs, `berth controller` is a process
of its own. One-pod Jobs of 8 GPUs fill every node, --waiting more wait; --forms: so many different
requests of CPU. Then, one after the other, a Job that runs is deleted and one is posted, and the time
counts from there until a Job of the queue begins that did not run before: the next in line.
One JSON line: CPU of the controller for one pair (the mean), seconds to running (median and worst), and
the highest resident size of the controller.
"""
import argparse
import json
import os
import statistics
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from drain import pause, served, usage  # noqa: E402
from tenant import kueue  # noqa: E402

JOBS = "/apis/batch/v1/namespaces/{}/jobs"


def queue_of(number, queues, nodes):
    covered = ["cpu", "memory", "nvidia.com/gpu"]
    share = -(-nodes // queues) * 8
    quotas = [{"name": what, "nominalQuota": much} for what, much in zip(covered, ["100000", "100Ti", str(share)])]
    groups = [{"coveredResources": covered, "flavors": [{"name": "any", "resources": quotas}]}]
    name = f"team-{number}"
    return [kueue("ClusterQueue", "", name, {"namespaceSelector": {}, "cohortName": "all", "resourceGroups": groups}),
            kueue("LocalQueue", name, "q", {"clusterQueue": name})]


def job(number, forms):
    resources = {"requests": {"cpu": str(1 + number % forms % 64), "memory": f"{1 + number % forms // 64}Gi"},
                 "limits": {"nvidia.com/gpu": "8"}}
    return {"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": f"job-{number}", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
            "spec": {"suspend": True, "template": {"spec": {
                "restartPolicy": "Never", "schedulerName": "berth",
                "containers": [{"name": "c", "image": "i", "resources": resources}]}}}}


class Running:
    """Jobs ("namespace/name") whose pod runs, and those that began since they were last asked for: by a watch."""

    def __init__(self, api):
        self.now, self.fresh, self.news = set(), [], threading.Condition()
        self.api = api
        version = api.call("GET", "/api/v1/pods?limit=1")["metadata"]["resourceVersion"]
        self.connection = api.connect()
        self.connection.request("GET", f"/api/v1/pods?watch=1&resourceVersion={version}", headers=api.headers)
        self.connection.sock.settimeout(None)
        self.stream = self.connection.getresponse()
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        for line in self.stream:
            event = json.loads(line)
            pod = event["object"]
            name = f"{pod['metadata'].get('namespace')}/{pod['metadata'].get('labels', {}).get('job-name')}"
            with self.news:
                if event["type"] == "DELETED":
                    self.now.discard(name)
                elif pod["status"].get("phase") == "Running" and name not in self.now:
                    self.now.add(name)
                    self.fresh.append(name)
                    self.news.notify()

    def until(self, done, seconds, what):
        with self.news:
            if not self.news.wait_for(done, seconds):
                raise RuntimeError(f"{what}: not after {seconds} s; {len(self.now)} Jobs run")


def post(api, number, options):
    team = f"team-{number % options.queues}"
    api.call("POST", JOBS.format(team), job(number, options.forms))


def fill(api, running, options):
    """Every node has a Job; the rest wait."""
    api.many([(JOBS.format(f"team-{n % options.queues}"), job(n, options.forms))
              for n in range(options.nodes + options.waiting)])
    running.until(lambda: len(running.now) >= options.nodes, 900, "every node has a Job")


def pairs(api, running, options, controller):
    """A Job leaves, one of its queue comes, and one of the queue begins."""
    waits, number = [], options.nodes + options.waiting
    leaving = sorted(running.now, key=lambda name: int(name.rsplit("-", 1)[1]))[:options.pairs]
    before = usage(controller.pid)[0]
    for one in leaving:
        team, name = one.split("/")
        while number % options.queues != int(team.split("-")[1]):
            number += 1
        with running.news:
            running.fresh.clear()
        start = time.monotonic()
        api.call("DELETE", JOBS.format(team) + f"/{name}?propagationPolicy=Background")
        post(api, number, options)
        number += 1
        running.until(lambda: running.fresh, 300, f"somebody begins after {one}")
        waits.append(time.monotonic() - start)
    return waits, (usage(controller.pid)[0] - before) / options.pairs


def run(options):
    with served(options.berth, options.nodes) as (api, control):
        teams = range(options.queues)
        api.many([("/api/v1/namespaces", {"metadata": {"name": f"team-{n}"}}) for n in teams])
        api.many([kueue("ResourceFlavor", "", "any", {})]
                 + [one for n in teams for one in queue_of(n, options.queues, options.nodes)])
        controller = control()
        running = Running(api)
        begin = time.monotonic()
        fill(api, running, options)
        filled = time.monotonic() - begin
        pause(options.settle)
        waits, cpu = pairs(api, running, options, controller)
        memory = usage(controller.pid)[1]
        print(json.dumps({"nodes": options.nodes, "waiting": options.waiting, "queues": options.queues,
                          "forms": options.forms, "pairs": options.pairs, "fill_s": round(filled, 1),
                          "cpu_ms_a_pair": round(1000 * cpu, 1), "median_s": round(statistics.median(waits), 3),
                          "worst_s": round(max(waits), 3), "controller_mb": round(memory)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--berth", default="build/release/berth")
    parser.add_argument("--nodes", type=int, default=250)
    parser.add_argument("--waiting", type=int, default=0)
    parser.add_argument("--queues", type=int, default=10)
    parser.add_argument("--forms", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--settle", type=float, default=5, help="seconds before them; who waits is told so by then")
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    if options.smoke:
        options.nodes, options.pairs, options.queues, options.waiting = 10, 3, 2, 4
    run(options)


if __name__ == "__main__":
    main()
