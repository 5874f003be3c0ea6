#include "plans/account/usage.h"

#include <algorithm>

namespace berth::account {

namespace {

constexpr int kHundred = 100;
// GPU-milli nanoseconds in a GPU-hour; busy, idle and unknown are kept in hundredths of it.
constexpr double kGpuHour = 1000.0 * 3600e9;
constexpr const char* kOthers = "others";

}  // namespace

UsageLedger::Team& UsageLedger::team(const std::string& name) {
  const auto found = teams_.find(name);
  if (found != teams_.end()) return found->second;
  return teams_[teams_.size() < max_teams_ ? name : kOthers];
}

void UsageLedger::note(std::int64_t ticks_ns, const UsageSample& sample) {
  if (last_ && ticks_ns < *last_) return;
  const std::int64_t passed = last_ ? ticks_ns - *last_ : 0;
  if (passed > max_gap_ns_) {
    missed_ns_ += passed;
  } else if (passed > 0) {
    for (const auto& [name, rate] : now_) {
      Team& sum = team(name);
      sum.busy += Sum{rate.busy} * passed;
      sum.idle += Sum{rate.idle} * passed;
      sum.unknown += Sum{rate.unknown} * passed;
    }
    free_ += Sum{free_now_} * passed;
    out_ += Sum{out_now_} * passed;
  }
  last_ = ticks_ns;
  now_.clear();
  for (const Holding& holding : sample.holdings) {
    if (holding.milli <= 0) continue;
    Rate& rate = now_[holding.team];
    const std::int64_t all = std::int64_t{holding.milli} * kHundred;
    if (!holding.busy_per_cent) {
      rate.unknown += all;
      continue;
    }
    const std::int64_t busy =
        std::int64_t{holding.milli} * std::clamp(*holding.busy_per_cent, 0, kHundred);
    rate.busy += busy;
    rate.idle += all - busy;
  }
  free_now_ = sample.free_milli;
  out_now_ = sample.out_milli;
}

Hours UsageLedger::hours_of(const Team& team) {
  const auto hours = [](Sum sum) { return static_cast<double>(sum) / kHundred / kGpuHour; };
  return {hours(team.busy + team.idle + team.unknown), hours(team.busy), hours(team.idle),
          hours(team.unknown)};
}

std::map<std::string, Hours> UsageLedger::teams() const {
  std::map<std::string, Hours> out;
  for (const auto& [name, sum] : teams_) out.emplace(name, hours_of(sum));
  return out;
}

Hours UsageLedger::total() const {
  Team all;
  for (const auto& [name, sum] : teams_) {
    all.busy += sum.busy;
    all.idle += sum.idle;
    all.unknown += sum.unknown;
  }
  return hours_of(all);
}

double UsageLedger::free_hours() const { return static_cast<double>(free_) / kGpuHour; }
double UsageLedger::out_hours() const { return static_cast<double>(out_) / kGpuHour; }

}  // namespace berth::account
