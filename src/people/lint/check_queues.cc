#include <algorithm>

#include "kinds/kind_table.h"
#include "people/lint/checks.h"

namespace berth::lint {

namespace {

using text::YamlChange;
using text::YamlPath;

constexpr const char* kQueueName = "kueue.x-k8s.io/queue-name";
constexpr std::string_view kKueue = "kueue.x-k8s.io";

// Its own metadata carries the queue's name.
bool is_queued_kind(const Object& object) {
  const kinds::PodMaker* maker = kinds::find_maker(object.api, object.kind);
  return maker != nullptr && maker->per == kinds::WorkloadPer::kObject;
}

// Annotations are not read; a label on a pod template of a job is not either.
void check_queue_name(const Object& object, Reporter& out) {
  if (object.group == kKueue) return;
  const Place root = object.root();
  const bool labelled = root["metadata"]["labels"].has(kQueueName);
  bool put = labelled;
  walk(root, [&](const Place& place) {
    if (place.path().empty() || place.key() != kQueueName) return true;
    const YamlPath& path = place.path();
    if (path.size() < 3) return true;
    const std::string& holder = path[path.size() - 2];
    const bool template_label = holder == "labels" && path.size() > 3 && is_queued_kind(object);
    if (holder != "annotations" && !(template_label && !labelled)) return true;
    if (holder == "labels" && put) return true;
    std::optional<Fix> edit;
    if (is_queued_kind(object) || object.kind == "Pod" || object.kind == "Deployment" ||
        object.kind == "StatefulSet") {
      Fix fix;
      if (!put) {
        fix.changes.push_back(
            put_value(root, {"metadata", "labels", kQueueName}, text::to_json(place.value())));
        put = true;
      }
      fix.changes.push_back(remove_upwards(root, path));
      edit = std::move(fix);
    }
    const std::string found = holder == "annotations" ? "an annotation" : "a label of the pods";
    out.add("kueue-queue-name", place,
            "found the queue's name in " + found + ", want a label of the " + object.kind +
                " itself: Kueue reads nothing else",
            "put " + std::string(kQueueName) + " under metadata.labels of the " + object.kind,
            std::move(edit));
    return true;
  });
}

void check_priority_class(const Object& object, Reporter& out) {
  const Place root = object.root();
  const Place spec = root["spec"];
  if (!spec) return;
  const bool liftable = spec.value().is_object() && spec.size() > 0 &&
                        std::none_of(spec.value().members().begin(), spec.value().members().end(),
                                     [&](const auto& m) { return root.has(m.key); });
  std::optional<Fix> edit;
  if (liftable) {
    edit = one_change({.kind = YamlChange::Kind::kUnwrap, .at = spec.path()});
  }
  out.add("workload-priority-spec", spec,
          "found spec, want value and description at the top: a " + object.kind + " has no spec",
          "move value and description beside metadata", std::move(edit));
  out.claim({"value"});
}

void check_groups(const Object& object, Reporter& out) {
  const Place spec = object.root()["spec"];
  std::set<std::string> seen_resources, seen_flavors;
  for (const Place& group : spec["resourceGroups"].items()) {
    std::vector<std::string> covered;
    for (const Place& resource : group["coveredResources"].items()) {
      const std::string name(resource.text());
      covered.push_back(name);
      if (!seen_resources.insert(name).second) {
        out.add("kueue-resource-twice", resource,
                "the resource " + name + " is covered by two groups, want one",
                "keep it in one of the resourceGroups");
      }
    }
    for (const Place& flavor : group["flavors"].items()) {
      const std::string name(flavor["name"].text());
      if (!name.empty() && !seen_flavors.insert(name).second) {
        out.add("kueue-resource-twice", flavor["name"],
                "the flavor " + name + " is used twice in the queue, want once",
                "merge the two entries");
      }
      std::vector<std::string> listed;
      for (const Place& resource : flavor["resources"].items()) {
        listed.emplace_back(resource["name"].text());
      }
      if (listed == covered) continue;
      std::vector<std::string> a = covered, b = listed;
      std::sort(a.begin(), a.end());
      std::sort(b.begin(), b.end());
      if (a == b && object.version != "v1beta1") continue;
      std::string want;
      for (const std::string& one : covered) want += (want.empty() ? "" : ", ") + one;
      out.add("kueue-covered-resources", flavor["resources"],
              "the flavor " + name + " does not list the covered resources, want " + want +
                  ", in this order",
              "give every flavor of the group a quota for each covered resource");
    }
  }
}

void check_cluster_queue(const Object& object, Reporter& out) {
  const Place spec = object.root()["spec"];
  if (spec.value().is_object() && !spec.has("namespaceSelector")) {
    Fix fix = one_change(put_value(object.root(), {"spec", "namespaceSelector"}, "{}"));
    if (!spec.value().members().empty()) {
      fix.changes[0].before = std::string(spec.value().members().front().key);
    }
    fix.assumes = "every namespace may use the queue";
    out.add("kueue-namespace-selector", spec["namespaceSelector"],
            "namespaceSelector is missing: without one the queue admits no namespace at all",
            "add namespaceSelector: {} for all namespaces, or a selector", std::move(fix));
  }
  check_groups(object, out);
}

void check_volcano_queue(const Object& object, Reporter& out) {
  const Place spec = object.root()["spec"];
  for (const char* field : {"preemptable", "preemptible", "preemptionPolicy"}) {
    if (!spec.has(field)) continue;
    out.add("volcano-queue-field", spec[field],
            "found " + std::string(field) + ", which a Volcano queue does not have",
            "remove it; reclaimable, priority and dequeueStrategy are what a queue has",
            one_change(remove_at(spec[field].path())));
  }
}

}  // namespace

void check_queues(const Object& object, Reporter& out) {
  check_queue_name(object, out);
  if (object.is(kKueue, "WorkloadPriorityClass")) check_priority_class(object, out);
  if (object.is("scheduling.k8s.io", "PriorityClass")) check_priority_class(object, out);
  if (object.is(kKueue, "ClusterQueue")) check_cluster_queue(object, out);
  if (object.is("scheduling.volcano.sh", "Queue")) check_volcano_queue(object, out);
}

}  // namespace berth::lint
