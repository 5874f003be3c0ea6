#include "rules/quota.h"

#include <algorithm>
#include <map>
#include <set>

#include "text/path.h"

namespace berth::rules {

using text::Quantity;
using text::Value;

namespace {

constexpr std::string_view kOfClass = ".storageclass.storage.k8s.io/";
constexpr std::string_view kDeviceClass = "deviceclass.resource.kubernetes.io/";
constexpr std::string_view kResourceClaims = "resourceclaims.resource.k8s.io";
constexpr std::string_view kDevicesOfClass = ".deviceclass.resource.k8s.io/devices";

bool one_of(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// Names without a slash, and those of kubernetes.io, are Kubernetes' own.
bool is_native(std::string_view name) {
  return name.find('/') == name.npos || name.find("kubernetes.io/") != name.npos;
}

bool is_pod_line(std::string_view line) {
  if (one_of(line, {"pods", "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory",
                    "requests.ephemeral-storage", "limits.cpu", "limits.memory",
                    "limits.ephemeral-storage"})) {
    return true;
  }
  if (line.starts_with("hugepages-") || line.starts_with("requests.hugepages-")) return true;
  if (!line.starts_with("requests.")) return false;
  return !is_native(line) || line.substr(9).starts_with(kDeviceClass);
}

bool is_claim_line(std::string_view line) {
  const std::size_t of = line.find(kOfClass);
  if (of != line.npos) line.remove_prefix(of + kOfClass.size());
  return line == "persistentvolumeclaims" || line == "requests.storage";
}

// cpu and memory make the class of service: a pod that asks for GPUs alone is BestEffort.
bool asks_for_service(const Value& resources) {
  for (const char* list : {"requests", "limits"}) {
    for (const auto& [resource, amount] : read_sums(resources[list])) {
      if ((resource == "cpu" || resource == "memory") && amount > Quantity()) return true;
    }
  }
  return false;
}

bool is_best_effort(const Value& pod) {
  const std::string_view told = text_at(pod, "status.qosClass");
  if (!told.empty()) return told == "BestEffort";
  const Value& spec = pod["spec"];
  if (spec.find("resources") != nullptr) return !asks_for_service(spec["resources"]);
  for (const char* list : {"containers", "initContainers"}) {
    for (const Value& container : spec[list].items()) {
      if (asks_for_service(container["resources"])) return false;
    }
  }
  return true;
}

// It wants to be near, or far from, pods of namespaces that it names.
bool reaches_other_namespaces(const Value& spec) {
  const auto names = [](const Value& term) {
    return term["namespaces"].size() > 0 || term.find("namespaceSelector") != nullptr;
  };
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    const Value& terms = spec["affinity"][kind];
    for (const Value& term : terms["requiredDuringSchedulingIgnoredDuringExecution"].items()) {
      if (names(term)) return true;
    }
    for (const Value& each : terms["preferredDuringSchedulingIgnoredDuringExecution"].items()) {
      if (names(each["podAffinityTerm"])) return true;
    }
  }
  return false;
}

// An In, NotIn, Exists or DoesNotExist over the names that an object has.
bool selects(std::string_view op, std::span<const Value> values,
             const std::set<std::string_view>& names) {
  if (op == "Exists" || op == "DoesNotExist") return names.empty() == (op == "DoesNotExist");
  const auto listed = [&](std::string_view name) {
    return std::any_of(values.begin(), values.end(),
                       [&](const Value& value) { return value.string() == name; });
  };
  if (names.empty()) return op == "NotIn";
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return listed(name) == (op == "In"); });
}

bool pod_in_scope(std::string_view scope, std::string_view op, std::span<const Value> values,
                  const Value& pod, std::string_view priority_class) {
  if (scope == "BestEffort") return is_best_effort(pod);
  if (scope == "NotBestEffort") return !is_best_effort(pod);
  if (scope == "Terminating" || scope == "NotTerminating") {
    const bool ends = int_at(pod, "spec.activeDeadlineSeconds", -1) >= 0;
    return ends == (scope == "Terminating");
  }
  if (scope == "CrossNamespacePodAffinity") return reaches_other_namespaces(pod["spec"]);
  if (scope != "PriorityClass") return false;
  if (priority_class.empty()) return selects(op, values, {});
  return selects(op, values, {priority_class});
}

bool claim_in_scope(std::string_view scope, std::string_view op, std::span<const Value> values,
                    const Value& claim) {
  if (scope != "VolumeAttributesClass") return false;
  std::set<std::string_view> names = {
      text_at(claim, "spec.volumeAttributesClassName"),
      text_at(claim, "status.currentVolumeAttributesClassName"),
      text_at(claim, "status.modifyVolumeStatus.targetVolumeAttributesClassName")};
  names.erase("");
  return selects(op, values, names);
}

