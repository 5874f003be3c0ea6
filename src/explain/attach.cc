// Volumes that a node can attach: what CSINode objects say against what the pods there use.
#include "explain/attach.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "explain/makers.h"
#include "explain/pod_template.h"

namespace berth::explain {

namespace {

using text::Value;
using Names = std::set<std::string>;

struct AttachedVolume {
  std::string name, driver;  // of the PersistentVolume
};

// The CSI volume that a claim is bound to; no name: none that is known.
AttachedVolume volume_of_claim(const ObjectSource& objects, const std::string& ns,
                               const std::string& claim) {
  const auto raw = objects.find("PersistentVolumeClaim", ns, claim);
  if (!raw) return {};
  const std::string bound = text_below(raw->value, {"spec", "volumeName"});
  for (const RawObject& volume : objects.of_kind("PersistentVolume")) {
    const bool is_it = bound.empty()
                           ? text_below(volume.value, {"spec", "claimRef", "name"}) == claim &&
                                 text_below(volume.value, {"spec", "claimRef", "namespace"}) == ns
                           : volume.name == bound;
    if (is_it) return {volume.name, text_below(volume.value, {"spec", "csi", "driver"})};
  }
  return {};
}

// Volumes by driver.
std::map<std::string, Names> volumes_of(const ObjectSource& objects, const std::string& ns,
                                        const Value* spec) {
  std::map<std::string, Names> out;
  for (const Value& each : items_below(spec, {"volumes"})) {
    const std::string claim = text_below(&each, {"persistentVolumeClaim", "claimName"});
    if (claim.empty()) continue;
    const AttachedVolume volume = volume_of_claim(objects, ns, claim);
    if (!volume.driver.empty()) out[volume.driver].insert(volume.name);
  }
  return out;
}

std::int64_t most_of(const RawObject& node, const std::string& driver) {
  for (const Value& each : items_below(node.value, {"spec", "drivers"})) {
    const Value* count = deeper(&each, {"allocatable", "count"});
    if (text_below(&each, {"name"}) != driver || count == nullptr) continue;
    return count->as_int64().value_or(-1);
  }
  return -1;
}

bool holds_volumes(const RawObject& pod) {
  return !text_below(pod.value, {"spec", "nodeName"}).empty() && !has_ended(*pod.value);
}

}  // namespace

std::vector<FullNode> full_nodes(const ObjectSource& objects, const std::string& ns,
                                 const Value* spec) {
  std::vector<FullNode> out;
  const std::vector<RawObject> nodes = objects.of_kind("CSINode");
  if (nodes.empty()) return out;
  const std::map<std::string, Names> wanted = volumes_of(objects, ns, spec);
  if (wanted.empty()) return out;
  const std::vector<RawObject> pods = objects.of_kind("Pod");
  for (const RawObject& node : nodes) {
    for (const auto& [driver, volumes] : wanted) {
      const std::int64_t most = most_of(node, driver);
      if (most < 0) continue;
      FullNode full;
      full.node = node.name;
      full.driver = driver;
      full.most = static_cast<int>(std::min<std::int64_t>(most, 1 << 20));
      Names all = volumes;
      for (const RawObject& pod : pods) {
        if (!holds_volumes(pod) || text_below(pod.value, {"spec", "nodeName"}) != node.name)
          continue;
        auto held = volumes_of(objects, pod.ns, deeper(pod.value, {"spec"}));
        if (held[driver].empty()) continue;
        full.attached.insert(held[driver].begin(), held[driver].end());
        full.holders.push_back(pod.ns + '/' + pod.name);
      }
      all.insert(full.attached.begin(), full.attached.end());
      full.volumes = volumes;
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
      Tree rule;
      rule["key"] = Tree::of_text("metadata.name");
      rule["operator"] = Tree::of_text("NotIn");
      for (const std::string& node : nodes) rule["values"].items().push_back(Tree::of_text(node));
      term["matchFields"].items().push_back(std::move(rule));
    }
  }
}

std::vector<FullNode> full_nodes(const ObjectSource& objects,
                                 const std::vector<TemplatePlace>& places) {
  for (const TemplatePlace& place : places) {
    const auto raw = objects.find(place.kind, place.ns, place.name);
    const Value* spec = raw ? deeper(template_at(*raw, place), {"spec"}) : nullptr;
    std::vector<FullNode> full = full_nodes(objects, place.ns, spec);
    if (!full.empty()) return full;
  }
  return {};
}

std::string told_of(const FullNode& full) {
  return fmt::format("{} has {} of {} volumes of {} attached", full.node, full.attached.size(),
                     full.most, full.driver);
}

}  // namespace berth::explain
