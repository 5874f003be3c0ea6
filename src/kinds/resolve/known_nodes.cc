#include "kinds/resolve/known_nodes.h"

#include <algorithm>

#include "kinds/counted.h"

namespace berth::kinds {

NodesOfInput::NodesOfInput(Resolution& all) : Part(all) {
  std::map<std::string_view, const GpuNode*> agents;
  for (const Found<GpuNode>& agent : in_.gpu_nodes) agents[agent.object.name] = &agent.object;
  for (Found<NodeObject>& node : in_.nodes) {
    const auto agent = agents.find(node.object.spec.name);
    const GpuFacts facts =
        fill_gpus(agent == agents.end() ? nullptr : agent->second, node.object.spec);
    for (const std::string& warning : facts.warnings) in_.warn(node, "status", warning);
    if (!facts.errors.empty()) {
      std::vector<Note> errors;
      for (const std::string& error : facts.errors) {
        errors.push_back(Gathered::note(node.origin, node.shown, "status", error));
      }
      in_.count_in_part(std::move(errors), counted(node.object));
    }
    for (const auto& [key, value] : node.object.spec.labels) label_keys_.insert(key);
    if (agent != agents.end()) {
      for (const GpuNodeGpu& gpu : agent->second->gpus) {
        for (const std::string& uid : gpu.holders) {
          Holding& holding = holders_[uid];
          holding.node = node.object.spec.name;
          holding.indices.push_back(gpu.gpu.index);
        }
      }
    }
    out_.nodes.push_back(std::move(node.object.spec));
  }
  for (const Found<GpuNode>& agent : in_.gpu_nodes) {
    const auto at = std::lower_bound(in_.nodes.begin(), in_.nodes.end(), agent.object.name,
                                     [](const Found<NodeObject>& n, const std::string& name) {
                                       return n.object.meta.name < name;
                                     });
    if (at == in_.nodes.end() || at->object.meta.name != agent.object.name) {
      in_.warn(agent, "metadata.name", "found no Node of this name in the input; it is not used");
    }
  }
}

const model::NodeSpec* NodesOfInput::find(const std::string& name) const {
  const auto node = std::lower_bound(
      out_.nodes.begin(), out_.nodes.end(), name,
      [](const model::NodeSpec& n, const std::string& wanted) { return n.name < wanted; });
  return node != out_.nodes.end() && node->name == name ? &*node : nullptr;
}

bool KnownNodes::answers(const std::string& name) const {
  const model::NodeSpec* node = find(name);
  return node != nullptr && node->ready;
}

const std::vector<int>* KnownNodes::held_by(const model::PodSpec& pod) const {
  const Holding* held = pod.uid.empty() ? nullptr : holding_of(pod.uid);
  return held != nullptr && held->node == pod.node_name ? &held->indices : nullptr;
}

const Holding* NodesOfInput::holding_of(const std::string& uid) const {
  const auto held = holders_.find(uid);
  return held == holders_.end() ? nullptr : &held->second;
}

std::string NodesOfInput::label_of(const std::string& level) const {
  return topology_key(level, label_keys_);
}

}  // namespace berth::kinds
