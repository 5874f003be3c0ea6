// "workload ml/train: 2 pods x 4 GPUs, queue a, admitted 10m ago" and the same for a Job.
#include <algorithm>
#include <optional>

#include "line_words.h"
#include "queue_shorthand.h"
#include "text/quantity.h"
#include "text/rfc3339.h"

namespace berth::scenario {

namespace {

struct PodSetWords {
  std::string name = "main";
  int count = 1;
  std::optional<int> min;
  std::map<std::string, std::string> requests, selector;  // of one pod
  std::vector<std::string> tolerations, affinity;         // as JSON
  std::string required, preferred, group;
  bool unconstrained = false;
  std::vector<std::pair<std::string, int>> slices;
  std::vector<std::pair<std::string, int>> domains;  // "a/b" and pods
};

struct HoldWords {
  bool admitted = false;
  std::string queue;                           // empty: that of the local queue
  std::string flavor = "default";              // of every resource
  std::map<std::string, std::string> flavors;  // of some, by resource
  std::optional<int> pods;
  std::optional<std::int64_t> since_ns;
};

struct WorkloadWords {
  std::string ns, name, uid, local, cluster_queue;
  std::optional<std::int64_t> created_ns;
  std::optional<int> priority;
  std::string priority_class;
  bool active = true, not_ready = false, suspended = true, finished = false;
  std::vector<PodSetWords> sets;
  std::optional<HoldWords> hold;
  std::string evicted;
  std::int64_t evicted_ns = 0;
  std::optional<std::int64_t> recovering_ns;  // since when its pods, once ready, are not
  bool not_requeued = false;
  std::vector<std::string> checks, reclaimable, unhealthy;  // as JSON
  std::string requeue_at, annotations, gates, owner;        // as JSON
  bool delayed = false, elastic = false;
  int requeues = 0, max_time = 0, past = -1;
};

Error bad_workload_item(std::string_view item, std::string_view want) {
  return invalid("found \"" + std::string(item) + "\", want " + std::string(want));
}

PodSetWords& current(WorkloadWords& out) {
  if (out.sets.empty()) out.sets.emplace_back();
  return out.sets.back();
}

// "10m ago" at the end of w: since then; the words are taken off.
bool take_ago(std::vector<std::string>& w, std::int64_t now_ns, std::optional<std::int64_t>& out) {
  if (w.size() < 2 || w.back() != "ago") return true;
  const auto duration = text::parse_go_duration(w[w.size() - 2]);
  if (!duration.ok()) return false;
  out = now_ns - *duration;
  w.resize(w.size() - 2);
  return true;
}

// "2 pods x 4 GPUs", "2 pods", "1 pod x cpu 2"
bool read_size(const std::vector<std::string>& w, std::size_t at, PodSetWords& out) {
  if (w.size() < at + 2 || !number_of(w[at]) || (w[at + 1] != "pods" && w[at + 1] != "pod")) {
    return false;
  }
  out.count = *number_of(w[at]);
  if (w.size() == at + 2) return true;
  if (w[at + 2] != "x") return false;
  const AmountWords amount = amount_words(w, at + 3);
  if (amount.words == 0 || w.size() != at + 3 + amount.words) return false;
  out.requests[amount.resource] = amount.amount;
  return true;
}

bool read_topology_item(const std::vector<std::string>& w, PodSetWords& out) {
  if (w.size() == 2 && w[0] == "required") {
    out.required = topology_label(w[1]);
  } else if (w.size() == 2 && w[0] == "preferred") {
    out.preferred = topology_label(w[1]);
  } else if (w.size() == 1 && w[0] == "unconstrained") {
    out.unconstrained = true;
  } else if (w.size() == 5 && w[0] == "slices" && w[3] == "per" && number_of(w[2])) {
    out.slices.emplace_back(topology_label(w[4]), *number_of(w[2]));
  } else if (w.size() == 2 && w[0] == "group") {
    out.group = w[1];
  } else if (w.size() >= 2 && w[0] == "domains") {
    for (std::size_t i = 1; i < w.size(); ++i) {
      std::string domain, count;
      if (!split_equals(w[i], domain, count) || !number_of(count)) return false;
      out.domains.emplace_back(domain, *number_of(count));
    }
  } else {
    return false;
  }
  return true;
}

bool read_set_item(const std::vector<std::string>& w, WorkloadWords& out) {
  if (w[0] == "set" && w.size() >= 4) {
    PodSetWords set;
    set.name = w[1];
    if (!read_size(w, 2, set)) return false;
    out.sets.push_back(std::move(set));
    return true;
  }
  if (w.size() >= 2 && (w[1] == "pods" || w[1] == "pod") && number_of(w[0])) {
    return read_size(w, 0, current(out));
  }
  PodSetWords& set = current(out);
  const AmountWords amount = amount_words(w, 0);
  std::string key, value;
  if (amount.words > 0 && amount.words == w.size()) {
    set.requests[amount.resource] = amount.amount;
  } else if (w.size() == 2 && w[0] == "min" && number_of(w[1])) {
    set.min = *number_of(w[1]);
  } else if (w.size() == 2 && w[0] == "tolerates") {
    set.tolerations.push_back(toleration_json(w[1]));
  } else if (w.size() == 2 && w[0] == "selector" && split_equals(w[1], key, value)) {
    set.selector[key] = value;
  } else if (w.size() >= 3 && w[0] == "needs" && w[1] == "node") {
    // "needs node k=v" or "needs node k=v|w": each item is one term, and one of them must hold
    if (!split_equals(w[2], key, value)) return false;
    std::vector<std::string> values;
    for (const std::string& one : split_at(value, "|")) values.push_back(quoted_json(one));
    set.affinity.push_back(R"({"matchExpressions":[{"key":)" + quoted_json(key) +
                           R"(,"operator":"In","values":[)" + listed(values) + "]}]}");
  } else {
    return read_topology_item(w, set);
  }
  return true;
}

// "admitted [in QUEUE] [on FLAVOR | on cpu=a gpus=b] [with 2 pods] [10m ago]"
bool read_hold(std::vector<std::string> w, std::int64_t now_ns, WorkloadWords& out) {
  HoldWords hold;
  hold.admitted = w[0] == "admitted";
  if (!take_ago(w, now_ns, hold.since_ns)) return false;
  for (std::size_t i = 1; i < w.size();) {
    if (w[i] == "in" && i + 1 < w.size()) {
      hold.queue = w[i + 1];
      i += 2;
    } else if (w[i] == "with" && i + 2 < w.size() && number_of(w[i + 1])) {
      hold.pods = *number_of(w[i + 1]);
      i += 3;
    } else if (w[i] == "on" && i + 1 < w.size()) {
      for (++i; i < w.size() && w[i] != "with" && w[i] != "in"; ++i) {
        std::string resource, flavor;
        if (split_equals(w[i], resource, flavor)) {
          hold.flavors[resource == "gpus" ? kGpuResource : resource] = flavor;
        } else {
          hold.flavor = w[i];
        }
      }
    } else {
      return false;
    }
  }
  out.hold = std::move(hold);
  return true;
}

bool read_life_item(const std::vector<std::string>& w, std::int64_t now_ns, WorkloadWords& out) {
  if (w[0] == "admitted" || w[0] == "reserved") return read_hold(w, now_ns, out);
  if (w[0] == "evicted" && w.size() >= 2) {
    std::vector<std::string> rest = w;
    std::optional<std::int64_t> since;
    if (!take_ago(rest, now_ns, since) || rest.size() != 2) return false;
    out.evicted = w[1];
    out.evicted_ns = since.value_or(now_ns);
  } else if (w[0] == "check" && (w.size() == 3 || (w.size() == 5 && w[3] == "in"))) {
    // check NAME Retry in 60s
    std::string after;
    if (w.size() == 5) {
      const auto duration = text::parse_go_duration(w[4]);
      if (!duration.ok()) return false;
      after = R"(,"requeueAfterSeconds":)" + std::to_string(*duration / kSecond);
    }
    out.checks.push_back(R"({"name":)" + quoted_json(w[1]) + R"(,"state":)" + quoted_json(w[2]) +
                         R"(,"message":"")" + after + "}");
  } else if (w[0] == "recovering" && w.size() == 3) {
    std::vector<std::string> rest = w;
    if (!take_ago(rest, now_ns, out.recovering_ns)) return false;
  } else if (w[0] == "requeue" && w.size() == 3 && w[1] == "in") {
    const auto duration = text::parse_go_duration(w[2]);
    if (!duration.ok()) return false;
    out.requeue_at = text::format_rfc3339(now_ns + *duration);
  } else if (w.size() == 2 && w[0] == "requeued" && number_of(w[1])) {
    out.requeues = *number_of(w[1]);
  } else if (w[0] == "reclaimable" && w.size() == 2 && number_of(w[1])) {
    out.reclaimable.push_back(R"({"name":)" + quoted_json(current(out).name) + R"(,"count":)" +
                              w[1] + "}");
  } else if (w.size() == 3 && w[0] == "max" && w[1] == "time" && number_of(w[2])) {
    out.max_time = *number_of(w[2]);
  } else if (w.size() == 2 && w[0] == "ran" && number_of(w[1])) {
    out.past = *number_of(w[1]);
  } else if (w.size() == 3 && w[0] == "lost" && w[1] == "node") {
    out.unhealthy.push_back(R"({"name":)" + quoted_json(w[2]) + "}");
  } else {
    return false;
  }
  return true;
}

std::string owner_json(const std::string& version, const std::string& kind,
                       const std::string& name) {
  return R"({"apiVersion":)" + quoted_json(version) + R"(,"kind":)" + quoted_json(kind) +
         R"(,"name":)" + quoted_json(name) + R"(,"uid":)" + quoted_json(kind + '-' + name) +
         R"(,"controller":true})";
}

// What it stands for: a Job, an older slice, a parent with variants.
bool read_kin_item(const std::string& item, const std::vector<std::string>& w, WorkloadWords& out) {
  if (w.size() == 3 && w[0] == "of" && w[1] == "job") {
    out.owner = owner_json("batch/v1", "Job", w[2]);
  } else if (w.size() == 2 && w[0] == "replaces") {
    out.annotations = R"("kueue.x-k8s.io/workload-slice-replacement-for":)" + quoted_json(w[1]);
  } else if (w.size() == 5 && w[0] == "variant" && w[1] == "of" && w[3] == "on") {
    out.owner = owner_json("kueue.x-k8s.io/v1beta2", "Workload", w[2]);
    out.annotations = R"("kueue.x-k8s.io/workload-allowed-resource-flavors":)" + quoted_json(w[4]);
  } else if (item == "elastic") {
    out.elastic = true;
  } else if (item == "topology delayed") {
    out.delayed = true;
  } else {
    return false;
  }
  return true;
}

bool read_name_item(const std::string& item, std::vector<std::string> w, std::int64_t now_ns,
                    WorkloadWords& out) {
  if (w.size() == 2 && w[0] == "queue") {
    out.local = out.cluster_queue = w[1];
  } else if (w.size() == 3 && w[0] == "local" && w[1] == "queue") {
    out.local = w[2];
  } else if (w.size() == 2 && w[0] == "priority" && number_of(w[1])) {
    out.priority = *number_of(w[1]);
  } else if (w.size() == 3 && w[0] == "priority" && w[1] == "class") {
    out.priority_class = w[2];
  } else if (w.size() == 2 && w[0] == "boost") {
    out.annotations = R"("kueue.x-k8s.io/priority-boost":)" + quoted_json(w[1]);
  } else if (w[0] == "created") {
    return take_ago(w, now_ns, out.created_ns) && w.size() == 1;
  } else if (w.size() == 2 && w[0] == "uid") {
    out.uid = w[1];
  } else if (item == "inactive") {
    out.active = false;
  } else if (item == "not ready") {
    out.not_ready = true;
  } else if (item == "not requeued") {
    out.not_requeued = true;
  } else if (item == "not suspended") {
    out.suspended = false;
  } else if (item == "finished") {
    out.finished = true;
  } else if (item == "may not preempt") {
    out.gates = R"({"name":"example.com/gate"})";
  } else if (w.size() == 3 && w[0] == "held" && w[1] == "by") {
    out.annotations = R"("kueue.x-k8s.io/admission-gated-by":)" + quoted_json(w[2]);
  } else {
    return read_kin_item(item, w, out);
  }
  return true;
}

// ---- manifests ----

using Strings = std::map<std::string, std::string>;

std::string pairs_json(const Strings& pairs) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : pairs)
    parts.push_back(quoted_json(key) + ':' + quoted_json(value));
  return "{" + listed(parts) + "}";
}

