// Flavors, topologies, cohorts, queues, local queues, checks and the configuration of queues.
#include "queue_shorthand.h"

#include <algorithm>
#include <optional>

#include "line_words.h"
#include "text/json_writer.h"

namespace berth::scenario {

namespace {

using text::JsonWriter;

Error bad_queue_item(std::string_view item, std::string_view want) {
  return invalid("found \"" + std::string(item) + "\", want " + std::string(want));
}

// A manifest of kind with a name and a finished "spec".
std::string manifest(std::string_view kind, const std::string& name, const std::string& spec,
                     const std::string& ns = "") {
  return R"({"apiVersion":"kueue.x-k8s.io/v1beta2","kind":)" + quoted_json(kind) +
         R"(,"metadata":{"name":)" + quoted_json(name) +
         (ns.empty() ? "" : R"(,"namespace":)" + quoted_json(ns)) + R"(},"spec":{)" + spec + "}}";
}

// ---- quotas ----

struct QuotaWords {
  std::string resource, nominal, flavor = "default";
  std::string borrow, lend;  // empty: not given
};
struct FlavorQuotas {
  std::string flavor;
  std::vector<QuotaWords> resources;  // in order of appearance
};

// "8 GPUs [of FLAVOR] [borrow 4] [lend 2]"; nothing when the item is no quota.
Result<std::optional<QuotaWords>> read_quota_item(const std::vector<std::string>& w) {
  const AmountWords amount = amount_words(w, 0);
  if (amount.words == 0) return std::optional<QuotaWords>();
  QuotaWords out;
  out.resource = amount.resource;
  out.nominal = amount.amount;
  std::size_t at = amount.words;
  for (; at + 1 < w.size(); at += 2) {
    std::string* field = w[at] == "of"       ? &out.flavor
                         : w[at] == "borrow" ? &out.borrow
                         : w[at] == "lend"   ? &out.lend
                                             : nullptr;
    if (field == nullptr) break;
    *field = w[at + 1];
  }
  if (at == w.size()) return std::optional<QuotaWords>(std::move(out));
  return bad_queue_item(w[at], "\"8 GPUs of FLAVOR borrow 4 lend 2\"");
}

void add_quota(QuotaWords quota, std::vector<FlavorQuotas>& out) {
  auto it = std::find_if(out.begin(), out.end(),
                         [&](const FlavorQuotas& f) { return f.flavor == quota.flavor; });
  if (it == out.end()) it = out.insert(out.end(), {quota.flavor, {}});
  it->resources.push_back(std::move(quota));
}

std::string quota_json(const QuotaWords& quota) {
  return R"({"name":)" + quoted_json(quota.resource) + R"(,"nominalQuota":)" +
         quoted_json(quota.nominal) +
         (quota.borrow.empty() ? "" : R"(,"borrowingLimit":)" + quoted_json(quota.borrow)) +
         (quota.lend.empty() ? "" : R"(,"lendingLimit":)" + quoted_json(quota.lend)) + "}";
}

// Flavors with the same resources, in whatever order, are one group.
std::string groups_json(const std::vector<FlavorQuotas>& flavors) {
  struct Group {
    std::set<std::string> key;
    std::vector<std::string> covered, flavors;
  };
  std::vector<Group> groups;
  for (const FlavorQuotas& flavor : flavors) {
    Group fresh;
    for (const QuotaWords& quota : flavor.resources) {
      fresh.key.insert(quota.resource);
      fresh.covered.push_back(quota.resource);
    }
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& g) { return g.key == fresh.key; });
    if (group == groups.end()) group = groups.insert(groups.end(), std::move(fresh));
    std::vector<std::string> quotas;
    for (const std::string& resource : group->covered) {
      for (const QuotaWords& quota : flavor.resources) {
        if (quota.resource == resource) quotas.push_back(quota_json(quota));
      }
    }
    group->flavors.push_back(R"({"name":)" + quoted_json(flavor.flavor) + R"(,"resources":[)" +
                             listed(quotas) + "]}");
  }
  std::vector<std::string> out;
  for (const Group& group : groups) {
    std::vector<std::string> covered;
    for (const std::string& resource : group.covered) covered.push_back(quoted_json(resource));
    out.push_back(R"({"coveredResources":[)" + listed(covered) + R"(],"flavors":[)" +
                  listed(group.flavors) + "]}");
  }
  return R"("resourceGroups":[)" + listed(out) + "]";
}

