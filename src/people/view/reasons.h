// The closed registry of reasons: what each means, where in the way of a workload it stands, and
// what to do. Plan, why, controller and page use the same; docs/reasons.md has a section for each,
// and a test fails when one is missing.
//
// Constant data, any thread, O(1).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/reason.h"

namespace berth::people {

// The way of a workload, in order.
enum class Stage : std::uint8_t {
  kGate,           // held back on purpose, or not valid
  kQuota,          // its queue
  kGang,           // its members together
  kCapacity,       // room on nodes
  kConstraints,    // which nodes it may use
  kHealth,         // what is broken
  kAutoscale,      // nodes to come
  kBind,           // decided, to be written
  kNodeAdmission,  // the kubelet's word
  kCount,
};
std::string_view name(Stage stage);  // "node-admission"

// Where a workload stands, for people and exit codes.
enum class Standing : std::uint8_t {
  kRunning,
  kWaiting,
  kMisconfigured,  // somebody must correct an object
  kNever,          // not in this cluster, even empty
  kFault,          // the platform is broken
  kCount,
};
std::string_view name(Standing standing);
int exit_code(Standing standing);  // 0, 10, 20, 30, 40

struct ReasonFacts {
  model::Reason reason;
  Stage stage;
  Standing standing;  // of a workload whose first reason it is, where it may fit one day
  std::string_view means;
  std::string_view what_to_do;
};
const ReasonFacts& facts_of(model::Reason reason);
// never: it is proven that it would not fit the empty cluster. A rule that no node can meet is
// then a mistake, what is too large is too large.
Standing standing_of(model::Reason reason, bool never);
std::string anchor_of(model::Reason reason);  // "docs/reasons.md#fragmented"

}  // namespace berth::people
