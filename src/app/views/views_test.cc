// The commands for people, whole, on files; doctor_test.cc and snapshot_text_test.cc have two more.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "app/views/sheet.h"
#include "app/views/views_for_test.h"
#include "people/view/words.h"
#include "text/json.h"
#include "text/path.h"
#include "text/yaml.h"

namespace berth::app {
namespace {

std::string queued_job(const std::string& name, int gpus, int pods) {
  const std::string n = std::to_string(pods);
  return "{apiVersion: batch/v1, kind: Job, metadata: {name: " + name +
         ", namespace: t, creationTimestamp: \"2025-01-01T11:25:00Z\", labels: "
         "{kueue.x-k8s.io/queue-name: lq}}, spec: {suspend: true, parallelism: " +
         n + ", completions: " + n +
         ", template: {spec: {restartPolicy: Never, containers: [{name: c, resources: {limits: "
         "{nvidia.com/gpu: \"" +
         std::to_string(gpus) + "\"}}}]}}}}\n---\n";
}

text::Document parsed(const std::string& json) {
  Result<text::Document> document = text::parse_json(json);
  EXPECT_TRUE(document.ok()) << (document.ok() ? "" : document.error().to_string());
  return document.ok() ? std::move(*document) : text::Document();
}

void expect_screen(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) EXPECT_LE(people::width_of(line), kScreenWidth) << line;
}

// ---- the fleet ----

TEST(Views, StatesOfGpusAddUp) {
  const std::string agent =
      "{apiVersion: berth.dev/v1alpha1, kind: GpuNode, metadata: {name: n2}, spec: "
      "{reservedGpus: [3]}, status: {gpus: [{index: 0, health: {state: Unhealthy, reason: \"Xid "
      "79\"}}, {index: 1, health: {state: Unknown}}, {index: 2}, {index: 3}]}}\n---\n";
  const Seen seen =
      view({"status", "-o", "json"}, two_nodes() + view_node("n2", "r1", 4) + agent +
                                         view_node("n3", "r1", 2, "{unschedulable: true}") +
                                         view_node("n4", "r1", 2, "{}", "False"));
  const text::Document document = parsed(seen.out);
  const text::Value& gpus = *document.root().find("gpus");
  EXPECT_EQ(int_at(gpus, "discovered"), 24);
  EXPECT_EQ(int_at(gpus, "used"), 11);
  EXPECT_EQ(int_at(gpus, "free"), 6);  // 2 + 3 + 1
  EXPECT_EQ(int_at(gpus, "unhealthy"), 1);
  EXPECT_EQ(int_at(gpus, "reserved"), 3);  // one by the operator, two of the cordoned node
  EXPECT_EQ(int_at(gpus, "unknown"), 3);   // one unknown, two of the node that is away
  for (const char* group : {"models", "racks"}) {
    std::int64_t sum = 0;
    for (const text::Value& one : document.root().find(group)->items()) {
      sum += int_at(*one.find("gpus"), "discovered");
    }
    EXPECT_EQ(sum, 24) << group;
  }
}

TEST(Views, UnhealthyGpusWithPodsAreCounted) {
  const std::string agent =
      "{apiVersion: berth.dev/v1alpha1, kind: GpuNode, metadata: {name: n0}, status: {gpus: "
      "[{index: 0, health: {state: Unhealthy, reason: \"Xid 79\"}}, {index: 1}]}}\n---\n";
  const Seen seen =
      view({"status", "-o", "json"}, view_node("n0", "r0", 2) + agent + view_pod("a", 2, "n0"));
  const text::Document document = parsed(seen.out);
  const text::Value& gpus = *document.root().find("gpus");
  EXPECT_EQ(int_at(gpus, "unhealthy"), 1);
  EXPECT_EQ(int_at(gpus, "unhealthyHeld"), 1);
  EXPECT_EQ(int_at(gpus, "used"), 1);
}

TEST(Views, StatusSaysWhatFitsAndWhatWaits) {
  const Seen seen = view({"status"}, two_nodes() + view_pod("w", 4));
  EXPECT_EQ(seen.code, 0) << seen.err;
  EXPECT_TRUE(holds(seen.out, "used 11   free 5   unhealthy 0   reserved 0   unknown 0   = 16"))
      << seen.out;
  EXPECT_TRUE(holds(seen.out, "H100: 5 free, 3 on one node, 3 in r1")) << seen.out;
  EXPECT_TRUE(holds(seen.out, "1 workload, 4 GPUs")) << seen.out;
  EXPECT_TRUE(holds(seen.out, "Fragmented")) << seen.out;
  EXPECT_TRUE(holds(seen.out, "oldest 60 m")) << seen.out;
  expect_screen(seen.out);
}

TEST(Views, GpusAsTableTreeAndCsv) {
  const Seen table = view({"gpus"}, two_nodes());
  EXPECT_TRUE(holds(table.out, "n0    H100   r0       8     6     2    0  ready  t/a (6)"))
      << table.out;
  const Seen tree = view({"gpus", "--tree"}, two_nodes());
  EXPECT_TRUE(holds(tree.out, "r0  8 GPUs, 6 used\n  n0    H100 x8  ■■■■■■□□  t/a (6)\n"))
      << tree.out;
  EXPECT_TRUE(holds(tree.out, "used 11   free 5")) << tree.out;
  const Seen devices = view({"gpus", "--devices"}, two_nodes());
  EXPECT_TRUE(holds(devices.out, "       5  used       t/a\n       6  free\n")) << devices.out;
  const Seen csv = view({"gpus", "-o", "csv"}, two_nodes());
  EXPECT_TRUE(csv.out.starts_with("node,gpu,model,uuid,state,")) << csv.out;
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 17);
  for (const Seen* seen : {&table, &tree, &devices}) expect_screen(seen->out);
}

