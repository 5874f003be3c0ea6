"""What manifests that are shipped may not hold. check(objects) gives one line for each thing that is wrong."""

WRITES = {"create", "update", "patch", "delete", "deletecollection"}
NEVER_VERBS = {"*", "escalate", "bind", "impersonate", "approve", "sign"}
# Who may do these is, or can become, anybody.
NEVER_RESOURCES = {"*", "pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers", "nodes/proxy",
                   "serviceaccounts/token", "users", "groups", "serviceaccounts"}
# Changed only by name: whoever changes any of them rules the cluster.
BY_NAME = {"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "customresourcedefinitions",
           "validatingadmissionpolicies", "validatingadmissionpolicybindings", "apiservices"}
ROLES = {"roles", "clusterroles", "rolebindings", "clusterrolebindings"}
EVERYBODY = {"system:authenticated", "system:unauthenticated", "system:serviceaccounts", "system:masters"}
# Containers that may be privileged: none.
PRIVILEGED = set()


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
    for one in (pod.get("containers") or []) + (pod.get("initContainers") or []):
        security = one.get("securityContext") or {}
        if security.get("privileged") and (where, one["name"]) not in PRIVILEGED:
            yield f"container {one['name']} is privileged"
        if security.get("allowPrivilegeEscalation") is not False:
            yield f"container {one['name']}: allowPrivilegeEscalation is not false"
        if "ALL" not in (security.get("capabilities") or {}).get("drop", []):
            yield f"container {one['name']} does not drop all capabilities"