// ---- ClusterQueue and Cohort ----

struct QueueWords {
  std::string cohort, weight, stop, selector = "{}";
  bool strict = false, usage_based = false;
  std::string within, reclaim, threshold;
  bool borrow_by_preemption = false;
  bool next_when_borrowing = false, stop_when_preempting = false, prefers_preemption = false;
  std::vector<std::string> checks;  // as JSON
  std::vector<FlavorQuotas> quotas;
  std::string migration;  // of concurrentAdmissionPolicy, as JSON
};

bool read_preemption_item(const std::string& item, const std::vector<std::string>& w,
                          QueueWords& out) {
  if (w[0] == "within" && w.size() == 2) {
    out.within = w[1];
  } else if (w[0] == "reclaim" && w.size() == 2) {
    out.reclaim = w[1];
  } else if (item.starts_with("borrow by preemption")) {
    // borrow by preemption [up to priority N]
    if (w.size() != 3 && !(w.size() == 7 && w[5] == "priority" && number_of(w[6]))) return false;
    out.borrow_by_preemption = true;
    if (w.size() == 7) out.threshold = w[6];
  } else if (item == "when borrowing next flavor") {
    out.next_when_borrowing = true;
  } else if (item == "when preempting stop") {
    out.stop_when_preempting = true;
  } else if (item == "prefers preemption") {
    out.prefers_preemption = out.next_when_borrowing = true;
  } else {
    return false;
  }
  return true;
}

bool read_queue_item(const std::string& item, const std::vector<std::string>& w, QueueWords& out) {
  std::string key, value;
  if (w.size() == 2 && (w[0] == "cohort" || w[0] == "parent")) {
    out.cohort = w[1];
  } else if (w.size() == 2 && w[0] == "weight") {
    out.weight = w[1];
  } else if (item == "strict") {
    out.strict = true;
  } else if (item == "stopped" || item == "drained") {
    out.stop = item == "stopped" ? "Hold" : "HoldAndDrain";
  } else if (item == "usage based") {
    out.usage_based = true;
  } else if (item == "selects nothing") {
    out.selector.clear();
  } else if (w[0] == "variants" && (w.size() == 1 || w.size() == 2 || w.size() == 4)) {
    // variants, variants stay, variants up to FLAVOR
    const bool stay = w.size() == 2 && w[1] == "stay";
    if ((w.size() == 2 && !stay) || (w.size() == 4 && (w[1] != "up" || w[2] != "to"))) return false;
    out.migration = std::string(R"("mode":)") +
                    (stay ? R"("RetainFirstAdmission")" : R"("TryPreferredFlavors")");
    if (w.size() == 4) {
      out.migration += R"(,"constraints":{"lastAcceptableFlavorName":)" + quoted_json(w[3]) + "}";
    }
  } else if (w[0] == "selects" && w.size() == 2 && split_equals(w[1], key, value)) {
    out.selector = R"({"matchLabels":{)" + quoted_json(key) + ':' + quoted_json(value) + "}}";
  } else if (w[0] == "check" && (w.size() == 2 || (w.size() == 4 && w[2] == "on"))) {
    out.checks.push_back(R"({"name":)" + quoted_json(w[1]) +
                         (w.size() == 4 ? R"(,"onFlavors":[)" + quoted_json(w[3]) + "]" : "") +
                         "}");
  } else {
    return false;
  }
  return true;
}

