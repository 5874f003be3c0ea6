#include "people/why/autoscaler.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/utf8.h"
#include "people/view/words.h"
#include "people/why/pod_template.h"
#include "text/escape.h"
#include "text/path.h"
#include "text/rfc3339.h"
#include "text/yaml.h"

namespace berth::people {

namespace {

using text::Value;

constexpr std::size_t kMostPoolsRead = 1000;
constexpr std::int64_t kMostCounted = 1'000'000;  // nodes; more is no number of nodes
constexpr const char* kByGroups = "cluster-autoscaler";
constexpr const char* kByKarpenter = "karpenter";
constexpr std::string_view kKarpenterLabel = "karpenter.sh/nodepool";

// In one line, and not without end.
std::string one_line(std::string_view in) {
  std::string out;
  append_valid_utf8(out, in.substr(0, std::min(in.size(), kLongestSaid)));
  const bool cut = in.size() > kLongestSaid;
  while (cut && out.ends_with("\xef\xbf\xbd")) out.resize(out.size() - 3);  // half a character
  for (char& c : out) {
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  }
  while (out.ends_with(' ')) out.pop_back();
  return cut ? out + "..." : out;
}

std::string line_at(const Value* from, const text::Path& path) {
  return one_line(text_at(from, path));
}

std::int64_t bounded_count(std::int64_t n) { return std::clamp<std::int64_t>(n, 0, kMostCounted); }

// Fields that are zero are left out.
std::int64_t count_at(const Value* from, const text::Path& path) {
  return bounded_count(int_at(from, path));
}

// The same of a bound: one that is no number is none.
std::optional<std::int64_t> bound_at(const Value* from, const text::Path& path) {
  const Value* found = find(from, path);
  const auto n = found == nullptr ? std::optional<std::int64_t>(0) : found->as_int64();
  return n ? std::optional(bounded_count(*n)) : std::nullopt;
}

std::optional<std::int64_t> known_time_at(const Value* from, const text::Path& path) {
  const Result<std::int64_t> parsed = text::parse_rfc3339(text_at(from, path));
  return parsed.ok() ? std::optional(*parsed) : std::nullopt;
}

// A group of a cloud may be named by a whole URL.
std::string last_part(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return one_line(slash == std::string_view::npos ? name : name.substr(slash + 1));
}

// ---- cluster-autoscaler ------------------------------------------------------------------------

struct GroupCounts {
  std::int64_t target = 0, registered = 0, not_started = 0;
  std::int64_t late = 0;  // made so long ago that they are given up
};

void settle_group(const GroupCounts& counts, PoolView& pool) {
  pool.by = kByGroups;
  const std::int64_t unregistered = counts.target - counts.registered - counts.late;
  pool.in_flight = std::max<std::int64_t>(0, unregistered) + counts.not_started;
  if (pool.max && counts.target >= *pool.max) pool.at_limit = show_count(*pool.max, "node");
  if (counts.late > 0 && pool.failure.empty()) {
    pool.failure = show_count(counts.late, "node") + " did not register in time";
  }
  if (pool.scale_up == "Backoff" && pool.failure.empty()) pool.failure = "it backs off";
}

PoolView group_of(const Value& group) {
  PoolView out;
  out.name = last_part(std::string(text_at(group, "name")));
  const Value* health = group.find("health");
  const auto registered = [&](std::string_view key) {
    return bounded_count(at(health, "nodeCounts.registered")[key].as_int64().value_or(0));
  };
  out.nodes = registered("ready");
  out.min = bound_at(health, "minSize");
  out.max = bound_at(health, "maxSize");
  out.healthy = text_at(health, "status") != "Unhealthy";
  out.scale_up = line_at(&group, "scaleUp.status");
  const std::string code = line_at(&group, "scaleUp.backoffInfo.errorCode");
  out.failure = line_at(&group, "scaleUp.backoffInfo.errorMessage");
  if (out.failure.empty()) out.failure = code;
  settle_group({.target = count_at(health, "cloudProviderTarget"),
                .registered = std::max(registered("total"), out.nodes),
                .not_started = registered("notStarted"),
                .late = count_at(health, "nodeCounts.longUnregistered")},
               out);
  return out;
}

// "Healthy (ready=1 unready=0 notStarted=0 ... cloudProviderTarget=1 (minSize=1, maxSize=5))".
std::optional<std::int64_t> number_after(std::string_view line, std::string_view key) {
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    const bool whole = at == 0 || line[at - 1] == ' ' || line[at - 1] == '(';
    const char* first = line.data() + at + key.size();
    std::int64_t n = 0;
    const auto [end, failed] = std::from_chars(first, line.data() + line.size(), n);
    if (whole && failed == std::errc()) return bounded_count(n);
  }
  return std::nullopt;
}

// The text of releases before 1.30: "Key: value" in lines, groups after "NodeGroups:".
std::vector<PoolView> groups_in_lines(std::string_view text) {
  std::vector<PoolView> out;
  GroupCounts counts;
  const auto settle = [&] {
    if (!out.empty()) settle_group(counts, out.back());
    counts = {};
  };
  bool groups = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const std::size_t colon = std::min(line.find(':'), line.size());
    const std::string_view key = line.substr(0, colon);
    std::string_view value = line.substr(std::min(colon + 1, line.size()));
    value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
    if (key == "NodeGroups") groups = true;
    if (!groups) continue;
    if (key == "Name") {
      settle();
      out.emplace_back();
      out.back().name = last_part(value);
    }
    if (out.empty()) continue;
    PoolView& pool = out.back();
    const std::string_view word = value.substr(0, std::min(value.find(' '), value.size()));
    if (key == "Health") {
      pool.healthy = word != "Unhealthy";
      pool.nodes = number_after(value, "ready=").value_or(0);
      pool.min = number_after(value, "minSize=");
      pool.max = number_after(value, "maxSize=");
      counts = {.target = number_after(value, "cloudProviderTarget=").value_or(pool.nodes),
                .registered = number_after(value, "registered=").value_or(pool.nodes),
                .not_started = number_after(value, "notStarted=").value_or(0),
                .late = number_after(value, "longUnregistered=").value_or(0)};
    }
    if (key == "ScaleUp") pool.scale_up = one_line(word);
  }
  settle();
  return out;
}