std::string pod_spec_json(const PodSetWords& set) {
  Strings limits;
  for (const auto& [resource, amount] : set.requests) {
    if (resource.find('/') != std::string::npos) limits[resource] = amount;
  }
  std::string out = R"({"containers":[{"name":"c","image":"example","resources":{"requests":)" +
                    pairs_json(set.requests) + R"(,"limits":)" + pairs_json(limits) + "}}]";
  if (!set.selector.empty()) out += R"(,"nodeSelector":)" + pairs_json(set.selector);
  if (!set.tolerations.empty()) out += R"(,"tolerations":[)" + listed(set.tolerations) + "]";
  if (!set.affinity.empty()) {
    out += R"(,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)"
           R"({"nodeSelectorTerms":[)" +
           listed(set.affinity) + "]}}}";
  }
  return out;  // the caller closes it
}

std::string topology_request_json(const PodSetWords& set) {
  std::vector<std::string> parts;
  if (!set.required.empty()) parts.push_back(R"("required":)" + quoted_json(set.required));
  if (!set.preferred.empty()) parts.push_back(R"("preferred":)" + quoted_json(set.preferred));
  if (set.unconstrained) parts.emplace_back(R"("unconstrained":true)");
  if (!set.group.empty()) parts.push_back(R"("podSetGroupName":)" + quoted_json(set.group));
  if (set.slices.size() == 1) {
    parts.push_back(R"("podSetSliceRequiredTopology":)" + quoted_json(set.slices[0].first) +
                    R"(,"podSetSliceSize":)" + std::to_string(set.slices[0].second));
  } else if (set.slices.size() > 1) {
    std::vector<std::string> slices;
    for (const auto& [level, size] : set.slices) {
      slices.push_back(R"({"topology":)" + quoted_json(level) + R"(,"size":)" +
                       std::to_string(size) + "}");
    }
    parts.push_back(R"("podsetSliceRequiredTopologyConstraints":[)" + listed(slices) + "]");
  }
  return parts.empty() ? "" : R"(,"topologyRequest":{)" + listed(parts) + "}";
}