std::string preemption_json(const QueueWords& q) {
  std::vector<std::string> parts;
  if (!q.within.empty()) parts.push_back(R"("withinClusterQueue":)" + quoted_json(q.within));
  if (!q.reclaim.empty()) parts.push_back(R"("reclaimWithinCohort":)" + quoted_json(q.reclaim));
  if (q.borrow_by_preemption) {
    parts.push_back(R"("borrowWithinCohort":{"policy":"LowerPriority")" +
                    (q.threshold.empty() ? "" : R"(,"maxPriorityThreshold":)" + q.threshold) + "}");
  }
  return "{" + listed(parts) + "}";
}

std::string fungibility_json(const QueueWords& q) {
  std::vector<std::string> parts;
  if (q.next_when_borrowing) parts.emplace_back(R"("whenCanBorrow":"TryNextFlavor")");
  if (q.stop_when_preempting) parts.emplace_back(R"("whenCanPreempt":"MayStopSearch")");
  if (q.prefers_preemption) parts.emplace_back(R"("preference":"PreemptionOverBorrowing")");
  return "{" + listed(parts) + "}";
}

std::string queue_spec(const QueueWords& q) {
  std::vector<std::string> parts;
  if (!q.cohort.empty()) parts.push_back(R"("cohortName":)" + quoted_json(q.cohort));
  if (!q.quotas.empty()) parts.push_back(groups_json(q.quotas));
  if (!q.selector.empty()) parts.push_back(R"("namespaceSelector":)" + q.selector);
  if (q.strict) parts.emplace_back(R"("queueingStrategy":"StrictFIFO")");
  if (!q.stop.empty()) parts.push_back(R"("stopPolicy":)" + quoted_json(q.stop));
  if (!q.weight.empty()) {
    parts.push_back(R"("fairSharing":{"weight":)" + quoted_json(q.weight) + "}");
  }
  if (q.usage_based) {
    parts.emplace_back(R"("admissionScope":{"admissionMode":"UsageBasedAdmissionFairSharing"})");
  }
  if (!q.migration.empty()) {
    parts.push_back(R"("concurrentAdmissionPolicy":{"migration":{)" + q.migration + "}}");
  }
  if (preemption_json(q) != "{}") parts.push_back(R"("preemption":)" + preemption_json(q));
  if (fungibility_json(q) != "{}") parts.push_back(R"("flavorFungibility":)" + fungibility_json(q));
  if (!q.checks.empty()) {
    parts.push_back(R"("admissionChecksStrategy":{"admissionChecks":[)" + listed(q.checks) + "]}");
  }
  return listed(parts);
}

std::string cohort_spec(const QueueWords& q) {
  std::vector<std::string> parts;
  if (!q.cohort.empty()) parts.push_back(R"("parentName":)" + quoted_json(q.cohort));
  if (!q.quotas.empty()) parts.push_back(groups_json(q.quotas));
  if (!q.weight.empty()) {
    parts.push_back(R"("fairSharing":{"weight":)" + quoted_json(q.weight) + "}");
  }
  return listed(parts);
}

// ---- Configuration ----

struct ConfigWords {
  std::vector<std::string> sharing, gates, waiting, requeuing, resources, excluded, transforms;
  std::vector<std::string> admission_sharing, weights, rest;
  bool fair = false, waits = false;
};

bool read_sharing_config(const std::string& item, const std::vector<std::string>& w,
                         ConfigWords& out) {
  if (item == "fair sharing") {
    out.fair = true;
  } else if (w[0] == "strategies" && w.size() >= 2) {
    out.fair = true;
    for (std::size_t i = 1; i < w.size(); ++i) out.sharing.push_back(quoted_json(w[i]));
  } else if (w.size() == 3 && w[0] == "half" && w[1] == "life") {
    out.admission_sharing.push_back(R"("usageHalfLifeTime":)" + quoted_json(w[2]));
  } else if (w.size() == 2 && w[0] == "sampling") {
    out.admission_sharing.push_back(R"("usageSamplingInterval":)" + quoted_json(w[1]));
  } else if (w.size() == 4 && w[0] == "resource" && w[1] == "weight") {
    out.weights.push_back(quoted_json(w[2]) + ':' + w[3]);
  } else {
    return false;
  }
  return true;
}