std::vector<PoolView> groups_of(const ObjectSource& objects) {
  const auto raw = objects.find("ConfigMap", "kube-system", "cluster-autoscaler-status");
  if (!raw) return {};
  const Value* status = find(raw->value, "data.status");
  if (status == nullptr) return {};
  std::vector<PoolView> out;
  text::YamlOptions bounds;
  bounds.limits = {.max_depth = 20, .max_nodes = 200'000, .max_bytes = 2 * 1024 * 1024};
  const auto parsed = text::parse_yaml(status->string(), bounds);
  const Value* groups =
      parsed.ok() && !parsed->empty() ? parsed->front().root().find("nodeGroups") : nullptr;
  if (groups == nullptr) {
    out = groups_in_lines(status->string());
  } else {
    for (const Value& group : groups->items()) out.push_back(group_of(group));
  }
  std::erase_if(out, [](const PoolView& pool) { return pool.name.empty(); });
  return out;
}

// ---- Karpenter ---------------------------------------------------------------------------------

bool says_true(const Value* condition) { return text_at(condition, "status") == "True"; }

// What the waiting pod would add to a pool, at the least.
std::int64_t would_add(const model::PodSpec& pod, const std::string& resource) {
  if (resource == "nodes") return 1;
  const bool whole = pod.gpu.kind == model::GpuDemandSpec::Kind::kWhole;
  if (resource == "nvidia.com/gpu" && whole) return pod.gpu.count;
  const auto it = pod.requests.find(resource);
  return it == pod.requests.end() ? 0 : it->second;
}

PoolView node_pool_of(const Value& object, const std::string& name, const model::PodSpec& sample) {
  PoolView out;
  out.name = one_line(name);
  out.by = kByKarpenter;
  const model::Amounts limits = amounts_of(at(object, "spec.limits"));
  const model::Amounts used = amounts_of(at(object, "status.resources"));
  const auto used_of = [&used](const std::string& resource) {
    const auto it = used.find(resource);
    return it == used.end() ? std::int64_t{0} : std::max<std::int64_t>(0, it->second);
  };
  out.nodes = bounded_count(used_of("nodes"));
  if (object.find("status") != nullptr && object.find("status")->find("nodes") != nullptr) {
    out.nodes = count_at(&object, "status.nodes");
  }
  for (const auto& [resource, limit] : limits) {
    const std::int64_t holds = resource == "nodes" ? out.nodes : used_of(resource);
    const std::int64_t more = would_add(sample, resource);
    const bool full = holds >= limit || more > limit - holds;
    if (resource == "nodes") {
      out.max = bounded_count(limit);
    } else if (out.limits.size() < kMostPools) {
      out.limits.push_back(
          {one_line(resource), show_amount(resource, limit), show_amount(resource, holds)});
    }
    // Of several the one that people count in.
    const bool told = out.at_limit.empty() || resource == "nvidia.com/gpu";
    if (!full || !told) continue;
    out.at_limit = resource == "nodes" ? show_count(limit, "node")
                                       : show_amount(resource, limit) + ' ' + one_line(resource);
  }
  const Value* ready = find_type(at(object, "status.conditions"), "Ready");
  if (ready != nullptr && text_at(ready, "status") == "False") {
    out.healthy = false;
    out.failure = line_at(ready, "message");
  }
  // Claims that never became nodes are deleted; this is what remains of them.
  const Value* registers = find_type(at(object, "status.conditions"), "NodeRegistrationHealthy");
  if (registers != nullptr && text_at(registers, "status") == "False" && out.failure.empty()) {
    const std::string message = line_at(registers, "message");
    out.failure = "its nodes do not register" + (message.empty() ? "" : ": " + message);
  }
  return out;
}

// A NodeClaim whose node is not there yet.
void add_claim(const Value& claim, PoolView& pool) {
  if (says_true(find_type(at(claim, "status.conditions"), "Initialized"))) return;
  if (find(claim, "metadata.deletionTimestamp") != nullptr) return;
  ++pool.in_flight;
  const Value* launched = find_type(at(claim, "status.conditions"), "Launched");
  const std::string reason(text_at(launched, "reason"));
  if (launched != nullptr && !says_true(launched)) {
    if (reason.empty() || reason == "AwaitingReconciliation") return;
    const std::string message = line_at(launched, "message");
    if (pool.failure.empty()) pool.failure = message.empty() ? one_line(reason) : message;
    return;
  }
  for (const char* type : {"Registered", "Initialized"}) {
    const Value* condition = find_type(at(claim, "status.conditions"), type);
    if (condition == nullptr || says_true(condition)) continue;
    if (pool.awaits.empty()) pool.awaits = line_at(condition, "message");
    return;
  }
}

std::vector<PoolView> node_pools_of(const ObjectSource& objects, const model::PodSpec& sample) {
  std::map<std::string, PoolView> pools;
  for (const RawObject& raw : objects.of_kind("NodePool")) {
    if (!raw.api_version.starts_with("karpenter.sh/")) continue;  // others have that kind too
    pools.try_emplace(raw.name, node_pool_of(*raw.value, raw.name, sample));
  }
  std::map<std::string, const Value*> claims;  // by name: of each once
  for (const RawObject& raw : objects.of_kind("NodeClaim")) {
    if (raw.api_version.starts_with("karpenter.sh/")) claims.try_emplace(raw.name, raw.value);
  }
  for (const auto& [name, claim] : claims) {
    const auto it = pools.find(std::string(at(claim, "metadata.labels")[kKarpenterLabel].string()));
    if (it != pools.end()) add_claim(*claim, it->second);
  }
  std::vector<PoolView> out;
  for (auto& [name, pool] : pools) out.push_back(std::move(pool));
  return out;
}

// ---- what is said of the workload --------------------------------------------------------------

bool of_autoscaler(const Value& event, std::string_view reason) {
  constexpr std::string_view kOwn[] = {"TriggeredScaleUp", "NotTriggerScaleUp", "FailedScaleUp",
                                       "Nominated"};
  if (std::find(std::begin(kOwn), std::end(kOwn), reason) != std::end(kOwn)) return true;
  if (reason != "FailedScheduling") return false;
  return text_at(event, "source.component") == kByKarpenter ||
         text_at(event, "deprecatedSource.component") == kByKarpenter ||
         text_at(event, "reportingController") == kByKarpenter ||
         text_at(event, "reportingComponent") == kByKarpenter;
}

// core/v1 and events.k8s.io/v1 call the same things differently.
std::optional<std::int64_t> event_time(const Value& event) {
  std::optional<std::int64_t> latest;
  for (const text::Path& stamp : std::initializer_list<text::Path>{
           "series.lastObservedTime", "lastTimestamp", "deprecatedLastTimestamp", "eventTime",
           "metadata.creationTimestamp"}) {
    const auto at = known_time_at(&event, stamp);
    if (at && (!latest || *at > *latest)) latest = at;
  }
  return latest;
}

std::optional<Autoscaler::Event> latest_event(const ObjectSource& objects, const Unit& unit) {
  std::set<std::string> pods;
  for (const model::PodSpec* pod : unit.pending) pods.insert(pod->ns + '/' + pod->name);
  if (pods.empty()) return std::nullopt;
  std::optional<Autoscaler::Event> out;
  for (const RawObject& raw : objects.of_kind("Event")) {
    const Value& event = *raw.value;
    const std::string reason(text_at(event, "reason"));
    if (!of_autoscaler(event, reason)) continue;
    const Value* about = event.find("regarding");
    if (about == nullptr) about = event.find("involvedObject");
    if (text_at(about, "kind") != "Pod") continue;
    if (!pods.contains(std::string(text_at(about, "namespace")) + '/' +
                       std::string(text_at(about, "name")))) {
      continue;
    }
    std::string message = line_at(&event, "note");
    if (message.empty()) message = line_at(&event, "message");
    Autoscaler::Event one{.reason = reason, .message = message, .at_ns = event_time(event)};
    const auto order = [](const Autoscaler::Event& e) { return std::tie(e.at_ns, e.message); };
    if (!out || order(*out) < order(one)) out = std::move(one);
  }
  return out;
}

bool asks_for(const RawObject& request, const Unit& unit) {
  for (const Value& owner : at(request.value, "metadata.ownerReferences").items()) {
    if (unit.queued != nullptr && text_at(owner, "kind") == "Workload" &&
        text_at(owner, "name") == unit.queued->name) {
      return true;
    }
  }
  for (const RawObject& object : unit.objects) {
    for (const std::string_view key :
         {"autoscaling.x-k8s.io/consume-provisioning-request",
          "cluster-autoscaler.kubernetes.io/consume-provisioning-request"}) {
      if (std::string(at(object.value, "metadata.annotations")[key].string()) == request.name)
        return true;
    }
  }
  return false;
}

// Of several attempts the latest. What ended it comes before what it reached.
std::optional<Autoscaler::Request> request_of(const ObjectSource& objects, const Unit& unit) {
  constexpr std::pair<std::string_view, std::string_view> kStates[] = {
      {"Failed", "failed"},
      {"CapacityRevoked", "capacity revoked"},
      {"BookingExpired", "booking expired"},
      {"Provisioned", "provisioned"},
      {"Accepted", "accepted, not provisioned yet"}};
  std::optional<Autoscaler::Request> out;
  std::pair<std::string, std::string> latest;
  for (const RawObject& raw : objects.of_kind("ProvisioningRequest")) {
    if (!raw.api_version.starts_with("autoscaling.x-k8s.io/") || raw.ns != unit.ns) continue;
    if (!asks_for(raw, unit)) continue;
    const std::pair order(std::string(text_at(raw.value, "metadata.creationTimestamp")), raw.name);
    if (out && order <= latest) continue;
    latest = order;
    out.emplace();
    out->name = one_line(raw.name);
    out->state = "not accepted yet";
    for (const auto& [type, state] : kStates) {
      const Value* condition = find_type(at(raw.value, "status.conditions"), type);
      if (!says_true(condition)) continue;
      out->state = state;
      out->message = line_at(condition, "message");
      break;
    }
    // What a request that was accepted waits for.
    const Value* provisioned = find_type(at(raw.value, "status.conditions"), "Provisioned");
    if (out->state.starts_with("accepted") && provisioned != nullptr) {
      out->message = line_at(provisioned, "message");
    }
  }
  return out;
}

// ---- which pools matter ------------------------------------------------------------------------

// value stands in name as a word: "gpu" in "gke-ml-gpu-1f2e-grp", not in "gpus".
bool has_word(std::string_view name, std::string_view value) {
  if (value.empty()) return false;
  const auto part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  for (std::size_t at = name.find(value); at != std::string_view::npos;
       at = name.find(value, at + 1)) {
    const std::size_t end = at + value.size();
    if ((at == 0 || !part(name[at - 1])) && (end == name.size() || !part(name[end]))) return true;
  }
  return false;
}

// What the labels of a node say of its pool.
using PoolMark = std::pair<std::string_view, std::string_view>;  // by, name

void marks_of(const model::Labels& labels, std::set<PoolMark>& out) {
  constexpr std::string_view kGroupLabels[] = {"cloud.google.com/gke-nodepool",
                                               "eks.amazonaws.com/nodegroup",
                                               "alpha.eksctl.io/nodegroup-name",
                                               "kubernetes.azure.com/agentpool",
                                               "agentpool",
                                               "worker.gardener.cloud/pool",
                                               "doks.digitalocean.com/node-pool",
                                               "k8s.scaleway.com/pool-name"};
  for (const std::string_view key : kGroupLabels) {
    const auto it = labels.find(key);
    if (it != labels.end()) out.emplace(kByGroups, it->second);
  }
  const auto it = labels.find(kKarpenterLabel);
  if (it != labels.end()) out.emplace(kByKarpenter, it->second);
}

bool makes_such(const PoolView& pool, const std::set<PoolMark>& marks) {
  return std::any_of(marks.begin(), marks.end(), [&](const PoolMark& mark) {
    if (mark.first != pool.by) return false;
    return pool.by == kByKarpenter ? pool.name == mark.second : has_word(pool.name, mark.second);
  });
}

}  // namespace

