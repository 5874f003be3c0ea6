#include "plans/account/usage.h"

#include <gtest/gtest.h>

namespace berth::account {
namespace {

constexpr std::int64_t kMinute = 60'000'000'000;

TEST(Usage, TimeCountsAsTheEarlierSampleSaid) {
  UsageLedger ledger;
  ledger.note(0, {{{"a", 2000, 75}, {"a", 1000, std::nullopt}, {"b", 500, 0}}, 3000, 1000});
  ledger.note(kMinute, {});
  ledger.note(3 * kMinute, {{{"a", 8000, 100}}, 0, 0});
  const auto teams = ledger.teams();
  EXPECT_DOUBLE_EQ(teams.at("a").held, 3.0 / 60);
  EXPECT_DOUBLE_EQ(teams.at("a").busy, 1.5 / 60);
  EXPECT_DOUBLE_EQ(teams.at("a").idle, 0.5 / 60);
  EXPECT_DOUBLE_EQ(teams.at("a").unknown, 1.0 / 60);
  EXPECT_DOUBLE_EQ(teams.at("b").idle, 0.5 / 60);
  EXPECT_DOUBLE_EQ(ledger.free_hours(), 3.0 / 60);
  EXPECT_DOUBLE_EQ(ledger.out_hours(), 1.0 / 60);
  EXPECT_DOUBLE_EQ(ledger.total().held, 3.5 / 60);
}

TEST(Usage, WhatNobodySawIsNotCounted) {
  UsageLedger ledger;
  ledger.note(0, {{{"a", 1000, 10}}, 0, 0});
  ledger.note(10 * kMinute, {{{"a", 1000, 10}}, 0, 0});
  ledger.note(5 * kMinute, {{{"a", 1000, 10}}, 0, 0});  // out of order
  ledger.note(11 * kMinute, {});
  EXPECT_DOUBLE_EQ(ledger.total().held, 1.0 / 60);
  EXPECT_DOUBLE_EQ(ledger.missed_seconds(), 600);
}

TEST(Usage, ManyTeamsAreOne) {
  UsageLedger ledger(kMinute, 2);
  ledger.note(0, {{{"a", 1000, 0}, {"b", 1000, 0}, {"c", 1000, 0}, {"d", 1000, 0}}, 0, 0});
  ledger.note(kMinute, {});
  const auto teams = ledger.teams();
  ASSERT_EQ(teams.size(), 3U);
  EXPECT_DOUBLE_EQ(teams.at("others").held, 2.0 / 60);
}

}  // namespace
}  // namespace berth::account
