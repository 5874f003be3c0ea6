#!/usr/bin/python3
"""Debian's python3-kubernetes drives an API server: a client that nobody here wrote.

    /usr/bin/python3 python_client_test.py --name embedded|real [--kubeconfig FILE]

The package is for Debian's own interpreter, hence the path above.
"""
import argparse
import os
import sys
import threading

import kubernetes
from kubernetes import client, config, watch

WAIT = 60  # seconds for what must happen
NS = "python"


class Checks:
    def __init__(self):
        self.done, self.failed = 0, []

    def that(self, name, good, detail=""):
        self.done += 1
        if not good:
            self.failed.append(name)
            print(f"FAIL {name}\n     {detail}")

    def refused(self, name, status, reason, call):
        try:
            call()
        except client.exceptions.ApiException as e:
            self.that(name, e.status == status and reason in (e.body or ""), f"{e.status} {e.body}")
            return
        self.that(name, False, "it was accepted")


def objects(check, core):
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NS)))
    check.that("list namespaces", NS in [n.metadata.name for n in core.list_namespace().items])
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a", labels={"x": "y"}), data={"k": "v"})
    made = core.create_namespaced_config_map(NS, body)
    check.that("create", made.metadata.uid and made.data == {"k": "v"}, made)
    check.that("read", core.read_namespaced_config_map("a", NS).metadata.uid == made.metadata.uid)
    check.that("list", [c.metadata.name for c in core.list_namespaced_config_map(
        NS, label_selector="x=y").items] == ["a"])
    patched = core.patch_namespaced_config_map("a", NS, {"data": {"l": "w"}})
    check.that("patch", patched.data == {"k": "v", "l": "w"}, patched.data)
    patched.data = {"only": "this"}
    replaced = core.replace_namespaced_config_map("a", NS, patched)
    check.that("replace", replaced.data == {"only": "this"}, replaced.data)
    check.refused("stale replace", 409, "the object has been modified",
                  lambda: core.replace_namespaced_config_map("a", NS, patched))
    check.refused("create twice", 409, "AlreadyExists", lambda: core.create_namespaced_config_map(NS, body))
    core.delete_namespaced_config_map("a", NS)
    check.refused("read of nothing", 404, "NotFound", lambda: core.read_namespaced_config_map("a", NS))


def pages(check, core):
    for name in "bcdef":
        core.create_namespaced_config_map(NS, client.V1ConfigMap(
            metadata=client.V1ObjectMeta(name=name, labels={"p": "1"})))
    names, token = [], None
    while True:
        page = core.list_namespaced_config_map(NS, limit=2, _continue=token, label_selector="p=1")
        names += [c.metadata.name for c in page.items]
        token = page.metadata._continue
        if not token:
            break
    check.that("pages", names == list("bcdef"), names)
    core.delete_collection_namespaced_config_map(NS, label_selector="p=1")
    check.that("delete collection", core.list_namespaced_config_map(NS, label_selector="p=1").items == [])


def watching(check, core):
    version = core.list_namespaced_config_map(NS).metadata.resource_version
    seen, done = [], threading.Event()
    watcher = watch.Watch()

    def follow():
        for event in watcher.stream(core.list_namespaced_config_map, NS, resource_version=version,
                                    label_selector="w=1", timeout_seconds=3 * WAIT):
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                done.set()
                return

    threading.Thread(target=follow, daemon=True).start()
    core.create_namespaced_config_map(NS, client.V1ConfigMap(
        metadata=client.V1ObjectMeta(name="w", labels={"w": "1"})))
    core.patch_namespaced_config_map("w", NS, {"data": {"k": "v"}})
    core.delete_namespaced_config_map("w", NS)
    done.wait(WAIT)
    check.that("watch", seen == [("ADDED", "w"), ("MODIFIED", "w"), ("DELETED", "w")], seen)