bool read_waiting_config(const std::string& item, const std::vector<std::string>& w,
                         ConfigWords& out) {
  if (item == "block admission") {
    out.waiting.emplace_back(R"("blockAdmission":true)");
  } else if (item.starts_with("pods ready within ") && w.size() == 4) {
    out.waiting.push_back(R"("timeout":)" + quoted_json(w[3]));
  } else if (item.starts_with("pods recover within ") && w.size() == 4) {
    out.waiting.push_back(R"("recoveryTimeout":)" + quoted_json(w[3]));
  } else if (item == "requeue by creation") {
    out.requeuing.emplace_back(R"("timestamp":"Creation")");
  } else if (w[0] == "backoff" && w.size() == 3 && number_of(w[2])) {  // base, max or limit
    const char* key = w[1] == "base"  ? "backoffBaseSeconds"
                      : w[1] == "max" ? "backoffMaxSeconds"
                                      : "backoffLimitCount";
    out.requeuing.push_back(quoted_json(key) + ':' + w[2]);
  } else {
    return false;
  }
  out.waits = true;
  return true;
}

bool read_config_item(const std::string& item, const std::vector<std::string>& w,
                      ConfigWords& out) {
  if (read_sharing_config(item, w, out) || read_waiting_config(item, w, out)) return true;
  if (w[0] == "gate" && w.size() == 3 && (w[2] == "on" || w[2] == "off")) {
    out.gates.push_back(quoted_json(w[1]) + ':' + (w[2] == "on" ? "true" : "false"));
  } else if (item == "ignore undeclared") {
    out.resources.emplace_back(R"("quotaCheckStrategy":"IgnoreUndeclared")");
  } else if (w[0] == "exclude" && w.size() == 2) {
    out.excluded.push_back(quoted_json(w[1]));
  } else if (item == "manage jobs without queue") {
    out.rest.emplace_back(R"("manageJobsWithoutQueueName":true)");
  } else if (w[0] == "transform" && (w.size() == 5 || w.size() == 6) && w[2] == "to") {
    // transform INPUT to OUTPUT 10 [replacing]
    out.transforms.push_back(R"({"input":)" + quoted_json(w[1]) + R"(,"strategy":)" +
                             (w.size() == 6 ? R"("Replace")" : R"("Retain")") + R"(,"outputs":{)" +
                             quoted_json(w[3]) + ':' + quoted_json(w[4]) + "}}");
  } else {
    return false;
  }
  return true;
}

std::string config_json(ConfigWords c) {
  std::vector<std::string> parts = std::move(c.rest);
  if (c.fair) {
    parts.push_back(
        R"("fairSharing":{)" +
        (c.sharing.empty() ? "" : R"("preemptionStrategies":[)" + listed(c.sharing) + "]") + "}");
  }
  if (!c.weights.empty()) {
    c.admission_sharing.push_back(R"("resourceWeights":{)" + listed(c.weights) + "}");
  }
  if (!c.admission_sharing.empty()) {
    parts.push_back(R"("admissionFairSharing":{)" + listed(c.admission_sharing) + "}");
  }
  if (!c.requeuing.empty()) {
    c.waiting.push_back(R"("requeuingStrategy":{)" + listed(c.requeuing) + "}");
  }
  if (c.waits) parts.push_back(R"("waitForPodsReady":{)" + listed(c.waiting) + "}");
  if (!c.gates.empty()) parts.push_back(R"("featureGates":{)" + listed(c.gates) + "}");
  if (!c.excluded.empty()) {
    c.resources.push_back(R"("excludeResourcePrefixes":[)" + listed(c.excluded) + "]");
  }
  if (!c.transforms.empty()) {
    c.resources.push_back(R"("transformations":[)" + listed(c.transforms) + "]");
  }
  if (!c.resources.empty()) parts.push_back(R"("resources":{)" + listed(c.resources) + "}");
  parts.insert(parts.begin(),
               R"("apiVersion":"config.kueue.x-k8s.io/v1beta2","kind":"Configuration")");
  return "{" + listed(parts) + "}";
}

