#include "base/check.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth {
namespace {

class RecordingBugSink final : public BugSink {
 public:
  void bug(const BugSite& site) noexcept override { whys.emplace_back(site.why); }
  std::vector<std::string> whys;
};

TEST(Check, ATrueAssertionDoesNothingAndIsEvaluatedOnce) {
  int evaluated = 0;
  BERTH_ASSERT(++evaluated == 1, "counts");
  EXPECT_EQ(evaluated, 1);
}

TEST(CheckDeath, AFalseAssertionNamesPlaceConditionAndReason) {
  int free = -1;
  EXPECT_DEATH(BERTH_ASSERT(free >= 0, "free GPUs"),
               "check_test.cc:[0-9]+: assertion failed: free >= 0: free GPUs");
}

TEST(CheckDeath, ABugAbortsWhenNoSinkIsInstalled) {
  EXPECT_DEATH(BERTH_BUG("lost a reservation"), "check_test.cc:[0-9]+: bug: lost a reservation");
}

TEST(Check, ABugIsCountedAndSurvivedWithASink) {
  RecordingBugSink sink;
  std::uint64_t before = bug_count();
  EXPECT_EQ(set_bug_sink(&sink), nullptr);
  BERTH_BUG("first");
  BERTH_BUG("second");
  EXPECT_EQ(set_bug_sink(nullptr), &sink);
  EXPECT_EQ(bug_count(), before + 2);
  EXPECT_EQ(sink.whys, (std::vector<std::string>{"first", "second"}));
}

}  // namespace
}  // namespace berth