TEST(Views, LongAndWildNamesStayInTheirColumns) {
  const std::string name(60, 'x');
  const std::string esc =
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: "
      "{name: q}, spec: {cohortName: \"a\\e[31mb\"}}\n---\n";
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"gpus"}, {"gpus", "--tree"}, {"status"}, {"queue"}, {"doctor"}}) {
    const Seen seen =
        view(arguments, view_node(name, "rack-" + name.substr(0, 40), 8) + view_pod(name, 8, name) +
                            view_pod("w" + name, 9) + kQueues +
                            queued_job("j" + name.substr(0, 50), 8, 3) + esc);
    expect_screen(seen.out);
    EXPECT_FALSE(holds(seen.out + seen.err, "\x1b")) << arguments[0];
  }
}

// ---- queues ----

TEST(Views, QueuesSayWhoIsNextAndWhy) {
  const std::string all =
      two_nodes() + kQueues + queued_job("big", 8, 2) + queued_job("huge", 8, 9);
  const Seen queues = view({"queue"}, all);
  EXPECT_TRUE(holds(queues.out, "research  ml          8     0         0        2    35 m"))
      << queues.out;
  EXPECT_TRUE(holds(queues.out, "berth queue research")) << queues.out;
  const Seen one = view({"queue", "research"}, all);
  EXPECT_TRUE(holds(one.out, "nvidia.com/gpu")) << one.out;
  EXPECT_TRUE(holds(one.out, "t/big")) << one.out;
  EXPECT_TRUE(holds(one.out, "t/huge")) << one.out;
  const Seen local = view({"queue", "lq", "-n", "t"}, all);
  EXPECT_EQ(local.out, one.out);
  const Seen none = view({"queue", "nope"}, all);
  EXPECT_EQ(none.code, 1);
  EXPECT_TRUE(holds(none.err, "no queue nope; there are: research")) << none.err;
  // For programs: no "35 m".
  const Seen csv = view({"queue", "-o", "csv"}, all);
  EXPECT_EQ(csv.out,
            "queue,cohort,quota,used,borrowed,admitted,waiting,oldest,oldest_seconds,next,"
            "next_reason,inactive\r\n"
            "research,ml,8,0,0,0,2,2025-01-01T11:25:00Z,2100,t/big,ExceedsMaxQuota,\r\n");
  const Seen lines = view({"queue", "research", "-o", "csv"}, all);
  EXPECT_TRUE(lines.out.starts_with(
      "queue,position,workload,owner,priority,pods,gpus,gpus_ahead,since,waits_seconds,reason,"
      "message\r\n"))
      << lines.out;
  EXPECT_TRUE(holds(lines.out, ",Job/big,0,2,16,0,2025-01-01T11:25:00Z,2100,")) << lines.out;
  const text::Document json = parsed(view({"queue", "-o", "json"}, all).out);
  const text::Value& row = json.root().find("queues")->items()[0];
  ASSERT_EQ(row.find("waiting")->size(), 2U);
  EXPECT_EQ(int_at(row.find("waiting")->items()[1], "aheadMilli"), 16'000);
  for (const Seen* seen : {&queues, &one}) expect_screen(seen->out);
}

TEST(Views, AClusterWithoutQueuesSaysSo) {
  EXPECT_EQ(view({"queue"}, two_nodes()).out, "there are no queues\n");
}

// What whoever answers a check wrote is what people need to know.
TEST(Views, WhyTellsWhatAnAdmissionCheckWrote) {
  const std::string check =
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: AdmissionCheck, metadata: {name: capacity}, "
      "spec: {controllerName: example.com/c}, status: {conditions: [{type: Active, status: "
      "\"True\"}]}}\n---\n"
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}}\n---\n"
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: cq}, spec: "
      "{namespaceSelector: {}, admissionChecksStrategy: {admissionChecks: [{name: capacity}]}, "
      "resourceGroups: [{coveredResources: [nvidia.com/gpu], flavors: [{name: f, resources: [{name:"
      " nvidia.com/gpu, nominalQuota: 8}]}]}]}}\n---\n"
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: l, namespace: t}, "
      "spec: {clusterQueue: cq}}\n---\n";
  const auto workload = [](const std::string& state) {
    return "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: w, namespace: "
           "t}, "
           "spec: {queueName: l, podSets: [{name: main, count: 1, template: {spec: {containers: "
           "[{name: c, resources: {limits: {nvidia.com/gpu: \"4\"}}}]}}}]}, status: {admission: "
           "{clusterQueue: cq, podSetAssignments: [{name: main, flavors: {nvidia.com/gpu: f}, "
           "resourceUsage: {nvidia.com/gpu: \"4\"}, count: 1}]}, conditions: [{type: "
           "QuotaReserved, status: \"True\", lastTransitionTime: \"2025-01-01T11:00:00Z\"}], "
           "admissionChecks: [{name: capacity, state: " +
           state +
           ", message: \"zone a is\\e[31m sold out\", lastTransitionTime: "
           "\"2025-01-01T11:00:00Z\"}]}}\n---\n";
  };
  const Seen waits = view({"why", "workload", "t/w"}, two_nodes() + check + workload("Pending"));
  EXPECT_EQ(waits.code, 10) << waits.err;
  EXPECT_TRUE(holds(waits.out, "UnsatisfiedAdmissionChecks")) << waits.out;
  EXPECT_TRUE(holds(waits.out, "not ready: capacity (zone a is")) << waits.out;
  EXPECT_TRUE(holds(waits.out, "sold out)")) << waits.out;
  EXPECT_FALSE(holds(waits.out, "\x1b")) << "made safe";
}