Result<std::vector<Object>> read_config(std::string_view body) {
  ConfigWords words;
  for (const std::string& item : split_at(body, ", ")) {
    const std::vector<std::string> w = words_of(item);
    if (w.empty() || !read_config_item(item, w, words)) {
      return bad_queue_item(item, "one of the items of config that docs/scenarios.md lists");
    }
  }
  return std::vector<Object>{{"Configuration", "", config_json(std::move(words))}};
}

// ---- the small kinds ----

Result<std::vector<Object>> read_namespace(const std::string& name, std::string_view body) {
  std::vector<std::string> labels;
  for (const std::string& item : split_at(body, ", ")) {
    const std::vector<std::string> w = words_of(item);
    std::string key, value;
    if (w.size() != 2 || w[0] != "label" || !split_equals(w[1], key, value)) {
      return bad_queue_item(item, "\"label k=v\"");
    }
    labels.push_back(quoted_json(key) + ':' + quoted_json(value));
  }
  const std::string json = R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":)" +
                           quoted_json(name) + R"(,"labels":{)" + listed(labels) + "}}}";
  return std::vector<Object>{{"Namespace", name, json}};
}

Result<std::vector<Object>> read_check(const std::string& name, std::string_view body) {
  const bool provisions = body == "active provisioning";
  if (provisions) body = "active";
  if (body != "active" && body != "inactive") {
    return bad_queue_item(body, "\"active\", \"inactive\" or \"active provisioning\"");
  }
  std::string json =
      manifest("AdmissionCheck", name,
               provisions ? R"("controllerName":"kueue.x-k8s.io/provisioning-request")"
                          : R"("controllerName":"example.com/controller")");
  json.pop_back();
  json += std::string(R"(,"status":{"conditions":[{"type":"Active","status":")") +
          (body == "active" ? "True" : "False") + R"("}]}})";
  return std::vector<Object>{{"AdmissionCheck", name, json}};
}

Result<std::vector<Object>> read_class(const std::string& name, std::string_view body) {
  const std::vector<std::string> w = words_of(body);
  if (w.size() != 2 || w[0] != "value" || !number_of(w[1])) {
    return bad_queue_item(body, "\"value 100\"");
  }
  const std::string json =
      R"({"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"WorkloadPriorityClass",)"
      R"("metadata":{"name":)" +
      quoted_json(name) + R"(},"value":)" + w[1] + "}";
  return std::vector<Object>{{"WorkloadPriorityClass", name, json}};
}

}  // namespace

// ---- shared pieces ----

std::string quoted_json(std::string_view text) {
  JsonWriter out;
  out.value(text);
  return std::move(out).take();
}

std::string listed(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ",") + part;
  return out;
}

bool split_equals(std::string_view text, std::string& key, std::string& value) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  key = text.substr(0, equals);
  value = text.substr(equals + 1);
  return true;
}

AmountWords amount_words(const std::vector<std::string>& w, std::size_t at) {
  const std::size_t left = w.size() - std::min(at, w.size());
  if (left >= 2 && (w[at + 1] == "GPU" || w[at + 1] == "GPUs")) {
    return {kGpuResource, w[at] == "no" ? "0" : w[at], 2};
  }
  if (left >= 2 && (w[at] == "cpu" || w[at] == "memory")) return {w[at], w[at + 1], 2};
  if (left >= 3 && w[at] == "resource" && w[at + 1] != "weight") return {w[at + 1], w[at + 2], 3};
  return {};
}