Quantity one() { return Quantity::from_units(1); }

Sums claim_usage(const Value& claim) {
  Sums out = {{"persistentvolumeclaims", one()}};
  std::string of(text_at(claim, "metadata.annotations[volume.beta.kubernetes.io/storage-class]"));
  if (of.empty()) of = text_at(claim, "spec.storageClassName");
  if (!of.empty()) out[of + std::string(kOfClass) + "persistentvolumeclaims"] = one();
  const Sums asked = read_sums(at(claim, "spec.resources.requests"));
  const auto storage = asked.find("storage");
  if (storage == asked.end()) return out;
  Quantity bytes = storage->second;
  const Sums set_aside = read_sums(at(claim, "status.allocatedResources"));
  const auto more = set_aside.find("storage");
  if (more != set_aside.end() && bytes < more->second) bytes = more->second;
  bytes = Quantity::from_units(bytes.value(), bytes.format());  // whole bytes
  out["requests.storage"] = bytes;
  if (!of.empty()) out[of + std::string(kOfClass) + "requests.storage"] = bytes;
  return out;
}

// A request for all devices that fit takes the most that an allocation can have.
std::int64_t devices_of(const Value& request) {
  constexpr std::int64_t kMostOfAllocation = 32;
  const std::string_view mode = text_at(request, "allocationMode");
  if (mode == "All") return kMostOfAllocation;
  return mode == "ExactCount" ? int_at(request, "count", 0) : 0;
}

// Devices by class; of alternatives, of each class the most that any of them takes.
Sums device_usage(const Value& claim) {
  Sums out;
  for (const Value& request : at(claim, "spec.devices.requests").items()) {
    std::map<std::string_view, std::int64_t> most;
    const Value& alternatives = request["firstAvailable"];
    const Value& exactly = request["exactly"];
    for (const Value& each : alternatives.items()) {
      std::int64_t& of_class = most[text_at(each, "deviceClassName")];
      of_class = std::max(of_class, devices_of(each));
    }
    if (alternatives.size() == 0 && exactly.is_object()) {
      most[text_at(exactly, "deviceClassName")] = devices_of(exactly);
    }
    for (const auto& [name, count] : most) {
      out[std::string(name) + std::string(kDevicesOfClass)] += Quantity::from_units(count);
    }
  }
  return out;
}

Sums service_usage(const Value& service) {
  const std::string_view type = text_at(service, "spec.type");
  const auto ports = at(service, "spec.ports").items();
  auto on_nodes = static_cast<std::int64_t>(ports.size());
  const Value* allocates = find(service, "spec.allocateLoadBalancerNodePorts");
  if (type == "LoadBalancer" && allocates != nullptr && !allocates->as_bool()) {
    on_nodes = std::count_if(ports.begin(), ports.end(),
                             [](const Value& port) { return int_at(port, "nodePort", 0) != 0; });
  }
  const bool has_some = type == "LoadBalancer" || type == "NodePort";
  return {{"services", one()},
          {"services.nodeports", Quantity::from_units(has_some ? on_nodes : 0)},
          {"services.loadbalancers", Quantity::from_units(type == "LoadBalancer" ? 1 : 0)}};
}

// What these were counted by before every kind could be.
bool has_old_name(std::string_view resource) {
  return one_of(resource, {"configmaps", "resourcequotas", "replicationcontrollers", "secrets"});
}

// Every line that a container's statement, or a pod's, is counted on.
void add_compute(const PodSums& sums, Sums& out) {
  for (const auto& [resource, amount] : sums.requests) {
    const bool plain = one_of(resource, {"cpu", "memory", "ephemeral-storage"}) ||
                       resource.starts_with("hugepages-");
    if (plain) out[resource] = amount;
    const bool extended = (!is_native(resource) && !resource.starts_with("requests.")) ||
                          resource.starts_with(kDeviceClass);
    if (plain || extended) out["requests." + resource] = amount;
  }
  for (const auto& [resource, amount] : sums.limits) {
    if (one_of(resource, {"cpu", "memory", "ephemeral-storage"}))
      out["limits." + resource] = amount;
  }
}

}  // namespace

bool counts_on(std::string_view line, std::string_view resource) {
  if (line.starts_with("count/")) return line.substr(6) == resource;
  if (resource == "pods") return is_pod_line(line);
  if (resource == "persistentvolumeclaims") return is_claim_line(line);
  if (resource == "services") {
    return one_of(line, {"services", "services.nodeports", "services.loadbalancers"});
  }
  if (resource == kResourceClaims) return line.ends_with(kDevicesOfClass);
  return has_old_name(resource) && line == resource;
}

bool takes_by_content(std::string_view resource) {
  return one_of(resource, {"pods", "services", "persistentvolumeclaims", kResourceClaims});
}

