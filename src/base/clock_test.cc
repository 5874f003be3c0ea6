#include "base/clock.h"

#include <gtest/gtest.h>

#include "base/system_clock.h"

namespace berth {
namespace {

TEST(FakeClock, MovesOnlyWhenTold) {
  FakeClock clock(1'000);
  EXPECT_EQ(clock.now_ns(), 1'000);
  EXPECT_EQ(clock.now_ns(), 1'000);
  EXPECT_EQ(clock.ticks_ns(), 0);
  clock.advance(5);
  EXPECT_EQ(clock.now_ns(), 1'005);
  EXPECT_EQ(clock.ticks_ns(), 5);
}

TEST(FakeClock, AWallClockMayJumpBackWhileDurationsStay) {
  FakeClock clock(1'000);
  clock.advance(10);
  clock.step_wall(-500);
  EXPECT_EQ(clock.now_ns(), 510);
  EXPECT_EQ(clock.ticks_ns(), 10);
}

TEST(FakeClockDeath, NeverGoesBack) {
  FakeClock clock;
  EXPECT_DEATH(clock.advance(-1), "never goes back");
}

TEST(SystemClock, IsAfter2020AndDurationsDoNotGoBack) {
  SystemWallClock wall;
  SystemMonotonicClock monotonic;
  EXPECT_GT(wall.now_ns(), 1'577'836'800'000'000'000);
  std::int64_t before = monotonic.ticks_ns();
  EXPECT_GE(monotonic.ticks_ns(), before);
}

}  // namespace
}  // namespace berth