// ---- fit ----

TEST(Views, FitNow) {
  const Seen seen = view({"fit", "--gpus", "3", "--model", "h100"}, two_nodes());
  EXPECT_EQ(seen.code, 0) << seen.out << seen.err;
  EXPECT_TRUE(holds(seen.out, "now: 1 pod x 3 GPUs, H100")) << seen.out;
  EXPECT_TRUE(holds(seen.out, "n1: 5-7")) << seen.out;
}

TEST(Views, FitLaterByDeclaredTimes) {
  const std::string declared = "activeDeadlineSeconds: 7200, ";
  const std::string cluster = view_node("n0", "r0", 8) + view_node("n1", "r1", 8) +
                              view_pod("a", 6, "n0", declared) + view_pod("b", 5, "n1");
  const Seen later = view({"fit", "--gpus", "8"}, cluster);
  EXPECT_EQ(later.code, 10);
  EXPECT_TRUE(holds(later.out, "about 2025-01-01T13:00:00Z, in 60 m, when t/a ends")) << later.out;
  const Seen unknown = view({"fit", "--gpus", "8", "--pods", "2"}, cluster);
  EXPECT_EQ(unknown.code, 10);
  EXPECT_TRUE(holds(unknown.out, "with GPUs does not say how long it runs")) << unknown.out;
  const text::Document json = parsed(view({"fit", "--gpus", "8", "-o", "json"}, cluster).out);
  EXPECT_EQ(json.root().find("verdict")->string(), "later");
  EXPECT_EQ(json.root().find("at")->string(), "2025-01-01T13:00:00Z");
}

