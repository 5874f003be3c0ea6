// What is written of pods: where they are bound, what they are told, and that a gated one may go.
// read_live_pod() (live_pod.cc) reads it again. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/queue.h"

namespace berth::kinds {

// "0,1": what berth.dev/gpus says.
std::string gpus_text(const std::vector<int>& gpus);

struct BindTo {
  std::string_view uid, node, charged;  // charged: to which queue; "" says nothing of it
  const std::vector<int>& gpus;
};
// The Binding of a pod: one write, the devices are an annotation that the server merges into it.
std::string binding_body(std::string_view ns, std::string_view name, const BindTo& to);

// status.conditions[type] of a pod, as a strategic merge patch.
std::string pod_condition_patch(std::string_view type, std::string_view status,
                                std::string_view reason, std::string_view message,
                                std::int64_t now_ns);

// Lets a gated pod go to the flavors it was admitted to, as a strategic merge patch.
std::string pod_start_patch(const std::vector<const model::FlavorSpec*>& flavors);

}  // namespace berth::kinds
