#include "app/views/gpu_loads.h"

#include <gtest/gtest.h>

#include <sstream>

namespace berth::app {
namespace {

people::FleetNode loaded_node(const std::string& name, int gpus) {
  people::FleetNode node;
  node.name = name;
  for (int i = 0; i < gpus; ++i) {
    node.gpus.emplace_back();
    node.gpus.back().index = i;
  }
  return node;
}

TEST(GpuLoads, AreTakenFromAPageOfMetrics) {
  people::FleetNode node = loaded_node("n0", 3);
  take_loads(
      "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 64\n"
      "DCGM_FI_DEV_FB_USED{gpu=\"0\"} 61440\nDCGM_FI_DEV_FB_FREE{gpu=\"0\"} 20480\n"
      "DCGM_FI_DEV_FB_USED{gpu=\"1\"} 5\n"
      "DCGM_FI_DEV_GPU_UTIL{gpu=\"9\"} 1\n",
      node);
  EXPECT_EQ(node.gpus[0].busy_percent, 64);
  EXPECT_EQ(node.gpus[0].memory_used_mib, 61'440);
  EXPECT_EQ(node.gpus[0].memory_mib, 81'920);
  EXPECT_EQ(node.gpus[1].busy_percent, -1);
  EXPECT_EQ(node.gpus[1].memory_mib, -1) << "half of it is nothing";
  EXPECT_EQ(node.gpus[2].busy_percent, -1);
  take_loads("<html>no</html>\x01", node);
  EXPECT_EQ(node.gpus[2].busy_percent, -1);
}

TEST(GpuLoads, AnAgentsPodIsAskedElseTheNode) {
  std::istringstream in(
      "{apiVersion: v1, kind: Pod, metadata: {name: berth-agent-x, namespace: berth-system, "
      "labels: "
      "{app.kubernetes.io/name: berth, app.kubernetes.io/component: agent}}, spec: {nodeName: n0, "
      "serviceAccountName: berth-agent}, status: {phase: Running}}\n---\n"
      "{apiVersion: v1, kind: Pod, metadata: {name: berth-agent-y, namespace: berth-system, "
      "labels: "
      "{app.kubernetes.io/name: berth, app.kubernetes.io/component: agent}}, spec: {nodeName: n1, "
      "serviceAccountName: berth-agent}, status: {phase: Pending}}\n---\n"
      // A tenant's, which says what it is told to say.
      "{apiVersion: v1, kind: Pod, metadata: {name: fake, namespace: a-team, labels: "
      "{app.kubernetes.io/name: berth, app.kubernetes.io/component: agent}}, spec: {nodeName: n1, "
      "serviceAccountName: berth-agent, containers: [{name: a, ports: [{name: health, "
      "containerPort: 1}, {name: metrics, containerPort: 9500}]}]}, status: {phase: "
      "Running}}\n---\n"
      "{apiVersion: v1, kind: Pod, metadata: {name: fake-dcgm, namespace: a-team, labels: "
      "{app: nvidia-dcgm-exporter}}, spec: {nodeName: n1}, status: {phase: Running}}\n---\n"
      "{apiVersion: v1, kind: Pod, metadata: {name: dcgm-x, namespace: gpu-operator, labels: "
      "{app: nvidia-dcgm-exporter}}, spec: {nodeName: n2}, status: {phase: Running}}\n");
  std::ostringstream out, err;
  FakeClock clock(0);
  Terminal terminal{.in = in, .out = out, .err = err, .wall = clock, .monotonic = clock};
  ViewOptions options;
  options.files = {"-"};
  const Result<ClusterView> view = look(options, terminal);
  ASSERT_TRUE(view.ok()) << view.error().to_string();
  people::Fleet fleet;
  fleet.nodes = {loaded_node("n0", 1), loaded_node("n1", 1), loaded_node("n2", 1),
                 loaded_node("cpu", 0)};
  fleet.nodes.push_back(loaded_node("gone", 1));
  fleet.nodes.back().ready = false;
  const auto targets = load_targets(*view, fleet, "berth-system");
  ASSERT_EQ(targets.size(), 3U);
  EXPECT_EQ(targets.at("n0"),
            "/api/v1/namespaces/berth-system/pods/berth-agent-x:9400/proxy/metrics");
  EXPECT_EQ(targets.at("n1"), "/api/v1/nodes/n1:9400/proxy/metrics");
  EXPECT_EQ(targets.at("n2"), "/api/v1/namespaces/gpu-operator/pods/dcgm-x:9400/proxy/metrics");
  const auto elsewhere = load_targets(*view, fleet, "a-team");  // that is where berth is
  EXPECT_EQ(elsewhere.at("n0"), "/api/v1/nodes/n0:9400/proxy/metrics");
  EXPECT_EQ(elsewhere.at("n1"), "/api/v1/namespaces/a-team/pods/fake:9500/proxy/metrics");
  ask_loads(options, *view, terminal, fleet);  // files: nobody is asked
  EXPECT_EQ(fleet.nodes[0].gpus[0].busy_percent, -1);
}

}  // namespace
}  // namespace berth::app