// What fit knows of the time why knows too, whatever kind of holder says it.
TEST(Views, FitAndWhyTellTheSameStart) {
  const std::string nodes = view_node("n0", "r0", 8) + view_node("n1", "r1", 8);
  const std::string over = "activeDeadlineSeconds: 60, ";  // an hour ago, and it runs
  const std::string limited =
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: w, namespace: t, "
      "ownerReferences: [{apiVersion: v1, kind: Pod, name: a, uid: u}]}, spec: {queueName: lq, "
      "maximumExecutionTimeSeconds: 7200, podSets: [{name: main, count: 1, template: {spec: "
      "{containers: [{name: c, resources: {limits: {nvidia.com/gpu: \"8\"}}}]}}}]}, status: "
      "{admission: {clusterQueue: research, podSetAssignments: [{name: main, flavors: "
      "{nvidia.com/gpu: h100}, resourceUsage: {nvidia.com/gpu: \"8\"}, count: 1}]}, conditions: "
      "[{type: QuotaReserved, status: \"True\", lastTransitionTime: \"2025-01-01T11:00:00Z\"}, "
      "{type: Admitted, status: \"True\", lastTransitionTime: \"2025-01-01T11:00:00Z\"}]}}\n---\n";
  const std::string cases[] = {
      nodes + view_pod("a", 8, "n0", "activeDeadlineSeconds: 7200, ") + view_pod("b", 8, "n1"),
      nodes + view_pod("a", 8, "n0", over) + view_pod("b", 8, "n1"),
      nodes + kQueues + limited + view_pod("a", 8, "n0") + view_pod("b", 8, "n1"),
  };
  for (const std::string& cluster : cases) {
    const text::Document fit =
        parsed(view({"fit", "--gpus", "8", "--queue", "-", "-n", "t", "-o", "json"}, cluster).out);
    const text::Document why =
        parsed(view({"why", "t/want", "-o", "json"}, cluster + view_pod("want", 8)).out);
    ASSERT_NE(why.root().find("start"), nullptr);
    EXPECT_FALSE(fit.root().find("at")->string().empty()) << cluster;
    EXPECT_EQ(why.root().find("start")->find("at")->string(), fit.root().find("at")->string())
        << cluster << why.root().find("start")->find("because")->string();
  }
}

