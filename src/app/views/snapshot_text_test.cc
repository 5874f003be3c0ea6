// What a snapshot keeps, and that it is read as the cluster was.
#include "app/views/snapshot_text.h"

#include <gtest/gtest.h>

#include <memory>

#include "app/views/cluster_view.h"
#include "app/views/views_for_test.h"
#include "text/json.h"

namespace berth::app {
namespace {

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

}  // namespace
}  // namespace berth::app
