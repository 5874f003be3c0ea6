#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace berth {
namespace {

TEST(Random, SameSeedSameNumbers) {
  Random a(42), b(42), c(43);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    std::uint64_t drawn = a.next();
    EXPECT_EQ(drawn, b.next());
    differs = differs || drawn != c.next();
  }
  EXPECT_TRUE(differs);
}

// Pinned: a recorded seed must mean the same run in every later version and on every machine.
TEST(Random, NumbersOfASeedNeverChange) {
  Random random(0);
  EXPECT_EQ(random.next(), 0x99ec5f36cb75f2b4U);
  EXPECT_EQ(random.next(), 0xbf6e1f784956452aU);
  EXPECT_EQ(random.next(), 0x1a5f849d4933e6e0U);
}

TEST(Random, ASplitDependsOnSeedAndLabelNotOnDraws) {
  Random fresh(7), used(7);
  for (int i = 0; i < 10; ++i) used.next();
  EXPECT_EQ(fresh.split("faults").next(), used.split("faults").next());
  EXPECT_NE(fresh.split("faults").next(), fresh.split("arrivals").next());
  EXPECT_NE(fresh.split("").next(), Random(7).next());
  EXPECT_NE(Random(7).split("faults").next(), Random(8).split("faults").next());
}

TEST(Random, BelowStaysBelowAndIsEven) {
  Random random(1);
  constexpr int kDraws = 60'000;
  std::map<std::uint64_t, int> seen;
  for (int i = 0; i < kDraws; ++i) ++seen[random.below(6)];
  ASSERT_EQ(seen.size(), 6U);
  for (auto [value, count] : seen) {
    EXPECT_LT(value, 6U);
    EXPECT_NEAR(count, kDraws / 6, 500) << value;  // five standard deviations
  }
}

// A plain modulo would give the low third twice as often for this bound.
TEST(Random, BelowIsUnbiasedForBoundsNearTheTop) {
  Random random(2);
  std::uint64_t bound = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 62);
  constexpr int kDraws = 30'000;
  int low = 0;
  for (int i = 0; i < kDraws; ++i) low += random.below(bound) < bound / 3 ? 1 : 0;
  EXPECT_NEAR(low, kDraws / 3, 450);
}

TEST(Random, BelowOneIsZero) {
  Random random(3);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(random.below(1), 0U);
}

TEST(RandomDeath, BelowZeroIsAMistake) { EXPECT_DEATH(Random(1).below(0), "below zero"); }

TEST(Random, BetweenIncludesBothEndsAndTheWholeRange) {
  Random random(4);
  bool low = false, high = false;
  for (int i = 0; i < 1'000; ++i) {
    std::int64_t drawn = random.between(-2, 2);
    ASSERT_GE(drawn, -2);
    ASSERT_LE(drawn, 2);
    low = low || drawn == -2;
    high = high || drawn == 2;
  }
  EXPECT_TRUE(low && high);
  using Limits = std::numeric_limits<std::int64_t>;
  bool negative = false, positive = false;
  for (int i = 0; i < 100; ++i) {
    std::int64_t drawn = random.between(Limits::min(), Limits::max());
    negative = negative || drawn < 0;
    positive = positive || drawn > 0;
  }
  EXPECT_TRUE(negative && positive);
}

TEST(Random, UnitIsHalfOpenAndCentred) {
  Random random(5);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    double drawn = random.unit();
    ASSERT_GE(drawn, 0.0);
    ASSERT_LT(drawn, 1.0);
    sum += drawn;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
}

TEST(Random, ChanceOfNothingAndOfCertainty) {
  Random random(6);
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(random.chance(0, 3));
    EXPECT_TRUE(random.chance(3, 3));
  }
}

TEST(Random, ShuffleKeepsTheElementsAndReachesEveryOrder) {
  Random random(8);
  std::map<std::vector<int>, int> orders;
  for (int i = 0; i < 6'000; ++i) {
    std::vector<int> items{1, 2, 3};
    random.shuffle(items);
    ++orders[items];
    std::sort(items.begin(), items.end());
    ASSERT_EQ(items, (std::vector<int>{1, 2, 3}));
  }
  ASSERT_EQ(orders.size(), 6U);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 1'000, 150);
  std::vector<int> empty;
  random.shuffle(empty);
  EXPECT_TRUE(empty.empty());
}

}  // namespace
}  // namespace berth
