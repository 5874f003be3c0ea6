// What a site may choose about placement. Everything has a default; docs/placement.md explains
// each.
#pragma once

#include <string>
#include <vector>

#include "model/shape.h"

namespace berth::schedule {

struct Policy {
  // Level 5 of the node choice.
  enum class Packing {
    kFragmentation,   // keep the free GPUs usable for the pods that come (the default)
    kMostAllocated,   // fill nodes up
    kLeastAllocated,  // keep nodes even
  };
  Packing packing = Packing::kFragmentation;

  // Which workloads keep their replicas apart: the first rule that matches decides; with none,
  // replicas of a service do and everything else packs.
  struct Rule {
    enum class By { kPriorityClass, kQueue, kLabel };
    By by = By::kLabel;
    std::string key;  // of kLabel
    std::string value;
    bool spread = false;
  };
  std::vector<Rule> rules;

  // Level 4: a node scores the sum of the weights of the labels it has.
  struct Locality {
    std::string key, value;
    int weight = 1;
  };
  std::vector<Locality> locality;

  bool preemption = true;
};

// A SnapshotBuilder has to know it too, to count the pods of those workloads: give it
// keeps_apart().
bool spreads(const Policy& policy, const model::Shape& shape);
inline model::ShapeBook::KeepsApart keeps_apart(const Policy& policy) {
  return [policy](const model::Shape& shape) { return spreads(policy, shape); };
}

}  // namespace berth::schedule
