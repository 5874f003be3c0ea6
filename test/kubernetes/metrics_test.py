#!/usr/bin/env python3
"""Prometheus' own readers on our pages: promtool checks them, a Prometheus scrapes them.

    metrics_test.py BERTH

promtool must read every page; what it has to say on style may be about DCGM's own names and labels, which are kept
as they are, and about nothing else. Prometheus must then have as many samples as the page has lines.
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from cluster import free_ports, tools

LIMIT = 180  # seconds: the machine may be busy
HERE = os.path.dirname(os.path.abspath(__file__))
RECORDING = os.path.join(HERE, "..", "..", "src", "nvml", "testdata", "h200-mig.json")
OF_DCGM = re.compile(r"(DCGM_FI_|dcgm_)\w+ ")
LABELS_OF_DCGM = "label names should be written in 'snake_case'"  # modelName, on any metric of a GPU


class Failed(Exception):
    pass


def wait(child, what, condition):
    end = time.monotonic() + LIMIT
    while True:
        if child.poll() is not None:
            raise Failed(f"it ended with {child.returncode} before: {what}")
        try:
            if found := condition():
                return found
        except (OSError, urllib.error.URLError) as e:
            found = e
        if time.monotonic() > end:
            raise Failed(f"after {LIMIT} s still not: {what} (last: {found!r})")
        time.sleep(0.05)


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        return answer.read().decode()


@contextlib.contextmanager
def process(folder, argv):
    with open(os.path.join(folder, "log"), "ab") as log:
        child = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        yield child
    except Exception:
        with open(os.path.join(folder, "log"), encoding="utf-8", errors="replace") as f:
            print(f.read()[-2000:], file=sys.stderr)
        raise
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(LIMIT)


@contextlib.contextmanager
def agent(berth, source, flags, text):
    """The port that serves the metrics of an agent without a kubelet, once they have this text."""
    port = free_ports(1)[0]
    with tempfile.TemporaryDirectory(prefix="metrics-") as folder:
        argv = [berth, "agent", "--source", source(folder), "--node-name", "node-0", "--kubelet-dir", folder, "--cdi-dir",
                folder, "--state-dir", folder + "/state", "--metrics", f"127.0.0.1:{port}", "--sample-ms", "100",
                *flags]
        with process(folder, argv) as child:
            wait(child, f"the page has {text}", lambda: text in get(port, "/metrics"))
            yield port


def fleet(gpus, faults=(), **pool):
    def write(folder):
        with open(os.path.join(folder, "fleet.yaml"), "w", encoding="utf-8") as f:
            json.dump({"pools": [{"name": "node", "count": 1, "model": "NVIDIA-H100-80GB-HBM3", "gpus": gpus, **pool}],
                       "faults": list(faults)}, f)
        return "sim=" + f.name
    return write


def odd_names(folder):
    """A recording whose GPU has a name that must be escaped."""
    with open(RECORDING, encoding="utf-8") as f:
        text = f.read()
    name = json.dumps('NVIDIA "H200"\\n {b="c"} \u00e9')
    text, count = re.subn(r'"NVIDIA H200"', lambda _: name, text)
    if not count:
        raise Failed("the recording names no GPU")
    with open(os.path.join(folder, "recording.json"), "w", encoding="utf-8") as f:
        f.write(text)
    return "recorded=" + f.name


def check_page(promtool, name, page):
    checked = subprocess.run([promtool, "check", "metrics"], input=page, capture_output=True, text=True)
    said = (checked.stdout + checked.stderr).splitlines()
    if checked.returncode not in (0, 3):  # 3: it read the page and dislikes its style
        raise Failed(f"{name}: promtool cannot read the page: {said[:5]}")
    bad = [line for line in said if not OF_DCGM.match(line) and LABELS_OF_DCGM not in line]
    if bad:
        raise Failed(f"{name}: promtool dislikes: {bad[:5]}")
    return f"{len(page)} bytes, {len(said)} remarks on DCGM's spelling"


def samples(page):
    return sum(1 for line in page.splitlines() if line and not line.startswith("#"))


def check_promtool_can_refuse(promtool):
    for page in ("x{a=\"b} 1\n", "# TYPE x counter\n# TYPE x counter\nx 1\n", "x 1"):
        found = subprocess.run([promtool, "check", "metrics"], input=page, capture_output=True, text=True)
        if found.returncode in (0, 3):
            raise Failed(f"promtool read {page!r}")


def scrape(prometheus, targets):
    """A real Prometheus reads the ports: {name: (samples it took, answer of the query count(...))}."""
    port = free_ports(1)[0]
    with tempfile.TemporaryDirectory(prefix="prometheus-") as folder:
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": [
            {"job_name": name, "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}
            for name, target in targets.items()]}
        with open(os.path.join(folder, "config.yml"), "w", encoding="utf-8") as f:
            json.dump(config, f)
        argv = [prometheus, "--config.file", f.name, "--storage.tsdb.path", folder + "/data",
                "--web.listen-address", f"127.0.0.1:{port}"]

        def query(text):
            found = json.loads(get(port, "/api/v1/query?query=" + urllib.parse.quote(text)))["data"]["result"]
            return {series["metric"].get("job", ""): float(series["value"][1]) for series in found}

        with process(folder, argv) as child:
            wait(child, "Prometheus scraped them all",
                 lambda: sorted(n for n, up in query("up").items() if up) == sorted(targets))
            return query("scrape_samples_scraped"), query("count by (job) (DCGM_FI_DEV_GPU_TEMP)")


def main():
    berth = os.path.abspath(sys.argv[1])
    folder = tools("promtool", "prometheus")
    promtool = os.path.join(folder, "promtool")
    check_promtool_can_refuse(promtool)
    old = ["--old-hostname-label", "--old-metric-names", "--pod-uid-label"]
    lost = [{"at": "0s", "node": "node-0", "gpu": 3, "kind": "xid", "code": 79},
            {"at": "0s", "node": "node-0", "gpu": 1, "kind": "xid", "code": 31}]
    read = "DCGM_FI_DEV_GPU_TEMP{"
    pages = [("8 GPUs", fleet(8), [], read, 8), ("8 GPUs, names of 1.x too", fleet(8), old, read, 8),
             ("8 x 7 MIG instances", fleet(8, mig="1g.10gb"), ["--mig-strategy", "mixed"], read, 56),
             ("one GPU lost", fleet(4, lost), old, 'xid="79"', 3),
             ("an H200 of an odd name", odd_names, old, 'modelName="NVIDIA \\"H200\\"\\\\n {b', None)]
    with contextlib.ExitStack() as stack:
        ports, want = {}, {}
        for name, source, flags, text, count in pages:
            ports[name] = stack.enter_context(agent(berth, source, flags, text))
            page = get(ports[name], "/metrics")
            print(f"pass  {name}: {check_page(promtool, name, page)}", flush=True)
            want[name] = (samples(page), count)
        taken, gpus = scrape(os.path.join(folder, "prometheus"), ports)
        for name, (lines, count) in want.items():
            # The agent's own counters begin to exist as things happen: a page may grow between two looks.
            if taken.get(name, 0) < lines or (count is not None and gpus.get(name) != count):
                raise Failed(f"{name}: Prometheus took {taken.get(name)} samples of {gpus.get(name)} GPUs, want at "
                             f"least {lines} of {count}")
            print(f"pass  {name}: Prometheus took {taken[name]:.0f} samples", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as e:
        print(f"FAIL  {e}")
        sys.exit(1)
