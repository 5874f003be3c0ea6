// The commands for people, whole, on files.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/cli.h"
#include "app/cluster_view.h"
#include "app/doctor.h"
#include "app/sheet.h"
#include "app/snapshot_text.h"
#include "explain/fleet.h"
#include "explain/words.h"
#include "serve/certificate.h"
#include "text/base64.h"
#include "text/json.h"
#include "text/path.h"
#include "text/yaml.h"

namespace berth::app {
namespace {

constexpr std::int64_t kViewNow = std::int64_t{1'735'732'800} * 1'000'000'000;  // 2025-01-01T12:00

struct Seen {
  int code = 0;
  std::string out, err;
};

Seen view(std::vector<std::string> arguments, const std::string& manifests,
          std::map<std::string, std::string> environment = {}, bool terminal_out = false,
          const std::string& program = "berth") {
  if (!manifests.empty()) arguments.insert(arguments.end(), {"-f", "-"});
  std::istringstream in(manifests);
  std::ostringstream out, err;
  FakeClock clock(kViewNow);
  Terminal terminal{.in = in,
                    .out = out,
                    .err = err,
                    .out_is_terminal = terminal_out,
                    .wall = clock,
                    .monotonic = clock,
                    .environment = std::move(environment),
                    .program = program};
  Seen seen;
  seen.code = run_command(arguments, terminal);
  seen.out = out.str();
  seen.err = err.str();
  return seen;
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string view_node(const std::string& name, const std::string& rack, int gpus,
                      const std::string& spec = "{}", const std::string& ready = "True") {
  return "{apiVersion: v1, kind: Node, metadata: {name: " + name +
         ", labels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3, nvidia.com/gpu.count: \"" +
         std::to_string(gpus) + "\", topology.kubernetes.io/rack: " + rack + "}}, spec: " + spec +
         ", status: {allocatable: {cpu: \"96\", memory: 1Ti, pods: \"110\", nvidia.com/gpu: \"" +
         std::to_string(gpus) + "\"}, conditions: [{type: Ready, status: \"" + ready +
         "\"}]}}\n---\n";
}

std::string view_pod(const std::string& name, int gpus, const std::string& node = "",
                     const std::string& more = "") {
  return "{apiVersion: v1, kind: Pod, metadata: {name: \"" + name +
         "\", namespace: t, creationTimestamp: \"2025-01-01T11:00:00Z\"}, spec: {" +
         (node.empty() ? "" : "nodeName: " + node + ", ") + more +
         "containers: [{name: c, resources: {limits: {nvidia.com/gpu: \"" + std::to_string(gpus) +
         "\"}}}]}, status: {startTime: \"2025-01-01T11:00:00Z\"}}\n---\n";
}

std::string two_nodes() {
  return view_node("n0", "r0", 8) + view_node("n1", "r1", 8) + view_pod("a", 6, "n0") +
         view_pod("b", 5, "n1");
}

constexpr const char* kQueues = R"(
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: h100}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: research}, spec: {
  cohortName: ml, namespaceSelector: {}, resourceGroups: [{coveredResources: [nvidia.com/gpu],
  flavors: [{name: h100, resources: [{name: nvidia.com/gpu, nominalQuota: 8}]}]}]}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq, namespace: t},
  spec: {clusterQueue: research}}
---
)";

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
  while (std::getline(lines, line)) EXPECT_LE(explain::width_of(line), kScreenWidth) << line;
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

// ---- doctor ----

Diagnosis diagnosis_of(const std::string& manifests) {
  std::istringstream in(manifests);
  std::ostringstream out, err;
  FakeClock clock(kViewNow);
  Terminal terminal{.in = in, .out = out, .err = err, .wall = clock, .monotonic = clock};
  ViewOptions options;
  options.files = {"-"};
  const Result<ClusterView> view = look(options, terminal);
  EXPECT_TRUE(view.ok()) << view.error().to_string();
  explain::PlanOptions plan_options;
  plan_options.now_ns = view->now_ns;
  const explain::PlanResult plan = explain::make_plan(view->inputs, plan_options);
  const explain::Fleet fleet = explain::make_fleet(view->inputs, plan, view->now_ns);
  const explain::QueueView queues = explain::make_queue_view(view->inputs, plan, view->now_ns);
  return diagnose({*view, fleet, queues});
}

