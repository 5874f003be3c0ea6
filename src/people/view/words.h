// How numbers, amounts and names are written for people. Shared by the table and the explanation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/reason.h"
#include "model/spec.h"

namespace berth::people {

std::string show_milli(std::int64_t milli);                     // "2", "0.5", "26.25"
std::string show_ranges(const std::vector<int>& sorted);        // "0-3,7"
std::string show_count(std::int64_t n, std::string_view noun);  // "1 pod", "3 pods"
std::string show_demand(const model::GpuDemandSpec& demand);    // "4 GPUs", "0.5 of a GPU"
std::string show_gpus_column(const model::GpuDemandSpec& demand, int pods);  // "4", "2 sh", "20Gi"
std::string short_model(std::string_view product);         // "NVIDIA-H100-80GB-HBM3": "H100"
std::string short_key(std::string_view label);             // "topology.kubernetes.io/rack": "rack"
std::string constraint_key(model::Constraint constraint);  // "GPU model": "gpuModel", for JSON

std::size_t width_of(std::string_view text);  // columns of a terminal
// Cut in the middle and made safe to print; then filled up with blanks.
std::string fit(std::string_view text, std::size_t width);
std::string padded(std::string text, std::size_t width);
std::string padded_left(std::string_view text, std::size_t width);

}  // namespace berth::people
