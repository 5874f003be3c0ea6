// The nodes and pods of an input by what workloads of queues ask of them: pods by name and by
// owner, nodes by hostname.
//
// It points into the specs, which outlive it. Copies share what they have in common, so a copy with
// a few changes costs what changes. Used by one thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/shared_map.h"
#include "model/spec.h"

namespace berth::decide {

class InputIndex {
 public:
  InputIndex() = default;
  InputIndex(const std::vector<model::NodeSpec>& nodes, const std::vector<model::PodSpec>& pods);

  // New, or in place of the one of that name.
  void put(const model::NodeSpec& node);
  void put(const model::PodSpec& pod);
  void set_nodes(std::vector<const model::NodeSpec*> nodes);  // by name, in place of all
  void remove_pod(std::string_view name);
  // Where pods are found that were not put here, by name alone.
  using Others = std::function<const model::PodSpec*(std::string_view name)>;
  void set_others(Others others) { others_ = std::move(others); }

  const std::vector<const model::NodeSpec*>& nodes() const { return nodes_; }  // by name
  const model::PodSpec* pod(std::string_view name) const;                      // "ns/name"; or null
  // Pods with a node of "ns/owner".
  std::span<const model::PodSpec* const> running_of(std::string_view owner) const;
  const std::string* node_of(std::string_view hostname) const { return hosts_.find(hostname); }

 private:
  using Pods = std::vector<const model::PodSpec*>;

  void add_host(const model::NodeSpec& node);

  std::vector<const model::NodeSpec*> nodes_;
  SharedMap<std::string> hosts_;  // names of nodes by their hostname
  SharedMap<const model::PodSpec*> pods_;
  SharedMap<Pods> running_;
  Others others_;
};

}  // namespace berth::decide
