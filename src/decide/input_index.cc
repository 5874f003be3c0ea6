#include "decide/input_index.h"

#include <algorithm>
#include <unordered_map>

namespace berth::decide {

namespace {

std::string full_name(const model::PodSpec& pod) { return pod.ns + '/' + pod.name; }

// Whose pod it is, where it has a node; else empty.
std::string runs_for(const model::PodSpec& pod) {
  return pod.owner.empty() || pod.node_name.empty() ? "" : pod.ns + '/' + pod.owner;
}

}  // namespace

InputIndex::InputIndex(const std::vector<model::NodeSpec>& nodes,
                       const std::vector<model::PodSpec>& pods) {
  nodes_.reserve(nodes.size());
  for (const model::NodeSpec& node : nodes) {
    nodes_.push_back(&node);
    add_host(node);
  }
  std::unordered_map<std::string, Pods> running;
  for (const model::PodSpec& pod : pods) {
    pods_.put(full_name(pod), &pod);
    if (const std::string owner = runs_for(pod); !owner.empty()) running[owner].push_back(&pod);
  }
  for (auto& [owner, all] : running) running_.put(owner, std::move(all));
}

// The first node of a hostname has it.
void InputIndex::add_host(const model::NodeSpec& node) {
  const auto label = node.labels.find(model::kHostnameLabel);
  const std::string& host = label == node.labels.end() ? node.name : label->second;
  if (hosts_.find(host) == nullptr) hosts_.put(host, node.name);
}

void InputIndex::put(const model::NodeSpec& node) {
  const auto at = std::lower_bound(
      nodes_.begin(), nodes_.end(), node.name,
      [](const model::NodeSpec* each, const std::string& name) { return each->name < name; });
  if (at != nodes_.end() && (*at)->name == node.name) {
    *at = &node;
  } else {
    nodes_.insert(at, &node);
  }
  add_host(node);
}

void InputIndex::set_nodes(std::vector<const model::NodeSpec*> nodes) {
  nodes_ = std::move(nodes);
  hosts_ = {};
  for (const model::NodeSpec* node : nodes_) add_host(*node);
}

void InputIndex::put(const model::PodSpec& pod) {
  const std::string name = full_name(pod);
  const model::PodSpec* const* before = pods_.find(name);
  const std::string owner = runs_for(pod), had = before == nullptr ? "" : runs_for(**before);
  if (!had.empty() && had == owner) {
    Pods all = *running_.find(owner);
    std::replace(all.begin(), all.end(), *before, &pod);
    running_.put(owner, std::move(all));
  } else {
    if (before != nullptr) remove_pod(name);
    if (!owner.empty()) {
      const Pods* all = running_.find(owner);
      Pods more = all == nullptr ? Pods() : *all;
      more.push_back(&pod);
      running_.put(owner, std::move(more));
    }
  }
  pods_.put(name, &pod);
}

void InputIndex::remove_pod(std::string_view name) {
  const model::PodSpec* const* found = pods_.find(name);
  if (found == nullptr) return;
  const std::string owner = runs_for(**found);
  if (!owner.empty()) {
    Pods rest = *running_.find(owner);
    std::erase(rest, *found);
    running_.put(owner, std::move(rest));
  }
  pods_.erase(name);
}

const model::PodSpec* InputIndex::pod(std::string_view name) const {
  const model::PodSpec* const* found = pods_.find(name);
  if (found != nullptr) return *found;
  return others_ ? others_(name) : nullptr;
}

std::span<const model::PodSpec* const> InputIndex::running_of(std::string_view owner) const {
  const Pods* found = running_.find(owner);
  if (found == nullptr) return {};
  return *found;
}

}  // namespace berth::decide
