#include "plans/react/sick_gpus.h"

#include <algorithm>
#include <utility>

namespace berth::react {

namespace {

constexpr std::int64_t kMinuteNs = 60'000'000'000;
constexpr std::int64_t kWholeToken = 1000;

// Codes of docs/health.md.
constexpr std::pair<std::string_view, Ailment> kAilments[] = {
    {"DriverSilent", Ailment::kSilent},
    {"DriverError", Ailment::kSilent},
    {"GpuMissing", Ailment::kSilent},
    {"DriverUnavailable", Ailment::kSilent},
    {"RowRemapPending", Ailment::kToRunEmpty},
    {"RecoveryDrainPeers", Ailment::kToRunEmpty},
    {"RecoveryDrainAndReset", Ailment::kToRunEmpty},
    {"Flapping", Ailment::kToRunEmpty},
};

}  // namespace

Ailment ailment_of(std::string_view reason) {
  for (const auto& [code, ailment] : kAilments) {
    if (code == reason) return ailment;
  }
  return Ailment::kBroken;
}

// A GPU that gets worse keeps its time: what matters is for how long its job could not go on.
void SickGpus::told(const std::string& node, const std::vector<SickGpu>& sick, std::int64_t now) {
  std::map<int, Gpu> fresh;
  const auto before = nodes_.find(node);
  for (const SickGpu& one : sick) {
    Gpu gpu{.since = now, .ailment = ailment_of(one.reason), .what = one};
    if (before != nodes_.end()) {
      const auto known = before->second.find(one.index);
      const bool same =
          known != before->second.end() &&
          (known->second.ailment == gpu.ailment ||
           (known->second.ailment == Ailment::kSilent && gpu.ailment == Ailment::kBroken));
      if (same) gpu.since = known->second.since;
    }
    fresh.insert_or_assign(one.index, std::move(gpu));
  }
  if (fresh.empty()) {
    nodes_.erase(node);
  } else {
    nodes_.insert_or_assign(node, std::move(fresh));
  }
}

bool SickGpus::over(const Gpu& gpu, std::int64_t now) const {
  switch (gpu.ailment) {
    case Ailment::kBroken:
      return now - gpu.since >= policy_.grace_ns;
    case Ailment::kSilent:
      return now - gpu.since >= policy_.silent_ns;
    case Ailment::kToRunEmpty:
      return false;
  }
  return false;
}

std::vector<Casualty> SickGpus::due(std::int64_t now) const {
  std::vector<Casualty> out;
  if (!policy_.act) return out;
  std::set<std::string> named;
  for (const auto& [node, gpus] : nodes_) {
    for (const auto& [index, gpu] : gpus) {
      if (!over(gpu, now)) continue;
      for (const std::string& uid : std::set(gpu.what.holders.begin(), gpu.what.holders.end())) {
        if (named.insert(uid).second) out.push_back({uid, node, index, gpu.what.reason});
      }
    }
  }
  return out;
}

bool SickGpus::may_end(const std::string& workload, std::int64_t now) {
  if (granted_.contains(workload)) return true;
  const std::int64_t most = std::int64_t{policy_.most_per_minute} * kWholeToken;
  if (tokens_ < 0) {
    tokens_ = most;
  } else {
    // Whole milliseconds, so that frequent questions do not round the refill away.
    const std::int64_t passed = std::min(now - tokens_at_, kMinuteNs);
    tokens_ = std::min(most, tokens_ + passed / (kMinuteNs / 60'000) * most / 60'000);
  }
  tokens_at_ = now;
  if (tokens_ < kWholeToken) return false;
  tokens_ -= kWholeToken;
  granted_.insert(workload);
  return true;
}

void SickGpus::keep(const std::set<std::string>& workloads) {
  std::erase_if(granted_, [&](const std::string& one) { return !workloads.contains(one); });
}

}  // namespace berth::react
