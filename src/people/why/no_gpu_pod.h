// A pod as the checks of no_gpu.h look at it. Internal to people/why/.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/value.h"

namespace berth::people {

struct GpuContainer {
  std::string name, image;
  std::vector<std::pair<std::string, std::string>> asks;  // GPU resources of its limits: "1"
  const text::Value* spec = nullptr;
  const text::Value* status = nullptr;  // null: the kubelet has not told yet

  // nullopt: not set, or from a ConfigMap, a Secret or a field.
  std::optional<std::string> env(std::string_view key) const;
};

std::vector<GpuContainer> gpu_containers(const text::Value& pod);  // init ones first

// "12.4" of "nvidia/cuda:12.4.1-base", "pytorch:2.3-cuda12.1", of NVIDIA_REQUIRE_CUDA
// "cuda>=12.4 ..." and of CUDA_VERSION; nullopt: it does not say.
struct CudaVersion {
  int major = 0, minor = 0;
  friend auto operator<=>(const CudaVersion&, const CudaVersion&) = default;
};
std::optional<CudaVersion> parse_cuda(std::string_view text);  // "12.4", "12.4.1", "13"
std::optional<CudaVersion> wanted_cuda(const GpuContainer& container, std::string& by);

// What a runtime or kubelet says of a container, and what that means; empty: nothing we know.
std::string known_message(std::string_view text);

}  // namespace berth::people
