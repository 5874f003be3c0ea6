// Exponential back-off with jitter, in anybody's time: 0.8 s, doubled up to 30 s, each taken from
// [d, 2d), and back to the start after two quiet minutes. Pure; one owner.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/random.h"

namespace berth::kube {

struct BackoffOptions {
  std::int64_t first_ns = 800'000'000;
  std::int64_t longest_ns = 30'000'000'000;
  std::int64_t reset_ns = 120'000'000'000;
};

class Backoff {
 public:
  explicit Backoff(Random random, BackoffOptions options = {})
      : random_(random), options_(options), next_(options.first_ns) {}

  std::int64_t next(std::int64_t now_ticks) {
    if (now_ticks - last_ >= options_.reset_ns) next_ = options_.first_ns;
    std::int64_t base = next_;
    next_ = std::min(next_ * 2, options_.longest_ns);
    std::int64_t delay = base + static_cast<std::int64_t>(random_.below(
                                    static_cast<std::uint64_t>(std::max<std::int64_t>(base, 1))));
    last_ = now_ticks + delay;
    return delay;
  }

 private:
  Random random_;
  BackoffOptions options_;
  std::int64_t next_;
  std::int64_t last_ = 0;
};

}  // namespace berth::kube
