// Nodes with their GPUs, and who holds these by the word of their agents.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kinds/resolve/resolution.h"

namespace berth::kinds {

class KnownNodes {
 public:
  KnownNodes() = default;
  virtual ~KnownNodes() = default;
  KnownNodes(const KnownNodes&) = delete;
  KnownNodes& operator=(const KnownNodes&) = delete;

  virtual const model::NodeSpec* find(const std::string& name) const = 0;  // null: it is not there
  virtual std::string label_of(const std::string& level) const = 0;        // short names of levels
  // Whether the node is there to end a pod. On one that is lost a pod may be leaving for ever.
  bool answers(const std::string& name) const;
  // Indices as the agent of the pod's node says them; null: nothing is known.
  const std::vector<int>* held_by(const model::PodSpec& pod) const;

 private:
  virtual const Holding* holding_of(const std::string& uid) const = 0;  // a pod's; null: none
};

// Those of what was gathered.
class NodesOfInput final : public KnownNodes, private Part {
 public:
  explicit NodesOfInput(Resolution& all);

  const model::NodeSpec* find(const std::string& name) const override;
  std::string label_of(const std::string& level) const override;

 private:
  const Holding* holding_of(const std::string& uid) const override;

  std::map<std::string, Holding, std::less<>> holders_;  // by pod UID
  NameSet label_keys_;
};

}  // namespace berth::kinds