std::string ids_of(const Diagnosis& diagnosis) {
  std::string out;
  for (const Finding& finding : diagnosis.findings) {
    out += (out.empty() ? "" : " ") + finding.id;
    EXPECT_FALSE(finding.fix.empty()) << finding.id;
  }
  return out;
}

std::string snapshot_list(const std::string& items, const std::string& absent = "") {
  return R"({"apiVersion":"v1","kind":"List","metadata":{"annotations":{"berth.dev/taken-at":)"
         R"("2025-01-01T12:00:00Z","berth.dev/absent":")" +
         absent + "\"}},\"items\":[" + items + "]}";
}

std::string webhook(const std::string& policy, const std::string& config) {
  return R"({apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration,
    metadata: {name: w}, webhooks: [{name: hook, failurePolicy: )" +
         policy + ", rules: [{resources: [pods]}], clientConfig: {" + config + "}}]}\n---\n";
}

TEST(Doctor, AHealthyClusterIsHealthy) {
  const std::string agent =
      "{apiVersion: berth.dev/v1alpha1, kind: GpuNode, metadata: {name: n0}, status: {gpus: "
      "[{index: 0}, {index: 1}]}}\n---\n";
  const Seen seen = view({"doctor"}, view_node("n0", "r0", 2) + agent);
  EXPECT_EQ(seen.code, 0) << seen.out;
  EXPECT_TRUE(holds(seen.out, "healthy: ")) << seen.out;
}

TEST(Doctor, QueuesThatAreRequiredAndBoundAreWell) {
  const std::string pod =
      "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: other}, spec: {containers: "
      "[{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}}\n---\n";
  const std::string named =
      "{apiVersion: v1, kind: Namespace, metadata: {name: other, labels: "
      "{berth.dev/queue-required: 'true'}}}\n---\n"
      "{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: dept, annotations: "
      "{berth.dev/namespaces: team}}, spec: {}}\n---\n"
      "{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: red}, spec: {parentQueue: "
      "dept}}";
  const std::string ids =
      ids_of(diagnosis_of(view_node("n0", "r0", 2) + std::string(kQueues) + pod + named));
  for (const char* id : {"queue-not-required", "queue-open-to-all", "queue-takes-nobody"}) {
    EXPECT_EQ(ids.find(id), std::string::npos) << ids;
  }
}

TEST(Doctor, EachCheckFindsItsOwn) {
  const std::string node = view_node("n0", "r0", 2);
  const std::string tainted =
      view_node("n1", "r0", 2, "{taints: [{key: team, value: x, effect: NoSchedule}]}");
  const std::string agent0 =
      "{apiVersion: berth.dev/v1alpha1, kind: GpuNode, metadata: {name: n0}, status: "
      "{driverVersion: \"570.1\", gpus: [{index: 0}, {index: 1}]}}\n---\n";
  const std::string agent1 =
      "{apiVersion: berth.dev/v1alpha1, kind: GpuNode, metadata: {name: n1}, status: "
      "{driverVersion: \"580.2\", gpus: [{index: 0}, {index: 1}, {index: 2}]}}\n---\n";
  const std::string n1 = view_node("n1", "r0", 2);
  const std::string flavor =
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: "
      "{name: h100}, spec: {nodeLabels: {pool: nobody}}}\n---\n";
  const std::string queues(kQueues);
  struct Case {
    const char* id;
    std::string manifests;
    const char* without = "";
  };
  const Case cases[] = {
      {"no-nodes", "{apiVersion: v1, kind: Namespace, metadata: {name: x}}"},
      {"node-not-ready", view_node("n0", "r0", 2, "{}", "False")},
      {"agent-missing", node + n1 + agent0},
      {"driver-skew", node + n1 + agent0 + agent1},
      {"allocatable-below-discovered", node + n1 + agent0 + agent1},
      {"gpunode-orphan", node + agent0 + agent1},
      {"taint-nobody-tolerates", node + tainted},
      {"gpus-unreachable", view_node("n0", "r0", 2, "{unschedulable: true}")},
      {"flavor-without-nodes", node + queues.substr(queues.find("---")) + flavor},
      {"quota-above-capacity", node + queues},
      {"gpus-without-quota", node + queues.substr(queues.find("---")) + flavor},
      {"queue-inactive", node + queues.substr(queues.find("---"))},
      {"queue-without-local-queue", node + queues.substr(0, queues.find("{apiVersion: "
                                                                        "kueue.x-k8s.io/v1beta2, "
                                                                        "kind: LocalQueue"))},
      {"local-queue-dangling", node + "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, "
                                      "metadata: {name: x, namespace: t}, spec: {clusterQueue: "
                                      "gone}}\n---\n"},
      {"namespace-without-queue",
       node + queues +
           "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: other}, spec: "
           "{containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}}"},
      {"queue-not-required",
       node + queues +
           "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: other}, spec: "
           "{containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}}"},
      {"queue-open-to-all",
       node + "{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: red}, spec: {}}"},
      {"queue-takes-nobody",
       node + "{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: red, annotations: "
              "{berth.dev/namespaces: 'Team A'}}, spec: {}}"},
      {"group-too-small",
       node + "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g, "
              "namespace: t}, spec: {minMember: 3}}\n---\n{apiVersion: v1, kind: Pod, metadata: "
              "{name: p, namespace: t, annotations: {scheduling.k8s.io/group-name: g}}, spec: "
              "{containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}}"},
      {"workload-never-fits", node + view_pod("w", 9)},
      {"invalid-object", node + view_pod("w", -1)},
      {"webhook-ca-missing", webhook("Ignore", "url: \"https://x\"")},
      {"webhook-ca-invalid", webhook("Fail", "url: \"https://x\", caBundle: bm8=")},
      {"webhook-no-endpoints", webhook("Fail", "service: {namespace: a, name: b}")},
      {"webhook-fails-closed", webhook("Fail", "url: \"https://x\"")},
  };
  for (const Case& c : cases) {
    const std::string ids = ids_of(diagnosis_of(c.manifests));
    EXPECT_TRUE(holds(" " + ids + " ", " " + std::string(c.id) + " ")) << c.id << ": " << ids;
  }
  EXPECT_EQ(ids_of(diagnosis_of(node + agent0)), "");
}

TEST(Doctor, CertificatesThatEnd) {
  const auto with_ca = [](std::int64_t valid_days) {
    const Result<serve::Certificate> ca = serve::make_authority(
        {.common_name = "ca",
         .hosts = {},
         .not_before_ns = kViewNow - std::int64_t{100} * 86'400 * 1'000'000'000,
         .valid_ns = (100 + valid_days) * 86'400 * 1'000'000'000});
    return webhook("Fail", "url: \"https://x\", caBundle: " +
                               text::base64_encode(ca.ok() ? ca->certificate_pem : ""));
  };
  EXPECT_TRUE(holds(ids_of(diagnosis_of(with_ca(-1))), "webhook-ca-expired"));
  EXPECT_TRUE(holds(ids_of(diagnosis_of(with_ca(5))), "webhook-ca-expiring"));
  EXPECT_FALSE(holds(ids_of(diagnosis_of(with_ca(300))), "webhook-ca"));
}

TEST(Doctor, LeasesAndKindsOfASnapshot) {
  const auto lease = [](const std::string& ns, const std::string& name, const std::string& time) {
    return R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":")" + name +
           R"(","namespace":")" + ns +
           R"("},"spec":{"holderIdentity":"x","leaseDurationSeconds":15,"renewTime":")" + time +
           "\"}}";
  };
  const std::string now = "2025-01-01T11:59:55Z", old = "2025-01-01T11:50:00Z";
  const auto ids = [](const std::string& items, const std::string& absent = "") {
    return ids_of(diagnosis_of(snapshot_list(items, absent)));
  };
  EXPECT_TRUE(holds(ids(""), "controller-lease-missing"));
  EXPECT_FALSE(holds(ids(lease("berth-system", "berth-controller", now)), "controller-lease"));
  EXPECT_TRUE(holds(ids(lease("berth-system", "berth-controller", old)), "controller-lease-stale"));
  EXPECT_TRUE(
      holds(ids(lease("kueue-system", "c1f6bfd2.kueue.x-k8s.io", now)), "kueue-also-leads"));
  EXPECT_FALSE(holds(ids(lease("kueue-system", "c1f6bfd2.kueue.x-k8s.io", old)), "kueue-also"));
  EXPECT_TRUE(holds(ids("", "gpunodes.berth.dev"), "crd-missing"));
  EXPECT_TRUE(holds(ids("", "cohorts.kueue.x-k8s.io"), "crd-missing"));
  EXPECT_TRUE(
      holds(ids(R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",)"
                R"("metadata":{"name":"workloads.kueue.x-k8s.io"},"spec":{"group":)"
                R"("kueue.x-k8s.io","versions":[{"name":"v9","served":true}]}})"),
            "crd-version-unknown"));
}

