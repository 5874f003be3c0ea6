"""MIG layouts with real processes: the agent and its helpers on a made-up driver whose GPU outlives them.

Agents and helpers are killed at their crash points, one after another; the next agent must reach the
declared layout, or the one before where that is refused. mig_process_test.py BERTH LIBRARY
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading

DEADLINE_S = 300  # for whatever must happen in the end, on a machine that may be very slow
PROFILES = {0: "1g", 1: "2g", 2: "3g", 3: "4g", 4: "7g", 7: "1g+me", 9: "1g-double"}
LAYOUTS = """
version: v1
mig-configs:
  mixed: [{devices: all, mig-enabled: true, mig-devices: {"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1}}]
  small: [{devices: all, mig-enabled: true, mig-devices: {"1g.18gb": 7}}]
  none: [{devices: all, mig-enabled: false}]
  huge: [{devices: all, mig-enabled: true, mig-devices: {"7g.141gb": 1, "1g.18gb": 1}}]
"""
MIXED = ["1g", "1g", "2g", "3g"]
SMALL = ["1g"] * 7


class Node:
    def __init__(self, berth, library, folder):
        self.berth, self.folder, self.agent = berth, folder, None
        self.state = os.path.join(folder, "state")
        self.machine = os.path.join(folder, "machine")
        root = os.path.join(folder, "driver/usr/lib64")
        for path in (root, self.state, os.path.join(folder, "kubelet/device-plugins"), os.path.join(folder, "root")):
            os.makedirs(path)
        os.symlink(os.path.abspath(library), os.path.join(root, "libnvidia-ml.so.1"))
        with open(self.machine, "w", encoding="utf-8") as file:
            file.write("GPU-0 0 1 0 0\n")
        with open(os.path.join(folder, "layouts.yaml"), "w", encoding="utf-8") as file:
            file.write(LAYOUTS)
        # The helper gets nothing of the agent's environment but what it is meant to: the made-up driver is a
        # matter of the test, and so is this.
        self.helper = os.path.join(folder, "helper")
        with open(self.helper, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nFAKE_DRIVER_STATE={self.machine} exec {os.path.abspath(berth)} \"$@\"\n")
        os.chmod(self.helper, 0o755)

    def start(self, layout, crash_at=""):
        self.stop()
        env = {"FAKE_DRIVER_STATE": self.machine, "PATH": "/usr/bin:/bin"}
        if crash_at:
            env["BERTH_CRASH_AT"] = crash_at
        status = os.path.join(self.state, "status.json")
        if os.path.exists(status):
            os.remove(status)
        with open(os.path.join(self.folder, "log"), "a", encoding="utf-8") as log:
            self.agent = subprocess.Popen(
                [self.berth, "agent", "--node-name", "n1", "--kubelet-dir", self.folder + "/kubelet", "--no-cdi",
                 "--state-dir", self.state, "--host-root", self.folder + "/root", "--metrics", "none",
                 "--driver-root", self.folder + "/driver", "--mig-strategy", "mixed",
                 "--mig-config", self.folder + "/layouts.yaml", "--mig-layout", layout, "--helper-path", self.helper],
                env=env, stderr=log)

    def stop(self, how=signal.SIGTERM):
        if self.agent is None:
            return None
        if self.agent.poll() is None:
            self.agent.send_signal(how)
        code = self.agent.wait(DEADLINE_S)
        self.agent = None
        return code

    def died(self):
        code = self.agent.wait(DEADLINE_S)
        self.agent = None
        return code

    def said(self):
        try:
            with open(os.path.join(self.state, "status.json"), encoding="utf-8") as file:
                mig = json.load(file).get("mig", {})
            return mig.get("state", ""), mig.get("reason", ""), mig.get("text", "")
        except (OSError, ValueError):
            return "", "", ""

    def await_said(self, state, reason):
        for _ in range(DEADLINE_S * 20):
            if self.said()[:2] == (state, reason):
                return self.said()[2]
            assert self.agent.poll() is None, f"the agent ended: {self.agent.returncode}"
            threading.Event().wait(0.05)
        raise AssertionError(f"want {state} {reason}, found {self.said()}")

    def layout(self):
        """Profiles of whole instances, and of pieces without a compute instance."""
        with open(self.machine, encoding="utf-8") as file:
            lines = [line.split() for line in file.read().splitlines()]
        _, mode, _, cuts, migs = lines[0]
        pieces = [PROFILES[int(line[1])] for line in lines[1:1 + int(cuts)]]
        whole = [PROFILES[int(line[4])] for line in lines[1 + int(cuts):]]
        assert len(whole) == int(migs)
        return mode == "1", sorted(whole), sorted(pieces)

    def noted(self):
        return os.path.exists(os.path.join(self.state, "mig-intent.json"))

    def reach(self, layout, wanted):
        self.start(layout)
        self.await_said("success", "LayoutApplied")
        assert self.layout() == (bool(wanted), wanted, []), self.layout()
        assert not self.noted()


def check_helper(berth, library, machine):
    def ask(text):
        done = subprocess.run([berth, "agent-helper", "--library", os.path.abspath(library)], input=text.encode(),
                              capture_output=True, env={"FAKE_DRIVER_STATE": machine}, timeout=DEADLINE_S, check=False)
        return done.returncode, json.loads(done.stdout)

    code, answer = ask('{"verb":"mig-list"}')
    assert code == 0 and answer["gpus"][0]["uuid"] == "GPU-0", answer
    for bad in ("", "{", "[]", '{"verb":"reset"}', '{"verb":"mig-list","gpu":"GPU-0"}', "x" * 20000,
                '{"verb":"mig-mode-on","gpu":"GPU-7"}', '{"verb":"mig-create","gpu":"GPU-0","profile":"9g.1gb","start":0}',
                '{"verb":"mig-create","gpu":"GPU-0","profile":"1g.18gb","start":64}',
                '{"verb":"mig-destroy","gpu":"GPU-0","profile":"1g.18gb","start":0,"instance":1,"compute":[]}'):
        with open(machine, encoding="utf-8") as file:
            before = file.read()
        code, answer = ask(bad)
        assert code == 1 and not answer["ok"] and answer["error"], (bad, answer)
        with open(machine, encoding="utf-8") as file:
            assert file.read() == before, bad


def main():
    berth, library = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        node = Node(berth, library, folder)
        check_helper(berth, library, node.machine)
        try:
            node.reach("mixed", MIXED)
            node.reach("small", SMALL)
            node.reach("none", [])
            for point in ("mig-after-intent", "mig-before-step:1", "mig-after-step:1", "mig-after-step:4", "mig-before-step:7",
                          "mig-after-step:7", "mig-before-done"):
                for then, state, reason, wanted in (("small", "success", "LayoutApplied", SMALL),
                                                    ("huge", "failed", "MigDoesNotFit", MIXED)):
                    node.reach("mixed", MIXED)
                    node.start("small", crash_at=point)
                    assert node.died() == -signal.SIGKILL, point
                    assert node.noted(), point
                    node.start(then)
                    node.await_said(state, reason)
                    # After the last step of a change that is then refused, what was before comes back too.
                    assert node.layout() == (True, wanted, []), (point, then, node.layout())
                    assert not node.noted(), point
                    print(f"{point}: {then}: {reason}", flush=True)
            # The helper dies between the two halves of a step, every time; then so does the agent.
            for point in ("mig-helper-between", "mig-helper-after"):
                node.reach("mixed", MIXED)
                node.start("small", crash_at=point)
                node.await_said("pending", "MigRetrying")
                node.stop(signal.SIGKILL)
                assert node.noted(), point
                node.reach("small", SMALL)
                print(f"{point}: reached", flush=True)
            node.reach("none", [])
        except BaseException:
            with open(os.path.join(folder, "log"), encoding="utf-8") as log:
                print(log.read()[-8000:])
            raise
        finally:
            node.stop(signal.SIGKILL)
    print("ok")


if __name__ == "__main__":
    main()
