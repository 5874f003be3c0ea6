// Nodes with their GPUs, and who holds these by the word of their agents.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kinds/resolve/resolution.h"

namespace berth::kinds {

class KnownNodes : private Part {
 public:
  explicit KnownNodes(Resolution& all);

  const model::NodeSpec* find(const std::string& name) const;  // null: it is not there
  // Whether the node is there to end a pod. On one that is lost a pod may be leaving for ever.
  bool answers(const std::string& name) const;
  // Indices as the agent of the pod's node says them; null: nothing is known.
  const std::vector<int>* held_by(const model::PodSpec& pod) const;
  std::string label_of(const std::string& level) const;  // short names of topology levels

 private:
  struct Holding {
    std::string node;
    std::vector<int> indices;
  };

  std::map<std::string, Holding, std::less<>> holders_;  // by pod UID
  NameSet label_keys_;
};

}  // namespace berth::kinds
