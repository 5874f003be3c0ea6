"""HTTP to an API server as the suite needs it: plain requests, and watches read in the background."""
import base64
import http.client
import json
import queue
import ssl
import threading
import urllib.parse

PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class Server:
    """Where the server is and how to talk to it; one per run, shared by threads."""

    def __init__(self, url, token="", ca_pem="", timeout=120):
        parts = urllib.parse.urlsplit(url)
        self.url, self.token, self.timeout = url.rstrip("/"), token, timeout
        self.host, self.port = parts.hostname, parts.port
        self.context = None
        if parts.scheme == "https":
            self.context = ssl.create_default_context(cadata=ca_pem or None)
            if not ca_pem:
                self.context.check_hostname = False
                self.context.verify_mode = ssl.CERT_NONE
        self.local = threading.local()

    @staticmethod
    def from_kubeconfig(path):
        """Of the current context. Kubeconfigs of tests are written as JSON, which is YAML too."""
        with open(path, encoding="utf-8") as f:
            config = json.load(f)

        def named(kind, name):
            return next(x for x in config[kind + "s"] if x["name"] == name)[kind]

        context = named("context", config["current-context"])
        cluster, user = named("cluster", context["cluster"]), named("user", context["user"])
        ca = base64.b64decode(cluster.get("certificate-authority-data", "")).decode()
        return Server(cluster["server"], user.get("token", ""), ca)

    def connect(self):
        if self.context:
            return http.client.HTTPSConnection(self.host, self.port, timeout=self.timeout,
                                               context=self.context)
        return http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)

    def headers(self, extra, has_body):
        out = {"Accept": "application/json", "User-Agent": "conformance"}
        if self.token:
            out["Authorization"] = f"Bearer {self.token}"
        if has_body:
            out["Content-Type"] = "application/json"
        for key, value in (extra or {}).items():
            out.pop(key, None)
            if value:
                out[key] = value
        return out

    def request(self, method, path, body=None, headers=None):
        """(status, headers, text), on this thread's kept connection."""
        fresh = getattr(self.local, "connection", None) is None
        if fresh:
            self.local.connection = self.connect()
        connection = self.local.connection
        try:
            connection.request(method, path, body=body, headers=self.headers(headers, body is not None))
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            self.local.connection = None
            if fresh or method not in ("GET", "HEAD"):
                raise
            return self.request(method, path, body, headers)  # a kept connection that had ended
        if answer.will_close:
            connection.close()
            self.local.connection = None
        return answer.status, dict(answer.getheaders()), data.decode("utf-8", "replace")

    def watch(self, path, headers=None):
        return Watch(self, path, headers)


class Watch:
    """A stream of events on a connection of its own."""

    def __init__(self, server, path, headers):
        self.connection = server.connect()
        self.connection.request("GET", path, headers=server.headers(headers, False))
        self.answer = self.connection.getresponse()
        self.status, self.headers = self.answer.status, dict(self.answer.getheaders())
        self.first = ""
        self.events = queue.Queue()
        if self.status != 200:
            self.first = self.answer.read().decode("utf-8", "replace")
            self.connection.close()
            return
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        try:
            for line in self.answer:
                if line.strip():
                    self.events.put(json.loads(line))
            self.events.put(None)  # the end
        except (OSError, ValueError, http.client.HTTPException, AttributeError) as e:
            self.events.put(e)

    def next(self, seconds):
        """The next event, None at the end of the stream; queue.Empty when nothing comes."""
        event = self.events.get(timeout=seconds)
        if isinstance(event, Exception):
            raise event
        return event

    def close(self):
        try:
            if self.connection.sock:
                self.connection.sock.shutdown(2)
        except OSError:
            pass
        self.connection.close()