std::optional<Autoscaler> autoscaler_of(const ObjectSource& objects, const Unit& unit,
                                        const model::PodSpec& sample) {
  Autoscaler out;
  out.pools = groups_of(objects);
  for (PoolView& pool : node_pools_of(objects, sample)) out.pools.push_back(std::move(pool));
  // Those of which something is to be said first.
  std::stable_sort(out.pools.begin(), out.pools.end(), [](const PoolView& a, const PoolView& b) {
    const auto order = [](const PoolView& p) {
      return std::tuple(p.failure.empty(), p.in_flight == 0, p.at_limit.empty(),
                        std::string_view(p.name));
    };
    return order(a) < order(b);
  });
  if (out.pools.size() > kMostPoolsRead) {
    out.pools_more = static_cast<int>(out.pools.size() - kMostPoolsRead);
    out.pools.resize(kMostPoolsRead);
  }
  out.event = latest_event(objects, unit);
  out.request = request_of(objects, unit);
  if (out.pools.empty() && !out.event && !out.request) return std::nullopt;
  return out;
}

void sort_pools(const NodePicture& picture, const model::ClusterState& state,
                const std::vector<model::NodeSpec>& nodes, Autoscaler& out) {
  std::set<std::string_view> count;
  for (const NodeView& view : picture.nodes) {
    if (picture.counts(view)) count.insert(state.info(view.slot).name);
  }
  std::set<PoolMark> marks;
  for (const model::NodeSpec& node : nodes) {
    if (count.contains(node.name)) marks_of(node.labels, marks);
  }
  const auto rest =
      std::stable_partition(out.pools.begin(), out.pools.end(),
                            [&](const PoolView& pool) { return makes_such(pool, marks); });
  out.fitting = static_cast<int>(rest - out.pools.begin());
}

