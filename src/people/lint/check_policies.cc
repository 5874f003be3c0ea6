#include <algorithm>

#include "people/lint/checks.h"

namespace berth::lint {

namespace {

using text::YamlPath;

// ---- quotas ----------------------------------------------------------------------------------

// What a quota with a scope other than the pods' may count: pods and their compute resources.
bool counts_pods(std::string_view name) {
  return name == "pods" || name == "cpu" || name == "memory" || name == "ephemeral-storage" ||
         name.starts_with("requests.") || name.starts_with("limits.") ||
         name.starts_with("hugepages-");
}

bool has_scope(const Place& spec) {
  if (spec["scopes"].size() > 0) return true;
  return spec["scopeSelector"]["matchExpressions"].size() > 0;
}

// One more quota without the scope, for what a scoped one may not count.
std::string unscoped_quota(const Object& object, const std::vector<Place>& moved) {
  std::string hard;
  for (const Place& entry : moved) {
    hard += (hard.empty() ? "" : ",") + json_text(entry.key()) + ":" + text::to_json(entry.value());
  }
  std::string metadata = "\"name\":" + json_text(object.name + "-unscoped");
  if (!object.ns.empty()) metadata += ",\"namespace\":" + json_text(object.ns);
  return "{\"apiVersion\":\"v1\",\"kind\":\"ResourceQuota\",\"metadata\":{" + metadata +
         "},\"spec\":{\"hard\":{" + hard + "}}}";
}

void check_scoped(const Object& object, const Place& spec, Reporter& out) {
  const Place hard = spec["hard"];
  std::vector<Place> wrong;
  for (const Place& entry : hard.members()) {
    if (!counts_pods(entry.key()) || entry.key() == "requests.storage") wrong.push_back(entry);
  }
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    std::optional<Fix> edit;
    if (i == 0 && wrong.size() < hard.size()) {
      Fix fix;
      for (const Place& entry : wrong) fix.changes.push_back(remove_at(entry.path()));
      fix.document = unscoped_quota(object, wrong);
      fix.assumes = "the rest is counted by a quota of its own";
      edit = std::move(fix);
    }
    out.add("quota-scope-resource", wrong[i],
            "found " + wrong[i].key() + " in a quota with a scope, which counts pods alone",
            "put " + wrong[i].key() + " into a ResourceQuota without scopeSelector",
            std::move(edit));
  }
  for (const Place& term : spec["scopeSelector"]["matchExpressions"].items()) {
    const bool narrow = term["operator"].is("In") || term["operator"].is("Exists");
    if (!term["scopeName"].is("PriorityClass") || !narrow) continue;
    out.add("quota-scope-misses", term,
            "the quota counts only pods whose priorityClassName is listed: all others are not "
            "limited",
            "define these as PriorityClasses and have every pod use one, or drop the scope");
  }
}

void check_quota(const Object& object, Reporter& out) {
  const Place spec = object.root()["spec"];
  if (has_scope(spec)) check_scoped(object, spec, out);
  for (const Place& entry : spec["hard"].members()) {
    const std::string_view name = entry.key();
    const bool limit = name.starts_with("limits.") && is_extended_resource(name.substr(7));
    const bool bare = is_extended_resource(name) && is_gpu_resource(name);
    if (!limit && !bare) continue;
    const std::string real = "requests." + std::string(limit ? name.substr(7) : name);
    Fix fix = one_change(spec["hard"].has(real) ? remove_at(entry.path())
                                                : rename_key(entry.path(), real));
    out.add("quota-device-limit", entry,
            "found " + std::string(name) + ", which a quota never counts",
            spec["hard"].has(real) ? "remove it: " + real + " is there" : "write " + real,
            std::move(fix));
  }
}

// ---- network policies ------------------------------------------------------------------------

bool allows_port(const Place& rule, std::int64_t port) {
  if (rule["ports"].size() == 0) return true;
  for (const Place& one : rule["ports"].items()) {
    if (!one.has("port") || one["port"].is("dns") || one["port"].is("domain")) return true;
    const auto low = one["port"].value().as_int64();
    const auto high = one["endPort"].value().as_int64();
    if (low && (*low == port || (high && *low <= port && port <= *high))) return true;
  }
  return false;
}

bool reaches_dns(const Place& rule) {
  if (!allows_port(rule, 53)) return false;
  if (rule["to"].size() == 0) return true;
  for (const Place& peer : rule["to"].items()) {
    if (peer.has("ipBlock")) return true;
    const Place spaces = peer["namespaceSelector"];
    if (spaces && spaces.size() == 0) return true;
    bool system = false;
    walk(spaces, [&](const Place& place) {
      system = system || place.is("kube-system") || place.is("openshift-dns");
      return true;
    });
    walk(peer["podSelector"], [&](const Place& place) {
      system = system || place.is("kube-dns") || place.is("coredns") || place.is("node-local-dns");
      return true;
    });
    if (system) return true;
  }
  return false;
}

void check_own_pods(const Place& rule, Reporter& out) {
  if (!allows_port(rule, 443) || rule["ports"].size() == 0) return;
  for (const Place& peer : rule["to"].items()) {
    const Place pods = peer["podSelector"];
    if (!pods || pods.size() != 0 || peer.size() != 1) continue;
    Fix fix;
    fix.changes.push_back(rename_key(pods.path(), "ipBlock"));
    fix.changes.push_back(
        set_value(peer["ipBlock"].path(),
                  "{\"cidr\":\"0.0.0.0/0\",\"except\":[\"10.0.0.0/8\",\"172.16.0.0/12\","
                  "\"192.168.0.0/16\"]}"));
    fix.assumes = "HTTPS to the outside was meant, and the cluster's addresses are private ones";
    out.add("network-own-pods", peer,
            "podSelector: {} selects the pods of this namespace, not the world outside",
            "write ipBlock: {cidr: 0.0.0.0/0, except: [the cluster's networks]}", std::move(fix));
  }
}

void check_network(const Object& object, Reporter& out) {
  const Place spec = object.root()["spec"];
  bool egress = spec.has("egress");
  for (const Place& type : spec["policyTypes"].items()) egress = egress || type.is("Egress");
  const std::vector<Place> rules = spec["egress"].items();
  for (const Place& rule : rules) check_own_pods(rule, out);
  // An empty list denies everything, which is a policy of its own.
  if (!egress || rules.empty()) return;
  if (std::any_of(rules.begin(), rules.end(), reaches_dns)) return;
  const std::string dns =
      "{\"to\":[{\"namespaceSelector\":{\"matchLabels\":{\"kubernetes.io/metadata.name\":"
      "\"kube-system\"}},\"podSelector\":{\"matchLabels\":{\"k8s-app\":\"kube-dns\"}}}],\"ports\":"
      "[{\"protocol\":\"UDP\",\"port\":53},{\"protocol\":\"TCP\",\"port\":53}]}";
  YamlPath at = spec["egress"].path();
  at.emplace_back("-");
  Fix fix = one_change({.kind = text::YamlChange::Kind::kPut, .at = at, .json = dns});
  fix.assumes = "DNS is served by kube-dns in kube-system";
  out.add("network-no-dns", spec["egress"], "no egress rule lets pods ask DNS (port 53)",
          "allow UDP and TCP 53 to the pods k8s-app: kube-dns of kube-system", std::move(fix));
}

// ---- kubelet ---------------------------------------------------------------------------------

void check_kubelet(const Object& object, Reporter& out) {
  const Place root = object.root();
  const Place policy = root["topologyManagerPolicy"];
  if (policy && !policy.is("none") && !policy.is("best-effort") && !policy.is("restricted") &&
      !policy.is("single-numa-node")) {
    out.add("kubelet-topology-policy", policy,
            "found topologyManagerPolicy " + policy.word() +
                ", want none, best-effort, restricted or single-numa-node",
            "write one of these");
  }
  if (!policy.is("single-numa-node") && !policy.is("restricted")) return;
  if (!root["memoryManagerPolicy"].is("Static")) {
    out.add(
        "kubelet-topology-memory", policy,
        "memory is not aligned: topologyManagerPolicy " + policy.word() +
            " needs memoryManagerPolicy: Static for that, and pods are refused only after "
            "they were scheduled",
        "add memoryManagerPolicy: Static and reservedMemory, and schedule by NUMA (berth does)");
  }
  if (!root["cpuManagerPolicy"].is("static")) {
    out.add("kubelet-topology-cpu", policy,
            "CPUs are not aligned: topologyManagerPolicy " + policy.word() +
                " needs cpuManagerPolicy: static",
            "add cpuManagerPolicy: static and reservedSystemCPUs");
  }
}

// ---- spread ----------------------------------------------------------------------------------

// Replicas that would rather not share a node share it when there is no other room.
void check_anti_affinity(const Object& object, Reporter& out) {
  const auto replicas = object.root()["spec"]["replicas"].value().as_int64();
  if (object.group != "apps" || (replicas && *replicas < 2)) return;
  const Place pods = object.root()["spec"]["template"];
  const Place wishes = pods["spec"]["affinity"]["podAntiAffinity"];
  if (wishes.has("requiredDuringSchedulingIgnoredDuringExecution")) return;
  for (const Place& wish : wishes["preferredDuringSchedulingIgnoredDuringExecution"].items()) {
    const Place labels = wish["podAffinityTerm"]["labelSelector"]["matchLabels"];
    bool own = labels.size() > 0;
    for (const Place& label : labels.members()) {
      own = own && pods["metadata"]["labels"][label.key()].word() == label.word();
    }
    if (!own) continue;
    out.add("anti-affinity-preferred", wish,
            "replicas are kept apart only where there is room: when nodes are scarce they share "
            "one",
            "use requiredDuringSchedulingIgnoredDuringExecution or topologySpreadConstraints when "
            "they must not");
  }
}

}  // namespace

void check_policies(const Object& object, Reporter& out) {
  if (object.is("", "ResourceQuota")) check_quota(object, out);
  if (object.is("networking.k8s.io", "NetworkPolicy")) check_network(object, out);
  check_anti_affinity(object, out);
  if (object.is("kubelet.config.k8s.io", "KubeletConfiguration")) check_kubelet(object, out);
}

}  // namespace berth::lint
