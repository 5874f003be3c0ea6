#include "kinds/quota_requests.h"

#include <algorithm>
#include <cmath>

#include "kinds/readers.h"

namespace berth::kinds {

namespace {

using model::Amounts;

void add_gpus(const model::GpuDemandSpec& gpu, Amounts& out) {
  using Kind = model::GpuDemandSpec::Kind;
  switch (gpu.kind) {
    case Kind::kNone:
      return;
    case Kind::kWhole:
    case Kind::kMemory:
      out["nvidia.com/gpu"] += gpu.count;
      return;
    case Kind::kFraction:
      // Of each device a part: nobody else has the whole of it.
      out["nvidia.com/gpu"] +=
          std::int64_t{gpu.count} * ((gpu.milli + model::kMilliPerGpu - 1) / model::kMilliPerGpu);
      return;
    case Kind::kShared:
      out["nvidia.com/gpu.shared"] += gpu.count;
      return;
    case Kind::kMig:
      out[gpu.mig] += gpu.count;
      return;
  }
}

double whole_units(const std::string& resource, std::int64_t amount) {
  return static_cast<double>(resource == "cpu" ? (amount + 999) / 1000 : amount);
}

// A sum of doubles may lie a hair above the whole number it stands for.
std::int64_t amount_of(const std::string& resource, double units) {
  const double scaled = std::ceil((resource == "cpu" ? units * 1000 : units) - 1e-6);
  return static_cast<std::int64_t>(std::clamp(scaled, 0.0, static_cast<double>(kMaxAmount)));
}

Amounts transform(const Amounts& in, const model::QueueConfig& config) {
  Amounts out;
  std::map<std::string, double> made;  // in units; may be below 0 on the way
  for (const auto& [resource, amount] : in) {
    const auto it = std::find_if(config.transformations.begin(), config.transformations.end(),
                                 [&name = resource](const auto& t) { return t.input == name; });
    if (it == config.transformations.end() || it->keep_input) out[resource] += amount;
    if (it == config.transformations.end()) continue;
    double units = whole_units(resource, amount);
    const auto factor = in.find(it->multiply_by);
    if (factor != in.end()) units *= whole_units(factor->first, factor->second);
    for (const auto& [name, each] : it->outputs) made[name] += units * each;
  }
  for (const auto& [name, units] : made) {
    const double before =
        name == "cpu" ? static_cast<double>(out[name]) / 1000.0 : static_cast<double>(out[name]);
    out[name] = amount_of(name, before + units);
  }
  return out;
}

}  // namespace

Amounts quota_requests(const model::PodSpec& pod, const model::QueueConfig& config) {
  Amounts out = pod.requests;
  add_gpus(pod.gpu, out);
  std::erase_if(out, [&config](const auto& entry) {
    return std::any_of(
        config.excluded_prefixes.begin(), config.excluded_prefixes.end(),
        [&entry](const std::string& prefix) { return entry.first.starts_with(prefix); });
  });
  if (!config.transformations.empty()) out = transform(out, config);
  std::erase_if(out, [](const auto& entry) { return entry.second == 0; });
  return out;
}

}  // namespace berth::kinds