TEST(Views, FitNever) {
  const Seen pods = view({"fit", "--gpus", "8", "--pods", "3"}, two_nodes());
  EXPECT_EQ(pods.code, 30) << pods.out;
  EXPECT_TRUE(holds(pods.out, "never: 3 pods x 8 GPUs")) << pods.out;
  const Seen model = view({"fit", "--model", "B200"}, two_nodes());
  EXPECT_EQ(model.code, 30);
  EXPECT_TRUE(holds(model.out, "no GPU is of model B200; there are: H100")) << model.out;
  const Seen rack = view({"fit", "--gpus", "8", "--pods", "2", "--topology", "rack"},
                         view_node("n0", "r0", 8) + view_node("n1", "r1", 8));
  EXPECT_NE(rack.code, 0) << rack.out;
}

TEST(Views, FitInQueuesCountsQuota) {
  const std::string cluster = view_node("n0", "r0", 8) + view_node("n1", "r1", 8) + kQueues;
  EXPECT_EQ(view({"fit", "--gpus", "8", "--queue", "research"}, cluster).code, 0);
  const Seen more =
      view({"fit", "--gpus", "8", "--pods", "2", "--queue", "lq", "-n", "t"}, cluster);
  EXPECT_EQ(more.code, 30) << more.out;
  EXPECT_TRUE(holds(more.out, "ExceedsMaxQuota")) << more.out;
  EXPECT_EQ(view({"fit", "--queue", "nope"}, cluster).code, 2);
}

TEST(Views, FitPreemptsByPriority) {
  const std::string classes =
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: "
      "1000}\n---\n";
  const std::string cluster = view_node("n0", "r0", 8) + view_pod("a", 8, "n0") + classes;
  EXPECT_EQ(view({"fit", "--gpus", "8"}, cluster).code, 10);
  const Seen high = view({"fit", "--gpus", "8", "--priority-class", "high"}, cluster);
  EXPECT_EQ(high.code, 0) << high.out;
  EXPECT_TRUE(holds(high.out, "evicts   t/a")) << high.out;
  EXPECT_EQ(view({"fit", "--priority-class", "nope"}, cluster).code, 2);
}

// ---- preempted ----

constexpr const char* kPreempted = R"(
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: job-train-abc, namespace: t,
  uid: u1, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: train, uid: j1}]},
  spec: {queueName: lq, podSets: [{name: main, count: 1,
    template: {spec: {containers: [{name: c}]}}}]},
  status: {conditions: [{type: Evicted, status: "True", reason: Preempted,
    lastTransitionTime: "2025-01-01T11:50:00Z", message: x},
  {type: Preempted, status: "True", reason: InClusterQueue,
    lastTransitionTime: "2025-01-01T11:50:00Z",
    message: "Preempted to accommodate a workload (UID: u2, JobUID: j2) due to priority"}]}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: boss, namespace: t, uid: u2},
  spec: {queueName: lq, podSets: [{name: main, count: 1,
    template: {spec: {containers: [{name: c}]}}}]}}
---
{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: e1, namespace: s}, reason: Preempted,
  eventTime: "2025-01-01T11:59:00.000000Z", note: "preempted to make room for t/boss",
  regarding: {kind: Pod, namespace: s, name: web-0}}
---
)";

TEST(Views, PreemptedSaysWhoAndForWhom) {
  const Seen all = view({"preempted", "-A"}, kPreempted);
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_TRUE(holds(all.out, "60 s  Pod       s/web-0          Preempted       t/boss")) << all.out;
  EXPECT_TRUE(holds(all.out, "10 m  Workload  t/job-train-abc  InClusterQueue  t/boss")) << all.out;
  const Seen job = view({"preempted", "train", "-n", "t"}, kPreempted);
  EXPECT_TRUE(holds(job.out, "job-train-abc")) << job.out;
  EXPECT_FALSE(holds(job.out, "web-0")) << job.out;
  EXPECT_TRUE(holds(view({"preempted", "s/other"}, kPreempted).out, "nothing named s/other was"));
}

// ---- what they have in common ----

