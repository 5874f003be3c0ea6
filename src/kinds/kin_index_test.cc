#include "kinds/kin_index.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::kinds {
namespace {

using Objects = std::vector<std::string_view>;

TEST(KinIndex, NamesMakeKins) {
  KinIndex index;
  index.put("job", {"a/train"});
  index.put("pod", {"a/train-0", "a/train"});
  index.put("workload", {"a/job-train", "a/train"});
  index.put("other", {"a/web"});
  index.put("elsewhere", {"b/train"});
  const KinIndex::Changes first = index.take_changes();
  EXPECT_TRUE(first.gone.empty());
  ASSERT_EQ(first.fresh.size(), 3u);
  EXPECT_EQ(first.fresh[0].objects, (Objects{"job", "pod", "workload"}));
  EXPECT_EQ(first.fresh[1].objects, (Objects{"other"}));
  EXPECT_EQ(first.fresh[2].objects, (Objects{"elsewhere"}));
  EXPECT_TRUE(index.take_changes().fresh.empty()) << "nothing has changed";
}

TEST(KinIndex, KinsPartAndMeet) {
  KinIndex index;
  index.put("x", {"a/x"});
  index.put("bridge", {"a/x", "a/y"});
  index.put("y", {"a/y"});
  ASSERT_EQ(index.take_changes().fresh.size(), 1u);
  index.put("bridge", {"a/x"});
  KinIndex::Changes parted = index.take_changes();
  EXPECT_EQ(parted.gone.size(), 1u);
  ASSERT_EQ(parted.fresh.size(), 2u);
  EXPECT_EQ(parted.fresh[0].objects, (Objects{"bridge", "x"}));
  index.tie("a/x", "a/y");
  const KinIndex::Changes tied = index.take_changes();
  EXPECT_EQ(tied.gone.size(), 2u);
  ASSERT_EQ(tied.fresh.size(), 1u);
  EXPECT_EQ(tied.fresh[0].objects, (Objects{"bridge", "x", "y"}));
  for (const char* object : {"x", "y", "bridge"}) index.remove(object);
  const KinIndex::Changes none = index.take_changes();
  EXPECT_EQ(none.gone.size(), 1u);
  EXPECT_TRUE(none.fresh.empty()) << "a tie alone is nothing";
  index.put("x", {"a/x"});
  EXPECT_EQ(index.take_changes().fresh.size(), 1u);
}

TEST(KinIndex, AChangeTellsOfItsKinAlone) {
  KinIndex index;
  for (int i = 0; i < 1'000; ++i) {
    index.put(fmt::format("job-{}", i), {fmt::format("a/{}", i)});
    index.put(fmt::format("pod-{}", i), {fmt::format("a/{}", i), fmt::format("a/pod-{}", i)});
  }
  EXPECT_EQ(index.take_changes().fresh.size(), 1'000u);
  index.touch("pod-7");
  const KinIndex::Changes one = index.take_changes();
  EXPECT_EQ(one.gone.size(), 1u);
  ASSERT_EQ(one.fresh.size(), 1u);
  EXPECT_EQ(one.fresh[0].objects, (Objects{"job-7", "pod-7"}));
  index.touch_namespace("b");
  EXPECT_TRUE(index.take_changes().fresh.empty());
  index.touch_namespace("a");
  EXPECT_EQ(index.take_changes().fresh.size(), 1'000u);
}

}  // namespace
}  // namespace berth::kinds