TEST(Doctor, EveryCheckHasASection) {
  std::ifstream file(std::string(BERTH_SOURCE_ROOT) + "/docs/doctor.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(text.empty());
  for (const std::string& id : doctor_checks()) {
    EXPECT_TRUE(holds(text, "\n## " + id + "\n")) << id;
  }
  std::size_t sections = 0;
  for (std::size_t at = text.find("\n## "); at != std::string::npos;
       at = text.find("\n## ", at + 1)) {
    ++sections;
  }
  EXPECT_EQ(sections, doctor_checks().size());
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

// ---- snapshots ----

Listed listed_for_test() {
  Listed listed;
  listed.version.text = "v1.37.0";
  listed.unseen = {"pods in other namespaces"};
  const auto page = [&](kube::Resource resource, const std::string& json) {
    Result<text::Document> document = text::parse_json(json);
    EXPECT_TRUE(document.ok());
    listed.pages.push_back(
        {std::move(resource), std::make_shared<const text::Document>(std::move(*document))});
  };
  page(kube::resources::nodes(),
       R"({"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n0","managedFields":)"
       R"([{"manager":"x"}],"labels":{"nvidia.com/gpu.product":"NVIDIA-H100-80GB-HBM3",)"
       R"("nvidia.com/gpu.count":"8"}},"status":{"allocatable":{"cpu":"8","memory":"64Gi",)"
       R"("pods":"110","nvidia.com/gpu":"8"},"conditions":[{"type":"Ready","status":"True"}]}}]})");
  const auto pod = [](const std::string& name, const std::string& scheduler,
                      const std::string& node) {
    return R"({"metadata":{"name":")" + name + R"(","namespace":"t"},"spec":{"schedulerName":")" +
           scheduler + "\"," + (node.empty() ? "" : R"("nodeName":")" + node + "\",") +
           R"("containers":[{"name":"c","env":[{"name":"TOKEN","value":"hunter2"},)"
           R"({"name":"NCCL_DEBUG","value":"INFO"}],"resources":{"limits":)"
           R"({"nvidia.com/gpu":"2"}}}]}})";
  };
  page(kube::resources::pods(), R"({"kind":"PodList","apiVersion":"v1","items":[)" +
                                    pod("runs", "other", "n0") + ',' + pod("waits", "berth", "") +
                                    ',' + pod("foreign", "default-scheduler", "") + "]}");
  return listed;
}