void keep_few_pools(Autoscaler& out) {
  if (out.pools.size() <= kMostPools) return;
  out.pools_more += static_cast<int>(out.pools.size() - kMostPools);
  out.pools.resize(kMostPools);
  out.fitting = std::min(out.fitting, static_cast<int>(kMostPools));
}

std::string scale_up_failed(const Autoscaler& autoscaler) {
  std::vector<std::string_view> failed, others;
  const std::size_t fitting =
      std::min(static_cast<std::size_t>(autoscaler.fitting), autoscaler.pools.size());
  for (std::size_t i = 0; i < fitting; ++i) {
    const PoolView& pool = autoscaler.pools[i];
    if (!pool.failure.empty()) {
      failed.push_back(pool.name);
    } else if (pool.healthy && pool.at_limit.empty()) {
      others.push_back(pool.name);
    }
  }
  if (failed.empty()) return "";
  const auto listed = [](const std::vector<std::string_view>& names) {
    constexpr std::size_t kMost = 3;
    const std::size_t shown = std::min(names.size(), kMost);
    std::string out;
    for (std::size_t i = 0; i < shown; ++i) {
      out += (i == 0 ? "" : ", ") + text::elide_middle(names[i], 40);
    }
    return names.size() > shown ? fmt::format("{} and {} more", out, names.size() - shown) : out;
  };
  return fmt::format("scale-up failed in {}; {} may grow", listed(failed),
                     others.empty() ? "no other pool of such nodes" : listed(others));
}

std::string limit_in_the_way(const Autoscaler& autoscaler, const model::NodeSpec& like) {
  std::string out;
  std::set<PoolMark> marks;
  marks_of(like.labels, marks);
  for (const PoolView& pool : autoscaler.pools) {
    if (!makes_such(pool, marks)) continue;
    if (pool.at_limit.empty()) return "";
    if (out.empty()) out = fmt::format("pool {} ({})", pool.name, pool.at_limit);
  }
  return out;
}

}  // namespace berth::people
