#include "kinds/budget.h"

#include "kinds/read_for_test.h"

namespace berth::kinds {
namespace {

// Four pods with app=x, three of them bound.
std::string pods() {
  std::string out =
      "{apiVersion: v1, kind: Node, metadata: {name: n0}, status: {allocatable: "
      "{pods: 9}}}\n";
  for (int i = 0; i < 4; ++i) {
    out += "---\n{apiVersion: v1, kind: Pod, metadata: {name: p" + std::to_string(i) +
           ", labels: {app: x}}, spec: {" + (i < 3 ? "nodeName: n0, " : "") +
           "containers: [{name: c}]}}\n";
  }
  return out;
}

struct BudgetCase {
  const char* name;
  const char* spec;
  const char* status;
  int want;
};
class BudgetTest : public ::testing::TestWithParam<BudgetCase> {};

TEST_P(BudgetTest, Allowed) {
  const Inputs in =
      read_clean(pods() +
                 "---\n{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}, "
                 "spec: {" +
                 GetParam().spec + "}, status: {" + GetParam().status + "}}\n");
  ASSERT_EQ(in.budgets.size(), 1u);
  EXPECT_EQ(in.budgets[0].disruptions_allowed, GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Table, BudgetTest,
    ::testing::Values(
        BudgetCase{"status", "minAvailable: 0, selector: {}", "disruptionsAllowed: 7", 7},
        BudgetCase{"min", "minAvailable: 2, selector: {matchLabels: {app: x}}", "", 1},
        BudgetCase{"min_all", "minAvailable: 9, selector: {matchLabels: {app: x}}", "", 0},
        BudgetCase{"min_percent", "minAvailable: 30%, selector: {matchLabels: {app: x}}", "", 1},
        BudgetCase{"max", "maxUnavailable: 2, selector: {matchLabels: {app: x}}", "", 1},
        BudgetCase{"max_percent", "maxUnavailable: 60%, selector: {matchLabels: {app: x}}", "", 2},
        BudgetCase{"empty_selector", "minAvailable: 1, selector: {}", "", 2},
        BudgetCase{"no_selector", "minAvailable: 0", "", 0},
        BudgetCase{"other", "minAvailable: 0, selector: {matchLabels: {app: w}}", "", 0}),
    [](const auto& suite) { return suite.param.name; });

TEST(Budget, Errors) {
  const auto errors = [](const std::string& spec) {
    return all(read("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}, "
                    "spec: {" +
                    spec + "}}")
                   .invalid);
  };
  EXPECT_NE(errors("minAvailable: 1, maxUnavailable: 1").find("one of them"), std::string::npos);
  EXPECT_NE(errors("minAvailable: 101%").find("percentage"), std::string::npos);
  EXPECT_NE(errors("minAvailable: -1").find("at least 0"), std::string::npos);
  EXPECT_NE(errors("minAvailable: some").find("spec.minAvailable"), std::string::npos);
}

}  // namespace
}  // namespace berth::kinds
