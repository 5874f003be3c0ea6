#include "kinds/kueue_workload_body.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "kinds/kueue_workload_status.h"
#include "text/json.h"
#include "text/patch.h"

namespace berth::kinds::workload_body_test {
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
  EXPECT_NE(status.patch().find(R"("observedGeneration":3)"), std::string::npos);
}

// Who lets in has seen what he lets in; what is taken back needs no version, which its author could
// change faster than it is written.
TEST(WorkloadBodies, WhatTakesBackIsForAnyVersion) {
  const text::Document old =
      document_of(R"({"metadata":{"uid":"u","resourceVersion":"7"},"status":{}})");
  constexpr std::string_view kVersion = R"("resourceVersion":"7")";
  WorkloadStatus told(old.root(), kNoon);
  told.set("Evicted", true, "Preempted", "m");
  told.release();
  EXPECT_EQ(told.patch().find(kVersion), std::string::npos) << told.patch();
  EXPECT_NE(told.patch().find(R"("uid":"u")"), std::string::npos);
  WorkloadStatus admitted(old.root(), kNoon);
  admitted.admit({.workload = "a/b", .queue = "q", .pod_sets = {}});
  EXPECT_NE(admitted.patch().find(kVersion), std::string::npos);
  WorkloadStatus asked(old.root(), kNoon);
  asked.want_checks({"c"});
  EXPECT_NE(asked.patch().find(kVersion), std::string::npos) << "others write checks, too";
  WorkloadStatus waits(old.root(), kNoon);
  waits.set("QuotaReserved", false, "WaitingForQuota", "m");
  EXPECT_NE(waits.patch().find(kVersion), std::string::npos) << "it may have been let in since";
}

