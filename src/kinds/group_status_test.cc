#include "kinds/group_status.h"

#include <gtest/gtest.h>

#include "text/json.h"

namespace berth::kinds::group_status_test {
namespace {

constexpr std::int64_t kGroupNoon = 1'763'294'400'000'000'000;  // 2025-11-16T12:00:00Z

text::Document group_object(std::string_view json) {
  auto out = text::parse_json(json);
  EXPECT_TRUE(out.ok()) << json;
  return std::move(*out);
}

TEST(GroupStatus, KaiIsToldOnceAndOtherConditionsStay) {
  const text::Document group =
      group_object(R"({"spec":{"minMember":2},"status":{"schedulingConditions":[{"type":"Other",)"
                   R"("transitionID":"4"}]}})");
  GroupCounts counts{.min_member = 2, .pods = 2};
  counts.requested = {{"cpu", 1500}, {"nvidia.com/gpu", 4}};
  counts.reason = "ExceedsMaxQuota";
  counts.message = "4 of 2 GPUs";
  const std::string patch =
      group_status_patch("scheduling.run.ai", group.root(), counts, kGroupNoon);
  EXPECT_NE(patch.find(R"({"type":"Other","transitionID":"4"})"), std::string::npos) << patch;
  EXPECT_NE(patch.find(R"("reasons":[{"reason":"OverLimit","message":"4 of 2 GPUs"}])"),
            std::string::npos)
      << patch;
  EXPECT_NE(patch.find(R"("transitionID":"5")"), std::string::npos) << patch;
  EXPECT_NE(patch.find(R"("requested":{"cpu":"1500m","nvidia.com/gpu":"4"})"), std::string::npos)
      << patch;
  const text::Document told = group_object(patch);
  EXPECT_EQ(group_status_patch("scheduling.run.ai", told.root(), counts, kGroupNoon), "");
  counts.message = "5 of 2 GPUs";
  EXPECT_EQ(group_status_patch("scheduling.run.ai", told.root(), counts, kGroupNoon), "")
      << "the same reason";
  counts.reason.clear();
  counts.bound = counts.running = 2;
  const std::string runs = group_status_patch("scheduling.run.ai", told.root(), counts, kGroupNoon);
  EXPECT_EQ(runs.find("UnschedulableOnNodePool"), std::string::npos) << runs;
  EXPECT_NE(runs.find(R"("running":2)"), std::string::npos) << runs;
}

}  // namespace
}  // namespace berth::kinds::group_status_test