TEST(Views, WrongUseIsCodeTwo) {
  EXPECT_EQ(view({"status", "-o", "xml"}, two_nodes()).code, 2);
  EXPECT_EQ(view({"fit", "--gpus", "0"}, two_nodes()).code, 2);
  EXPECT_EQ(view({"fit", "--cpu", "lots"}, two_nodes()).code, 2);
  EXPECT_EQ(view({"fit", "--topology", "row"}, two_nodes()).code, 2);
  EXPECT_EQ(view({"completion", "tcsh"}, "").code, 2);
  EXPECT_EQ(view({"status", "--every", "0"}, two_nodes()).code, 2);
  EXPECT_EQ(view({"status", "--now", "soon"}, two_nodes()).code, 2);
}

TEST(Views, WhatCannotBeReadIsCodeOne) {
  const Seen broken = view({"status"}, "a: [");
  EXPECT_EQ(broken.code, 1);
  EXPECT_TRUE(holds(broken.err, "standard input")) << broken.err;
  EXPECT_EQ(view({"gpus", "-f", "/does/not/exist"}, "").code, 1);
  const Seen nobody = view({"status", "--kubeconfig", "/does/not/exist"}, "");
  EXPECT_EQ(nobody.code, 1);
  EXPECT_TRUE(holds(nobody.err, "-f reads files")) << nobody.err;
}

// docs/cli.md: the codes do not change.
TEST(Codes, OfEveryCommand) {
  const std::string none = "/does/not/exist";
  struct Case {
    std::vector<std::string> arguments;
    int code;
  };
  std::vector<Case> cases = {
      {{"plan", "-f", none}, 20},
      {{"lint", none}, 20},
      {{"convert", none}, 20},
      {{"plan"}, 2},
      {{"why"}, 2},
      {{"why-no-gpu"}, 2},
      {{"lint"}, 2},
      {{"convert"}, 2},
      {{"replay"}, 2},
      {{"replay", none}, 2},
      {{"completion"}, 2},
      {{"completion", "bash"}, 0},
      {{"version", "--client"}, 0},
      {{"run", "--kubeconfig", none, "--", "x"}, 1},
      {{"run", "--kubeconfig", none}, 2},
      {{"run", "--kubeconfig", none, "--image", "own"}, 1},
      {{"--no-such-option"}, 2},
      {{"-n"}, 2},
      {{"controller", "--kubeconfig", none}, 2},
      {{"why", "x", "--no-controller", "--kubeconfig", none}, 1},
      {{"why-no-gpu", "x", "--kubeconfig", none}, 1},
      {{"why", "x", "-f", none}, 1},
      {{"why-no-gpu", "x", "-f", none}, 1},
      {{}, 2},
      {{"frobnicate"}, 2},
      {{"--help"}, 0},
      {{"--version"}, 0},
  };
  for (const char* command : {"status", "gpus", "queue", "fit", "preempted", "doctor"}) {
    cases.push_back({{command, "-f", none}, 1});
    cases.push_back({{command, "--kubeconfig", none}, 1});
    cases.push_back({{"--kubeconfig", none, command}, 1});
    cases.push_back({{command, "-o", "xml"}, 2});
  }
  for (const char* command : {"snapshot", "version"}) {
    cases.push_back({{command, "--kubeconfig", none}, 1});
  }
  for (const char* command : {"status", "queue", "why", "why-no-gpu", "version"}) {
    cases.push_back({{command, "--request-timeout", "soon"}, 2});
    cases.push_back(
        {{command, "x", "--request-timeout=5s", "-v=7", "--kubeconfig", none},
         std::string(command) == "status" || std::string(command) == "version" ? 2 : 1});
  }
  cases.push_back({{"-v", "6", "--request-timeout", "5", "status", "--kubeconfig", none}, 1});
  cases.push_back({{"status", "-v", "much"}, 2});
  for (const char* command : {"plan", "why", "why-no-gpu", "up", "run", "controller", "agent",
                              "lint", "convert", "replay", "status", "gpus", "queue", "fit",
                              "preempted", "doctor", "snapshot", "version", "completion"}) {
    cases.push_back({{command, "--no-such-option"}, 2});
    cases.push_back({{command, "--help"}, 0});
  }
  for (const Case& c : cases) {
    std::string line;
    for (const std::string& word : c.arguments) line += word + ' ';
    const Seen seen = view(c.arguments, "");
    EXPECT_EQ(seen.code, c.code) << line << "\n" << seen.err;
    const bool said = seen.err.starts_with("berth") || seen.out.find(none) != std::string::npos;
    EXPECT_TRUE(c.code == 0 || said) << line << "\n" << seen.err;
  }
  EXPECT_EQ(view({"queue", "nobody"}, two_nodes()).code, 1);
  EXPECT_EQ(view({"why", "nobody"}, two_nodes()).code, 1);
  EXPECT_EQ(view({"why", "t/a"}, two_nodes()).code, 0);
  const std::string job = two_nodes() + queued_job("x", 9, 1);  // in no queue: nothing decides
  const int plain = view({"why", "job", "t/x"}, job).code;
  for (const char* kind : {"job.batch", "jobs.batch", "jobs.v1.batch"}) {  // as kubectl has it
    EXPECT_EQ(view({"why", std::string(kind) + "/x", "-n", "t"}, job).code, plain) << kind;
    EXPECT_EQ(view({"why", kind, "t/x"}, job).code, plain) << kind;
  }
  EXPECT_NE(plain, 2);
  EXPECT_EQ(view({"why", "job.apps/x", "-n", "t"}, job).code, 2);
  EXPECT_EQ(view({"plan"}, two_nodes()).code, 0);
  EXPECT_EQ(view({"plan"}, two_nodes() + view_pod("c", 9)).code, 10);
  EXPECT_EQ(view({"why", "t/c"}, two_nodes() + view_pod("c", 4)).code, 10);
  EXPECT_EQ(view({"why", "t/c"}, two_nodes() + view_pod("c", 9)).code, 30);
}

