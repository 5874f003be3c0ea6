#!/usr/bin/env python3
"""The floor of (g): admits each Workload as soon as it is there, one write each, without looking at any quota.

    bench/peers/known_answers.py KUBECONFIG

What the API server and Kueue's runner need for 15,000 Workloads whose answers are known: nobody who decides
something can end sooner. Runs until it is killed.
"""
import json
import queue
import sys
import threading
import time

from measure import Api, pause

API = "/apis/kueue.x-k8s.io/v1beta2"
TRUE = (("QuotaReserved", "QuotaReserved"), ("Admitted", "Admitted"))


def admission(workload):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    sets = [{"name": s["name"], "count": s["count"]} for s in workload["spec"]["podSets"]]
    return {"status": {
        "admission": {"clusterQueue": workload["spec"]["queueName"], "podSetAssignments": sets},
        "conditions": [{"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": now,
                        "observedGeneration": 1} for kind, reason in TRUE]}}


def work(api, todo):
    connection = api.connect()
    while True:
        workload = todo.get()
        meta = workload["metadata"]
        path = f"{API}/namespaces/{meta['namespace']}/workloads/{meta['name']}/status"
        try:
            api.patch(path, admission(workload), connection, "merge")
        except OSError:
            connection = api.connect()
            todo.put(workload)


def say(api, name, reserving):
    """The runner goes on while a queue says that somebody holds something in it."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    api.patch(f"{API}/clusterqueues/{name}/status", {"status": {
        "reservingWorkloads": reserving, "conditions": [
            {"type": "Active", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": now}]}},
        api.connect(), "merge")


class Left:
    """Workloads of each queue that have not ended; the queue says when there are none."""

    def __init__(self, api):
        self.api, self.of_queue, self.seen = api, {}, set()

    def see(self, workload):
        name, key = workload["spec"]["queueName"], workload["metadata"]["uid"]
        ended = any(c["type"] == "Finished" for c in workload.get("status", {}).get("conditions", []))
        left = self.of_queue.get(name)
        if left is None:
            left = self.of_queue[name] = set()
            say(self.api, name, 1)
        if not ended and key not in self.seen:
            left.add(key)
            self.seen.add(key)
        elif ended and key in left:
            left.remove(key)
            if not left:
                say(self.api, name, 0)


def main():
    api, todo = Api(sys.argv[1]), queue.SimpleQueue()
    left = Left(api)
    for _ in range(8):
        threading.Thread(target=work, args=(api, todo), daemon=True).start()
    version = "0"
    while True:
        connection = api.connect()
        try:
            connection.request("GET", f"{API}/workloads?watch=1&resourceVersion={version}&timeoutSeconds=3600",
                               headers=api.headers)
            answer = connection.getresponse()
            while line := answer.readline():
                event = json.loads(line)
                version = event["object"]["metadata"].get("resourceVersion", version)
                left.see(event["object"])
                if event["type"] == "ADDED" and "admission" not in event["object"].get("status", {}):
                    todo.put(event["object"])
        except (OSError, ValueError, KeyError):
            pause(0.1)


if __name__ == "__main__":
    sys.exit(main())
