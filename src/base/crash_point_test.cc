#include "base/crash_point.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

namespace berth {
namespace {

TEST(CrashPoint, SpecsThatMakeNoSenseAreRefused) {
  for (const char* spec : {"", ":", ":3", "a:", "a:0", "a:-1", "a:x", "a:1x"}) {
    EXPECT_FALSE(set_crash_at(spec).ok()) << spec;
  }
  EXPECT_FALSE(crash_points_active.load());
}

TEST(CrashPointDeathTest, KillsAtTheCountedPassageOfItsNameAlone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  BERTH_CRASH_POINT("a");  // inactive: nothing
  auto go = [](int passages) {
    if (!set_crash_at("a:3").ok()) std::exit(9);
    for (int i = 0; i < passages; ++i) {
      BERTH_CRASH_POINT("b");
      BERTH_CRASH_POINT("a");
    }
    std::exit(0);
  };
  EXPECT_EXIT(go(3), testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(go(2), testing::ExitedWithCode(0), "");
}

TEST(CrashPointDeathTest, ABugIsMetWhereItWasAskedFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        if (!set_bug_at("a").ok()) std::exit(9);
        BERTH_CRASH_POINT("a");
      },
      "crash_point_test.cc:[0-9]+: bug: a bug was asked for");
}

}  // namespace
}  // namespace berth