TEST(Views, ColoursOnlyOnATerminalWithoutNoColor) {
  const std::string cluster = two_nodes() + view_node("n2", "r1", 2, "{}", "False");
  EXPECT_FALSE(holds(view({"status"}, cluster).out, "\x1b["));
  EXPECT_TRUE(holds(view({"status"}, cluster, {}, true).out, "\x1b["));
  EXPECT_FALSE(holds(view({"status"}, cluster, {{"NO_COLOR", "1"}}, true).out, "\x1b["));
  EXPECT_FALSE(holds(view({"status", "-o", "json"}, cluster, {}, true).out, "\x1b["));
}

TEST(Views, YamlAndJsonAreTheSameTree) {
  const std::string all = two_nodes() + kQueues + queued_job("big", 8, 2) + view_pod("w", 4);
  for (const char* command : {"status", "queue", "doctor", "preempted", "fit"}) {
    const Seen json = view({command, "-o", "json"}, all);
    const Seen yaml = view({command, "-o", "yaml"}, all);
    const text::Document a = parsed(json.out);
    int documents = 0;
    const Status read = text::read_yaml(
        yaml.out,
        [&](const text::Document& b) {
          ++documents;
          EXPECT_TRUE(text::equal(a.root(), b.root())) << command << '\n' << yaml.out;
          return Status();
        },
        {});
    EXPECT_TRUE(read.ok()) << command << ": " << read.error().to_string();
    EXPECT_EQ(documents, 1);
  }
}

TEST(Views, TheSameInputGivesTheSameBytes) {
  const std::string all = two_nodes() + kQueues + queued_job("big", 8, 2) + view_pod("w", 4);
  for (const char* command : {"status", "gpus", "queue", "doctor", "preempted", "fit"}) {
    for (const char* output : {"table", "json", "yaml", "csv"}) {
      EXPECT_EQ(view({command, "-o", output}, all).out, view({command, "-o", output}, all).out);
    }
  }
}