// Who may not list nodes is not told that there are none.
TEST(Snapshot, WhatWasHiddenIsNotAbsent) {
  Listed listed = listed_for_test();
  listed.pages.clear();
  listed.unseen = {"clusterqueues.kueue.x-k8s.io", "leases.coordination.k8s.io in other namespaces",
                   "nodes"};
  const std::string text = snapshot_text(listed, "https://x:6443", kViewNow);
  for (const char* command : {"status", "gpus", "fit"}) {
    const Seen seen = view({command}, text);
    EXPECT_EQ(seen.code, 1) << command << seen.out;
    EXPECT_TRUE(holds(seen.err, "you may not list nodes; kubectl auth can-i")) << seen.err;
  }
  EXPECT_TRUE(holds(view({"queue"}, text).err, "you may not list clusterqueues"));
  const Seen doctor = view({"doctor"}, text);
  EXPECT_FALSE(holds(doctor.out, "there is no node")) << doctor.out;
  EXPECT_FALSE(holds(doctor.out, "controller-lease-missing")) << doctor.out;
  EXPECT_TRUE(holds(doctor.out, "as far as was seen")) << doctor.out;
}

TEST(Snapshot, WhyWithoutNodesSaysThatTheyCannotBeSeen) {
  Listed listed = listed_for_test();
  listed.pages.clear();
  listed.unseen = {"nodes"};
  const auto page = [&](kube::Resource resource, const std::string& items) {
    const std::string version = resource.group.empty() ? "v1" : resource.group + "/v1beta2";
    const std::string kind = resource.kind;
    Result<text::Document> document =
        text::parse_json(R"({"kind":")" + kind + R"(List","apiVersion":")" + version +
                         R"(","items":[)" + items + "]}");
    ASSERT_TRUE(document.ok());
    listed.pages.push_back(
        {std::move(resource), std::make_shared<const text::Document>(std::move(*document))});
  };
  const std::string asks = R"("containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":)";
  const auto gpus = [&](int n) { return asks + '"' + std::to_string(n) + "\"}}}]"; };
  page(kube::resources::pods(),
       R"({"metadata":{"name":"runs","namespace":"t"},"spec":{"nodeName":"n0",)" + gpus(1) +
           R"(}},{"metadata":{"name":"waits","namespace":"t"},"spec":{"schedulerName":"berth",)" +
           gpus(2) +
           R"(},"status":{"phase":"Pending","conditions":[{"type":"PodScheduled",)"
           R"("status":"False","message":"no node has 2 GPUs"}]}})");
  const std::string kueue = "kueue.x-k8s.io";
  page({kueue, "v1beta2", "resourceflavors", "ResourceFlavor", false},
       R"({"metadata":{"name":"h100"}})");
  page({kueue, "v1beta2", "clusterqueues", "ClusterQueue", false},
       R"({"metadata":{"name":"cq"},"spec":{"namespaceSelector":{},"resourceGroups":[{)"
       R"("coveredResources":["nvidia.com/gpu"],"flavors":[{"name":"h100","resources":[{)"
       R"("name":"nvidia.com/gpu","nominalQuota":4}]}]}]}})");
  page({kueue, "v1beta2", "localqueues", "LocalQueue", true},
       R"({"metadata":{"name":"lq","namespace":"t"},"spec":{"clusterQueue":"cq"}})");
  const auto workload = [&](const std::string& name, int n) {
    return R"({"metadata":{"name":")" + name + R"(","namespace":"t"},"spec":{"queueName":"lq",)" +
           R"("podSets":[{"name":"main","count":1,"template":{"spec":{)" + gpus(n) + "}}}]}}";
  };
  page({kueue, "v1beta2", "workloads", "Workload", true},
       workload("small", 4) + ',' + workload("large", 8));
  const std::string text = snapshot_text(listed, "https://x:6443", kViewNow);

  const Seen why = view({"why", "pod", "t/waits"}, text);
  EXPECT_EQ(why.code, 10) << why.out << why.err;
  EXPECT_TRUE(holds(why.out, "nodes cannot be seen, so where it could run is not")) << why.out;
  EXPECT_TRUE(holds(why.out, "no node has 2 GPUs")) << why.out;
  EXPECT_FALSE(holds(why.out, "NoNodes")) << why.out;
  EXPECT_FALSE(holds(why.out, "FIXES")) << why.out;
  EXPECT_TRUE(holds(why.out, "partial  you may not see nodes")) << why.out;
  const Seen runs = view({"why", "pod", "t/runs"}, text);
  EXPECT_EQ(runs.code, 0) << runs.out;
  const Seen small = view({"why", "workload", "t/small"}, text);
  EXPECT_TRUE(holds(small.out, "its quota is free; nodes cannot be seen")) << small.out;
  const Seen large = view({"why", "workload", "t/large"}, text);
  EXPECT_EQ(large.code, 30) << large.out;
  EXPECT_TRUE(holds(large.out, "ExceedsMaxQuota")) << large.out;
  EXPECT_FALSE(holds(view({"queue"}, text).out, "NoNodes"));
}

