#include "text/nearest.h"

#include <gtest/gtest.h>

namespace berth::text {
namespace {

TEST(Nearest, CountsEdits) {
  EXPECT_EQ(edits_between("train", "train", 3), 0u);
  EXPECT_EQ(edits_between("train", "Train", 3), 0u) << "case does not count";
  EXPECT_EQ(edits_between("train", "trian", 3), 1u) << "two letters swapped";
  EXPECT_EQ(edits_between("train", "rain", 3), 1u);
  EXPECT_EQ(edits_between("abc", "xyz", 1), 2u) << "no more than the limit and one";
  EXPECT_EQ(edits_between("", "ab", 3), 2u);
  EXPECT_EQ(edits_between(std::string(300, 'a'), "a", 3), 4u);
}

TEST(Nearest, NamesWhatWasMeant) {
  EXPECT_EQ(nearest("trian", {"serve", "train", "brain"}), "train");
  EXPECT_EQ(nearest("train", {"train"}), "") << "the word itself is no answer";
  EXPECT_EQ(nearest("train", {"serve", "etl"}), "");
  EXPECT_EQ(nearest("resnet", {"llama", "resnet-50-eval"}), "resnet-50-eval");
  EXPECT_EQ(nearest("a", {"b"}), "b");
  EXPECT_EQ(nearest("x", {}), "");
}

}  // namespace
}  // namespace berth::text