// "a/b=2": one value for each of the levels that are stored.
std::string assignment_json(const PodSetWords& set, const std::vector<std::string>& levels) {
  std::vector<std::string> keys, values, counts;
  std::vector<std::vector<std::string>> roots(levels.size());
  for (const std::string& level : levels) keys.push_back(quoted_json(level));
  for (const auto& [domain, count] : set.domains) {
    std::vector<std::string> parts = split_at(domain, "/");
    parts.resize(levels.size());
    for (std::size_t l = 0; l < levels.size(); ++l) roots[l].push_back(quoted_json(parts[l]));
    counts.push_back(std::to_string(count));
  }
  for (const auto& list : roots) {
    values.push_back(R"({"individual":{"roots":[)" + listed(list) + "]}}");
  }
  return R"(,"topologyAssignment":{"levels":[)" + listed(keys) + R"(],"slices":[{"domainCount":)" +
         std::to_string(set.domains.size()) + R"(,"valuesPerLevel":[)" + listed(values) +
         R"(],"podCounts":{"individual":[)" + listed(counts) + "]}}]}";
}

std::string usage_json(const PodSetWords& set, int count, bool covers_pods) {
  Strings usage;
  for (const auto& [resource, amount] : set.requests) {
    const auto quantity = text::parse_quantity(amount);
    if (!quantity.ok()) continue;
    text::Quantity sum;
    for (int i = 0; i < count; ++i) sum += *quantity;
    usage[resource] = sum.to_string();
  }
  if (covers_pods) usage["pods"] = std::to_string(count);
  return pairs_json(usage);
}