TEST(WorkloadBodies, OfAFullOneWhatDecisionsNeedIsLeft) {
  const text::Document old = document_of(
      R"({"status":{"conditions":[{"type":"Admitted","status":"True","reason":"Admitted",)"
      R"("message":"a"},{"type":"QuotaReserved","status":"True","reason":"QuotaReserved",)"
      R"("message":"b"}]}})");
  WorkloadStatus status(old.root(), kNoon);
  status.set("Evicted", true, "Preempted", "for somebody with a long story");
  status.set("QuotaReserved", false, "PendingEvaluation", "a long story");
  status.shrink();
  EXPECT_EQ(status.patch().find("Admitted"), std::string::npos) << status.patch();
  EXPECT_EQ(status.patch().find("story"), std::string::npos);
  EXPECT_TRUE(status.is_true("Evicted"));
  EXPECT_FALSE(status.is_true("QuotaReserved"));
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
  const std::vector<model::WorkloadSpec::Seat> seats = {
      {"main", "n1", {0, 1}}, {"main", "n2"}, {"w", "n1"}};
  EXPECT_EQ(seats_text(seats),
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

// ---- what is written is what is read ----

std::string word(Random& random, std::string_view kind) {
  return std::string(kind) + std::to_string(random.below(1000));
}

model::TopologyAsk any_ask(Random& random, int count) {
  using Ask = model::TopologyAsk;
  Ask out;
  out.mode = static_cast<Ask::Mode>(random.below(4));
  if (out.mode == Ask::Mode::kRequired || out.mode == Ask::Mode::kPreferred) {
    out.level = word(random, "example.com/level");
  }
  if (out.asks() && random.chance(1, 2)) {
    out.slices.push_back({word(random, "example.com/a"), count});
    if (count % 4 == 0 && random.chance(1, 2)) {
      out.slices.push_back({word(random, "example.com/b"), count / 2});
    }
  }
  return out;
}

model::WorkloadSpec any_workload(Random& random) {
  model::WorkloadSpec out;
  out.ns = word(random, "team-");
  out.name = word(random, "w");
  out.queue = word(random, "q");
  out.priority = static_cast<int>(random.between(-2'000'000'000, 1'000'000'000));
  if (random.chance(1, 3)) out.max_execution_s = static_cast<int>(random.between(1, 100'000));
  if (random.chance(1, 4)) out.replaces = out.ns + '/' + word(random, "old");
  const std::size_t sets = 1 + random.below(kMostPodSets);
  for (std::size_t i = 0; i < sets; ++i) {
    model::PodSetSpec set;
    set.name = "set-" + std::to_string(i);
    set.count = static_cast<int>(random.between(1, 64));
    set.topology = any_ask(random, set.count);
    if (i == 0 && sets > 1 && random.chance(1, 3)) set.min_count = set.count;
    out.pod_sets.push_back(std::move(set));
  }
  return out;
}

model::Admission any_admission(Random& random, const model::WorkloadSpec& workload) {
  model::Admission out;
  out.queue = word(random, "cq");
  for (const model::PodSetSpec& set : workload.pod_sets) {
    model::PodSetAdmission one;
    one.name = set.name;
    one.count = set.count;
    for (const char* resource : {"cpu", "memory", "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"}) {
      if (random.chance(1, 3)) continue;
      one.flavors[resource] = word(random, "f");
      one.usage[resource] = random.between(0, 1'000'000'000'000);
    }
    if (random.chance(1, 3)) {
      model::TopologyAssignment at{.levels = {"example.com/rack", "kubernetes.io/hostname"},
                                   .domains = {}};
      for (int d = 0; d < set.count && d < 5; ++d) {
        at.domains.push_back(
            {{"r1", "n" + std::to_string(d)}, d == 0 ? set.count - std::min(set.count, 5) + 1 : 1});
      }
      one.topology = std::move(at);
    }
    out.pod_sets.push_back(std::move(one));
  }
  return out;
}

WorkloadObject read_back(const text::Value& object) {
  WorkloadObject out;
  text::Decoder d;
  decode_workload(object, KueueVersion::kV1beta2, out, d);
  std::string issues;
  for (const auto& issue : d.issues()) issues += issue.message() + "\n";
  EXPECT_EQ(issues, "") << text::to_json(object);
  return out;
}

TEST(WorkloadBodies, WhatIsWrittenIsWhatIsRead) {
  const text::Document pod = document_of(
      R"({"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}})");
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const model::WorkloadSpec spec = any_workload(random);
    const Owner owner{.api_version = "jobset.x-k8s.io/v1alpha2",
                      .kind = "JobSet",
                      .name = word(random, "s"),
                      .uid = "u",
                      .controller = true};
    const std::string priority_class = random.chance(1, 2) ? word(random, "class") : "";
    const std::vector<PodSetTemplate> templates(spec.pod_sets.size(), {&pod.root(), false});
    const text::Document body = document_of(
        workload_body(spec, spec.name, std::span(&owner, 1), templates, priority_class));
    const WorkloadObject read = read_back(body.root());
    EXPECT_EQ(read.spec.ns, spec.ns);
    EXPECT_EQ(read.spec.name, spec.name);
    EXPECT_EQ(read.spec.queue, spec.queue);
    EXPECT_EQ(read.spec.replaces, spec.replaces);
    EXPECT_EQ(read.spec.max_execution_s, spec.max_execution_s);
    EXPECT_EQ(read.priority, spec.priority);
    EXPECT_EQ(read.priority_class, priority_class);
    EXPECT_EQ(read.meta.owners, std::vector<Owner>{owner});
    ASSERT_EQ(read.spec.pod_sets.size(), spec.pod_sets.size());
    for (std::size_t i = 0; i < spec.pod_sets.size(); ++i) {
      EXPECT_EQ(read.spec.pod_sets[i].name, spec.pod_sets[i].name);
      EXPECT_EQ(read.spec.pod_sets[i].count, spec.pod_sets[i].count);
      EXPECT_EQ(read.spec.pod_sets[i].min_count, spec.pod_sets[i].min_count);
      EXPECT_EQ(read.spec.pod_sets[i].topology, spec.pod_sets[i].topology);
    }
    // And its status.
    WorkloadStatus status(body.root(), kNoon);
    const model::Admission admission = any_admission(random, spec);
    status.admit(admission);
    status.set("QuotaReserved", true, "QuotaReserved", "q");
    status.set("Admitted", true, "Admitted", "it is");
    const auto admitted = text::apply_merge_patch(body.root(), document_of(status.patch()).root());
    ASSERT_TRUE(admitted.ok());
    const WorkloadObject holder = read_back(admitted->root());
    ASSERT_TRUE(holder.spec.admission.has_value());
    EXPECT_EQ(holder.spec.admission->queue, admission.queue);
    EXPECT_EQ(holder.spec.admission->pod_sets, admission.pod_sets);
    EXPECT_TRUE(holder.spec.admitted);
    // Given back, it holds nothing.
    WorkloadStatus gone(admitted->root(), kNoon);
    gone.release();
    gone.set("QuotaReserved", false, "PendingEvaluation", "evicted");
    gone.set("Admitted", false, "NoReservation", "it is not");
    const auto released =
        text::apply_merge_patch(admitted->root(), document_of(gone.patch()).root());
    ASSERT_TRUE(released.ok());
    EXPECT_FALSE(read_back(released->root()).spec.admission.has_value());
  }
}

}  // namespace
}  // namespace berth::kinds::workload_body_test
