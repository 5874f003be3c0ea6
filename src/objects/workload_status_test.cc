// What is written into the status of a Workload, through its whole life.
#include "objects/workload_status.h"

#include <gtest/gtest.h>

#include "objects/kueue_workload.h"
#include "text/json.h"

namespace berth::objects {
namespace {

constexpr std::int64_t kNoon = 1'735'732'800'000'000'000;  // 2025-01-01T12:00:00Z
constexpr std::int64_t kOneMinute = 60'000'000'000;

// A Workload in an API server: every change is merged into it.
class Stored {
 public:
  explicit Stored(StatusOptions options = {}) : options_(options) {}

  bool change(const WorkloadChange& change, std::int64_t minutes = 0) {
    const auto document = text::parse_json(object());
    const std::string status =
        workload_status(document->root(), change, kNoon + minutes * kOneMinute, options_);
    if (!status.empty()) status_ = status;
    return !status.empty();
  }
  std::string object() const {
    const bool first = options_.version == KueueVersion::kV1beta1;
    return R"({"apiVersion":"kueue.x-k8s.io/)" + std::string(first ? "v1beta1" : "v1beta2") +
           R"(","kind":"Workload","metadata":{"name":"w","namespace":"d","generation":3},)"
           R"("spec":{"queueName":"q","maximumExecutionTimeSeconds":7200,"podSets":[)"
           R"({"name":"main","count":2,"template":{"spec":)"
           R"({"containers":[{"name":"c"}]}}}]},"status":)" +
           status_ + "}";
  }
  // "True/Reason since minute 5: message", or "" where there is none.
  std::string condition(const std::string& type) const {
    const auto document = text::parse_json(status_);
    const text::Value* list = document->root().find("conditions");
    if (list == nullptr) return "";
    for (const text::Value& item : list->items()) {
      if (item.find("type")->string() != type) continue;
      return std::string(item.find("status")->string()) + '/' +
             std::string(item.find("reason")->string()) + ' ' +
             std::string(item.find("lastTransitionTime")->string().substr(11, 5));
    }
    return "";
  }
  // The status as the reader of plans sees it.
  model::WorkloadSpec read() const {
    const auto document = text::parse_json(object());
    WorkloadObject out;
    text::Decoder d;
    decode_workload(document->root(), options_.version, out, d);
    EXPECT_TRUE(d.ok()) << object();
    return out.spec;
  }
  void set(const std::string& status) { status_ = status; }
  const std::string& text() const { return status_; }

 private:
  StatusOptions options_;
  std::string status_ = "{}";
};

model::Admission admission_of(std::vector<std::string> checks = {}, bool topology = false) {
  model::Admission out{
      .workload = "d/w", .queue = "team", .pod_sets = {}, .checks = std::move(checks)};
  model::PodSetAdmission set;
  set.name = "main";
  set.count = 2;
  set.flavors = {{"cpu", "f"}, {"memory", "f"}};
  set.usage = {{"cpu", 1500}, {"memory", 2LL << 30}};
  if (topology) set.topology = model::TopologyAssignment{{"rack"}, {{{"r1"}, 1}, {{"r2"}, 1}}};
  out.pod_sets = {set};
  return out;
}

model::Eviction eviction_for(const std::string& reason) {
  return {.workload = "d/w", .by = "d/x", .queue = "team", .reason = reason, .message = "because"};
}

model::Outcome waits_for(model::Reason reason) {
  return {.workload = "d/w", .reason = reason, .message = "why not"};
}

