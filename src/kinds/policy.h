// berth.dev/v1alpha1 BerthPolicy: what a site chooses about placement and preemption, as an object.
//
// Cluster-scoped; the one named "default" counts. spec is the administrator's, and what of it
// cannot be read is an error, an unknown field too: nothing of such an object is in force. status
// is the controller's. The schema is deploy/crds/berthpolicies.yaml; a test holds the two together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/meta.h"
#include "model/policy.h"
#include "text/json_writer.h"

namespace berth::kinds {

inline constexpr std::string_view kPolicyInForce = "default";
inline constexpr std::size_t kMostPolicyClasses = 64, kMostPolicyNames = 64,
                             kMostPolicyLocalities = 16;

struct PolicyObject {
  Meta meta;
  model::Policy policy;
};
void decode(const text::Value& v, PolicyObject& out, text::Decoder& d);

// Its spec, and the parts of it, as they are written and read.
void encode_policy(const model::Policy& policy, text::JsonWriter& out);
void encode_placement(const model::PlacementPolicy& placement, text::JsonWriter& out);
void encode_queue_policy(const model::QueuePolicy& queues, text::JsonWriter& out);
void read_placement(const text::Value& v, model::PlacementPolicy& out, text::Decoder& d);
void read_queue_policy(const text::Value& v, model::QueuePolicy& out, text::Decoder& d);

// What of an object cannot be read, for people; empty: it is valid.
std::string policy_errors(const text::Value& object);

// The status of an object, which of its fields is wrong or what goes before it, as a merge patch of
// the subresource; empty: it says so already. flags: of the controller, as they were given.
std::string policy_status_patch(const text::Value& object, const std::vector<std::string>& flags,
                                std::int64_t now_ns);

}  // namespace berth::kinds