bool is_counted(std::string_view resource) {
  return resource != "events" && resource != "events.events.k8s.io";
}

bool in_scopes(const Value& quota, std::string_view resource, const Value& object,
               std::string_view priority_class) {
  const auto takes_in = [&](std::string_view scope, std::string_view op,
                            std::span<const Value> values) {
    if (resource == "pods") return pod_in_scope(scope, op, values, object, priority_class);
    return resource == "persistentvolumeclaims" && claim_in_scope(scope, op, values, object);
  };
  for (const Value& scope : at(quota, "spec.scopes").items()) {
    if (!takes_in(scope.string(), "Exists", {})) return false;
  }
  const auto selectors = at(quota, "spec.scopeSelector.matchExpressions").items();
  return std::all_of(selectors.begin(), selectors.end(), [&](const Value& each) {
    return takes_in(text_at(each, "scopeName"), text_at(each, "operator"), each["values"].items());
  });
}

bool is_over(const Value& pod, std::int64_t now_ns) {
  const std::string_view phase = text_at(pod, "status.phase");
  if (phase == "Succeeded" || phase == "Failed") return true;
  return now_ns > over_at(pod);
}

// A node that is lost lets no pod go: such a pod is not charged for ever.
std::int64_t over_at(const Value& pod) {
  constexpr std::int64_t kMostGrace = 1'000'000'000;  // seconds
  const std::int64_t ends_ns = time_at(pod, "metadata.deletionTimestamp");
  const std::int64_t grace = int_at(pod, "metadata.deletionGracePeriodSeconds", -1);
  if (ends_ns == 0 || grace < 0 || grace > kMostGrace) return INT64_MAX;
  return ends_ns + grace * 1'000'000'000;
}

Sums pod_usage(const Value& spec, const Value& status, bool over) {
  Sums out = {{"count/pods", one()}};
  if (over) return out;
  out["pods"] = one();
  add_compute(sums_of_pod(spec, status, Overhead::kIn), out);
  return out;
}

Sums usage_of(std::string_view resource, const Value& object, std::int64_t now_ns) {
  if (resource == "pods") {
    return pod_usage(object["spec"], object["status"], is_over(object, now_ns));
  }
  Sums out;
  if (resource == "persistentvolumeclaims") out = claim_usage(object);
  if (resource == "services") out = service_usage(object);
  if (resource == kResourceClaims) out = device_usage(object);
  if (has_old_name(resource)) out[std::string(resource)] = one();
  out["count/" + std::string(resource)] = one();
  return out;
}

std::vector<std::string> silent_on(std::string_view line, const Value& spec) {
  std::vector<std::string> out;
  const std::string_view resource = line.substr(line.find('.') + 1);  // of none: the whole line
  const bool limits = line.starts_with("limits.");
  if (resource != "cpu" && resource != "memory") return out;
  for (const char* list : {"requests", "limits"}) {
    for (const text::Member& member : spec["resources"][list].members()) {
      if (member.key == "cpu" || member.key == "memory" || member.key.starts_with("hugepages-")) {
        return out;
      }
    }
  }
  for (const char* list : {"containers", "initContainers"}) {
    for (const Value& container : spec[list].items()) {
      const Sums stated =
          limits ? read_sums(at(container, "resources.limits")) : requests_of(container);
      if (!stated.contains(resource)) out.emplace_back(text_at(container, "name"));
    }
  }
  return out;
}

std::string unstated(std::string_view quota, const Sums& hard, const Value& spec) {
  std::string out;
  for (const auto& [line, most] : hard) {
    std::vector<std::string> silent = silent_on(line, spec);
    if (silent.empty()) continue;
    std::sort(silent.begin(), silent.end());
    silent.erase(std::unique(silent.begin(), silent.end()), silent.end());
    out += (out.empty() ? "must specify " : "; ") + line + " for: ";
    for (std::size_t i = 0; i < silent.size(); ++i) out += (i > 0 ? "," : "") + silent[i];
  }
  return out.empty() ? out : "failed quota: " + std::string(quota) + ": " + out;
}

std::string exceeded(std::string_view quota, const Sums& hard, const Sums& used, const Sums& more) {
  Sums asked, has, most;
  for (const auto& [line, amount] : more) {
    const auto bound = hard.find(line);
    if (amount.is_zero() || bound == hard.end()) continue;
    const auto now = used.find(line);
    const Quantity held = now == used.end() ? Quantity() : now->second;
    if (held + amount <= bound->second) continue;
    asked.emplace(line, amount);
    has.emplace(line, held);
    most.emplace(line, bound->second);
  }
  if (asked.empty()) return {};
  return "exceeded quota: " + std::string(quota) + ", requested: " + listed(asked) +
         ", used: " + listed(has) + ", limited: " + listed(most);
}

}  // namespace berth::rules
