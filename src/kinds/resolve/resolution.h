// One resolve(): what was gathered, made the Inputs of a decision.
//
// It is made of parts and stages. A part (known_nodes.h, known_queues.h, pod_references.h,
// pod_groups.h, workloads.h, members.h, other_systems.h) is made of what was gathered and of the
// parts before it, and is asked from then on; a stage (stages.h) runs once and adds to the Inputs
// what waits and what runs. resolve.cc has their order.
#pragma once

#include <set>
#include <string>

#include "kinds/gathered.h"
#include "kinds/names.h"

namespace berth::kinds {

using NameSet = std::set<std::string, std::less<>>;

struct QuotaAsks;

struct Resolution {
  Gathered& in;
  const ManifestOptions& options;
  Inputs out = {};
  // Of a kin alone (kin_inputs.h); null: everything is here, and quota that is left can be taken.
  QuotaAsks* asks = nullptr;
  const NameSet* granted = nullptr;
};

// What parts and stages read and write.
class Part {
 public:
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

 protected:
  explicit Part(Resolution& all) : in_(all.in), options_(all.options), out_(all.out) {}
  ~Part() = default;

  Gathered& in_;
  const ManifestOptions& options_;
  Inputs& out_;
};

}  // namespace berth::kinds
