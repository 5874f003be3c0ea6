// Runs `berth why` on every case of test/scenarios/why and says how many it gets right.
//
//   why_corpus_test                                  all
//   why_corpus_test --gtest_filter='*taints*'        those with "taints" in the path
//
// known.txt lists the cases that are known to fail, each with why; one of those that passes fails
// the test, so that the list stays true.
#include <gtest/gtest.h>

#include <iostream>

#include "checks.h"

namespace berth::why_corpus {
namespace {

struct Totals {
  Tally tally;
  int known = 0;
};
Totals& totals() {
  static Totals all;
  return all;
}

class CorpusSummary : public testing::Environment {
 public:
  void TearDown() override {
    if (totals().tally.cases == 0) return;
    std::cout << "why corpus: " << summary(totals().tally) << ", " << totals().known
              << " known to fail\n";
  }
};

class CaseFile : public testing::Test {
 public:
  CaseFile(std::string name, std::string known)
      : name_(std::move(name)), known_(std::move(known)) {}
  void TestBody() override {
    const Result<Case> one = read_case(BERTH_WHY_CASES, name_);
    ASSERT_TRUE(one.ok()) << name_ << ": " << one.error().to_string();
    for (const std::string& line : check_truth(*one)) ADD_FAILURE() << name_ << ": " << line;
    const std::vector<std::string> lines = check_case(*one, totals().tally);
    if (known_.empty()) {
      for (const std::string& line : lines) ADD_FAILURE() << name_ << ": " << line;
      return;
    }
    ++totals().known;
    EXPECT_FALSE(lines.empty()) << name_ << " passes: take it off known.txt (" << known_ << ")";
  }

 private:
  std::string name_, known_;
};

const bool kRegistered = [] {
  testing::AddGlobalTestEnvironment(new CorpusSummary);
  const auto known = known_failures(BERTH_WHY_CASES);
  for (const std::string& name : case_names(BERTH_WHY_CASES)) {
    std::string why;
    for (const auto& [listed, reason] : known) {
      if (listed == name) why = reason.empty() ? "no reason given" : reason;
    }
    testing::RegisterTest("Why", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [=]() -> testing::Test* { return new CaseFile(name, why); });
  }
  return true;
}();

TEST(WhyCorpus, IsThere) {
  ASSERT_TRUE(kRegistered);
  int two = 0, fine = 0;
  const std::vector<std::string> names = case_names(BERTH_WHY_CASES);
  for (const std::string& name : names) {
    const Result<Case> one = read_case(BERTH_WHY_CASES, name);
    ASSERT_TRUE(one.ok()) << name << ": " << one.error().to_string();
    two += one->also.empty() ? 0 : 1;
    fine += one->fine() ? 1 : 0;
  }
  EXPECT_GE(names.size(), 140u);
  EXPECT_GE(two, 40);
  EXPECT_GE(fine, 10);
  for (const auto& [name, why] : known_failures(BERTH_WHY_CASES)) {
    EXPECT_TRUE(contains(names, name)) << "known.txt names no case: " << name;
  }
}

}  // namespace
}  // namespace berth::why_corpus