def pods_and_jobs(check, core):
    container = client.V1Container(name="c", image="i", resources=client.V1ResourceRequirements(
        limits={"nvidia.com/gpu": "1"}))
    pod = core.create_namespaced_pod(NS, client.V1Pod(metadata=client.V1ObjectMeta(name="p"),
                                                      spec=client.V1PodSpec(containers=[container])))
    check.that("pod", pod.status.phase == "Pending" and pod.spec.scheduler_name == "default-scheduler")
    target = client.V1ObjectReference(kind="Node", name="n1")
    core.create_namespaced_pod_binding("p", NS, client.V1Binding(
        metadata=client.V1ObjectMeta(name="p"), target=target), _preload_content=False)
    check.that("binding", core.read_namespaced_pod("p", NS).spec.node_name == "n1")
    core.patch_namespaced_pod_status("p", NS, {"status": {"phase": "Running"}})
    check.that("status", core.read_namespaced_pod("p", NS).status.phase == "Running")
    check.that("field selector", len(core.list_namespaced_pod(
        NS, field_selector="spec.nodeName=n1,status.phase=Running").items) == 1)
    core.create_namespaced_pod_eviction("p", NS, client.V1Eviction(
        metadata=client.V1ObjectMeta(name="p"), delete_options=client.V1DeleteOptions(grace_period_seconds=0)),
        _preload_content=False)
    check.refused("evicted", 404, "NotFound", lambda: core.read_namespaced_pod("p", NS))

    batch = client.BatchV1Api()
    template = client.V1PodTemplateSpec(spec=client.V1PodSpec(containers=[container], restart_policy="Never"))
    job = batch.create_namespaced_job(NS, client.V1Job(
        metadata=client.V1ObjectMeta(name="j"), spec=client.V1JobSpec(template=template, suspend=True)))
    check.that("job", job.spec.parallelism == 1 and job.spec.suspend is True)
    batch.delete_namespaced_job("j", NS, propagation_policy="Background")

    apps = client.AppsV1Api()
    labels = {"app": "d"}
    apps.create_namespaced_deployment(NS, client.V1Deployment(
        metadata=client.V1ObjectMeta(name="d"), spec=client.V1DeploymentSpec(
            replicas=0, selector=client.V1LabelSelector(match_labels=labels),
            template=client.V1PodTemplateSpec(metadata=client.V1ObjectMeta(labels=labels),
                                              spec=client.V1PodSpec(containers=[container])))))
    scaled = apps.patch_namespaced_deployment_scale("d", NS, {"spec": {"replicas": 3}})
    check.that("scale", scaled.spec.replicas == 3)


def custom(check):
    definitions, objects_of = client.ApiextensionsV1Api(), client.CustomObjectsApi()
    group, version, plural = "python.example.com", "v1", "torches"
    definitions.create_custom_resource_definition({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": "Torch"},
                 "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                     "type": "object", "properties": {"spec": {"type": "object", "properties": {
                         "lumen": {"type": "integer"}}}}}}}]}})
    for event in watch.Watch().stream(definitions.list_custom_resource_definition,
                                      field_selector=f"metadata.name={plural}.{group}", timeout_seconds=WAIT):
        conditions = event["object"].status.conditions or []
        if any(c.type == "Established" and c.status == "True" for c in conditions):
            break
    torch = {"apiVersion": f"{group}/{version}", "kind": "Torch", "metadata": {"name": "t"}, "spec": {"lumen": 5}}
    # Established comes a moment before the handler on the real server.
    pause = threading.Event()
    for _ in range(20 * WAIT):
        try:
            objects_of.create_namespaced_custom_object(group, version, NS, plural, torch)
            break
        except client.exceptions.ApiException as e:
            if e.status != 404:
                raise
            pause.wait(0.05)
    got = objects_of.get_namespaced_custom_object(group, version, NS, plural, "t")
    check.that("custom object", got["spec"] == {"lumen": 5}, got)
    torch["spec"]["lumen"] = "bright"
    torch["metadata"]["name"] = "u"
    check.refused("custom object that is wrong", 422, "must be of type integer",
                  lambda: objects_of.create_namespaced_custom_object(group, version, NS, plural, torch))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--name", default="real")
    parser.add_argument("--kubeconfig", default=os.environ.get("KUBECONFIG"))
    options = parser.parse_args()
    config.load_kube_config(options.kubeconfig)
    check, core = Checks(), client.CoreV1Api()
    check.that("version", client.VersionApi().get_code().major == "1")
    check.that("groups", "apps" in [g.name for g in client.ApisApi().get_api_versions().groups])
    objects(check, core)
    pages(check, core)
    watching(check, core)
    pods_and_jobs(check, core)
    custom(check)
    core.delete_namespace(NS)
    print(f"python3-kubernetes {kubernetes.__version__} on {options.name}: {check.done} checks, "
          f"{check.done - len(check.failed)} passed, {len(check.failed)} failed")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