std::string toleration_json(std::string text) {
  std::string effect, key, value;
  if (const std::size_t colon = text.rfind(':'); colon != std::string::npos) {
    effect = text.substr(colon + 1);
    text.resize(colon);
  }
  std::string out;
  if (text == "everything") {
    out = R"("operator":"Exists")";
  } else if (split_equals(text, key, value)) {
    out = R"("operator":"Equal","key":)" + quoted_json(key) + R"(,"value":)" + quoted_json(value);
  } else {
    out = R"("operator":"Exists","key":)" + quoted_json(text);
  }
  if (!effect.empty()) out += R"(,"effect":)" + quoted_json(effect);
  return "{" + out + "}";
}

std::string taint_json(std::string text) {
  std::string effect, key, value;
  const std::size_t colon = text.rfind(':');
  if (colon != std::string::npos) {
    effect = text.substr(colon + 1);
    text.resize(colon);
  }
  if (!split_equals(text, key, value)) key = text;
  return R"({"key":)" + quoted_json(key) + R"(,"value":)" + quoted_json(value) + R"(,"effect":)" +
         quoted_json(effect) + "}";
}

// ---- the reader ----

bool QueueShorthand::knows(std::string_view word) {
  for (const std::string_view known :
       {"flavor", "topology", "cohort", "queue", "local", "namespace", "check", "config", "class",
        "workload", "job"}) {
    if (word == known) return true;
  }
  return false;
}

Result<std::vector<Object>> QueueShorthand::read(const std::vector<std::string>& head,
                                                 std::string_view body, std::int64_t now_ns) {
  const std::string& kind = head[0];
  if (kind == "config") return read_config(body);
  if (head.size() != 2) return invalid("want \"" + kind + " NAME: items\"");
  const std::string& name = head[1];
  if (kind == "flavor") return read_flavor(name, body);
  if (kind == "topology") return read_topology(name, body);
  if (kind == "cohort" || kind == "queue") return read_queue(name, body, kind == "cohort");
  if (kind == "local") return read_local(name, body);
  if (kind == "namespace") return read_namespace(name, body);
  if (kind == "check") return read_check(name, body);
  if (kind == "class") return read_class(name, body);
  return read_workload(name, body, now_ns, kind == "job");
}

Result<std::vector<Object>> QueueShorthand::read_flavor(const std::string& name,
                                                        std::string_view body) {
  std::vector<std::string> labels, taints, tolerations, parts;
  std::string& topology = topology_of_flavor_[name];
  topology.clear();
  for (const std::string& item : split_at(body, ", ")) {
    const std::vector<std::string> w = words_of(item);
    std::string key, value;
    if (item == "plain") continue;
    if (w.size() != 2) return bad_queue_item(item, "\"plain\" or \"label k=v\"");
    if (w[0] == "label" && split_equals(w[1], key, value)) {
      labels.push_back(quoted_json(key) + ':' + quoted_json(value));
    } else if (w[0] == "taint") {
      taints.push_back(taint_json(w[1]));
    } else if (w[0] == "tolerates") {
      tolerations.push_back(toleration_json(w[1]));
    } else if (w[0] == "topology") {
      topology = w[1];
    } else {
      return bad_queue_item(item,
                            "\"plain\", \"label k=v\", \"taint k=v:Effect\", \"tolerates k\" or "
                            "\"topology NAME\"");
    }
  }
  if (!labels.empty()) parts.push_back(R"("nodeLabels":{)" + listed(labels) + "}");
  if (!taints.empty()) parts.push_back(R"("nodeTaints":[)" + listed(taints) + "]");
  if (!tolerations.empty()) parts.push_back(R"("tolerations":[)" + listed(tolerations) + "]");
  if (!topology.empty()) parts.push_back(R"("topologyName":)" + quoted_json(topology));
  return std::vector<Object>{
      {"ResourceFlavor", name, manifest("ResourceFlavor", name, listed(parts))}};
}