std::string flavors_json(const PodSetWords& set, const HoldWords& hold, bool covers_pods) {
  Strings flavors;
  for (const auto& [resource, amount] : set.requests) flavors[resource] = hold.flavor;
  if (covers_pods) flavors["pods"] = hold.flavor;
  for (auto& [resource, flavor] : flavors) {
    const auto it = hold.flavors.find(resource);
    if (it != hold.flavors.end()) flavor = it->second;
  }
  return pairs_json(flavors);
}

std::string condition_json(const std::string& type, bool on, const std::string& reason,
                           std::int64_t since_ns) {
  return R"({"type":)" + quoted_json(type) + R"(,"status":)" + quoted_json(on ? "True" : "False") +
         R"(,"reason":)" + quoted_json(reason) + R"(,"message":"","lastTransitionTime":)" +
         quoted_json(text::format_rfc3339(since_ns)) + "}";
}

struct HoldContext {
  bool covers_pods = false;
  std::vector<std::string> levels;  // of the flavor's topology, as they are stored
};

std::string admission_json(const WorkloadWords& words, const HoldContext& context) {
  std::vector<std::string> sets;
  for (const PodSetWords& set : words.sets) {
    const int count = words.hold->pods.value_or(set.count);
    sets.push_back(R"({"name":)" + quoted_json(set.name) + R"(,"count":)" + std::to_string(count) +
                   R"(,"flavors":)" + flavors_json(set, *words.hold, context.covers_pods) +
                   R"(,"resourceUsage":)" + usage_json(set, count, context.covers_pods) +
                   (set.domains.empty() ? "" : assignment_json(set, context.levels)) +
                   (words.delayed ? R"(,"delayedTopologyRequest":"Pending")" : "") + "}");
  }
  return R"("admission":{"clusterQueue":)" + quoted_json(words.hold->queue) +
         R"(,"podSetAssignments":[)" + listed(sets) + "]}";
}

