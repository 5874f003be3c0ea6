"""What manifests that are shipped may not hold. check(objects) gives one line for each thing that is wrong."""

WRITES = {"create", "update", "patch", "delete", "deletecollection"}
NEVER_VERBS = {"*", "escalate", "bind", "impersonate", "approve", "sign"}
# Who may do these is, or can become, anybody.
NEVER_RESOURCES = {"*", "pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers", "nodes/proxy",
                   "serviceaccounts/token", "users", "groups"}
# Changed only by name: whoever changes any of them rules the cluster.
BY_NAME = {"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "customresourcedefinitions",
           "validatingadmissionpolicies", "validatingadmissionpolicybindings", "apiservices"}
ROLES = {"roles", "clusterroles", "rolebindings", "clusterrolebindings"}
EVERYBODY = {"system:authenticated", "system:unauthenticated", "system:serviceaccounts", "system:masters"}
# Containers that may be privileged: none.
PRIVILEGED = set()
AGENT = ("DaemonSet berth-agent", "agent")
# Containers that run as root, because the kubelet's sockets are root's.
ROOT = {AGENT}
# What may be added to none: docs/privileges.md says what for.
CAPABILITIES = {AGENT: {"SYS_ADMIN"}}
# Folders of the host, and whether they may be written: docs/privileges.md.
HOST_PATHS = {
    "DaemonSet berth-agent": {
        "/var/lib/kubelet/device-plugins": True,
        "/var/lib/kubelet/pod-resources": False,
        "/var/run/cdi": True,
        "/var/lib/berth": True,
        "/etc/os-release": False,
        "/run/nvidia/driver": False,
    },
}
WORKLOADS = {"Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job", "CronJob", "Pod"}


def check(objects):
    out = []
    for one in objects:
        where = f"{one.get('kind')} {one.get('metadata', {}).get('name')}"
        kind = one.get("kind")
        if kind in ("ClusterRole", "Role"):
            for rule in one.get("rules") or []:
                out += [f"{where}: {line}" for line in rule_lines(rule, kind == "ClusterRole")]
            if one.get("aggregationRule"):
                out.append(f"{where}: aggregated: what it allows is not written here")
        elif kind in ("ClusterRoleBinding", "RoleBinding"):
            out += [f"{where}: {line}" for line in binding_lines(one)]
        elif kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
            out += [f"{where}: {line}" for line in webhook_lines(one)]
        elif kind == "ValidatingAdmissionPolicy" and one["spec"].get("failurePolicy") != "Fail":
            out.append(f"{where}: failurePolicy is not Fail")
        out += [f"{where}: {line}" for line in pod_lines(where, pod_of(one))]
    return out


def rule_lines(rule, everywhere):
    verbs, resources = set(rule.get("verbs") or []), set(rule.get("resources") or [])
    named = bool(rule.get("resourceNames"))
    if "*" in (rule.get("apiGroups") or []) or "*" in (rule.get("resourceNames") or []):
        yield "wildcard in apiGroups or resourceNames"
    if rule.get("nonResourceURLs"):
        yield f"paths: {rule['nonResourceURLs']}"
    for verb in sorted(verbs & NEVER_VERBS):
        yield f"verb {verb}"
    for resource in sorted(resources & NEVER_RESOURCES):
        yield f"resource {resource}"
    # Their names alone make nobody anybody: `berth why` tells of one that does not exist.
    if "serviceaccounts" in resources and verbs - {"get", "list"}:
        yield "resource serviceaccounts"
    for resource in sorted(r for r in resources if r.endswith("/*")):
        yield f"resource {resource}"
    if "secrets" in resources:
        if everywhere:
            yield "secrets of the whole cluster"
        elif verbs - {"create"} and not named:
            yield "secrets that are not named"
        elif verbs & {"list", "watch", "deletecollection"}:
            yield "lists secrets"
    if resources & ROLES and verbs & WRITES:
        yield "writes roles"
    if resources & BY_NAME and verbs & WRITES and not named:
        yield f"writes {', '.join(sorted(resources & BY_NAME))} that are not named"
    if everywhere and "pods" in resources and verbs & {"create", "update"}:
        yield "makes pods everywhere"


