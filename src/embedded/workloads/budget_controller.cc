#include "embedded/workloads/budget_controller.h"

#include <algorithm>

#include "embedded/workloads/read.h"
#include "text/path.h"
#include "text/selector.h"

namespace berth::sim {

namespace {

using text::JsonWriter;
using text::Value;

// Of a number or a percentage; percentages are rounded up.
int budget_part(const Value& v, int total) {
  if (v.is_number()) {
    return static_cast<int>(std::clamp<std::int64_t>(v.as_int64().value_or(0), 0, 1'000'000));
  }
  const std::string_view text = v.string();
  std::int64_t percent = 0;
  if (!text.ends_with('%') || !kinds::parse_int(text.substr(0, text.size() - 1), percent)) {
    return total;
  }
  return static_cast<int>((total * std::min<std::int64_t>(percent, 100) + 99) / 100);
}

// A pod that an eviction was allowed for counts as gone for two minutes.
constexpr std::int64_t kDisruptedFor = 120'000'000'000;

struct Disrupted {
  std::vector<std::pair<std::string, std::int64_t>> kept;  // name, when
  bool changed = false;
  std::int64_t again_ns = -1;
};

Disrupted kept_disrupted(const Value& budget, const std::vector<const PodInfo*>& pods,
                         std::int64_t now) {
  Disrupted out;
  for (const text::Member& member : at(budget, "status.disruptedPods").members()) {
    const auto when = text::parse_rfc3339(member.value.string());
    const bool there = std::any_of(pods.begin(), pods.end(), [&member](const PodInfo* pod) {
      return pod->key.name == member.key && !pod->deleting;
    });
    const std::int64_t left = when.ok() ? *when + kDisruptedFor - now : 0;
    if (!there || left <= 0) {
      out.changed = true;
      continue;
    }
    out.kept.emplace_back(member.key, *when);
    if (out.again_ns < 0 || left < out.again_ns) out.again_ns = left;
  }
  return out;
}

std::string budget_status(const Value& budget, const BudgetCounts& counts,
                          const Disrupted& disrupted, std::int64_t now) {
  const bool enough = counts.allowed > 0;
  const Value* before = find_type(at(budget, "status.conditions"), "DisruptionAllowed");
  const bool turned =
      before == nullptr || text_at(*before, "status") != (enough ? "True" : "False");
  JsonWriter out;
  out.object([&] {
    out.object("metadata",
               [&] { out.field("resourceVersion", text_at(budget, "metadata.resourceVersion")); });
    out.object("status", [&] {
      out.field("observedGeneration", int_at(budget, "metadata.generation"));
      out.field("currentHealthy", counts.healthy);
      out.field("desiredHealthy", counts.desired);
      out.field("expectedPods", counts.expected);
      out.field("disruptionsAllowed", counts.allowed);
      if (disrupted.changed) {
        out.object("disruptedPods", [&] {
          for (const text::Member& member : at(budget, "status.disruptedPods").members()) {
            const bool kept =
                std::any_of(disrupted.kept.begin(), disrupted.kept.end(),
                            [&member](const auto& k) { return k.first == member.key; });
            if (kept) continue;
            out.key(member.key);
            out.null();
          }
        });
      }
      out.array("conditions", [&] {
        out.object([&] {
          out.field("type", "DisruptionAllowed");
          out.field("status", enough ? "True" : "False");
          out.field("reason", enough ? "SufficientPods" : "InsufficientPods");
          out.field("message", "");
          out.field("observedGeneration", int_at(budget, "metadata.generation"));
          out.field(
              "lastTransitionTime",
              turned ? seconds_text(now) : std::string(text_at(*before, "lastTransitionTime")));
        });
      });
    });
  });
  return std::move(out).take();
}

bool budget_differs(const Value& budget, const BudgetCounts& counts) {
  const Value& status = at(budget, "status");
  return int_at(status, "observedGeneration") != int_at(budget, "metadata.generation") ||
         int_at(status, "currentHealthy", -1) != counts.healthy ||
         int_at(status, "desiredHealthy", -1) != counts.desired ||
         int_at(status, "expectedPods", -1) != counts.expected ||
         int_at(status, "disruptionsAllowed", -1) != counts.allowed ||
         find_type(at(status, "conditions"), "DisruptionAllowed") == nullptr;
}

}  // namespace

BudgetCounts count_budget(const Value& budget, const std::vector<const PodInfo*>& pods,
                          int expected) {
  BudgetCounts out;
  const Value& spec = at(budget, "spec");
  const Value* most = spec.find("maxUnavailable");
  const Value* least = spec.find("minAvailable");
  if (most != nullptr && !most->is_null()) {
    out.expected = expected;
    out.desired = std::max(0, expected - budget_part(*most, expected));
  } else if (least != nullptr && least->is_string()) {
    out.expected = expected;
    out.desired = budget_part(*least, expected);
  } else {
    out.expected = static_cast<int>(pods.size());
    out.desired = least == nullptr ? 1 : budget_part(*least, out.expected);
  }
  for (const PodInfo* pod : pods) out.healthy += pod->active() && pod->ready ? 1 : 0;
  return out;
}

BudgetController::BudgetController(WorkContext& context)
    : context_(context),
      passes_(context.client.loop(), [this](const kube::Key& key, Passes::Finished finished) {
        pass(key, std::move(finished));
      }) {}

void BudgetController::start() {
  context_.budgets.add_handler(
      context_.guarded([this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
        if (after == nullptr) {
          by_namespace_[before->key.ns].erase(before->key);
          return;
        }
        by_namespace_[after->key.ns].insert(after->key);
        passes_.add(after->key);
      }));
  context_.book.watch([this](const PodInfo* before, const PodInfo* after) {
    const auto found = by_namespace_.find((after != nullptr ? after : before)->key.ns);
    if (found == by_namespace_.end()) return;
    for (const kube::Key& key : found->second) {
      passes_.add_after(key, context_.options.batch_ns);
    }
  });
}

// By the controllers' sizes where they have one, else by the pods that are there.
int BudgetController::expected_pods(const std::vector<const PodInfo*>& pods) const {
  std::map<std::string, int> sizes;  // by UID of the owner
  for (const PodInfo* pod : pods) {
    int& size = sizes[pod->owner_uid.empty() ? pod->uid : pod->owner_uid];
    if (pod->owner_kind == "ReplicaSet") {
      const kube::ObjectPtr set = context_.replica_sets.find({pod->key.ns, pod->owner_name});
      size = set == nullptr ? 0 : static_cast<int>(int_at(set->root(), "spec.replicas", 1));
    } else if (!pod->finished()) {
      ++size;
    }
  }
  int out = 0;
  for (const auto& [uid, size] : sizes) out += size;
  return out;
}

void BudgetController::pass(const kube::Key& key, Passes::Finished finished) {
  const kube::ObjectPtr object = context_.budgets.find(key);
  if (object == nullptr) return finished(true);
  const Value& budget = object->root();
  text::Selector selector;
  text::Decoder d;
  const Value* written = find(budget, "spec.selector");
  if (written != nullptr) text::decode_label_selector(*written, selector, d);
  std::vector<const PodInfo*> pods;
  const std::vector<PodBook::PodPtr> all = context_.book.in_namespace(key.ns);
  for (const PodBook::PodPtr& pod : all) {
    if (written == nullptr || !d.ok() || pod->finished()) continue;  // no selector: no pods
    const bool met = text::matches(selector, [&pod](std::string_view label) {
      const auto it = pod->labels.find(label);
      return it == pod->labels.end() ? std::optional<std::string_view>()
                                     : std::optional<std::string_view>(it->second);
    });
    if (met) pods.push_back(pod.get());
  }
  BudgetCounts counts = count_budget(budget, pods, expected_pods(pods));
  const Disrupted disrupted = kept_disrupted(budget, pods, context_.wall());
  counts.healthy = std::max(0, counts.healthy - static_cast<int>(disrupted.kept.size()));
  counts.allowed = counts.expected > 0 ? std::max(0, counts.healthy - counts.desired) : 0;
  if (disrupted.again_ns > 0) passes_.add_after(key, disrupted.again_ns);
  if (!budget_differs(budget, counts) && !disrupted.changed) return finished(true);
  auto batch = Batch::make(context_, std::move(finished));
  batch->patch(context_.budgets, key, kube::PatchType::kMerge,
               budget_status(budget, counts, disrupted, context_.wall()), "status");
  batch->seal();
}

}  // namespace berth::sim
