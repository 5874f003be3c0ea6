#include "control/pace.h"

#include <algorithm>

namespace berth::control {

bool Pace::take(std::int64_t now_ns, std::int64_t answer_ns) {
  constexpr std::int64_t kSecond = 1'000'000'000, kMillisecond = 1'000'000;
  std::int64_t rate = per_second_;
  if (answer_ns > 0) rate = std::clamp<std::int64_t>(kSecond / (5 * answer_ns), 1, per_second_);
  const std::int64_t most = std::max<std::int64_t>(1, most_ * rate / per_second_) * 1000;
  const std::int64_t passed = std::min((now_ns - at_) / kMillisecond, 1000 * most_);
  have_ = std::min(most, have_ + passed * rate);
  at_ = now_ns - (now_ns - at_) % kMillisecond;
  if (have_ < 1000) return false;
  have_ -= 1000;
  return true;
}

}  // namespace berth::control
