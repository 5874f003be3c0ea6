#include "control/pace.h"

#include <gtest/gtest.h>

namespace berth::control {
namespace {

constexpr std::int64_t kMs = 1'000'000;

int taken(Pace& pace, std::int64_t from_ms, std::int64_t to_ms, std::int64_t answer_ns) {
  int out = 0;
  for (std::int64_t ms = from_ms; ms < to_ms; ++ms) {
    while (pace.take(ms * kMs, answer_ns)) ++out;
  }
  return out;
}

TEST(Pace, FillsAtItsRateUpToItsMost) {
  Pace pace(50, 200);
  EXPECT_EQ(taken(pace, 0, 1, 0), 200);
  EXPECT_EQ(taken(pace, 1, 1001, 0), 50);
  EXPECT_EQ(taken(pace, 1001, 1002, 0), 0);
  EXPECT_EQ(taken(pace, 100'000, 100'001, 0), 200);
}

TEST(Pace, ASlowServerGetsAFifthOfItsTime) {
  Pace pace(50, 200);
  taken(pace, 0, 1, 2 * kMs);
  EXPECT_EQ(taken(pace, 1, 10'001, 2 * kMs), 500);  // fast enough for all
  EXPECT_EQ(taken(pace, 10'001, 20'001, 40 * kMs), 50);
  EXPECT_EQ(taken(pace, 20'001, 30'001, 4'000 * kMs), 10);  // one a second in any case
  EXPECT_EQ(taken(pace, 90'000, 90'001, 40 * kMs), 20);     // nor many at once after a pause
}

}  // namespace
}  // namespace berth::control
