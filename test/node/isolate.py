"""Runs a program where it can do no harm: network, mounts and processes of its own, and a cgroup that goes with it.

`run(main)` calls main() in a child and returns its exit code. When the child ends, is killed, or its parent is,
the kernel ends every process in there and with them every mount and network interface. What the kernel does not take
away, the folder and the cgroups, the parent removes; a later run removes those of a parent that was killed.

Inside: /run, /var/lib and /var/log are empty and in memory, loopback is up and carries NODE_IP, FOLDER is a scratch
folder in memory, and CGROUP is an empty cgroup by that path in every hierarchy. Needs root.
"""
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

NODE_IP = "198.51.100.200"  # for documentation; a kubelet refuses loopback addresses
PREFIX = "berth-node-"
INSIDE = "BERTH_NODE_INSIDE"
CGROUPS = "/sys/fs/cgroup"
# What a kubelet would set for the whole machine. It finds these values and leaves the machine alone.
TUNABLES = {"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
            "kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000"}

# A program of its own, not a function between fork and exec: that may hang in a process with threads.
DIE_WITH_PARENT = ["setpriv", "--pdeathsig", "KILL", "--"]


def cgroup_v2():
    return os.path.exists(os.path.join(CGROUPS, "cgroup.controllers"))


def hierarchies():
    if cgroup_v2():
        return [CGROUPS]
    return [d for d in glob.glob(CGROUPS + "/*") if os.path.exists(os.path.join(d, "cgroup.procs"))]


def give_controllers(group):
    """v2: to the groups below it."""
    with open(os.path.join(group, "cgroup.controllers"), encoding="ascii") as f:
        for controller in f.read().split():
            try:
                with open(os.path.join(group, "cgroup.subtree_control"), "w", encoding="ascii") as f2:
                    f2.write("+" + controller)
            except OSError:
                pass  # kept by somebody else; the kubelet says so if it needs it


def make_cgroup(name):
    """The name may be that of a group below one that was made."""
    for root in hierarchies():
        if cgroup_v2():
            give_controllers(root)
            if os.path.dirname(name):
                give_controllers(os.path.join(root, os.path.dirname(name)))
        folder = os.path.join(root, name)
        os.makedirs(folder, exist_ok=True)
        for file in ("cpuset.cpus", "cpuset.mems"):  # v1: empty means that nothing may run
            if not cgroup_v2() and os.path.exists(os.path.join(folder, file)):
                with open(os.path.join(root, file), encoding="ascii") as f:
                    value = f.read()
                with open(os.path.join(folder, file), "w", encoding="ascii") as f:
                    f.write(value)


def remove_cgroup(name):
    """Its processes are dying: a group may stay busy for a moment."""
    end = time.monotonic() + 30
    for root in hierarchies():
        while os.path.isdir(os.path.join(root, name)):
            for folder, _, _ in os.walk(os.path.join(root, name), topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    pass
            if time.monotonic() > end:
                print(f"could not remove the cgroup {os.path.join(root, name)}", file=sys.stderr)
                break
            time.sleep(0.05)


def remove_stale(base):
    """Of parents that were killed: the folder's name ends with their process id."""
    for folder in glob.glob(os.path.join(base, PREFIX + "*")):
        owner = folder.rsplit("-", 1)[1]
        if owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            remove_cgroup(os.path.basename(folder))
            shutil.rmtree(folder, ignore_errors=True)


def run(main):
    if INSIDE in os.environ:
        return as_first_process(main)
    if os.geteuid() != 0:
        print("a node needs root", file=sys.stderr)
        return 2
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
    remove_stale(base)
    name = f"{PREFIX}{os.getpid()}"
    folder = os.path.join(base, name)
    os.mkdir(folder, 0o700)
    make_cgroup(name)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    child = subprocess.Popen(
        DIE_WITH_PARENT + ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private",
         sys.executable, *sys.argv], env={**os.environ, INSIDE: folder})
    try:
        return child.wait()
    except KeyboardInterrupt:
        return 130
    finally:
        child.kill()
        child.wait()
        remove_cgroup(name)
        if os.environ.get("KEEP"):
            print(f"kept {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def as_first_process(main):
    """The first process of a process namespace is the parent of all orphans: it only waits for them."""
    child = os.fork()
    if child == 0:
        os.environ.pop("NOTIFY_SOCKET", None)
        prepare(os.environ[INSIDE])
        code = 1
        try:
            code = main()
        except SystemExit as e:
            code = e.code if isinstance(e.code, int) else 1
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code or 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xff)


def folder():
    return os.environ[INSIDE]


def cgroup():
    return "/" + os.path.basename(folder())


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def prepare(scratch):
    for place in ("/run", "/var/lib", "/var/log"):
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", place)
    for place in ("/run/lock", "/run/netns", "/var/lib/kubelet"):
        os.makedirs(place)
    # Mounts of volumes must be seen by containers that start later.
    mount("--bind", "/var/lib/kubelet", "/var/lib/kubelet")
    mount("--make-rshared", "/var/lib/kubelet")
    for name, value in TUNABLES.items():
        file = os.path.join(scratch, "tunable-" + name.replace("/", "-"))
        with open(file, "w", encoding="ascii") as f:
            f.write(value + "\n")
        if os.path.exists("/proc/sys/" + name):
            mount("--bind", file, "/proc/sys/" + name)
    for command in (["link", "set", "lo", "up"], ["addr", "add", NODE_IP + "/32", "dev", "lo"]):
        subprocess.run(["ip", *command], check=True)
