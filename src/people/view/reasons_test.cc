#include "people/view/reasons.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

namespace berth::people {
namespace {

TEST(Reasons, EachHasAMeaningAnAnswerAndASectionInTheDocs) {
  std::ifstream file(std::string(BERTH_SOURCE_ROOT) + "/docs/reasons.md");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::set<std::string> anchors;
  for (int r = 1; r < static_cast<int>(model::Reason::kCount); ++r) {
    const auto reason = static_cast<model::Reason>(r);
    const ReasonFacts& facts = facts_of(reason);
    const std::string called(model::name(reason));
    EXPECT_EQ(facts.reason, reason) << called;
    EXPECT_FALSE(facts.means.empty()) << called;
    EXPECT_FALSE(facts.what_to_do.empty()) << called;
    EXPECT_NE(facts.standing, Standing::kRunning) << called;
    const std::size_t section = page.find("\n## " + called + "\n");
    ASSERT_NE(section, std::string::npos) << called;
    const std::string text = page.substr(section, page.find("\n## ", section + 1) - section);
    EXPECT_NE(text.find("Stage " + std::string(name(facts.stage)) + ", verdict " +
                        std::string(name(facts.standing)) + "."),
              std::string::npos)
        << called;
    EXPECT_NE(text.find("What to do: " + std::string(facts.what_to_do)), std::string::npos)
        << called;
    EXPECT_TRUE(anchors.insert(anchor_of(reason)).second) << called;
  }
}

TEST(Reasons, ExitCodesAreThoseOfTheContract) {
  EXPECT_EQ(exit_code(Standing::kRunning), 0);
  EXPECT_EQ(exit_code(Standing::kWaiting), 10);
  EXPECT_EQ(exit_code(Standing::kMisconfigured), 20);
  EXPECT_EQ(exit_code(Standing::kNever), 30);
  EXPECT_EQ(exit_code(Standing::kFault), 40);
  EXPECT_EQ(anchor_of(model::Reason::kFragmented), "docs/reasons.md#fragmented");
}

}  // namespace
}  // namespace berth::people
