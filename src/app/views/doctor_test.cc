// berth doctor on files and snapshots: every check finds its own.
#include "app/views/doctor.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "app/views/cluster_view.h"
#include "app/views/views_for_test.h"
#include "edge/serve/certificate.h"
#include "people/view/fleet.h"
#include "text/base64.h"

namespace berth::app {
namespace {

Diagnosis diagnosis_of(const std::string& manifests) {
  std::istringstream in(manifests);
  std::ostringstream out, err;
  FakeClock clock(kViewNow);
  Terminal terminal{.in = in, .out = out, .err = err, .wall = clock, .monotonic = clock};
  ViewOptions options;
  options.files = {"-"};
  const Result<ClusterView> view = look(options, terminal);
  EXPECT_TRUE(view.ok()) << view.error().to_string();
  people::PlanOptions plan_options;
  plan_options.now_ns = view->now_ns;
  const people::PlanResult plan = people::make_plan(view->inputs, plan_options);
  const people::Fleet fleet = people::make_fleet(view->inputs, plan, view->now_ns);
  const people::QueueView queues = people::make_queue_view(view->inputs, plan, view->now_ns);
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

}  // namespace
}  // namespace berth::app
