#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace berth {
namespace {

Result<int> half_of(int n) {
  if (n % 2 != 0) return invalid("not even");
  return n / 2;
}

Result<int> quarter_of(int n) {
  BERTH_TRY(int half, half_of(n));
  BERTH_TRY(int quarter, half_of(half));
  return quarter;
}

Status needs_even(int n) {
  BERTH_CHECK(half_of(n));
  return {};
}

TEST(Result, HoldsAValue) {
  Result<int> result = 3;
  EXPECT_TRUE(result.ok());
  EXPECT_TRUE(static_cast<bool>(result));
  EXPECT_EQ(*result, 3);
  *result = 4;
  EXPECT_EQ(result.value(), 4);
}

TEST(Result, HoldsAnError) {
  Result<int> result = Error(Code::kNotFound, "no such queue");
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Code::kNotFound);
  EXPECT_EQ(result.error().message(), "no such queue");
}

TEST(Result, ContextPrintsOutermostFirst) {
  Result<int> result = invalid("not a number");
  result = std::move(result).context("cpu").context("document 2").context("file a.yaml");
  EXPECT_EQ(result.error().to_string(), "file a.yaml: document 2: cpu: not a number");
  EXPECT_EQ(result.error().contexts().front(), "cpu");
}

TEST(Result, ContextLeavesAValueAlone) {
  Result<int> result = Result<int>(5).context("anywhere");
  EXPECT_EQ(*result, 5);
  EXPECT_TRUE(Status().context("anywhere").ok());
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 7);
}

TEST(Result, TryReturnsTheFirstError) {
  EXPECT_EQ(*quarter_of(8), 2);
  EXPECT_EQ(quarter_of(6).error(), invalid("not even"));
  EXPECT_FALSE(quarter_of(3).ok());
}

TEST(Result, CheckReturnsTheErrorOfAStatus) {
  EXPECT_TRUE(needs_even(2).ok());
  EXPECT_EQ(needs_even(1).error().message(), "not even");
}

TEST(Result, EveryCodeHasAName) {
  for (Code code : {Code::kInvalid, Code::kNotFound, Code::kConflict, Code::kExhausted,
                    Code::kUnavailable, Code::kInternal}) {
    EXPECT_NE(name(code), "unknown");
  }
}

TEST(Result, ErrorsCompareByCodeMessageAndContext) {
  EXPECT_EQ(invalid("a"), invalid("a"));
  EXPECT_NE(invalid("a"), Error(Code::kInternal, "a"));
  EXPECT_NE(invalid("a"), invalid("a").context("b"));
}

TEST(ResultDeath, ReadingTheWrongSideAborts) {
  Result<int> wrong = invalid("x");
  Result<int> right = 1;
  EXPECT_DEATH(wrong.value(), "ok\\(\\) must be asked");
  EXPECT_DEATH(right.error(), "ok\\(\\) must be asked");
  EXPECT_DEATH(Status().error(), "ok\\(\\) must be asked");
}

}  // namespace
}  // namespace berth