def binding_lines(binding):
    if binding["roleRef"]["name"] in ("cluster-admin", "admin", "edit"):
        yield f"role {binding['roleRef']['name']}"
    for subject in binding.get("subjects") or []:
        if subject["kind"] != "ServiceAccount" or subject["name"] in EVERYBODY | {"default"}:
            yield f"for {subject['kind']} {subject['name']}"


def webhook_lines(configuration):
    for hook in configuration.get("webhooks") or []:
        if not 1 <= hook.get("timeoutSeconds", 10**9) <= 10:
            yield "no timeoutSeconds of 1..10"
        if hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            yield "side effects"
        if not hook.get("namespaceSelector") and not hook.get("objectSelector"):
            yield "asked about everything"


def pod_of(one):
    spec = one.get("spec") or {}
    if one.get("kind") == "Pod":
        return spec
    template = spec.get("template") or spec.get("jobTemplate", {}).get("spec", {}).get("template") or {}
    return template.get("spec") or {}


def pod_lines(where, pod):
    for field in ("hostPID", "hostIPC", "hostNetwork"):
        if pod.get(field):
            yield field
    if pod and not pod.get("serviceAccountName"):
        yield "runs as the default account"
    yield from host_path_lines(where, pod)
    inherited = pod.get("securityContext") or {}
    for one in (pod.get("containers") or []) + (pod.get("initContainers") or []):
        for line in container_lines(where, one, inherited):
            yield f"container {one['name']}{line}"


def host_path_lines(where, pod):
    allowed = HOST_PATHS.get(where, {})
    paths = {v["name"]: v["hostPath"]["path"] for v in pod.get("volumes") or [] if v.get("hostPath")}
    for path in sorted(set(paths.values()) - set(allowed)):
        yield f"hostPath {path}"
    for one in (pod.get("containers") or []) + (pod.get("initContainers") or []):
        for mount in one.get("volumeMounts") or []:
            path = paths.get(mount["name"])
            if path in allowed and not allowed[path] and mount.get("readOnly") is not True:
                yield f"hostPath {path} may be written"


def container_lines(where, one, inherited):
    security = one.get("securityContext") or {}
    capabilities = security.get("capabilities") or {}
    key = (where, one["name"])
    if security.get("privileged") and key not in PRIVILEGED:
        yield " is privileged"
    if security.get("allowPrivilegeEscalation") is not False:
        yield ": allowPrivilegeEscalation is not false"
    if security.get("readOnlyRootFilesystem") is not True:
        yield ": readOnlyRootFilesystem is not true"
    if "ALL" not in capabilities.get("drop", []):
        yield " does not drop all capabilities"
    for name in sorted(set(capabilities.get("add") or []) - CAPABILITIES.get(key, set())):
        yield f": capability {name}"
    if not (security.get("runAsNonRoot") or inherited.get("runAsNonRoot")) and key not in ROOT:
        yield ": runAsNonRoot is not true"
    seccomp = security.get("seccompProfile") or inherited.get("seccompProfile") or {}
    if seccomp.get("type") != "RuntimeDefault":
        yield ": seccompProfile is not RuntimeDefault"
    resources = one.get("resources") or {}
    for kind, name in (("requests", "cpu"), ("requests", "memory"), ("limits", "memory")):
        if not (resources.get(kind) or {}).get(name):
            yield f": no {kind} of {name}"
    for probe in ("livenessProbe", "readinessProbe"):
        if not one.get(probe):
            yield f": no {probe}"
    for port in one.get("ports") or []:
        if port.get("hostPort"):
            yield f": port {port['hostPort']} of the host"
    if str(one.get("image", "")).endswith(":latest") or ":" not in str(one.get("image", "")):
        yield ": an image without a version"
