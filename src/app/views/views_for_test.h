// The commands for people on manifests that a test writes, and short ways to write those.
#pragma once

#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/cli/cli.h"
#include "base/clock.h"

namespace berth::app {

inline constexpr std::int64_t kViewNow =
    std::int64_t{1'735'732'800} * 1'000'000'000;  // 2025-01-01T12:00

struct Seen {
  int code = 0;
  std::string out, err;
};

inline Seen view(std::vector<std::string> arguments, const std::string& manifests,
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

inline bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

inline std::string view_node(const std::string& name, const std::string& rack, int gpus,
                             const std::string& spec = "{}", const std::string& ready = "True") {
  return "{apiVersion: v1, kind: Node, metadata: {name: " + name +
         ", labels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3, nvidia.com/gpu.count: \"" +
         std::to_string(gpus) + "\", topology.kubernetes.io/rack: " + rack + "}}, spec: " + spec +
         ", status: {allocatable: {cpu: \"96\", memory: 1Ti, pods: \"110\", nvidia.com/gpu: \"" +
         std::to_string(gpus) + "\"}, conditions: [{type: Ready, status: \"" + ready +
         "\"}]}}\n---\n";
}

inline std::string view_pod(const std::string& name, int gpus, const std::string& node = "",
                            const std::string& more = "") {
  return "{apiVersion: v1, kind: Pod, metadata: {name: \"" + name +
         "\", namespace: t, creationTimestamp: \"2025-01-01T11:00:00Z\"}, spec: {" +
         (node.empty() ? "" : "nodeName: " + node + ", ") + more +
         "containers: [{name: c, resources: {limits: {nvidia.com/gpu: \"" + std::to_string(gpus) +
         "\"}}}]}, status: {startTime: \"2025-01-01T11:00:00Z\"}}\n---\n";
}

inline std::string two_nodes() {
  return view_node("n0", "r0", 8) + view_node("n1", "r1", 8) + view_pod("a", 6, "n0") +
         view_pod("b", 5, "n1");
}

inline constexpr const char* kQueues = R"(
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

}  // namespace berth::app
