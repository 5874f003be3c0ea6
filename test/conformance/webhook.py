"""An admission webhook for the suite: HTTPS on loopback, with a certificate made for the run.

What it answers is said by the first segment of the path: /allow, /deny, /label (a JSON patch that adds
a label), /warn, /error (500), /garbage. The rest of the path tells cases apart; every review that came
in is kept by its path.
"""
import base64
import http.server
import json
import os
import ssl
import subprocess
import tempfile
import threading
import urllib.parse


def make_certificates(folder):
    """An authority and a certificate for 127.0.0.1 that it signed: (ca.pem, both.pem)."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, cwd=folder, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    with open(os.path.join(folder, "ext"), "w", encoding="utf-8") as f:
        f.write("subjectAltName=IP:127.0.0.1,DNS:localhost\nbasicConstraints=CA:FALSE\n")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "30",
            "-subj", "/CN=conformance authority")
    openssl("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=127.0.0.1")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-days", "30", "-extfile", "ext", "-out", "server.pem")
    return os.path.join(folder, "ca.pem"), os.path.join(folder, "server.pem"), os.path.join(folder, "server.key")


def verdict(kind, review):
    request = review["request"]
    response = {"uid": request["uid"], "allowed": True}
    if kind == "deny":
        response.update(allowed=False, status={"message": "not on my watch", "code": 403})
    elif kind == "teapot":
        response.update(allowed=False, status={"message": "short and stout", "code": 418, "reason": "Teapot"})
    elif kind == "label":
        labels = (request.get("object") or {}).get("metadata", {}).get("labels")
        patch = [] if labels else [{"op": "add", "path": "/metadata/labels", "value": {}}]
        patch.append({"op": "add", "path": "/metadata/labels/hooked", "value": "yes"})
        response.update(patchType="JSONPatch", patch=base64.b64encode(json.dumps(patch).encode()).decode())
    elif kind == "badpatch":
        patch = [{"op": "replace", "path": "/not/there", "value": 1}]
        response.update(patchType="JSONPatch", patch=base64.b64encode(json.dumps(patch).encode()).decode())
    elif kind == "warn":
        response.update(warnings=["mind the gap"])
    elif kind == "wronguid":
        response.update(uid="not-yours")
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


class Webhook:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="conformance-")
        ca, certificate, key = make_certificates(self.folder.name)
        with open(ca, "rb") as f:
            self.ca_base64 = base64.b64encode(f.read()).decode()
        with tempfile.TemporaryDirectory() as other:
            with open(make_certificates(other)[0], "rb") as f:
                self.other_ca_base64 = base64.b64encode(f.read()).decode()
        self.lock, self.seen = threading.Lock(), {}
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, answer = owner.answer(urllib.parse.urlsplit(self.path).path, body)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a peer that hangs up is no news

        self.server = Quiet(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        # The handshake belongs to the connection's own thread, not to the one that accepts.
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path, body):
        kind = path.strip("/").split("/")[0]
        try:
            review = json.loads(body)
        except ValueError:
            return 400, b"not a review"
        with self.lock:
            self.seen.setdefault(path, []).append(review)
        if kind == "error":
            return 500, b"out of order"
        if kind == "garbage":
            return 200, b"{\"kind\": 7"
        return 200, json.dumps(verdict(kind, review)).encode()

    def reviews(self, path):
        with self.lock:
            return list(self.seen.get(path, []))

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.folder.cleanup()