TEST(Views, HelpNamesTheProgramAsPeopleCallIt) {
  const Seen help = view({"fit", "--help"}, "", {}, false, "kubectl berth");
  EXPECT_TRUE(holds(help.out, "kubectl berth fit --gpus 8")) << help.out;
  const Seen plain = view({"fit", "--help"}, "");
  EXPECT_FALSE(holds(plain.out, "kubectl berth")) << plain.out;
  EXPECT_TRUE(
      holds(view({"frobnicate"}, "", {}, false, "kubectl berth").err, "see kubectl berth --help"));
}

TEST(Views, CompletionAsksTheProgram) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Seen script = view({"completion", shell}, "");
    EXPECT_EQ(script.code, 0);
    EXPECT_TRUE(holds(script.out, " __complete ")) << shell;
  }
  const Seen commands = view({"__complete", ""}, "");
  for (const char* word : {"status", "queue", "gpus", "fit", "preempted", "doctor", "snapshot"}) {
    EXPECT_TRUE(holds(commands.out, std::string(word) + '\t')) << word;
    EXPECT_TRUE(holds(view({"--help"}, "").out, word)) << word;
  }
  EXPECT_FALSE(holds(commands.out, "agent-helper")) << "not for people";
  EXPECT_TRUE(holds(view({"__complete", "gpus", "--dev"}, "").out, "--devices\t"));
  EXPECT_EQ(view({"__complete", "gpus", "-o", "y"}, "").out, "yaml\n:4\n");
  EXPECT_EQ(view({"__complete", "gpus", "--output=c"}, "").out, "csv\n:4\n");
  EXPECT_EQ(view({"__complete", "gpus", "-f", ""}, "").out, ":0\n");
}

TEST(Views, VersionWithoutAServer) {
  const Seen seen = view({"version", "--client"}, "");
  EXPECT_EQ(seen.code, 0);
  EXPECT_TRUE(seen.out.starts_with("berth ")) << seen.out;
  EXPECT_EQ(view({"version", "--kubeconfig", "/does/not/exist"}, "").code, 1);
}

TEST(Views, ColumnsThatSayNothingLeaveTheirRoom) {
  const std::string name = "a-name-that-is-shown-whole";
  const Seen seen = view({"gpus"}, view_node("n0", "\"\"", 8) + view_pod(name, 4, "n0"));
  EXPECT_FALSE(holds(seen.out, "RACK")) << seen.out;
  EXPECT_TRUE(holds(seen.out, "t/" + name + " (4)")) << seen.out;
  EXPECT_TRUE(holds(view({"gpus"}, two_nodes()).out, "RACK"));
}

TEST(Sheets, GiveWayWhereTheyMay) {
  Sheet sheet{{{"NAME", false, true, 8}, {"N", true}}, {{std::string(200, 'a'), "12345678"}}};
  const std::string table = table_text(sheet);
  expect_screen(table);
  EXPECT_TRUE(holds(table, "12345678"));
  EXPECT_TRUE(holds(csv_text({{{"A B"}}, {{"x,\"y\"\n"}}}), "a_b\r\n\"x,\"\"y\"\"\\n\"\r\n"));
  EXPECT_EQ(show_age(-5), "0 s");
  EXPECT_EQ(show_age(std::int64_t{7'200} * 1'000'000'000), "2 h");
  EXPECT_EQ(wrapped(std::string(50, 'a') + ' ' + std::string(50, 'b'), 2),
            std::string(50, 'a') + "\n  " + std::string(50, 'b'));
  EXPECT_EQ(wrapped(std::string(90, 'a') + " 12", 2),
            std::string(78, 'a') + "\n  " + std::string(12, 'a') + " 12");
  Sheet wrapping{{{"A"}, {"B", false, false, 12, true}},
                 {{std::string(60, 'a'), "one two three four five"}}};
  EXPECT_TRUE(holds(table_text(wrapping), "one two three four\n" + std::string(62, ' ') + "five\n"))
      << table_text(wrapping);
}

}  // namespace
}  // namespace berth::app
