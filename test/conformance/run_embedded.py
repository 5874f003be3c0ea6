#!/usr/bin/env python3
"""Starts the conformance server, runs a command against it (the suite when none is named), stops it.

    run_embedded.py SERVER [--database] [-- COMMAND...]      KUBECONFIG is set for the command
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    arguments, command = sys.argv[1:], []
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, command = arguments[:cut], arguments[cut + 1:]
    if not arguments:
        sys.exit(__doc__)
    server, database = arguments[0], "--database" in arguments
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        kubeconfig = os.path.join(folder, "kubeconfig")
        argv = [server, kubeconfig] + ([os.path.join(folder, "state.db")] if database else [])
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            ready = process.stdout.readline()
            if not ready.startswith("ready "):
                sys.exit(f"the server did not start: {ready!r}, exit code {process.wait()}")
            if not command:
                command = [sys.executable, os.path.join(HERE, "conformance.py"), "--name", "embedded",
                           "--controllers", "--accounts"]
            code = subprocess.run(command, env={**os.environ, "KUBECONFIG": kubeconfig}).returncode
            if process.poll() is not None:
                sys.exit(f"the server ended under the suite with exit code {process.returncode}")
        finally:
            process.stdin.close()
            try:
                ended = process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                ended = process.wait()
    if ended:
        sys.exit(f"the server ended with exit code {ended}")
    return code


if __name__ == "__main__":
    sys.exit(main())
