// Kinds that berth why reads beside those that a decision is made of.
#pragma once

#include <vector>

#include "kube/client.h"

namespace berth::app {

// What rules of the API server are read from (explain/server_rules.h), beside claims and volumes.
const std::vector<kube::Resource>& rule_kinds();
// What makes pods (explain/unit.h), and the device claims that pods name.
const std::vector<kube::Resource>& maker_kinds();
// What autoscalers write (explain/autoscaler.h), beside one ConfigMap.
const std::vector<kube::Resource>& autoscaler_kinds();
inline constexpr const char* kScalerNamespace = "kube-system";
inline constexpr const char* kScalerSelector = "metadata.name=cluster-autoscaler-status";

}  // namespace berth::app
