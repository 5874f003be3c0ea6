#include "embedded/workloads/job_plan.h"

#include <gtest/gtest.h>

#include "embedded/workloads/cluster_for_test.h"
#include "embedded/workloads/pod_name.h"

namespace berth::sim {
namespace {

constexpr std::int64_t kPlanNow = 1'800'000'000'000'000'000;
constexpr std::int64_t kPlanBackoff = 10 * kTestSecond;

TEST(IndexSet, ReadsAndWrites) {
  const std::tuple<const char*, const char*, int> cases[] = {
      {"", "", 0},           {"1", "1", 1},         {"1,2", "1,2", 2},
      {"1-3,5", "1-3,5", 4}, {"5,1-3", "1-3,5", 4}, {"1-3,2-6", "1-6", 6},
      {"3,4,5", "3-5", 3},   {"8-99", "8,9", 2},    {"x,1,2-y,-4", "1", 1},
      {"0-9", "0-9", 10},
  };
  for (const auto& [text, wanted, size] : cases) {
    const IndexSet set = IndexSet::parse(text, 10);
    EXPECT_EQ(set.to_string(), wanted) << text;
    EXPECT_EQ(set.size(), size) << text;
  }
  IndexSet set;
  for (const int i : {4, 2, 9, 3, 4}) set.add(i);
  EXPECT_EQ(set.to_string(), "2-4,9");
  EXPECT_TRUE(set.has(3) && set.has(9) && !set.has(5) && !set.has(1) && !set.has(10));
}

// Pods by words: "a Running", "b Failed code=3 index=1 ago=20 untracked", "c Running deleting".
PodBook::PodPtr pod_from(const std::string& words) {
  PodInfo pod;
  bool first = true;
  for (const std::string_view word : kinds::split(words, " ")) {
    const std::size_t equals = word.find('=');
    std::int64_t n = 0;
    if (equals != std::string_view::npos) kinds::parse_int(word.substr(equals + 1), n);
    const std::string_view key = word.substr(0, equals);
    if (first) {
      pod.key = {"ns", std::string(word)};
      pod.uid = "uid-" + std::string(word);
      pod.tracked = true;
      pod.created_ns = kPlanNow - 100 * kTestSecond;
      first = false;
    } else if (word == "Pending") {
      pod.phase = PodPhase::kPending;
    } else if (word == "Running") {
      pod.phase = PodPhase::kRunning;
      pod.ready = true;
      pod.node = "n";
    } else if (word == "Succeeded" || word == "Failed") {
      pod.phase = word == "Failed" ? PodPhase::kFailed : PodPhase::kSucceeded;
      pod.finished_ns = kPlanNow - 60 * kTestSecond;
    } else if (key == "code") {
      pod.ends.push_back({"main", static_cast<int>(n)});
    } else if (key == "index") {
      pod.index = static_cast<int>(n);
    } else if (key == "failures") {
      pod.index_failures = static_cast<int>(n);
    } else if (key == "restarts") {
      pod.restarts = static_cast<int>(n);
    } else if (key == "ago") {
      pod.finished_ns = kPlanNow - n * kTestSecond;
    } else if (word == "deleting") {
      pod.deleting = true;
    } else if (word == "untracked") {
      pod.tracked = false;
    } else if (word == "disrupted") {
      pod.conditions.emplace_back("DisruptionTarget", "True");
    } else {
      ADD_FAILURE() << words;
    }
  }
  return std::make_shared<const PodInfo>(std::move(pod));
}

JobPlan plan_of(const std::string& spec, const std::string& status,
                const std::vector<std::string>& pods) {
  const std::string json = yaml_to_json(
      "metadata: {name: j, namespace: ns, uid: u, resourceVersion: '5', generation: 1}\n"
      "spec: {" +
      spec + "}\nstatus: {" + status + "}");
  const auto document = text::parse_json(json);
  EXPECT_TRUE(document.ok()) << json;
  std::vector<PodBook::PodPtr> list;
  for (const std::string& words : pods) list.push_back(pod_from(words));
  return plan_job(read_job(document->root()), list, kPlanNow, kPlanBackoff);
}

// What a plan does, in a line: "status active=2 ... | untrack a | remove b | create 2 | again 10".
std::string in_words(const JobPlan& plan) {
  std::string out;
  if (plan.status) {
    const JobStatus& s = *plan.status;
    out = "active=" + std::to_string(s.active);
    if (s.ready > 0) out += " ready=" + std::to_string(s.ready);
    if (s.terminating > 0) out += " terminating=" + std::to_string(s.terminating);
    if (s.succeeded > 0) out += " succeeded=" + std::to_string(s.succeeded);
    if (s.failed > 0) out += " failed=" + std::to_string(s.failed);
    if (!s.completed.empty()) out += " completed=" + s.completed.to_string();
    if (!s.failed_indexes.empty()) out += " failedIndexes=" + s.failed_indexes.to_string();
    for (const std::string& uid : s.uncounted_succeeded) out += " +" + uid;
    for (const std::string& uid : s.uncounted_failed) out += " -" + uid;
    for (const JobCondition& c : s.conditions) {
      out += ' ' + c.type + (c.status == "True" ? "" : "=" + c.status) + '/' + c.reason;
    }
  }
  for (const kube::Key& key : plan.untrack) out += " | untrack " + key.name;
  for (const JobPlan::Removal& r : plan.remove) {
    out += " | remove " + r.pod.name + (r.untrack_first ? " uncounted" : "");
  }
  for (const JobPlan::NewPod& pod : plan.create) {
    out += " | create";
    if (pod.index >= 0) out += ' ' + std::to_string(pod.index);
    if (pod.failures > 0) out += " after " + std::to_string(pod.failures);
  }
  if (plan.remove_job) out += " | gone";
  if (plan.again_ns >= 0) out += " | again " + std::to_string(plan.again_ns / kTestSecond);
  return out;
}

TEST(JobPlan, Table) {
  const std::string start = "startTime: '2027-01-15T07:00:00Z'";  // an hour before
  const std::string indexed = "completionMode: Indexed, completions: 3, parallelism: 3";
  const std::string per_index = indexed + ", backoffLimitPerIndex: 1";
  const std::string policy =
      "completions: 2, parallelism: 2, podFailurePolicy: {rules: [{action: FailJob, onExitCodes: "
      "{operator: In, values: [42]}}, {action: Ignore, onPodConditions: [{type: "
      "DisruptionTarget}]}, {action: Count, onExitCodes: {operator: NotIn, values: [7]}}]}";
  struct Case {
    const char* name;
    std::string spec, status;
    std::vector<std::string> pods;
    const char* wanted;
  };
  const Case cases[] = {
      {"new", "", "", {}, "active=1 | create"},
      {"parallel",
       "completions: 5, parallelism: 2",
       start,
       {"a Running"},
       "active=2 ready=1 | create"},
      {"no completions", "parallelism: 3", start, {}, "active=3 | create | create | create"},
      {"steady", "", start + ", active: 1, ready: 1", {"a Running"}, ""},
      {"success is noted first",
       "",
       start + ", active: 1",
       {"a Succeeded"},
       "active=0 +uid-a SuccessCriteriaMet/CompletionsReached | untrack a"},
      {"then counted",
       "",
       start + ", uncountedTerminatedPods: {succeeded: [uid-a]}, conditions: [{type: "
               "SuccessCriteriaMet, status: 'True', reason: CompletionsReached}]",
       {"a Succeeded untracked"},
       "active=0 succeeded=1 SuccessCriteriaMet/CompletionsReached Complete/CompletionsReached"},
      {"counted although the pod is gone",
       "completions: 2",
       start + ", uncountedTerminatedPods: {succeeded: [uid-a], failed: [uid-b]}",
       {},
       "active=1 succeeded=1 failed=1 | create"},
      {"not counted while it is held",
       "completions: 3",
       start + ", active: 1, uncountedTerminatedPods: {succeeded: [uid-a]}",
       {"a Succeeded", "b Running"},
       "active=1 ready=1 +uid-a | untrack a"},
      {"work queue winds down",
       "parallelism: 3",
       start + ", succeeded: 1, active: 1, ready: 1",
       {"a Running"},
       ""},
      {"work queue is done",
       "parallelism: 3",
       start + ", succeeded: 2",
       {},
       "active=0 succeeded=2 SuccessCriteriaMet/CompletionsReached Complete/CompletionsReached"},
      {"failure waits",
       "",
       start,
       {"a Failed code=1 ago=3"},
       "active=0 -uid-a | untrack a | again 7"},
      {"second failure waits longer",
       "",
       start + ", failed: 1",
       {"a Failed untracked ago=40", "b Failed ago=3"},
       "active=0 failed=1 -uid-b | untrack b | again 17"},
      {"after the wait",
       "",
       start + ", failed: 1",
       {"a Failed untracked ago=11"},
       "active=1 failed=1 | create"},
      {"over the limit",
       "backoffLimit: 0, completions: 2, parallelism: 2",
       start,
       {"a Failed", "b Running"},
       "active=0 -uid-a FailureTarget/BackoffLimitExceeded | untrack a | remove b"},
      {"its pods end",
       "backoffLimit: 0, completions: 2, parallelism: 2",
       start + ", failed: 1, conditions: [{type: FailureTarget, status: 'True', reason: "
               "BackoffLimitExceeded}]",
       {"a Failed untracked", "b Running deleting"},
       "active=0 terminating=1 failed=1 -uid-b FailureTarget/BackoffLimitExceeded | untrack b"},
      {"and it has failed",
       "backoffLimit: 0",
       start + ", failed: 1, conditions: [{type: FailureTarget, status: 'True', reason: "
               "BackoffLimitExceeded}]",
       {"a Failed untracked"},
       "active=0 failed=1 FailureTarget/BackoffLimitExceeded Failed/BackoffLimitExceeded"},
      {"restarts count",
       "backoffLimit: 2, template: {spec: {restartPolicy: OnFailure}}",
       start,
       {"a Running restarts=2"},
       "active=0 FailureTarget/BackoffLimitExceeded | remove a"},
      {"deadline",
       "activeDeadlineSeconds: 3600",
       start,
       {"a Running"},
       "active=0 FailureTarget/DeadlineExceeded | remove a"},
      {"before the deadline",
       "activeDeadlineSeconds: 3700",
       start + ", active: 1, ready: 1",
       {"a Running"},
       " | again 100"},
      {"suspended",
       "suspend: true",
       start + ", active: 1",
       {"a Running"},
       "active=0 Suspended/JobSuspended | remove a uncounted"},
      {"born suspended", "suspend: true", "", {}, "active=0 Suspended/JobSuspended"},
      {"resumed",
       "",
       start + ", conditions: [{type: Suspended, status: 'True', reason: JobSuspended}]",
       {},
       "active=1 Suspended=False/JobResumed | create"},
      {"fewer",
       "completions: 9, parallelism: 1",
       start + ", active: 2, ready: 1",
       {"a Pending", "b Running"},
       "active=1 ready=1 | remove a uncounted"},
      {"deleted behind its back",
       "",
       start,
       {"a Running deleting"},
       "active=1 terminating=1 -uid-a | untrack a | create"},
      {"deleted, replaced when over",
       "podReplacementPolicy: Failed",
       start,
       {"a Running deleting"},
       "active=0 terminating=1"},
      {"indexed", indexed, start, {"a Running index=1"}, "active=3 ready=1 | create 0 | create 2"},
      {"index done",
       indexed,
       start,
       {"a Succeeded index=1", "b Running index=0"},
       "active=2 ready=1 succeeded=1 completed=1 | untrack a | create 2"},
      {"two of an index",
       indexed,
       start,
       {"a Running index=0", "b Running index=0", "c Running index=2"},
       "active=2 ready=2 | remove b uncounted"},
      {"index out of range",
       indexed,
       start,
       {"a Running index=0", "b Running index=7", "c Running index=2"},
       "active=2 ready=2 | remove b uncounted"},
      {"all indexes",
       indexed,
       start + ", completedIndexes: 0-2, succeeded: 3",
       {},
       "active=0 succeeded=3 completed=0-2 SuccessCriteriaMet/CompletionsReached "
       "Complete/CompletionsReached"},
      {"index fails once",
       per_index,
       start,
       {"a Failed index=0 ago=20", "b Running index=1", "c Running index=2"},
       "active=3 ready=2 | create 0 after 1"},
      {"replaced: the failure counts",
       per_index,
       start + ", active: 3, ready: 3",
       {"a Failed index=0 ago=20", "d Running index=0 failures=1", "b Running index=1",
        "c Running index=2"},
       "active=3 ready=3 -uid-a | untrack a"},
      {"index is lost",
       per_index,
       start + ", active: 2",
       {"d Failed index=0 failures=1", "b Running index=1", "c Running index=2"},
       "active=2 ready=2 failedIndexes=0 -uid-d | untrack d"},
      {"too many lost",
       per_index + ", maxFailedIndexes: 0",
       start,
       {"d Failed index=0 failures=1", "b Running index=1"},
       "active=0 failedIndexes=0 -uid-d FailureTarget/MaxFailedIndexesExceeded | untrack d | "
       "remove b"},
      {"some lost at the end",
       per_index,
       start + ", completedIndexes: '1,2', succeeded: 2, failedIndexes: '0', failed: 1",
       {},
       "active=0 succeeded=2 failed=1 completed=1,2 failedIndexes=0 FailureTarget/FailedIndexes "
       "Failed/FailedIndexes"},
      {"policy fails the job",
       policy,
       start,
       {"a Failed code=42", "b Running"},
       "active=0 -uid-a FailureTarget/PodFailurePolicy | untrack a | remove b"},
      {"policy ignores",
       policy,
       start,
       {"a Failed code=1 disrupted ago=1", "b Running"},
       "active=2 ready=1 | untrack a | create"},
      {"policy counts",
       policy,
       start,
       {"a Failed code=3 ago=11", "b Running"},
       "active=2 ready=1 -uid-a | untrack a | create"},
      {"success policy",
       indexed + ", successPolicy: {rules: [{succeededIndexes: '0', "
                 "succeededCount: 1}]}",
       start,
       {"a Succeeded index=0", "b Running index=1"},
       "active=0 succeeded=1 completed=0 SuccessCriteriaMet/SuccessPolicy | untrack a | remove b "
       "uncounted"},
      {"success policy ends",
       indexed + ", successPolicy: {rules: [{succeededIndexes: '0'}]}",
       start + ", completedIndexes: '0', succeeded: 1, conditions: [{type: SuccessCriteriaMet, "
               "status: 'True', reason: SuccessPolicy}]",
       {"a Succeeded index=0 untracked", "b Running index=1 deleting"},
       "active=0 terminating=1 succeeded=1 completed=0 SuccessCriteriaMet/SuccessPolicy | untrack "
       "b"},
      {"ttl",
       "ttlSecondsAfterFinished: 100",
       start + ", conditions: [{type: Complete, status: 'True', lastTransitionTime: "
               "'2027-01-15T07:59:00Z'}]",
       {"a Succeeded untracked"},
       " | again 40"},
      {"ttl over",
       "ttlSecondsAfterFinished: 60",
       start + ", conditions: [{type: Failed, status: 'True', lastTransitionTime: "
               "'2027-01-15T07:59:00Z'}]",
       {},
       " | gone"},
      {"finished frees its pods",
       "",
       start + ", conditions: [{type: Complete, status: 'True'}]",
       {"a Succeeded"},
       " | untrack a"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(in_words(plan_of(c.spec, c.status, c.pods)), c.wanted) << c.name;
  }
}

TEST(JobPlan, TheSameStateAsksForTheSamePods) {
  const auto names = [](const std::vector<std::string>& pods) {
    std::string out;
    for (const auto& pod : plan_of("completions: 4, parallelism: 3", "", pods).create) {
      out += pod.name + ' ';
    }
    return out;
  };
  const std::string all = names({});
  EXPECT_EQ(all, names({}));
  // One of them was made before a crash: the others are asked for again, not three new ones.
  const std::string first = all.substr(0, all.find(' '));
  EXPECT_EQ(names({first + " Pending"}), all.substr(all.find(' ') + 1));
  EXPECT_EQ(pod_name(std::string(80, 'x'), "s").size(), 63u);
  EXPECT_NE(name_hash("u/1#0"), name_hash("u/1#1"));
}

TEST(JobPlan, ManyPodsInSeveralPasses) {
  const JobPlan plan = plan_of("completions: 2000, parallelism: 1200", "", {});
  EXPECT_EQ(plan.create.size(), kMaxPodsPerPass);
  std::vector<std::string> done;
  for (int i = 0; i < 700; ++i) done.push_back("p" + std::to_string(i) + " Succeeded");
  const std::string spec = "completions: 700, parallelism: 700";
  const JobPlan noted = plan_of(spec, "", done);
  EXPECT_EQ(noted.untrack.size(), kMaxUncounted);
  ASSERT_TRUE(noted.status);
  ASSERT_EQ(noted.status->uncounted_succeeded.size(), kMaxUncounted);
  // A crash before any of them was let go: the next pass lets go the same ones.
  std::string uids;
  for (const std::string& uid : noted.status->uncounted_succeeded) uids += uid + ',';
  const JobPlan again = plan_of(spec, "uncountedTerminatedPods: {succeeded: [" + uids + "]}", done);
  EXPECT_EQ(again.untrack, noted.untrack);
}

TEST(JobView, ManagedByOthersIsLeftAlone) {
  const auto of = [](const std::string& spec) {
    return read_job(text::parse_json(yaml_to_json("spec: {" + spec + "}"))->root()).managed_here;
  };
  EXPECT_TRUE(of(""));
  EXPECT_TRUE(of("managedBy: kubernetes.io/job-controller"));
  EXPECT_FALSE(of("managedBy: kueue.x-k8s.io/multikueue"));
}

}  // namespace
}  // namespace berth::sim
