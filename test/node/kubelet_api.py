"""The kubelet's side doors, spoken by hand: pod-resources as the truth about assignments, and a device plugin
that misbehaves as told, to stand beside the agent or in its place."""
import os
import queue

import grpc_lite
from node import KUBELET_DIR

PLUGINS = os.path.join(KUBELET_DIR, "device-plugins")
POD_RESOURCES = os.path.join(KUBELET_DIR, "pod-resources", "kubelet.sock")


def devices_of(container):
    """{resource: sorted ids} of a ContainerResources message."""
    out = {}
    for raw in container.get(2, []):
        device = grpc_lite.fields(raw)
        out.setdefault(device[1][0].decode(), []).extend(i.decode() for i in device.get(2, []))
    return {resource: sorted(ids) for resource, ids in out.items()}


def read_pod(raw):
    pod = grpc_lite.fields(raw)
    containers = {}
    for part in pod.get(3, []):
        fields = grpc_lite.fields(part)
        containers[fields[1][0].decode()] = devices_of(fields)
    return f"{pod[2][0].decode()}/{pod[1][0].decode()}", containers


def assignments():
    """{"namespace/pod": {container: {resource: [ids]}}} by pod-resources' List."""
    answer = grpc_lite.fields(grpc_lite.call(POD_RESOURCES, "/v1.PodResourcesLister/List"))
    return dict(read_pod(raw) for raw in answer.get(1, []))


def assignment(name):
    """The same of one pod by Get; an RpcError where the kubelet knows none."""
    body = grpc_lite.encode((1, name), (2, "default"))
    answer = grpc_lite.fields(grpc_lite.call(POD_RESOURCES, "/v1.PodResourcesLister/Get", body))
    return read_pod(answer[1][0])[1]


def allocatable(resource, root=""):
    """Ids that the kubelet may hand out, by GetAllocatableResources. root: of a node with mounts of its own."""
    answer = grpc_lite.fields(grpc_lite.call(root + POD_RESOURCES, "/v1.PodResourcesLister/GetAllocatableResources"))
    ids = []
    for raw in answer.get(1, []):
        device = grpc_lite.fields(raw)
        if device[1][0].decode() == resource:
            ids += [i.decode() for i in device.get(2, [])]
    return sorted(ids)


class StandIn:
    """A device plugin with `ids`. refuse_options and end_stream are its ways to misbehave."""

    def __init__(self, resource, ids, name="stand-in.sock", refuse_options=False, end_stream=False):
        self.resource, self.name, self.updates = resource, name, queue.Queue()
        self.refuse_options, self.end_stream, self.allocated = refuse_options, end_stream, []
        self.health = {i: "Healthy" for i in ids}
        self.server = grpc_lite.Server(os.path.join(PLUGINS, name), {
            "/v1beta1.DevicePlugin/GetDevicePluginOptions": self.options,
            "/v1beta1.DevicePlugin/ListAndWatch": self.list_and_watch,
            "/v1beta1.DevicePlugin/Allocate": self.allocate})

    def options(self, _):
        return grpc_lite.RpcError(13, "told to fail") if self.refuse_options else b""

    def list_and_watch(self, _):
        if self.end_stream:
            raise grpc_lite.RpcError(13, "told to fail")
        self.updates.put(True)
        while self.updates.get():
            yield b"".join(grpc_lite.encode((1, grpc_lite.encode((1, i), (2, health))))
                           for i, health in self.health.items())
        raise grpc_lite.RpcError(13, "told to fail")

    def allocate(self, body):
        out = b""
        for raw in grpc_lite.fields(body).get(1, []):
            ids = [i.decode() for i in grpc_lite.fields(raw).get(1, [])]
            self.allocated.append(ids)
            out += grpc_lite.encode((1, grpc_lite.encode((1, grpc_lite.encode((1, "STAND_IN"), (2, ",".join(ids)))))))
        return out

    def register(self):
        grpc_lite.call(os.path.join(PLUGINS, "kubelet.sock"), "/v1beta1.Registration/Register",
                       grpc_lite.encode((1, "v1beta1"), (2, self.name), (3, self.resource), (4, b"")))

    def set_health(self, device, health):
        self.health[device] = health
        self.updates.put(True)

    def break_stream(self):
        self.updates.put(False)

    def stop(self):
        self.server.stop()
