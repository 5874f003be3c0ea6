#include "plans/react/sick_gpus.h"

#include <gtest/gtest.h>

namespace berth::react {
namespace {

constexpr std::int64_t kTickSecond = 1'000'000'000;

SickGpu sick(int index, const std::string& reason, std::vector<std::string> holders) {
  return {index, reason, std::move(holders)};
}

std::string uids_of(const std::vector<Casualty>& list) {
  std::string out;
  for (const Casualty& one : list) out += one.uid + ' ';
  return out;
}

TEST(SickGpus, ABrokenOneEndsItsPodsAfterTheGrace) {
  SickGpus react;
  react.told("n0", {sick(2, "Xid79", {"b", "a"}), sick(3, "GpuLost", {"a"})}, 0);
  EXPECT_TRUE(react.due(10 * kTickSecond - 1).empty());
  EXPECT_EQ(react.due(10 * kTickSecond),
            (std::vector<Casualty>{{"a", "n0", 2, "Xid79"}, {"b", "n0", 2, "Xid79"}}));
  EXPECT_EQ(uids_of(react.due(60 * kTickSecond)), "a b ") << "as long as they hold it";
  react.told("n0", {sick(2, "Xid79", {})}, 61 * kTickSecond);
  EXPECT_TRUE(react.due(70 * kTickSecond).empty());
}

TEST(SickGpus, ToldAgainTheTimeGoesOnAndHealthEndsIt) {
  SickGpus react;
  react.told("n0", {sick(0, "Xid79", {"a"})}, 0);
  react.told("n0", {sick(0, "EccDoubleBit", {"a"})}, 9 * kTickSecond);
  EXPECT_EQ(uids_of(react.due(10 * kTickSecond)), "a ") << "another cause, the same trouble";
  react.told("n0", {}, 11 * kTickSecond);
  EXPECT_TRUE(react.due(100 * kTickSecond).empty());
  react.told("n0", {sick(0, "Xid79", {"a"})}, 100 * kTickSecond);
  EXPECT_TRUE(react.due(109 * kTickSecond).empty()) << "a new trouble has a new grace";
}

TEST(SickGpus, SilenceIsWaitedForAndWhatRunsEmptyIsLeft) {
  SickGpus react;
  react.told("n0",
             {sick(0, "DriverSilent", {"quiet"}), sick(1, "RowRemapPending", {"remap"}),
              sick(2, "Flapping", {"flaps"})},
             0);
  EXPECT_TRUE(react.due(299 * kTickSecond).empty());
  EXPECT_EQ(uids_of(react.due(300 * kTickSecond)), "quiet ");
  EXPECT_EQ(uids_of(react.due(86'400 * kTickSecond)), "quiet ");
  // Silence that turns out to be a loss counts from its begin.
  react.told("n1", {sick(0, "DriverSilent", {"lost"})}, 0);
  react.told("n1", {sick(0, "GpuLost", {"lost"})}, 60 * kTickSecond);
  EXPECT_EQ(uids_of(react.due(61 * kTickSecond)), "lost ");
}

TEST(SickGpus, WordsOfOthersMeanBroken) {
  EXPECT_EQ(ailment_of("Xid 79: GPU has fallen off the bus"), Ailment::kBroken);
  EXPECT_EQ(ailment_of(""), Ailment::kBroken);
  EXPECT_EQ(ailment_of("GpuMissing"), Ailment::kSilent);
}

TEST(SickGpus, ACatastropheEndsTenWorkloadsAMinute) {
  SickGpus react;
  const auto granted = [&react](std::int64_t now) {
    int out = 0;
    for (int i = 0; i < 100; ++i) out += react.may_end("w" + std::to_string(i), now) ? 1 : 0;
    return out;
  };
  EXPECT_EQ(granted(0), 10);
  EXPECT_EQ(granted(kTickSecond), 10) << "those that were told stay told";
  EXPECT_EQ(granted(61 * kTickSecond), 20);
  react.keep({"w0"});
  EXPECT_EQ(granted(62 * kTickSecond), 1) << "a forgotten one asks anew";
  // Asked every second, the refill is the same.
  for (int i = 63; i <= 122; ++i) granted(i * kTickSecond);
  EXPECT_EQ(granted(122 * kTickSecond), 11);
}

TEST(SickGpus, SwitchedOffItSaysNothing) {
  SickGpus react({.act = false});
  react.told("n0", {sick(0, "Xid79", {"a"})}, 0);
  EXPECT_TRUE(react.due(3600 * kTickSecond).empty());
}

}  // namespace
}  // namespace berth::react