TEST(WorkloadStatus, FromWaitingToAdmittedToPreemptedAndBack) {
  Stored w;
  const auto quota = waits_for(model::Reason::kWaitingForQuota);
  EXPECT_TRUE(w.change({.waits = &quota}));
  EXPECT_EQ(w.condition("QuotaReserved"), "False/WaitingForQuota 12:00");
  EXPECT_FALSE(w.change({.waits = &quota}, 1));  // nothing new: nothing to write
  const auto other = waits_for(model::Reason::kFragmented);
  EXPECT_TRUE(w.change({.waits = &other}, 2));
  EXPECT_EQ(w.condition("QuotaReserved"), "False/TopologyPlacementFailed 12:00");

  const auto admission = admission_of();
  EXPECT_TRUE(w.change({.admission = &admission}, 5));
  EXPECT_EQ(w.condition("QuotaReserved"), "True/QuotaReserved 12:05");
  EXPECT_EQ(w.condition("Admitted"), "True/Admitted 12:05");
  EXPECT_EQ(w.condition("PodsReady"), "False/WaitForStart 12:05");
  EXPECT_EQ(w.read().admission->pod_sets, admission.pod_sets);
  EXPECT_TRUE(w.read().admitted);
  EXPECT_NE(w.text().find(R"("resourceUsage":{"cpu":"1500m","memory":"2Gi"})"), std::string::npos)
      << w.text();
  EXPECT_FALSE(w.change({.admission = &admission}, 6));

  EXPECT_TRUE(w.change({.pods_ready = true}, 7));
  EXPECT_EQ(w.condition("PodsReady"), "True/Started 12:07");
  EXPECT_TRUE(w.change({.pods_ready = false}, 8));
  EXPECT_EQ(w.condition("PodsReady"), "False/WaitForRecovery 12:08");
  EXPECT_TRUE(w.change({.pods_ready = true}, 9));
  EXPECT_EQ(w.condition("PodsReady"), "True/Recovered 12:09");

  const auto eviction = eviction_for("InCohortReclamation");
  EXPECT_TRUE(w.change({.eviction = &eviction}, 15));
  EXPECT_EQ(w.condition("Evicted"), "True/Preempted 12:15");
  EXPECT_EQ(w.condition("Preempted"), "True/InCohortReclamation 12:15");
  EXPECT_EQ(w.condition("QuotaReserved"), "True/QuotaReserved 12:05");  // until it is gone
  EXPECT_EQ(w.read().past_execution_s, 600);
  EXPECT_NE(
      w.text().find(R"({"reason":"Preempted","underlyingCause":"InCohortReclamation","count":1})"),
      std::string::npos);
  EXPECT_FALSE(w.change({.eviction = &eviction}, 16));

  EXPECT_TRUE(w.change({.released = true}, 20));
  EXPECT_EQ(w.condition("QuotaReserved"), "False/PendingEvaluation 12:20");
  EXPECT_EQ(w.condition("Admitted"), "False/NoReservation 12:20");
  EXPECT_EQ(w.condition("Requeued"), "True/Preempted 12:20");
  EXPECT_FALSE(w.read().admission);

  EXPECT_TRUE(w.change({.admission = &admission}, 30));
  EXPECT_EQ(w.condition("Evicted"), "False/QuotaReserved 12:30");
  EXPECT_EQ(w.condition("Preempted"), "False/QuotaReserved 12:30");
  EXPECT_TRUE(w.change({.finished = WorkloadChange::Finish{"Succeeded", "Job finished"}}, 40));
  EXPECT_TRUE(w.read().finished);
}

TEST(WorkloadStatus, ChecksComeFirstAndAreAskedAgainAfterAnEviction) {
  Stored w;
  const auto reserved = admission_of({"prov"}, true);
  EXPECT_TRUE(w.change({.admission = &reserved}));
  EXPECT_EQ(w.condition("Admitted"), "False/UnsatisfiedAdmissionChecks 12:00");
  EXPECT_EQ(w.read().checks.at("prov"), model::CheckState::kAwaited);
  EXPECT_EQ(w.read().admission->pod_sets, reserved.pod_sets);
  std::string retry = w.text();
  const std::size_t at = retry.find(R"("state":"Pending")");
  ASSERT_NE(at, std::string::npos);
  retry.replace(at, 17, R"("requeueAfterSeconds":60,"state":"Retry")");
  w.set(retry);
  const auto eviction = eviction_for("AdmissionCheck");
  EXPECT_TRUE(w.change({.eviction = &eviction}, 1));
  EXPECT_EQ(w.condition("Requeued"), "False/AdmissionCheck 12:01");
  EXPECT_EQ(w.read().requeue_at_ns, kNoon + 2 * kOneMinute);
  EXPECT_EQ(w.read().checks.at("prov"), model::CheckState::kAwaited);
  EXPECT_NE(w.text().find("Reset to Pending after eviction. Previously: Retry"), std::string::npos);
  EXPECT_NE(w.text().find(R"("retryCount":1)"), std::string::npos);
}

TEST(WorkloadStatus, LatePodsBackOffTwiceAsLongEachTime) {
  Stored w;
  const auto admission = admission_of();
  const auto late = eviction_for("PodsReadyTimeout");
  const auto waits = waits_for(model::Reason::kOnHold);
  w.change({.admission = &admission});
  w.change({.eviction = &late}, 10);
  EXPECT_EQ(w.read().requeues, 1);
  EXPECT_EQ(w.read().requeue_at_ns, kNoon + 11 * kOneMinute);
  w.change({.released = true}, 10);
  EXPECT_EQ(w.condition("Requeued"), "False/PodsReadyTimeout 12:10");
  w.change({.waits = &waits}, 12);
  EXPECT_EQ(w.condition("Requeued"), "True/BackoffFinished 12:12");
  EXPECT_EQ(w.read().requeue_at_ns, 0);
  w.change({.admission = &admission}, 13);
  w.change({.eviction = &late}, 20);
  EXPECT_EQ(w.read().requeue_at_ns, kNoon + 22 * kOneMinute);
  EXPECT_EQ(w.read().requeues, 2);
}

