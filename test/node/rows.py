"""The list of tests, and what several of them ask of the node."""
import kubelet_api
from node import wait
from world import equal

TESTS = []  # (name, promise, function, whether it waits for minutes, whether every change must pass it)
OPTIONS = {"quick": False}


def row(name, what, slow=False, ci=False):
    def add(function):
        TESTS.append((name, what, function, slow, ci))
        return function
    return add


def uid(node, name):
    return node.pod(name)["metadata"]["uid"]


def container_id(node, name, container="main"):
    for status in node.pod(name)["status"]["containerStatuses"]:
        if status["name"] == container:
            return status["containerID"]
    return None


def restarts(node, name):
    pod = node.pod(name)
    return sum(s["restartCount"] for s in pod["status"].get("containerStatuses", []))


def untouched(world, name, before):
    """The same container runs, and holds the same devices."""
    equal((container_id(world.node, name), restarts(world.node, name), world.node.phase(name)),
          (before[0], 0, "Running"), f"container, restarts and phase of {name}")
    equal(world.ids(name), before[1], f"devices of {name}")


def state_of(world, name):
    return container_id(world.node, name), world.ids(name)


def refused(world, name):
    """The pod was refused at admission, and the kubelet does not list it as a holder."""
    pod = world.node.wait_phase(name, "Failed")
    equal(pod["status"].get("reason"), "UnexpectedAdmissionError", f"reason of {name}")
    wait(f"{name} is not listed in pod-resources", lambda: not any(
        kubelet_api.assignments().get(f"default/{name}", {}).values()))
    return pod["status"].get("message", "")


def pods_in_metrics(agent):
    return {labels["pod"] for labels, _ in agent.metrics("DCGM_FI_DEV_GPU_TEMP") if labels.get("pod")}


def log_count(world, agent, text):
    return world.node.log(agent.name).count(text)