Result<std::vector<Object>> QueueShorthand::read_topology(const std::string& name,
                                                          std::string_view body) {
  const std::vector<std::string> w = words_of(body);
  if (w.size() < 2 || w[0] != "levels") return bad_queue_item(body, "\"levels block rack host\"");
  std::vector<std::string> levels;
  for (std::size_t i = 1; i < w.size(); ++i) {
    levels.push_back(R"({"nodeLabel":)" + quoted_json(topology_label(w[i])) + "}");
    levels_[name].push_back(topology_label(w[i]));
  }
  return std::vector<Object>{
      {"Topology", name, manifest("Topology", name, R"("levels":[)" + listed(levels) + "]")}};
}

Result<std::vector<Object>> QueueShorthand::read_queue(const std::string& name,
                                                       std::string_view body, bool cohort) {
  QueueWords words;
  for (const std::string& item : split_at(body, ", ")) {
    const std::vector<std::string> w = words_of(item);
    if (w.empty()) return invalid("found an empty item between commas");
    if (item == "plain" || read_preemption_item(item, w, words) || read_queue_item(item, w, words))
      continue;
    BERTH_TRY(std::optional<QuotaWords> quota, read_quota_item(w));
    if (!quota) {
      return bad_queue_item(item,
                            "a quota such as \"8 GPUs of a100 borrow 4\" or one of the "
                            "items of a queue that docs/scenarios.md lists");
    }
    add_quota(std::move(*quota), words.quotas);
  }
  std::vector<Object> out;
  KnownQueue& known = queues_[name];
  for (const FlavorQuotas& flavor : words.quotas) {
    for (const QuotaWords& quota : flavor.resources) {
      if (!cohort) known.resources.insert(quota.resource);
    }
    if (flavor.flavor != "default" || topology_of_flavor_.contains("default")) continue;
    topology_of_flavor_["default"];
    out.push_back({"ResourceFlavor", "default", manifest("ResourceFlavor", "default", "")});
  }
  if (cohort) {
    out.push_back({"Cohort", name, manifest("Cohort", name, cohort_spec(words))});
  } else {
    out.push_back({"ClusterQueue", name, manifest("ClusterQueue", name, queue_spec(words))});
  }
  return out;
}

Result<std::vector<Object>> QueueShorthand::read_local(const std::string& name,
                                                       std::string_view body) {
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) return bad_queue_item(name, "NAMESPACE/NAME");
  std::vector<std::string> parts;
  for (const std::string& item : split_at(body, ", ")) {
    const std::vector<std::string> w = words_of(item);
    if (w.size() == 2 && w[0] == "queue") {
      parts.push_back(R"("clusterQueue":)" + quoted_json(w[1]));
      locals_[name] = w[1];
    } else if (item == "stopped" || item == "drained") {
      parts.push_back(R"("stopPolicy":)" +
                      quoted_json(item == "stopped" ? "Hold" : "HoldAndDrain"));
    } else if (w.size() == 2 && w[0] == "weight") {
      parts.push_back(R"("fairSharing":{"weight":)" + quoted_json(w[1]) + "}");
    } else {
      return bad_queue_item(item, "\"queue QUEUE\", \"stopped\", \"drained\" or \"weight 2\"");
    }
  }
  return std::vector<Object>{
      {"LocalQueue", name,
       manifest("LocalQueue", name.substr(slash + 1), listed(parts), name.substr(0, slash))}};
}

void QueueShorthand::add_local(const std::string& ns, const std::string& queue,
                               std::vector<Object>& out) {
  const std::string name = ns + '/' + queue;
  if (!locals_.emplace(name, queue).second) return;
  out.push_back({"LocalQueue", name,
                 manifest("LocalQueue", queue, R"("clusterQueue":)" + quoted_json(queue), ns)});
}

}  // namespace berth::scenario