std::string status_json(const WorkloadWords& words, const HoldContext& context,
                        std::int64_t created_ns) {
  std::vector<std::string> parts, conditions;
  if (words.hold) {
    parts.push_back(admission_json(words, context));
    const std::int64_t since = words.hold->since_ns.value_or(created_ns);
    conditions.push_back(condition_json("QuotaReserved", true, "QuotaReserved", since));
    if (words.hold->admitted) {
      conditions.push_back(condition_json("Admitted", true, "Admitted", since));
    }
    if (words.not_ready) {
      conditions.push_back(condition_json("PodsReady", false, "WaitForStart", since));
    }
  }
  if (words.recovering_ns) {
    conditions.push_back(
        condition_json("PodsReady", false, "WaitForRecovery", *words.recovering_ns));
  }
  if (!words.evicted.empty()) {
    conditions.push_back(condition_json("Evicted", true, words.evicted, words.evicted_ns));
  }
  if (words.not_requeued) {
    conditions.push_back(condition_json("Requeued", false, "PodsReadyTimeout", words.evicted_ns));
  }
  if (words.finished) {
    conditions.push_back(condition_json("Finished", true, "Succeeded", created_ns));
  }
  if (!conditions.empty()) parts.push_back(R"("conditions":[)" + listed(conditions) + "]");
  if (!words.requeue_at.empty() || words.requeues > 0) {
    parts.push_back(
        R"("requeueState":{"count":)" + std::to_string(words.requeues) +
        (words.requeue_at.empty() ? "" : R"(,"requeueAt":)" + quoted_json(words.requeue_at)) + "}");
  }
  if (!words.checks.empty()) parts.push_back(R"("admissionChecks":[)" + listed(words.checks) + "]");
  if (!words.reclaimable.empty()) {
    parts.push_back(R"("reclaimablePods":[)" + listed(words.reclaimable) + "]");
  }
  if (!words.unhealthy.empty()) {
    parts.push_back(R"("unhealthyNodes":[)" + listed(words.unhealthy) + "]");
  }
  if (words.past >= 0) {
    parts.push_back(R"("accumulatedPastExecutionTimeSeconds":)" + std::to_string(words.past));
  }
  return parts.empty() ? "" : R"(,"status":{)" + listed(parts) + "}";
}

