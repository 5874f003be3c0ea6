#include "edge/nvml/gpm_samples.h"

#include <cmath>
#include <optional>

namespace berth::nvml {

namespace {

struct Rate {
  unsigned int id;
  std::optional<double> model::GpuCounters::* into;
  double scale;
};
constexpr double kPercent = 0.01, kMebibyte = 1'048'576.0;
constexpr Rate kRates[] = {
    {kGpmGraphics, &model::GpuCounters::graphics_active, kPercent},
    {kGpmSm, &model::GpuCounters::sm_active, kPercent},
    {kGpmOccupancy, &model::GpuCounters::sm_occupancy, kPercent},
    {kGpmTensor, &model::GpuCounters::tensor_active, kPercent},
    {kGpmDram, &model::GpuCounters::dram_active, kPercent},
    {kGpmFp64, &model::GpuCounters::fp64_active, kPercent},
    {kGpmFp32, &model::GpuCounters::fp32_active, kPercent},
    {kGpmFp16, &model::GpuCounters::fp16_active, kPercent},
    {kGpmPcieTx, &model::GpuCounters::pcie_tx_bytes, kMebibyte},
    {kGpmPcieRx, &model::GpuCounters::pcie_rx_bytes, kMebibyte},
    {kGpmNvlinkTx, &model::GpuCounters::nvlink_tx_bytes, kMebibyte},
    {kGpmNvlinkRx, &model::GpuCounters::nvlink_rx_bytes, kMebibyte},
};

}  // namespace

GpmSamples::~GpmSamples() {
  for (const auto& [key, kept] : kept_) call(api_->gpm_free, kept.sample);
}

bool GpmSamples::supported(Device device) {
  if (supported_ < 0) {
    GpmSupport asked{1, 0};
    supported_ = call(api_->gpm_support, device, &asked) == kSuccess && asked.supported != 0;
  }
  return supported_ > 0;
}

void GpmSamples::rates(GpmSample before, GpmSample now, model::GpuCounters& out) const {
  GpmMetrics metrics{};
  metrics.version = 1;
  metrics.first = before;
  metrics.second = now;
  for (const Rate& rate : kRates) metrics.metrics[metrics.count++].id = rate.id;
  if (call(api_->gpm_metrics, &metrics) != kSuccess) return;
  for (std::size_t i = 0; i < std::size(kRates); ++i) {
    const GpmMetric& metric = metrics.metrics[i];
    if (metric.result == kSuccess && std::isfinite(metric.value) && metric.value >= 0) {
      out.*kRates[i].into = metric.value * kRates[i].scale;
    }
  }
}

template <class Take>
void GpmSamples::advance(const std::string& key, const Take& take, model::GpuCounters& out) {
  GpmSample now = nullptr;
  if (call(api_->gpm_alloc, &now) != kSuccess) return;
  if (take(now) != kSuccess) {
    call(api_->gpm_free, now);
    return;
  }
  Kept& kept = kept_[key];
  if (kept.sample != nullptr) {
    rates(kept.sample, now, out);
    call(api_->gpm_free, kept.sample);
  }
  kept = {now, true};
}

void GpmSamples::read(Device device, model::GpuCounters& out) {
  advance("", [&](GpmSample into) { return call(api_->gpm_sample, device, into); }, out);
}

void GpmSamples::read_mig(Device gpu, unsigned int gpu_instance, const std::string& uuid,
                          model::GpuCounters& out) {
  advance(
      uuid, [&](GpmSample into) { return call(api_->gpm_mig_sample, gpu, gpu_instance, into); },
      out);
}

void GpmSamples::end_round() {
  for (auto at = kept_.begin(); at != kept_.end();) {
    if (at->second.seen) {
      at->second.seen = false;
      ++at;
      continue;
    }
    call(api_->gpm_free, at->second.sample);
    at = kept_.erase(at);
  }
}

}  // namespace berth::nvml
