#include "embedded/workloads/replica_controller.h"

#include <algorithm>
#include <tuple>

#include "embedded/workloads/pod_template.h"
#include "embedded/workloads/read.h"
#include "text/path.h"

namespace berth::sim {

namespace {

using text::JsonWriter;
using text::Value;

constexpr std::int64_t kReplicaSecond = 1'000'000'000;
constexpr std::size_t kMaxPodsPerSync = 500;

struct ReplicaCounts {
  int replicas = 0, labeled = 0, ready = 0, available = 0;
  std::int64_t available_in = -1;  // when the next one becomes it
};

bool has_labels(const PodInfo& pod, const Value& wanted) {
  for (const text::Member& label : wanted.members()) {
    const auto it = pod.labels.find(label.key);
    if (it == pod.labels.end() || it->second != label.value.string()) return false;
  }
  return true;
}

ReplicaCounts count_replicas(const Value& set, const std::vector<const PodInfo*>& active,
                             std::int64_t now) {
  ReplicaCounts out;
  const std::int64_t least = int_at(set, "spec.minReadySeconds") * kReplicaSecond;
  const Value& labels = at(set, "spec.template.metadata.labels");
  for (const PodInfo* pod : active) {
    ++out.replicas;
    out.labeled += has_labels(*pod, labels) ? 1 : 0;
    if (!pod->ready) continue;
    ++out.ready;
    const std::int64_t left = pod->ready_ns + least - now;
    if (least == 0 || left <= 0) {
      ++out.available;
    } else if (out.available_in < 0 || left < out.available_in) {
      out.available_in = left;
    }
  }
  return out;
}

std::string replica_status(const Value& set, const ReplicaCounts& counts) {
  JsonWriter out;
  out.object([&] {
    out.object("metadata",
               [&] { out.field("resourceVersion", text_at(set, "metadata.resourceVersion")); });
    out.object("status", [&] {
      const auto put = [&out](std::string_view key, int count) {
        out.key(key);
        if (count == 0) return out.null();
        out.value(count);
      };
      out.field("replicas", counts.replicas);
      put("fullyLabeledReplicas", counts.labeled);
      put("readyReplicas", counts.ready);
      put("availableReplicas", counts.available);
      out.field("observedGeneration", int_at(set, "metadata.generation"));
    });
  });
  return std::move(out).take();
}

bool status_differs(const Value& set, const ReplicaCounts& counts) {
  const Value& status = at(set, "status");
  return int_at(status, "replicas", -1) != counts.replicas ||
         int_at(status, "fullyLabeledReplicas") != counts.labeled ||
         int_at(status, "readyReplicas") != counts.ready ||
         int_at(status, "availableReplicas") != counts.available ||
         int_at(status, "observedGeneration") != int_at(set, "metadata.generation");
}

}  // namespace

bool goes_before(const PodInfo& a, const PodInfo& b) {
  const auto rank = [](const PodInfo& p) {
    const int phase = p.phase == PodPhase::kPending ? 0 : p.phase == PodPhase::kUnknown ? 1 : 2;
    return std::tuple(!p.node.empty(), phase, p.ready, p.deletion_cost, p.restarts == 0,
                      -p.created_ns, p.key.name);
  };
  return rank(a) < rank(b);
}

ReplicaController::ReplicaController(WorkContext& context, kube::Informer& sets)
    : context_(context),
      sets_(sets),
      passes_(context.client.loop(), [this](const kube::Key& key, Passes::Finished finished) {
        pass(key, std::move(finished));
      }) {}

void ReplicaController::start() {
  sets_.add_handler(context_.guarded([this](const kube::ObjectPtr&, const kube::ObjectPtr& after) {
    if (after != nullptr) passes_.add(after->key);
  }));
  context_.book.watch([this](const PodInfo* before, const PodInfo* after) {
    pod_changed(after != nullptr ? *after : *before);
  });
}

void ReplicaController::pod_changed(const PodInfo& pod) {
  if (pod.owner_kind != sets_.options().resource.kind) return;
  passes_.add_after({pod.key.ns, pod.owner_name}, context_.options.batch_ns);
}

void ReplicaController::pass(const kube::Key& key, Passes::Finished finished) {
  const kube::ObjectPtr object = sets_.find(key);
  if (object == nullptr) return finished(true);
  const Value& set = object->root();
  std::vector<const PodInfo*> active;
  const std::vector<PodBook::PodPtr> owned = context_.book.of_owner(object->key.ns, object->uid);
  for (const PodBook::PodPtr& pod : owned) {
    if (pod->active()) active.push_back(pod.get());
  }
  const ReplicaCounts counts = count_replicas(set, active, context_.wall());
  if (counts.available_in > 0) passes_.add_after(key, counts.available_in);
  auto batch = Batch::make(context_, std::move(finished));
  const bool deleting = at(set, "metadata").find("deletionTimestamp") != nullptr;
  const std::int64_t wanted =
      std::clamp<std::int64_t>(int_at(set, "spec.replicas", 1), 0, 1'000'000);
  const std::int64_t missing = wanted - static_cast<std::int64_t>(active.size());
  if (!deleting && missing > 0) {
    for (std::int64_t i = 0; i < std::min<std::int64_t>(missing, kMaxPodsPerSync); ++i) {
      PodDetails details;
      details.ns = key.ns;
      details.name = key.name.substr(0, 57) + '-' + context_.random_suffix();
      details.owner = {sets_.options().resource.api_version(), sets_.options().resource.kind,
                       key.name, object->uid};
      batch->create_pod({key.ns, details.name},
                        pod_from_template(at(set, "spec.template"), details), details.owner);
    }
  } else if (!deleting && missing < 0) {
    std::sort(active.begin(), active.end(),
              [](const PodInfo* a, const PodInfo* b) { return goes_before(*a, *b); });
    const auto surplus = std::min(static_cast<std::size_t>(-missing), kMaxPodsPerSync);
    for (std::size_t i = 0; i < surplus; ++i) {
      batch->remove_pod(active[i]->key, active[i]->uid, false);
    }
  }
  if (status_differs(set, counts)) {
    batch->patch(sets_, key, kube::PatchType::kMerge, replica_status(set, counts), "status");
  }
  batch->seal();
}

}  // namespace berth::sim