std::string meta_json(const WorkloadWords& words, std::int64_t created_ns,
                      const std::string& labels, const std::string& annotations) {
  return R"("metadata":{"name":)" + quoted_json(words.name) + R"(,"namespace":)" +
         quoted_json(words.ns) + R"(,"creationTimestamp":)" +
         quoted_json(text::format_rfc3339(created_ns)) +
         (words.uid.empty() ? "" : R"(,"uid":)" + quoted_json(words.uid)) +
         (words.owner.empty() ? "" : R"(,"ownerReferences":[)" + words.owner + "]") +
         (labels.empty() ? "" : R"(,"labels":{)" + labels + "}") +
         (annotations.empty() ? "" : R"(,"annotations":{)" + annotations + "}") + "}";
}

std::string workload_json(const WorkloadWords& words, const HoldContext& context,
                          std::int64_t created_ns) {
  std::vector<std::string> sets, spec;
  for (const PodSetWords& set : words.sets) {
    sets.push_back(
        R"({"name":)" + quoted_json(set.name) + R"(,"count":)" + std::to_string(set.count) +
        (set.min ? R"(,"minCount":)" + std::to_string(*set.min) : "") + topology_request_json(set) +
        R"(,"template":{"spec":)" + pod_spec_json(set) + "}}}");
  }
  spec.push_back(R"("podSets":[)" + listed(sets) + "]");
  if (!words.local.empty()) spec.push_back(R"("queueName":)" + quoted_json(words.local));
  if (words.priority) spec.push_back(R"("priority":)" + std::to_string(*words.priority));
  if (!words.priority_class.empty()) {
    spec.push_back(R"("priorityClassRef":{"group":"kueue.x-k8s.io",)"
                   R"("kind":"WorkloadPriorityClass","name":)" +
                   quoted_json(words.priority_class) + "}");
  }
  if (!words.active) spec.emplace_back(R"("active":false)");
  if (words.max_time > 0) {
    spec.push_back(R"("maximumExecutionTimeSeconds":)" + std::to_string(words.max_time));
  }
  if (!words.gates.empty()) spec.push_back(R"("preemptionGates":[)" + words.gates + "]");
  return R"({"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload",)" +
         meta_json(words, created_ns, "", words.annotations) + R"(,"spec":{)" + listed(spec) + "}" +
         status_json(words, context, created_ns) + "}";
}

