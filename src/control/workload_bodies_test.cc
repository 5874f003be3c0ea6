#include "control/workload_bodies.h"

#include <gtest/gtest.h>

#include "control/group_status.h"
#include "text/json.h"

namespace berth::control {
namespace {

constexpr std::int64_t kNoon = 1'763'294'400'000'000'000;  // 2025-11-16T12:00:00Z

text::Document document_of(std::string_view json) {
  auto out = text::parse_json(json);
  EXPECT_TRUE(out.ok()) << json;
  return std::move(*out);
}

TEST(WorkloadBodies, ConditionsKeepTheirTimeWhileTheirStatusStays) {
  const text::Document old = document_of(
      R"({"metadata":{"resourceVersion":"7","generation":3},"status":{"conditions":[)"
      R"({"type":"QuotaReserved","status":"False","reason":"WaitingForQuota","message":"m",)"
      R"("lastTransitionTime":"2025-01-01T00:00:00Z"}]}})");
  WorkloadStatus status(old.root(), kNoon);
  status.set("QuotaReserved", false, "WaitingForQuota", "m");
  EXPECT_FALSE(status.changed());
  status.set("QuotaReserved", false, "ExceedsMaxQuota", "too much");
  EXPECT_TRUE(status.changed());
  EXPECT_NE(status.patch().find(R"("lastTransitionTime":"2025-01-01T00:00:00Z")"),
            std::string::npos);
  status.set("QuotaReserved", true, "QuotaReserved", "q");
  EXPECT_NE(status.patch().find(R"("lastTransitionTime":"2025-11-16T12:00:00Z")"),
            std::string::npos);
  EXPECT_NE(status.patch().find(R"("resourceVersion":"7")"), std::string::npos);
  EXPECT_NE(status.patch().find(R"("observedGeneration":3)"), std::string::npos);
}

TEST(WorkloadBodies, ChecksAreAskedAgainAfterAnEviction) {
  const text::Document old = document_of(
      R"({"status":{"admissionChecks":[{"name":"c","state":"Retry","retryCount":1}]}})");
  WorkloadStatus status(old.root(), kNoon);
  EXPECT_FALSE(status.checks_ready());
  status.want_checks({"c", "d"});
  status.release();
  const std::string patch = status.patch();
  EXPECT_NE(patch.find(R"("admission":null)"), std::string::npos) << patch;
  EXPECT_NE(patch.find(R"("retryCount":2)"), std::string::npos) << patch;
  EXPECT_NE(patch.find(R"("name":"d","state":"Pending")"), std::string::npos) << patch;
}

TEST(WorkloadBodies, SeatsTimesAndAnnotations) {
  EXPECT_EQ(
      seats_text({{"main", "p0", "n1", {0, 1}}, {"main", "p1", "n2", {}}, {"w", "p2", "n1", {}}}),
      R"({"main":[{"node":"n1","gpus":[0,1]},{"node":"n2"}],"w":[{"node":"n1"}]})");
  constexpr std::int64_t kMinute = 60'000'000'000;
  EXPECT_EQ(preemption_times({kNoon - 120 * kMinute, kNoon - 30 * kMinute}, kNoon),
            "2025-11-16T11:30:00Z,2025-11-16T12:00:00Z");
  EXPECT_EQ(annotation_patch("a/b", "x\"y"), R"({"metadata":{"annotations":{"a/b":"x\"y"}}})");
}

TEST(WorkloadBodies, ReasonsAreThoseThatKueueHas) {
  EXPECT_EQ(waiting_reason(model::Reason::kWaitingForQuota), "WaitingForQuota");
  EXPECT_EQ(waiting_reason(model::Reason::kNone), "PendingEvaluation");
  EXPECT_EQ(waiting_reason(model::Reason::kInsufficientGpus), "TopologyPlacementFailed");
}

TEST(GroupStatus, KaiIsToldOnceAndOtherConditionsStay) {
  const text::Document group =
      document_of(R"({"spec":{"minMember":2},"status":{"schedulingConditions":[{"type":"Other",)"
                  R"("transitionID":"4"}]}})");
  GroupCounts counts{.min_member = 2, .pods = 2};
  counts.requested = {{"cpu", 1500}, {"nvidia.com/gpu", 4}};
  counts.reason = "ExceedsMaxQuota";
  counts.message = "4 of 2 GPUs";
  const std::string patch = group_status_patch("scheduling.run.ai", group.root(), counts, kNoon);
  EXPECT_NE(patch.find(R"({"type":"Other","transitionID":"4"})"), std::string::npos) << patch;
  EXPECT_NE(patch.find(R"("reasons":[{"reason":"OverLimit","message":"4 of 2 GPUs"}])"),
            std::string::npos)
      << patch;
  EXPECT_NE(patch.find(R"("transitionID":"5")"), std::string::npos) << patch;
  EXPECT_NE(patch.find(R"("requested":{"cpu":"1500m","nvidia.com/gpu":"4"})"), std::string::npos)
      << patch;
  const text::Document told = document_of(patch);
  EXPECT_EQ(group_status_patch("scheduling.run.ai", told.root(), counts, kNoon), "");
  counts.message = "5 of 2 GPUs";
  EXPECT_EQ(group_status_patch("scheduling.run.ai", told.root(), counts, kNoon), "")
      << "the same reason";
  counts.reason.clear();
  counts.bound = counts.running = 2;
  const std::string runs = group_status_patch("scheduling.run.ai", told.root(), counts, kNoon);
  EXPECT_EQ(runs.find("UnschedulableOnNodePool"), std::string::npos) << runs;
  EXPECT_NE(runs.find(R"("running":2)"), std::string::npos) << runs;
}

}  // namespace
}  // namespace berth::control
