#!/usr/bin/env python3
"""Runs the API conformance suite on one API server: ours or the real one, only the address changes.

    conformance.py --kubeconfig FILE --name embedded|real [--only REGEX] [--controllers] [CASE FILES]

Fails when a case fails that differences.txt does not list for this server, and when one that is listed
passes. Every case has a namespace ($ns) and a name part ($id) of its own; nothing is cleaned up, the
server is thrown away.
"""
import argparse
import base64
import concurrent.futures
import glob
import json
import os
import queue
import re
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import api_client  # noqa: E402
import case_file  # noqa: E402
import webhook  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
WAIT = float(os.environ.get("CONFORMANCE_WAIT", "60"))  # seconds for what must happen; slow is no difference


class Failed(Exception):
    pass


def shown(value, limit=1500):
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= limit else text[:limit] + " ..."


class Run:
    """One case on one server."""

    def __init__(self, case, suite, number):
        self.case, self.suite, self.server = case, suite, suite.server
        self.id = f"{suite.tag}{number}"
        self.variables = {**suite.variables, **case.variables, "id": self.id, "ns": f"ns-{self.id}"}
        self.watches, self.answer, self.headers, self.text = {}, None, {}, ""

    def fill(self, text):
        return case_file.substitute(text, self.variables)

    def run(self):
        try:
            if any(self.variables["ns"] in self.fill(s.path + (s.body or "") + s.name) for s in self.case.steps):
                self.make_namespace()
            for step in self.case.steps:
                try:
                    self.step(step)
                except Failed as e:
                    raise Failed(f"line {step.line}: {e}") from None
        finally:
            for watch in self.watches.values():
                watch.close()

    def make_namespace(self):
        body = json.dumps({"metadata": {"name": self.variables["ns"]}})
        status, _, text = self.server.request("POST", "/api/v1/namespaces", body)
        if status != 201:
            raise Failed(f"the namespace of the case was answered with {status}: {shown(text)}")
        # What controllers put into it comes before the case, or it would be among what is watched.
        if "controllers" not in self.suite.abilities:
            return
        for what in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
            end = time.monotonic() + WAIT
            path = f"/api/v1/namespaces/{self.variables['ns']}/{what}"
            while self.server.request("GET", path)[0] != 200:
                if time.monotonic() > end:
                    raise Failed(f"the namespace of the case has no {what}")
                self.suite.pause(0.05)

    def step(self, step):
        if step.kind == "request" and step.eventually:
            end = time.monotonic() + WAIT
            while True:
                try:
                    return self.carry_out(step)
                except Failed:
                    if time.monotonic() > end:
                        raise
                    self.suite.pause(0.05)
        return self.carry_out(step)

    def carry_out(self, step):
        getattr(self, "do_" + step.kind)(step)
        for check in step.checks:
            self.check(*check)

    def do_set(self, step):
        name, _, value = step.name.partition(" ")
        self.variables[name] = self.fill(value.strip())

    def do_compact(self, step):
        self.suite.compact()

    def do_reviews(self, step):
        self.answer = self.suite.hook.reviews(self.fill(step.name))

    def do_request(self, step):
        headers = {k: self.fill(v) for k, v in (step.headers or {}).items()}
        path = self.fill(step.path)
        body = None
        if step.raw is not None:
            body = self.fill(step.raw)
        elif step.body is not None:
            try:
                body = json.dumps(case_file.flow(self.fill(step.body)))
            except ValueError as e:
                raise Failed(f"the body cannot be read: {e}") from None
        if step.patch:
            headers.setdefault("Content-Type", api_client.PATCHES[step.patch])
        if step.method == "WATCH":
            self.open_watch(step, path, headers)
        else:
            status, self.headers, self.text = self.server.request(step.method, path, body, headers)
            self.take(step, status)

    def open_watch(self, step, path, headers):
        if step.name in self.watches:
            self.watches[step.name].close()
        watch = self.server.watch(path + ("&" if "?" in path else "?") + "watch=1", headers)
        self.watches[step.name] = watch
        self.headers, self.text = watch.headers, watch.first
        self.take(step, watch.status)

    def take(self, step, status):
        try:
            self.answer = json.loads(self.text) if self.text else None
        except ValueError:
            self.answer = self.text
        if status != step.status:
            raise Failed(f"status {status} instead of {step.status}: {shown(self.text)}")
        if step.reason and (not isinstance(self.answer, dict) or self.answer.get("reason") != step.reason):
            raise Failed(f"not the reason {step.reason}: {shown(self.text)}")

    def do_event(self, step):
        name, _, wanted = step.name.partition(" ")
        end = time.monotonic() + WAIT
        while True:
            try:
                event = self.watches[name].next(max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise Failed(f"no {wanted} event came") from None
            except Exception as e:
                raise Failed(f"the watch broke: {e!r}") from None
            if event is None:
                raise Failed(f"the watch ended before a {wanted} event")
            if event.get("type") == "BOOKMARK" and wanted != "BOOKMARK":
                continue
            if event.get("type") != wanted:
                raise Failed(f"not a {wanted} event: {shown(event)}")
            self.answer = event.get("object")
            return

    def do_end(self, step):
        end = time.monotonic() + WAIT
        while True:
            try:
                event = self.watches[step.name].next(max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise Failed("the watch did not end") from None
            except Exception as e:
                raise Failed(f"the watch broke: {e!r}") from None
            if event is None:
                return
            if event.get("type") != "BOOKMARK":
                raise Failed(f"an event instead of the end: {shown(event)}")

    def look_up(self, path):
        if path.startswith("header:"):
            for key, value in self.headers.items():
                if key.lower() == path[7:].lower():
                    return value
            raise KeyError(path)
        return case_file.follow(self.answer, path)

    def check(self, line, operator, path, value):
        if operator == "save":
            path, value = value, path
        path = self.fill(path)
        try:
            found = self.look_up(path)
        except KeyError:
            if operator == "absent":
                return
            raise Failed(f"line {line}: {path} is not there: {shown(self.answer)}") from None
        if operator == "save":
            self.variables[value] = found if isinstance(found, str) else json.dumps(found)
            return
        if not holds(operator, found, self.fill(value)):
            raise Failed(f"line {line}: {path} {operator} {self.fill(value)}: found {shown(found)}")


def holds(operator, found, text):
    if operator == "exists":
        return True
    if operator == "absent":
        return False
    if operator == "~":
        return isinstance(found, str) and re.search(text, found) is not None
    if operator == "sorted":
        return found == sorted(found)
    wanted = case_file.operand(text)
    if operator == "==":
        return found == wanted and isinstance(found, bool) == isinstance(wanted, bool)
    if operator == "!=":
        return found != wanted
    if operator == "length":
        return len(found) == wanted
    if operator == ">":
        return float(found) > float(wanted)
    if isinstance(found, str):
        inside = str(wanted) in found
    elif isinstance(found, list) and not isinstance(wanted, list):
        inside = any(case_file.subset(wanted, item) for item in found)
    else:
        inside = case_file.subset(wanted, found)
    return inside == (operator == "contains")


class Suite:
    def __init__(self, server, name, controllers, hook, more=()):
        self.server, self.name, self.hook = server, name, hook
        self.abilities = {name} | ({"controllers"} if controllers else set()) | set(more)
        self.tag = f"{os.getpid() % 100000:x}-"
        self.variables = {"webhook": hook.url, "webhook_ca": hook.ca_base64,
                          "other_ca": hook.other_ca_base64}
        self.event = threading.Event()

    def pause(self, seconds):
        self.event.wait(seconds)

    def compact(self):
        """Makes the server forget its history: etcd's own call, or the test server's."""
        etcd = os.environ.get("BERTH_ETCD")
        if not etcd:
            status, _, text = self.server.request("GET", "/version", headers={"X-Berth-Test": "compact"})
            if status != 200:
                raise Failed(f"compaction was answered with {status}: {shown(text)}")
            return
        store = api_client.Server(etcd)
        _, _, text = store.request("POST", "/v3/kv/range", json.dumps({"key": "AA=="}))
        revision = json.loads(text)["header"]["revision"]
        # What the API server's own compactor does every five minutes; its caches follow the key.
        def encoded(text):
            return base64.b64encode(text.encode()).decode()

        for path, body in (("kv/put", {"key": encoded("compact_rev_key"), "value": encoded(revision)}),
                           ("kv/compaction", {"revision": revision})):
            status, _, text = store.request("POST", "/v3/" + path, json.dumps(body))
            if status != 200:
                raise Failed(f"etcd answered {path} with {status}: {shown(text)}")

    def skip(self, case):
        return not case.needs <= self.abilities

    def run_one(self, case, number):
        try:
            Run(case, self, number).run()
            return None
        except Failed as e:
            return str(e)
        except Exception:
            return traceback.format_exc(limit=4)

    def run_again(self, cases, results):
        """Those that failed and wait for controllers, once more and alone. The real ones count quotas from caches that
        lag behind what they write: on a busy machine one stays wrong until its next round, in five minutes."""
        for number, case in enumerate(cases):
            if results[case.name] and "controllers" in case.needs:
                print(f"again {case.name}\n      {results[case.name]}", flush=True)
                results[case.name] = self.run_one(case, len(cases) + number)

    def run(self, cases, jobs):
        """{case: None or what failed}; serial ones after all others."""
        results = {}
        numbered = list(enumerate(cases))
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            under_way = {pool.submit(self.run_one, c, n): c for n, c in numbered if not c.serial}
            for done in concurrent.futures.as_completed(under_way):
                results[under_way[done].name] = done.result()
        for number, case in numbered:
            if case.serial:
                results[case.name] = self.run_one(case, number)
        return results


def read_differences(path, name):
    """{case: reason} of those listed for this server. A line: SERVER CASE: REASON."""
    out = {}
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            match = re.match(r"(\w+) (\S+): (.+)", line)
            if not match:
                raise SystemExit(f"{path}:{number}: not 'SERVER CASE: REASON': {line}")
            if match[1] == name:
                out[match[2]] = match[3]
    return out


def load(files, only):
    cases = []
    for path in files:
        stem = os.path.splitext(os.path.basename(path))[0]
        cases += case_file.read_cases(path, stem)
    names = [c.name for c in cases]
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise SystemExit(f"two cases have one name: {', '.join(sorted(twice))}")
    return [c for c in cases if not only or re.search(only, c.name)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", help="case files (all)")
    parser.add_argument("--kubeconfig", default=os.environ.get("KUBECONFIG"))
    parser.add_argument("--name", default="real", help="which lines of differences.txt count")
    parser.add_argument("--only", help="cases whose name matches")
    parser.add_argument("--controllers", action="store_true", help="a controller-manager runs there")
    parser.add_argument("--accounts", action="store_true",
                        help="it admits pods by their ServiceAccounts")
    parser.add_argument("--again", action="store_true",
                        help="cases of controllers have a second try: their races are not ours")
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--differences", default=os.path.join(HERE, "differences.txt"))
    parser.add_argument("--list", action="store_true", help="names of the cases, and nothing else")
    options = parser.parse_args()
    try:
        cases = load(options.files or sorted(glob.glob(os.path.join(HERE, "cases", "*.case"))), options.only)
    except case_file.CaseError as e:
        raise SystemExit(str(e))
    if options.list:
        print("\n".join(c.name for c in cases))
        return 0
    if not options.kubeconfig:
        parser.error("--kubeconfig is missing")
    hook = webhook.Webhook()
    suite = Suite(api_client.Server.from_kubeconfig(options.kubeconfig), options.name,
                  options.controllers, hook, {"accounts"} if options.accounts else ())
    return report(suite, cases, options)


def report(suite, cases, options):
    skipped = [c for c in cases if suite.skip(c)]
    ours = [c for c in cases if not suite.skip(c)]
    began = time.monotonic()
    results = suite.run(ours, options.jobs)
    if options.again:
        suite.run_again(ours, results)
    seconds = time.monotonic() - began
    suite.hook.close()
    listed = read_differences(options.differences, suite.name)
    bad = 0
    for case in ours:
        failure = results[case.name]
        if failure and case.name not in listed:
            bad += 1
            print(f"FAIL {case.name}\n     {failure}")
        elif not failure and case.name in listed:
            bad += 1
            print(f"FAIL {case.name}\n     passes, but differences.txt lists it: {listed[case.name]}")
    if not options.only and not options.files:
        for name in sorted(set(listed) - set(results)):
            bad += 1
            print(f"FAIL {name}\n     differences.txt lists it, but no such case ran")
    passed = sum(1 for c in ours if not results[c.name])
    print(f"conformance on {suite.name}: {len(ours)} cases, {passed} passed, "
          f"{sum(1 for n in listed if results.get(n))} known differences, {bad} wrong, "
          f"{len(skipped)} not for this server; {seconds:.1f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
