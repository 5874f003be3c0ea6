// Volumes that a node can attach: what CSINode objects say against what the pods there use.
#include "people/why/attach.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "people/why/makers.h"
#include "people/why/pod_template.h"
#include "text/path.h"

namespace berth::people {

namespace {

using text::Value;
using Names = std::set<std::string>;

// CSI volumes: which claims are bound to them, and whose they are.
class CsiVolumes {
 public:
  explicit CsiVolumes(const ObjectSource& objects) {
    for (const RawObject& volume : objects.of_kind("PersistentVolume")) {
      const std::string driver(text_at(volume.value, "spec.csi.driver"));
      if (driver.empty()) continue;
      drivers_[volume.name] = driver;
      const Value* claim = find(volume.value, "spec.claimRef");
      if (claim == nullptr) continue;
      volumes_[std::string(text_at(claim, "namespace")) + '/' +
               std::string(text_at(claim, "name"))] = volume.name;
    }
  }
  bool none() const { return drivers_.empty(); }

  // Those of a pod, by driver.
  std::map<std::string, Names> of_pod(const ObjectSource& objects, const std::string& ns,
                                      const Value* spec) const {
    std::map<std::string, Names> out;
    for (const Value& each : at(spec, "volumes").items()) {
      const std::string claim(text_at(each, "persistentVolumeClaim.claimName"));
      if (claim.empty()) continue;
      std::string volume;
      if (const auto known = volumes_.find(ns + '/' + claim); known != volumes_.end()) {
        volume = known->second;
      } else if (const auto raw = objects.find("PersistentVolumeClaim", ns, claim)) {
        volume = text_at(raw->value, "spec.volumeName");
      }
      if (const auto driver = drivers_.find(volume); driver != drivers_.end()) {
        out[driver->second].insert(volume);
      }
    }
    return out;
  }

 private:
  std::map<std::string, std::string> drivers_;  // by volume
  std::map<std::string, std::string> volumes_;  // by ns/claim
};

std::int64_t most_of(const RawObject& node, const std::string& driver) {
  for (const Value& each : at(node.value, "spec.drivers").items()) {
    const Value* count = find(each, "allocatable.count");
    if (text_at(each, "name") != driver || count == nullptr) continue;
    return count->as_int64().value_or(-1);
  }
  return -1;
}

// What the pods of each node have of volumes.
struct AttachedThere {
  std::map<std::string, Names> volumes;                // by driver
  std::map<std::string, std::vector<std::string>> by;  // pods, by driver
};

std::map<std::string, AttachedThere> attached_by_node(const ObjectSource& objects,
                                                      const CsiVolumes& known) {
  std::map<std::string, AttachedThere> out;
  for (const RawObject& pod : objects.of_kind("Pod")) {
    const std::string node(text_at(pod.value, "spec.nodeName"));
    const Value* spec = find(pod.value, "spec");
    if (node.empty() || find(spec, "volumes") == nullptr || has_ended(*pod.value)) continue;
    for (const auto& [driver, volumes] : known.of_pod(objects, pod.ns, spec)) {
      out[node].volumes[driver].insert(volumes.begin(), volumes.end());
      out[node].by[driver].push_back(pod.ns + '/' + pod.name);
    }
  }
  return out;
}

}  // namespace

std::vector<FullNode> full_nodes(const ObjectSource& objects, const std::string& ns,
                                 const Value* spec) {
  std::vector<FullNode> out;
  const std::vector<RawObject> nodes = objects.of_kind("CSINode");
  if (nodes.empty() || find(spec, "volumes") == nullptr) return out;
  const CsiVolumes known(objects);
  const auto wanted =
      known.none() ? std::map<std::string, Names>() : known.of_pod(objects, ns, spec);
  if (wanted.empty()) return out;
  auto there = attached_by_node(objects, known);
  for (const RawObject& node : nodes) {
    for (const auto& [driver, volumes] : wanted) {
      const std::int64_t most = most_of(node, driver);
      if (most < 0) continue;
      FullNode full;
      full.node = node.name;
      full.driver = driver;
      full.most = static_cast<int>(std::min<std::int64_t>(most, 1 << 20));
      full.attached = there[node.name].volumes[driver];
      full.holders = there[node.name].by[driver];
      full.volumes = volumes;
      Names all = volumes;
      all.insert(full.attached.begin(), full.attached.end());
      if (all.size() > static_cast<std::size_t>(most)) out.push_back(std::move(full));
    }
  }
  return out;
}

void keep_off_full_nodes(const ObjectSource& objects, const std::string& ns, const Value* spec,
                         Draft& draft) {
  std::map<std::string, Names> off;  // nodes by volume
  for (const FullNode& full : full_nodes(objects, ns, spec)) {
    for (const std::string& volume : full.volumes) off[volume].insert(full.node);
  }
  for (const auto& [volume, nodes] : off) {
    Tree* object = draft.edit(&objects, "PersistentVolume", "", volume);
    if (object == nullptr) continue;
    std::vector<Tree>& terms =
        (*object)["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"].items();
    if (terms.empty()) terms.emplace_back();
    for (Tree& term : terms) {
      for (const std::string& node : nodes) {  // a field takes one value
        Tree rule;
        rule["key"] = Tree::of_text("metadata.name");
        rule["operator"] = Tree::of_text("NotIn");
        rule["values"].items().push_back(Tree::of_text(node));
        term["matchFields"].items().push_back(std::move(rule));
      }
    }
  }
}

std::vector<FullNode> full_nodes(const ObjectSource& objects,
                                 const std::vector<TemplatePlace>& places) {
  for (const TemplatePlace& place : places) {
    const auto raw = objects.find(place.kind, place.ns, place.name);
    const Value* spec = raw ? find(template_at(*raw, place), "spec") : nullptr;
    std::vector<FullNode> full = full_nodes(objects, place.ns, spec);
    if (!full.empty()) return full;
  }
  return {};
}

std::string told_of_claim(const ObjectSource& objects, const std::string& ns,
                          const std::string& claim) {
  const auto raw = objects.find("PersistentVolumeClaim", ns, claim);
  if (!raw) return "";
  if (!text_at(raw->value, "metadata.deletionTimestamp").empty()) {
    return fmt::format("the claim {} is being deleted: no pod gets it any more", claim);
  }
  if (text_at(raw->value, "status.phase") != "Lost") return "";
  return fmt::format("the claim {} is Lost: its volume {} is gone", claim,
                     std::string(text_at(raw->value, "spec.volumeName")));
}

std::string told_of(const FullNode& full) {
  return fmt::format("{} has {} of {} volumes of {} attached", full.node, full.attached.size(),
                     full.most, full.driver);
}

}  // namespace berth::people
