// Fixes of what a workload asks of a Topology that its queue cannot give.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "people/view/words.h"
#include "people/why/fixes.h"
#include "text/nearest.h"

namespace berth::people {

namespace {

using model::Reason;

constexpr const char* kLevelNotes[] = {
    "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology",
    "berth.dev/topology-required", "berth.dev/topology-preferred"};
constexpr const char* kOtherNotes[] = {"kueue.x-k8s.io/podset-unconstrained-topology",
                                       "kueue.x-k8s.io/podset-slice-required-topology",
                                       "kueue.x-k8s.io/podset-slice-size"};

// level empty: nothing is asked for any more.
void set_notes(Tree& meta, const std::string& level) {
  Tree* notes = meta.find("annotations");
  if (notes == nullptr) return;
  for (const char* key : kLevelNotes) {
    if (notes->find(key) == nullptr) continue;
    if (level.empty()) {
      notes->erase(key);
    } else {
      (*notes)[key] = Tree::of_text(level);
    }
  }
  for (const char* key : kOtherNotes) {
    if (level.empty()) notes->erase(key);
  }
  if (notes->members().empty()) meta.erase("annotations");
}

void set_request(Tree& set, const std::string& level) {
  Tree* ask = set.find("topologyRequest");
  if (ask == nullptr) return;
  if (level.empty()) {
    set.erase("topologyRequest");
    return;
  }
  for (const char* field : {"required", "preferred"}) {
    if (ask->find(field) != nullptr) (*ask)[field] = Tree::of_text(level);
  }
}

bool set_level(const Situation& s, Draft& draft, const std::string& level) {
  if (model::WorkloadSpec* spec = edit_queued(s, draft)) {
    for (model::PodSetSpec& set : spec->pod_sets) {
      if (level.empty()) {
        set.topology = {};
      } else if (!set.topology.level.empty()) {
        set.topology.level = level;
      }
    }
  }
  edit_pods(s, draft, [](model::PodSpec&) {}, [&](Tree& meta, Tree&) { set_notes(meta, level); });
  for (const TemplatePlace& place : s.unit.places) {
    Tree* object = draft.edit(s.objects(), place.kind, place.ns, place.name);
    if (object == nullptr) continue;
    set_notes((*object)["metadata"], level);
    if (place.kind != "Workload") continue;
    for (Tree& set : (*object)["spec"]["podSets"].items()) set_request(set, level);
  }
  return true;
}

// The queue's flavors have no such level, or no topology at all.
void other_levels(const Situation& s, Proposals& out) {
  const auto& sets = s.unit.queued->pod_sets;
  const auto asks =
      std::find_if(sets.begin(), sets.end(), [](const auto& set) { return set.topology.asks(); });
  if (s.reason != Reason::kNoMatchingFlavor || asks == sets.end()) return;
  const std::string& asked = asks->topology.level;
  std::vector<std::string> levels;
  for (const model::TopologySpec& topology : s.inputs().queues.topologies) {
    for (const std::string& level : topology.levels) {
      const bool known = std::find(levels.begin(), levels.end(), level) != levels.end();
      if (!known && level != asked && levels.size() < 8) levels.push_back(level);
    }
  }
  const std::string meant = text::nearest(asked, levels);
  std::stable_partition(levels.begin(), levels.end(), [&](const auto& l) { return l == meant; });
  if (asked.empty()) levels.clear();
  for (const std::string& level : levels) {
    out.push_back({.title = fmt::format("topology level {} instead of {}", level, asked),
                   .kind = "other-level",
                   .apply = [&s, level](Draft& draft) { return set_level(s, draft, level); }});
  }
  out.push_back({.title = "ask for no topology level",
                 .kind = "drop-topology",
                 .apply = [&s](Draft& draft) { return set_level(s, draft, ""); }});
}

// A flavor names a Topology that does not exist.
void missing_topology(const Situation& s, Proposals& out) {
  if (s.reason != Reason::kMisconfigured || s.objects() == nullptr) return;
  const model::QueueInputs& queues = s.inputs().queues;
  std::vector<std::string> names;
  for (const model::TopologySpec& topology : queues.topologies) names.push_back(topology.name);
  for (const model::FlavorSpec& flavor : queues.flavors) {
    const std::string& gone = flavor.topology;
    if (gone.empty() || std::find(names.begin(), names.end(), gone) != names.end()) continue;
    if (out.size() > 24) return;
    const auto set = [&](std::string title, const std::string& topology) {
      out.push_back({.title = std::move(title),
                     .kind = "flavor-topology",
                     .disturbance = 3,
                     .objects_only = true,
                     .apply = [&s, name = flavor.name, topology](Draft& draft) {
                       Tree* object = draft.edit(s.objects(), "ResourceFlavor", "", name);
                       if (object == nullptr) return false;
                       if (topology.empty()) {
                         (*object)["spec"].erase("topologyName");
                       } else {
                         (*object)["spec"]["topologyName"] = Tree::of_text(topology);
                       }
                       return true;
                     }});
    };
    const std::string meant = text::nearest(gone, names);
    if (!meant.empty()) {
      set(fmt::format("topology {} instead of {} in the flavor {}", meant, gone, flavor.name),
          meant);
    }
    set(fmt::format("take the topology {} off the flavor {}", gone, flavor.name), "");
    std::vector<std::string> levels;
    for (const model::PodSetSpec& each : s.unit.queued->pod_sets) {
      if (!each.topology.level.empty() && levels.empty()) levels.push_back(each.topology.level);
    }
    if (levels.empty() || levels.front() != "kubernetes.io/hostname") {
      levels.emplace_back("kubernetes.io/hostname");
    }
    out.push_back({.title = "create the Topology " + gone,
                   .kind = "create-topology",
                   .disturbance = 3,
                   .objects_only = true,
                   .apply = [&s, gone, levels](Draft& draft) {
                     const auto queue = s.objects()->of_kind("ClusterQueue");
                     Tree made;
                     made["apiVersion"] = Tree::of_text(queue.empty() ? "kueue.x-k8s.io/v1beta2"
                                                                      : queue.front().api_version);
                     made["kind"] = Tree::of_text("Topology");
                     made["metadata"]["name"] = Tree::of_text(gone);
                     for (const std::string& level : levels) {
                       Tree item;
                       item["nodeLabel"] = Tree::of_text(level);
                       made["spec"]["levels"].items().push_back(std::move(item));
                     }
                     draft.create(std::move(made));
                     return true;
                   }});
  }
}

// Nodes of a flavor without the label of a level of its Topology.
struct Unlabelled {
  std::string flavor, topology, level;
  std::vector<const model::NodeSpec*> nodes;
};

std::vector<const model::FlavorSpec*> flavors_of(const model::QueueInputs& queues,
                                                 const model::WorkloadSpec& spec) {
  std::set<std::string> names;
  for (const model::LocalQueueSpec& local : queues.local_queues) {
    if (local.ns != spec.ns || local.name != spec.queue) continue;
    for (const model::QueueSpec& queue : queues.queues) {
      if (queue.name != local.queue) continue;
      for (const model::ResourceGroup& group : queue.groups) {
        for (const model::FlavorQuota& quota : group.flavors) names.insert(quota.flavor);
      }
    }
  }
  std::vector<const model::FlavorSpec*> out;
  for (const model::FlavorSpec& flavor : queues.flavors) {
    if (names.contains(flavor.name)) out.push_back(&flavor);
  }
  return out;
}

std::vector<Unlabelled> unlabelled_nodes(const kinds::Inputs& inputs, const Unit& unit) {
  std::vector<Unlabelled> out;
  if (unit.queued == nullptr) return out;
  for (const model::FlavorSpec* flavor : flavors_of(inputs.queues, *unit.queued)) {
    for (const model::TopologySpec& topology : inputs.queues.topologies) {
      if (flavor->topology.empty() || topology.name != flavor->topology) continue;
      for (const std::string& level : topology.levels) {
        Unlabelled lack{flavor->name, topology.name, level, {}};
        for (const model::NodeSpec& node : inputs.nodes) {
          const bool of_flavor = std::all_of(
              flavor->node_labels.begin(), flavor->node_labels.end(), [&](const auto& label) {
                const auto it = node.labels.find(label.first);
                return it != node.labels.end() && it->second == label.second;
              });
          if (of_flavor && !node.labels.contains(level)) lack.nodes.push_back(&node);
        }
        if (!lack.nodes.empty()) out.push_back(std::move(lack));
      }
    }
  }
  return out;
}

// The name of a node that has the level's place to itself; else all of them are in one place.
std::string value_for(const Unlabelled& lack, const model::NodeSpec& node) {
  return lack.level == "kubernetes.io/hostname" ? node.name : lack.topology + "-1";
}

// Nodes without a level are in no domain: nothing is placed on them.
void label_nodes(const Situation& s, Proposals& out) {
  constexpr std::size_t kMostLabelled = 16;
  if (s.reason != Reason::kTopologyPlacementFailed && s.reason != Reason::kNoMatchingFlavor) return;
  const std::vector<Unlabelled> lacking = unlabelled_nodes(s.inputs(), s.unit);
  std::string levels;
  for (const Unlabelled& lack : lacking) {
    if (lack.nodes.size() > kMostLabelled) return;
    std::string names;
    for (const model::NodeSpec* node : lack.nodes) {
      names += (names.empty() ? "" : ", ") + node->name;
    }
    levels += (levels.empty() ? "" : ", and ") +
              fmt::format("label {} with the {} that they are in", names, lack.level);
  }
  if (lacking.empty()) return;
  out.push_back({.title = levels,
                 .kind = "label-nodes",
                 .disturbance = 3,
                 .apply = [&s, lacking](Draft& draft) {
                   for (const Unlabelled& lack : lacking) {
                     for (const model::NodeSpec* node : lack.nodes) {
                       const std::string value = value_for(lack, *node);
                       draft.nodes.try_emplace(node->name, *node).first->second.labels[lack.level] =
                           value;
                       Tree* object = draft.edit(s.objects(), "Node", "", node->name);
                       if (object == nullptr) return s.objects() == nullptr;
                       (*object)["metadata"]["labels"][lack.level] = Tree::of_text(value);
                     }
                   }
                   return true;
                 }});
  for (const Unlabelled& lack : lacking) {
    out.push_back(
        {.title = fmt::format("take the topology {} off the flavor {}", lack.topology, lack.flavor),
         .kind = "flavor-topology",
         .disturbance = 3,
         .objects_only = true,
         .apply = [&s, flavor = lack.flavor](Draft& draft) {
           set_level(s, draft, "");
           Tree* object = draft.edit(s.objects(), "ResourceFlavor", "", flavor);
           return object != nullptr && (*object)["spec"].erase("topologyName");
         }});
  }
}

}  // namespace

std::string levels_lacking(const kinds::Inputs& inputs, const Unit& unit) {
  const std::vector<Unlabelled> lacking = unlabelled_nodes(inputs, unit);
  if (lacking.empty()) return "";
  const Unlabelled& first = lacking.front();
  return fmt::format("{} of the flavor {} {} not the label {} of its topology {}",
                     show_count(static_cast<std::int64_t>(first.nodes.size()), "node"),
                     first.flavor, first.nodes.size() == 1 ? "has" : "have", first.level,
                     first.topology);
}

void propose_topology(const Situation& s, Proposals& out) {
  if (s.unit.queued == nullptr) return;
  label_nodes(s, out);
  other_levels(s, out);
  missing_topology(s, out);
}

}  // namespace berth::people
