// Fixes of nodes: uncordon, repair, remove taints, add more.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "decide/schedule/rule_memo.h"
#include "model/amounts.h"
#include "people/view/words.h"
#include "people/why/autoscaler.h"
#include "people/why/fixes.h"

namespace berth::people {

namespace {

using model::Constraint;
using model::NodeSpec;
using schedule::bit;

const NodeSpec* node_spec(const Situation& s, const std::string& name) {
  const auto& nodes = s.inputs().nodes;
  const auto it =
      std::lower_bound(nodes.begin(), nodes.end(), name,
                       [](const NodeSpec& n, const std::string& key) { return n.name < key; });
  return it == nodes.end() || it->name != name ? nullptr : &*it;
}

NodeSpec& edit_node(const Situation& s, Draft& draft, const std::string& name) {
  const NodeSpec* spec = node_spec(s, name);
  return draft.nodes.try_emplace(name, spec == nullptr ? NodeSpec() : *spec).first->second;
}

// Nodes that count and that the constraint keeps away; fewest other blockers first.
std::vector<std::string> kept_away(const Situation& s, Constraint constraint) {
  std::vector<const NodeView*> views;
  for (const NodeView& view : s.picture->nodes) {
    if (s.picture->counts(view) && (view.blockers & bit(constraint)) != 0) views.push_back(&view);
  }
  std::stable_sort(views.begin(), views.end(), [](const NodeView* a, const NodeView* b) {
    return std::popcount(a->blockers) < std::popcount(b->blockers);
  });
  std::vector<std::string> out;
  for (const NodeView* view : views) out.push_back(s.state->info(view->slot).name);
  return out;
}

std::string some(const std::vector<std::string>& nodes) {
  if (nodes.size() == 1) return nodes.front();
  if (nodes.size() <= 3) return fmt::format("{}", fmt::join(nodes, ", "));
  return fmt::format("{} and {} more nodes", nodes.front(), nodes.size() - 1);
}

// One node, then twice as many, up to all of them: the fewest that do.
using NodeEdit = std::function<void(Draft&, const std::string&)>;
void for_nodes(const std::vector<std::string>& nodes, const std::string& verb,
               const std::string& kind, int disturbance, const NodeEdit& edit, Proposals& out) {
  std::size_t last = 0;
  for (std::size_t count = 1; last < nodes.size(); count *= 2) {
    last = std::min(count, nodes.size());
    const std::vector<std::string> some_of(nodes.begin(),
                                           nodes.begin() + static_cast<std::ptrdiff_t>(last));
    out.push_back({.title = verb + ' ' + some(some_of),
                   .kind = kind,
                   .disturbance = disturbance,
                   .row = verb,
                   .larger = count > 1,
                   .apply = [some_of, edit](Draft& draft) {
                     for (const std::string& node : some_of) edit(draft, node);
                     return true;
                   }});
    if (last >= 64) break;
  }
}

void drop_taints(Tree& node, const std::function<bool(const std::string& key)>& drop) {
  Tree* spec = node.find("spec");
  Tree* taints = spec == nullptr ? nullptr : spec->find("taints");
  if (taints == nullptr) return;
  std::erase_if(taints->items(), [&](const Tree& taint) {
    const Tree* key = taint.find("key");
    return key != nullptr && drop(key->string());
  });
  if (taints->items().empty()) spec->erase("taints");
}

void uncordon(const Situation& s, Proposals& out) {
  constexpr const char* kTaint = "node.kubernetes.io/unschedulable";
  for_nodes(
      kept_away(s, Constraint::kUnschedulable), "uncordon", "uncordon", 3,
      [&s](Draft& draft, const std::string& name) {
        NodeSpec& node = edit_node(s, draft, name);
        node.unschedulable = false;
        std::erase_if(node.taints, [&](const auto& taint) { return taint.key == kTaint; });
        if (Tree* tree = draft.edit(s.objects(), "Node", "", name)) {
          if (Tree* spec = tree->find("spec")) spec->erase("unschedulable");
          drop_taints(*tree, [&](const std::string& key) { return key == kTaint; });
        }
      },
      out);
}

// What a node says once it is repaired.
void repair_node(const Situation& s, Draft& draft, const std::string& name) {
  NodeSpec& node = edit_node(s, draft, name);
  node.ready = true;
  const auto condition = [](const std::string& key) {
    return schedule::is_passing_taint(key) && !schedule::is_parting_taint(key) &&
           key != "node.kubernetes.io/unschedulable";
  };
  std::erase_if(node.taints, [&](const auto& taint) { return condition(taint.key); });
  Tree* tree = draft.edit(s.objects(), "Node", "", name);
  if (tree == nullptr) return;
  drop_taints(*tree, condition);
  Tree* status = tree->find("status");
  if (status == nullptr || status->find("conditions") == nullptr) return;
  for (Tree& each : (*status)["conditions"].items()) {
    const Tree* type = each.find("type");
    if (type == nullptr) continue;
    each["status"] = Tree::of_text(type->string() == "Ready" ? "True" : "False");
  }
}

void repair_gpus(const Situation& s, Draft& draft, const std::string& name) {
  NodeSpec& node = edit_node(s, draft, name);
  for (model::GpuSpec& gpu : node.gpus) {
    gpu.health = model::Health::kHealthy;
    gpu.reserved = false;
    gpu.health_reason.clear();
  }
  Tree* tree = draft.edit(s.objects(), "GpuNode", "", name);
  if (tree == nullptr) {  // as the device plugin advertises them
    Tree* plain = draft.edit(s.objects(), "Node", "", name);
    if (plain == nullptr) return;
    const char* device = model::offers_gpus(node) ? model::kGpuResource : model::kSharedGpuResource;
    (*plain)["status"]["allocatable"][device] = Tree::of_text(
        std::to_string(node.gpus.size() * static_cast<std::size_t>(node.shares_per_gpu)));
    return;
  }
  if (Tree* spec = tree->find("spec")) spec->erase("reservedGpus");
  if (Tree* status = tree->find("status")) {
    for (Tree& gpu : (*status)["gpus"].items()) {
      Tree healthy;
      healthy["state"] = Tree::of_text("Healthy");
      if (const Tree* health = gpu.find("health")) {
        const Tree* state = health->find("state");
        if (state != nullptr && state->string() == "Healthy") continue;
      }
      gpu["health"] = healthy;
    }
  }
}

void untaint(const Situation& s, Proposals& out) {
  std::vector<std::string> nodes;
  for (const NodeView& view : s.picture->nodes) {
    if (view.small || view.blockers != bit(Constraint::kTaints)) continue;
    // A taint that a controller brings comes back as long as its cause lasts.
    const model::NodeInfo& info = s.state->info(view.slot);
    const bool passing =
        std::any_of(info.taints.begin(), info.taints.end(), [&](const auto& taint) {
          const auto& own = s.sample.tolerations;
          return schedule::is_passing_taint(taint.key) &&
                 std::none_of(own.begin(), own.end(),
                              [&](const auto& t) { return tolerates(t, taint); });
        });
    if (!passing) nodes.push_back(info.name);
  }
  for_nodes(
      nodes, "remove the taints of", "untaint", 4,
      [&s](Draft& draft, const std::string& name) {
        const auto untolerated = [&s](const model::Taint& taint) {
          return std::none_of(s.sample.tolerations.begin(), s.sample.tolerations.end(),
                              [&](const auto& t) { return tolerates(t, taint); });
        };
        NodeSpec& node = edit_node(s, draft, name);
        std::set<std::string> keys;
        for (const model::Taint& taint : node.taints) {
          if (untolerated(taint)) keys.insert(taint.key);
        }
        std::erase_if(node.taints, [&](const auto& taint) { return keys.contains(taint.key); });
        if (Tree* tree = draft.edit(s.objects(), "Node", "", name)) {
          drop_taints(*tree, [&](const std::string& key) { return keys.contains(key); });
        }
      },
      out);
}

// A node that could take the pod, empty: the one to buy more of.
const NodeSpec* pattern(const Situation& s) {
  for (const NodeView& view : s.picture->nodes) {
    const model::NodeInfo& info = s.state->info(view.slot);
    if (!s.picture->counts(view) || !info.ready) continue;
    return node_spec(s, info.name);
  }
  return nullptr;
}

void add_node(const Situation& s, Draft& draft, const NodeSpec& like, int number) {
  NodeSpec node = like;
  node.name = fmt::format("{}-new-{}", like.name, number);
  node.unschedulable = false;
  std::erase_if(node.taints,
                [](const auto& taint) { return schedule::is_passing_taint(taint.key); });
  if (node.labels.contains(model::kHostnameLabel)) node.labels[model::kHostnameLabel] = node.name;
  for (model::GpuSpec& gpu : node.gpus) {
    gpu.health = model::Health::kHealthy;
    gpu.reserved = false;
    gpu.uuid.clear();
  }
  for (const char* kind : {"Node", "GpuNode"}) {
    const auto raw = s.objects() == nullptr ? std::nullopt : s.objects()->find(kind, "", like.name);
    if (!raw) continue;
    Tree tree(*raw->value);
    Tree meta;
    meta["name"] = Tree::of_text(node.name);
    if (const Tree* labels = tree["metadata"].find("labels")) meta["labels"] = *labels;
    if (Tree* labels = meta.find("labels");
        labels != nullptr && labels->find(model::kHostnameLabel)) {
      (*labels)[model::kHostnameLabel] = Tree::of_text(node.name);
    }
    tree["metadata"] = meta;
    drop_taints(tree, [](const std::string& key) { return schedule::is_passing_taint(key); });
    if (Tree* spec = tree.find("spec")) {
      spec->erase("unschedulable");
      spec->erase("reservedGpus");
    }
    if (Tree* status = tree.find("status"); status != nullptr && status->find("gpus")) {
      int index = 0;
      for (Tree& gpu : (*status)["gpus"].items()) {
        gpu["uuid"] = Tree::of_text(fmt::format("GPU-{}-{}", node.name, index++));
        gpu["health"]["state"] = Tree::of_text("Healthy");
        gpu.erase("holders");
      }
    }
    draft.create(std::move(tree));
  }
  draft.nodes[node.name] = std::move(node);
}

void more_nodes(const Situation& s, Proposals& out) {
  const NodeSpec* like = pattern(s);
  if (like == nullptr) return;
  const std::string limit = s.autoscaler == nullptr ? "" : limit_in_the_way(*s.autoscaler, *like);
  for (const int count : {1, 2, 4, 8, 16}) {
    out.push_back({.title = fmt::format("add {} like {}{}", show_count(count, "node"), like->name,
                                        limit.empty() ? "" : kAboveLimit + limit),
                   .kind = "add-nodes",
                   .disturbance = 5,
                   .row = "add",
                   .larger = count > 1,
                   .apply = [&s, like, count](Draft& draft) {
                     for (int i = 1; i <= count; ++i) add_node(s, draft, *like, i);
                     return true;
                   }});
  }
}

}  // namespace

void propose_nodes(const Situation& s, Proposals& out) {
  if (s.picture == nullptr || s.state == nullptr) return;
  uncordon(s, out);
  for_nodes(
      kept_away(s, Constraint::kNodeReady), "bring back", "repair-node", 3,
      [&s](Draft& draft, const std::string& name) { repair_node(s, draft, name); }, out);
  std::vector<std::string> conditions;
  for (const NodeView& view : s.picture->nodes) {
    const bool tainted = (view.blockers & bit(Constraint::kTaints)) != 0 && view.lasting == 0;
    if (!view.small && tainted) conditions.push_back(s.state->info(view.slot).name);
  }
  for_nodes(
      conditions, "end the condition that taints", "repair-node", 3,
      [&s](Draft& draft, const std::string& name) { repair_node(s, draft, name); }, out);
  std::vector<std::string> broken = kept_away(s, Constraint::kGpuHealth);
  if (broken.empty() && s.reason == model::Reason::kGangDoesNotFit) {
    for (const NodeView& view : s.picture->nodes) {
      const model::NodeInfo& info = s.state->info(view.slot);
      if (info.usable != info.devices && s.picture->counts(view)) broken.push_back(info.name);
    }
  }
  for_nodes(
      broken, "repair the GPUs of", "repair-gpu", 3,
      [&s](Draft& draft, const std::string& name) { repair_gpus(s, draft, name); }, out);
  untaint(s, out);
  more_nodes(s, out);
}

}  // namespace berth::people
