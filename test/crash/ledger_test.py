#!/usr/bin/env python3
"""The rules of ledger.py on made-up answers: each must be able to fail."""
import unittest

from cluster import Failure, Gone
from ledger import PATHS, Ledger, config_map


class FakeApi:
    """Answers as it is told; lists are by kind."""

    def __init__(self):
        self.answers = []
        self.lists = {kind: [] for kind in PATHS}
        self.version = 100

    def call(self, method, path, body=None):
        answer = self.answers.pop(0)
        if answer is None:
            raise Gone("told so")
        return answer

    def get(self, path):
        kind = next(kind for kind, p in PATHS.items() if p == path)
        return {"metadata": {"resourceVersion": str(self.version)}, "items": self.lists[kind]}


def thing(name, uid, version, value=None):
    found = config_map(name, value)
    found["metadata"].update(uid=uid, resourceVersion=str(version))
    return found


def pod(name, node=None, gpus="", phase="Pending", uid=None, asked=1, job=None):
    labels = {"batch.kubernetes.io/job-name": job} if job else {}
    spec = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": str(asked)}}}]}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name, "uid": uid or "uid-" + name, "resourceVersion": "5",
                         "labels": labels, "annotations": {"berth.dev/gpus": gpus}},
            "spec": spec, "status": {"phase": phase}}


class Writes(unittest.TestCase):
    def setUp(self):
        self.api, self.ledger = FakeApi(), Ledger()

    def put(self, *answer, value="1", method="PUT"):
        self.api.answers.append(answer or None)
        return self.ledger.write(self.api, method, "ConfigMap", "m", config_map("m", value))

    def verify(self, *items):
        self.api.lists["ConfigMap"] = list(items)
        self.ledger.verify(self.api)

    def test_acknowledged_is_there(self):
        self.assertTrue(self.put(200, thing("m", "u", 7)))
        self.verify(thing("m", "u", 7, "1"))
        for items in ([], [thing("m", "v", 8, "1")], [thing("m", "u", 6, "1")],
                      [thing("m", "u", 8, "0")]):
            with self.assertRaises(Failure, msg=items):
                self.verify(*items)

    def test_without_an_answer_both_are_right(self):
        self.assertTrue(self.put(200, thing("m", "u", 7)))
        self.assertIsNone(self.put(value="2"))
        self.verify(thing("m", "u", 8, "2"))
        self.assertIsNone(self.put(method="DELETE"))
        self.verify()

    def test_deleted_stays_so(self):
        self.put(200, thing("m", "u", 7))
        self.put(200, {}, method="DELETE")
        self.verify()
        with self.assertRaises(Failure):
            self.verify(thing("m", "u", 9, "1"))

    def test_versions_and_uids(self):
        self.put(200, thing("m", "u", 7))
        with self.assertRaises(Failure):
            self.put(200, thing("m", "u", 7))
        with self.assertRaises(Failure):
            self.ledger.seen("ConfigMap", thing("other", "u", 9))
        self.api.version = 6
        with self.assertRaises(Failure):
            self.verify(thing("m", "u", 7, "1"))


class Pods(unittest.TestCase):
    def setUp(self):
        self.ledger, self.version = Ledger(), 0

    def see(self, *pods, version=None):
        self.version += 1
        self.ledger.observe({"metadata": {"resourceVersion": str(version or self.version)},
                             "items": list(pods)})

    def test_bound_once(self):
        self.see(pod("a"))
        self.see(pod("a", "n1", "3"))
        self.see(pod("a"), version=1)  # overtaken
        for later in (pod("a"), pod("a", "n2", "3"), pod("a", "n1", "4")):
            with self.assertRaises(Failure):
                self.see(later)

    def test_devices(self):
        self.see(pod("a", "n1", "0,1", asked=2), pod("b", "n1", "2"), pod("c", "n2", "0"),
                 pod("d", "n1", "0", "Succeeded"))
        with self.assertRaises(Failure):
            self.see(pod("e", "n1", "1"), pod("a", "n1", "0,1", asked=2))
        with self.assertRaises(Failure):
            self.see(pod("f", "n3", "1", asked=2))
        with self.assertRaises(Failure):
            self.see(pod("g", "n3", "1", "Failed"))

    def test_partial_gangs(self):
        self.ledger.gangs["g"] = 2
        self.see(pod("a", job="g"), pod("b", job="g"))
        self.assertFalse(self.ledger.partial_since)
        self.see(pod("a", "n1", "0", job="g"), pod("b", job="g"))
        self.ledger.partial_since["g"] -= 10_000
        with self.assertRaises(Failure):
            self.see(pod("a", "n1", "0", job="g"), pod("b", job="g"))
        self.see(pod("a", "n1", "0", job="g"), pod("b", "n1", "1", job="g"))
        self.assertFalse(self.ledger.partial_since)


if __name__ == "__main__":
    unittest.main()
