"""Stops bindings half-way: a webhook of the API server that lets so many through and holds the others."""
import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))
from webhook import Webhook, verdict  # noqa: E402

PATH = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


class BindGate(Webhook):
    """Registered by register(), and asked from then on. Each binding is answered once open() was called, or
    while fewer than `let_through` have passed. Who asks and goes away is not bound."""

    def __init__(self, let_through):
        self.left, self.opened = let_through, threading.Event()
        self.waiting = 0
        super().__init__()

    def register(self, rig, ns):
        rig.api.post(PATH, {"metadata": {"name": "bind-gate"}, "webhooks": [{
            "name": "gate.test.dev", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "timeoutSeconds": 30,
            "clientConfig": {"url": self.url + "/allow", "caBundle": self.ca_base64},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/binding"],
                       "operations": ["CREATE"]}]}]})
        rig.wait("the gate", lambda: self.asked(rig, ns))

    def asked(self, rig, ns):
        """The server takes a moment before it asks a new webhook: a binding that changes nothing tells."""
        left, self.left = self.left, 0
        try:
            answer = threading.Thread(target=self.probe, args=(rig, ns), daemon=True)
            answer.start()
            answer.join(5)
            return self.waiting > 0
        finally:
            self.left = left
            self.waiting = 0
            self.opened.set()
            answer.join(40)
            self.opened.clear()

    @staticmethod
    def probe(rig, ns):
        from rig import Api, Refused
        try:
            Api(rig.cluster.kubeconfig).post(f"/api/v1/namespaces/{ns}/pods/nobody/binding?dryRun=All", {
                "metadata": {"name": "nobody"}, "target": {"kind": "Node", "name": "nowhere"}})
        except (Refused, OSError):
            pass

    def open(self):
        self.opened.set()

    def answer(self, path, body):
        review = json.loads(body)
        with self.lock:
            through = self.left > 0
            if through:
                self.left -= 1
            else:
                self.waiting += 1
        if not through:
            self.opened.wait(40)
        return 200, json.dumps(verdict("allow", review)).encode()
