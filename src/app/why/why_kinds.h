// Kinds that commands ask an API server for.
#pragma once

#include <vector>

#include "edge/kube/client.h"

namespace berth::app {

// Those of the table that are asked for by somebody (kinds::asked). What decisions are made of is
// with kDecided alone: whoever asks for the rest has it already.
std::vector<kube::Resource> kinds_asked(std::uint16_t by);

// What autoscalers write, beside their kinds.
inline constexpr const char* kScalerNamespace = "kube-system";
inline constexpr const char* kScalerSelector = "metadata.name=cluster-autoscaler-status";

}  // namespace berth::app