TEST(WorkloadStatus, OldReasonsAndTheOldVersion) {
  Stored w({.version = KueueVersion::kV1beta1, .old_reasons = true});
  const auto quota = waits_for(model::Reason::kExceedsMaxQuota);
  w.change({.waits = &quota});
  EXPECT_EQ(w.condition("QuotaReserved"), "False/Pending 12:00");
  const auto admission = admission_of({"c"}, true);
  w.change({.admission = &admission});
  EXPECT_EQ(w.condition("Admitted"), "False/UnsatisfiedChecks 12:00");
  EXPECT_NE(w.text().find("\"domains\""), std::string::npos);
  EXPECT_EQ(w.read().admission->pod_sets, admission.pod_sets);
  EXPECT_EQ(waiting_reason(model::Reason::kMisconfigured, true), "Inadmissible");
  EXPECT_EQ(waiting_reason(model::Reason::kWaitingForPodsReady, true), "Waiting");
  EXPECT_EQ(waiting_reason(model::Reason::kMisconfigured, false), "Misconfigured");
  EXPECT_TRUE(deactivates(eviction_for("DeactivatedDueToRequeuingLimitExceeded")));
  EXPECT_FALSE(deactivates(eviction_for("Deactivated")));  // spec.active is false already
}

TEST(WorkloadStatus, DeactivatedOnesAndStoppedQueuesAreNotQueuedAgain) {
  for (const char* reason : {"DeactivatedDueToAdmissionCheck", "ClusterQueueStopped"}) {
    Stored w;
    const auto admission = admission_of();
    const auto eviction = eviction_for(reason);
    w.change({.admission = &admission});
    w.change({.eviction = &eviction, .released = true}, 1);
    EXPECT_EQ(w.condition("Requeued"), std::string("False/") + reason + " 12:01");
    EXPECT_EQ(w.condition("QuotaReserved"),
              reason[0] == 'D' ? "False/Deactivated 12:01" : "False/OnHold 12:01");
  }
}

TEST(WorkloadStatus, WhatNobodyKnowsStaysAndWhatIsBrokenIsWrittenAnew) {
  Stored w;
  w.set(R"({"foreign":{"a":1},"conditions":7,"admissionChecks":3,"schedulingStats":[]})");
  const auto admission = admission_of();
  const auto eviction = eviction_for("NodeFailures");
  EXPECT_TRUE(w.change({.admission = &admission}));
  EXPECT_TRUE(w.change({.eviction = &eviction}));
  EXPECT_NE(w.text().find(R"("foreign":{"a":1})"), std::string::npos);
  EXPECT_EQ(w.condition("Evicted"), "True/NodeFailures 12:00");
}

TEST(QueueStatus, SaysWhoIsThereAndWhetherItAdmits) {
  model::QueueUse use{.name = "team", .cohort = "c", .cells = {}};
  use.cells = {{.flavor = "f", .resource = "cpu", .nominal = 2000, .used = 3500}};
  use.weighted_share = 250;
  const auto fresh = text::parse_json(R"({"metadata":{"name":"team"}})");
  const std::string status = cluster_queue_status(
      fresh->root(), use, {.pending = 2, .reserving = 3, .admitted = 1}, kNoon);
  for (const char* part :
       {R"("pendingWorkloads":2)", R"("reservingWorkloads":3)", R"("admittedWorkloads":1)",
        R"({"name":"cpu","total":"3500m","borrowed":"1500m"})", R"("weightedShare":250)",
        R"("type":"Active","status":"True","reason":"Ready")"}) {
    EXPECT_NE(status.find(part), std::string::npos) << part << " in " << status;
  }
  const auto again = text::parse_json(R"({"metadata":{"name":"team"},"status":)" + status + "}");
  EXPECT_EQ(cluster_queue_status(again->root(), use, {2, 3, 1}, kNoon + kOneMinute), "");
  use.inactive = "Stopped: by its stopPolicy";
  EXPECT_NE(
      cluster_queue_status(again->root(), use, {2, 3, 1}, kNoon)
          .find(R"("reason":"Stopped","message":"Can't admit new workloads: by its stopPolicy")"),
      std::string::npos);
  EXPECT_NE(local_queue_status(fresh->root(), "ClusterQueueDoesNotExist", {}, kNoon)
                .find(R"("reason":"ClusterQueueDoesNotExist")"),
            std::string::npos);
}

}  // namespace
}  // namespace berth::objects
