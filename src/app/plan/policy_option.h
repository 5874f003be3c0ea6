// --policy, --queue-policy and --no-preemption, which go before the BerthPolicy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/policy.h"

namespace berth::app {

// What a command was told of policies; empty: the BerthPolicy says.
struct PolicyArguments {
  std::string policy, queue_policy;
  bool no_preemption = false;

  bool given() const { return !policy.empty() || !queue_policy.empty() || no_preemption; }
  std::vector<std::string> words() const;  // as they were given
};
// "pack", "fragmentation,spread@queue=web,near@topology.kubernetes.io/zone=a*10": docs/policy.md.
Result<model::PlacementPolicy> parse_policy(std::string_view text);
Result<model::QueuePolicy> parse_queue_policy(std::string_view text);
Result<model::PolicyFlags> policy_flags(const PolicyArguments& arguments);

}  // namespace berth::app