TEST(Views, ColumnsThatSayNothingLeaveTheirRoom) {
  const std::string name = "a-name-that-is-shown-whole";
  const Seen seen = view({"gpus"}, view_node("n0", "\"\"", 8) + view_pod(name, 4, "n0"));
  EXPECT_FALSE(holds(seen.out, "RACK")) << seen.out;
  EXPECT_TRUE(holds(seen.out, "t/" + name + " (4)")) << seen.out;
  EXPECT_TRUE(holds(view({"gpus"}, two_nodes()).out, "RACK"));
}

TEST(Snapshot, IsReadAsTheClusterWas) {
  const std::string text = snapshot_text(listed_for_test(), "https://x:6443", kViewNow - 5);
  EXPECT_FALSE(holds(text, "managedFields"));
  EXPECT_FALSE(holds(text, "hunter2"));
  EXPECT_TRUE(holds(text, "INFO"));
  std::istringstream in(text);
  std::ostringstream out, err;
  FakeClock clock(kViewNow);
  Terminal terminal{.in = in, .out = out, .err = err, .wall = clock, .monotonic = clock};
  ViewOptions options;
  options.files = {"-"};
  const Result<ClusterView> view = look(options, terminal);
  ASSERT_TRUE(view.ok()) << view.error().to_string();
  EXPECT_TRUE(view->live);
  EXPECT_EQ(view->now_ns, kViewNow - 5);
  EXPECT_EQ(view->server_version, "v1.37.0");
  EXPECT_EQ(view->unseen, std::vector<std::string>{"pods in other namespaces"});
  ASSERT_EQ(view->inputs.nodes.size(), 1U);
  ASSERT_EQ(view->inputs.pods.size(), 2U);  // the unbound one of another scheduler is not ours
  EXPECT_EQ(view->inputs.pods[0].name, "runs");
  EXPECT_EQ(view->inputs.pods[1].name, "waits");
  EXPECT_NE(view->find("Pod", "t", "foreign"), nullptr);  // it is there to be looked at
  EXPECT_EQ(view->of_kind("Pod").size(), 3U);
}

TEST(Snapshot, APartialViewSaysSo) {
  const std::string text = snapshot_text(listed_for_test(), "https://x:6443", kViewNow);
  const Seen seen = view({"status"}, text);
  EXPECT_EQ(seen.code, 0) << seen.err;
  EXPECT_TRUE(holds(seen.err, "partial view, not seen: pods in other namespaces")) << seen.err;
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
