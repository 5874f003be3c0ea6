// The fields of a pod's spec as written, before they are given their meaning (pod.cc).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kinds/resources.h"
#include "kinds/volume.h"
#include "model/spec.h"

namespace berth::kinds {

struct RawPodSpec {
  Containers containers;
  std::optional<Resources> pod_level;
  model::Amounts overhead;
  model::Labels node_selector;
  std::vector<model::Toleration> tolerations;
  std::vector<ClaimRef> claims;
  std::string node_name, priority_class, restart_policy = "Always", scheduling_group;
  std::optional<int> priority;
  std::optional<bool> preempts;
  bool host_network = false, unread_claims = false;
  bool gated = false;
  bool other_gates = false;               // that are not Kueue's
  const text::Value* affinity = nullptr;  // read when labels and namespace are known
  const text::Value* spread = nullptr;
};
void decode(const text::Value& v, RawPodSpec& out, text::Decoder& d);

}  // namespace berth::kinds
