#include "base/interner.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth {
namespace {

TEST(Interner, IdsAreDenseInOrderOfFirstSight) {
  Interner names;
  EXPECT_EQ(names.intern("cpu"), 0U);
  EXPECT_EQ(names.intern("memory"), 1U);
  EXPECT_EQ(names.intern("cpu"), 0U);
  EXPECT_EQ(names.intern(""), 2U);
  EXPECT_EQ(names.size(), 3U);
  EXPECT_EQ(names.text(1), "memory");
}

TEST(Interner, FindDoesNotAdd) {
  Interner names;
  EXPECT_EQ(names.find("gpu"), std::nullopt);
  EXPECT_EQ(names.size(), 0U);
  SymbolId gpu = names.intern("gpu");
  EXPECT_EQ(names.find("gpu"), gpu);
}

// Short strings live inside std::string; a container that moved them would leave views dangling.
TEST(Interner, ViewsStayValidWhileItGrows) {
  Interner names;
  std::string_view first = names.text(names.intern("a"));
  std::vector<std::string_view> views;
  for (int i = 0; i < 10'000; ++i) {
    std::string passing = "n" + std::to_string(i);
    views.push_back(names.text(names.intern(passing)));
  }
  EXPECT_EQ(first, "a");
  for (std::size_t i = 0; i < views.size(); ++i) {
    ASSERT_EQ(views[i], "n" + std::to_string(i));
    ASSERT_EQ(names.find(views[i]), static_cast<SymbolId>(i + 1));
  }
}

}  // namespace
}  // namespace berth