std::string job_json(const WorkloadWords& words, std::int64_t created_ns) {
  const PodSetWords& set = words.sets.front();
  Strings labels, annotations, marks;
  if (!words.local.empty()) labels["kueue.x-k8s.io/queue-name"] = words.local;
  if (!words.priority_class.empty()) {
    labels["kueue.x-k8s.io/priority-class"] = words.priority_class;
  }
  if (words.max_time > 0) {
    labels["kueue.x-k8s.io/max-exec-time-seconds"] = std::to_string(words.max_time);
  }
  if (set.min) annotations["kueue.x-k8s.io/job-min-parallelism"] = std::to_string(*set.min);
  if (words.elastic) annotations["kueue.x-k8s.io/elastic-job"] = "true";
  if (!set.required.empty()) marks["kueue.x-k8s.io/podset-required-topology"] = set.required;
  if (!set.preferred.empty()) marks["kueue.x-k8s.io/podset-preferred-topology"] = set.preferred;
  if (set.unconstrained) marks["kueue.x-k8s.io/podset-unconstrained-topology"] = "true";
  if (set.slices.size() == 1) {
    marks["kueue.x-k8s.io/podset-slice-required-topology"] = set.slices[0].first;
    marks["kueue.x-k8s.io/podset-slice-size"] = std::to_string(set.slices[0].second);
  } else if (set.slices.size() > 1) {
    std::vector<std::string> slices;
    for (const auto& [level, size] : set.slices) {
      slices.push_back(R"({"topology":)" + quoted_json(level) + R"(,"size":)" +
                       std::to_string(size) + "}");
    }
    marks["kueue.x-k8s.io/podset-slice-required-topology-constraints"] = "[" + listed(slices) + "]";
  }
  const auto inner = [](const Strings& pairs) {
    const std::string all = pairs_json(pairs);
    return all.substr(1, all.size() - 2);
  };
  return R"({"apiVersion":"batch/v1","kind":"Job",)" +
         meta_json(words, created_ns, inner(labels), inner(annotations)) +
         R"(,"spec":{"parallelism":)" + std::to_string(set.count) + R"(,"completions":)" +
         std::to_string(set.count) + R"(,"suspend":)" + (words.suspended ? "true" : "false") +
         R"(,"template":{"metadata":{"annotations":)" + pairs_json(marks) + R"(},"spec":)" +
         pod_spec_json(set) + R"(,"restartPolicy":"Never")" +
         (words.priority ? R"(,"priority":)" + std::to_string(*words.priority) : "") + "}}}}";
}

}  // namespace

Result<std::vector<Object>> QueueShorthand::read_workload(const std::string& name,
                                                          std::string_view body,
                                                          std::int64_t now_ns, bool job) {
  WorkloadWords words;
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) return bad_workload_item(name, "NAMESPACE/NAME");
  words.ns = name.substr(0, slash);
  words.name = name.substr(slash + 1);
  for (const std::string& item : split_at(body, ", ")) {
    const std::vector<std::string> w = words_of(item);
    if (w.empty()) return invalid("found an empty item between commas");
    if (read_name_item(item, w, now_ns, words) || read_life_item(w, now_ns, words) ||
        read_set_item(w, words)) {
      continue;
    }
    return bad_workload_item(item, "one of the items of a workload that docs/scenarios.md lists");
  }
  if (words.sets.empty()) return invalid("want how big it is, such as \"2 pods x 4 GPUs\"");
  if (words.local.empty()) words.cluster_queue.clear();
  std::vector<Object> out;
  if (!words.cluster_queue.empty()) add_local(words.ns, words.cluster_queue, out);
  // Whoever holds quota was there before: an hour ago unless it says otherwise.
  const std::int64_t before = words.hold ? 3600 * kSecond : 0;
  const std::int64_t created = words.created_ns.value_or(now_ns - before);
  if (job) {
    out.push_back({"Job", name, job_json(words, created)});
    return out;
  }
  HoldContext context;
  if (words.hold) {
    if (words.hold->queue.empty()) words.hold->queue = locals_[words.ns + '/' + words.local];
    context.covers_pods = queues_[words.hold->queue].resources.contains("pods");
    context.levels = levels_[topology_of_flavor_[words.hold->flavor]];
    const std::string host = topology_label("host");
    if (context.levels.empty() || context.levels.back() == host) context.levels = {host};
  }
  out.push_back({"Workload", name, workload_json(words, context, created)});
  return out;
}

}  // namespace berth::scenario
