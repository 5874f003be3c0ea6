// How long an answer of berth why takes on a loaded cluster of 5,000 nodes / 40,000 GPUs.
//
// Nodes of 8 GPUs hold 4 + 2 + 1, so that one GPU is free on each; a backlog waits as well. Each
// cause is put into several subjects; building the Examiner (once per snapshot) is shown apart.
// Times are by the wall and of the processor: on a machine that does other work the two differ.
#include "explain/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>

namespace {

using namespace berth;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double cpu_ms() { return static_cast<double>(std::clock()) * 1e3 / CLOCKS_PER_SEC; }

struct Times {
  std::vector<double> wall, cpu;

  void add(const Times& other) {
    wall.insert(wall.end(), other.wall.begin(), other.wall.end());
    cpu.insert(cpu.end(), other.cpu.begin(), other.cpu.end());
  }
  void print(const std::string& name, const std::string& rest) {
    for (std::vector<double>* times : {&wall, &cpu}) std::sort(times->begin(), times->end());
    std::printf("%-12s", name.c_str());
    for (const std::vector<double>* times : {&wall, &cpu}) {
      const std::size_t n = times->size();
      std::printf(" %8.1f %8.1f", (*times)[n / 2], (*times)[n * 99 / 100]);
    }
    std::printf("  %s\n", rest.c_str());
  }
};

model::NodeSpec node_of(int number) {
  model::NodeSpec node;
  node.name = fmt::format("node-{:05}", number);
  node.labels = {{model::kHostnameLabel, node.name},
                 {model::kZoneLabel, fmt::format("z{}", number % 3)},
                 {"topology.kubernetes.io/rack", fmt::format("r{}", number / 16)},
                 {"pool", number % 10 == 0 ? "spare" : "main"}};
  if (number % 10 == 0) node.taints.push_back({.key = "dedicated", .value = "spare"});
  node.allocatable = {{"cpu", 192'000}, {"memory", std::int64_t{2} << 40}, {"pods", 110}};
  for (int g = 0; g < 8; ++g) {
    model::GpuSpec gpu;
    gpu.index = g;
    gpu.model = "NVIDIA-H100-80GB-HBM3";
    gpu.memory_mib = 81559;
    gpu.numa = g / 4;
    gpu.nvlink_clique = 0;
    node.gpus.push_back(std::move(gpu));
  }
  return node;
}

model::PodSpec pod_of(std::string name, int gpus, std::string node = {}) {
  model::PodSpec pod;
  pod.ns = "team";
  pod.name = std::move(name);
  pod.requests = {{"cpu", 4000}, {"memory", std::int64_t{16} << 30}};
  pod.gpu = {.kind = model::GpuDemandSpec::Kind::kWhole, .count = gpus};
  pod.gpus_by_container = {gpus};
  pod.node_name = std::move(node);
  pod.priority = pod.node_name.empty() ? 0 : 100;
  return pod;
}

// Subjects by cause.
std::map<std::string, std::vector<model::PodSpec>> subjects(int each) {
  std::map<std::string, std::vector<model::PodSpec>> out;
  for (int i = 0; i < each; ++i) {
    out["fragmented"].push_back(pod_of(fmt::format("fragmented-{:03}", i), 4 + i % 2));
    auto taint = pod_of(fmt::format("taint-{:03}", i), 1);
    taint.node_selector["pool"] = "spare";
    taint.requests["cpu"] += i;
    out["taint"].push_back(taint);
    auto selector = pod_of(fmt::format("selector-{:03}", i), 1);
    selector.node_selector["pool"] = fmt::format("nowhere-{}", i);
    out["selector"].push_back(selector);
    auto cpu = pod_of(fmt::format("cpu-{:03}", i), 1);
    cpu.requests["cpu"] = 185'000 + i;
    out["cpu"].push_back(cpu);
    out["never"].push_back(pod_of(fmt::format("never-{:03}", i), 9 + i % 8));
    auto gated = pod_of(fmt::format("gated-{:03}", i), 8);
    gated.gated = true;
    out["gated"].push_back(gated);
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 5000;
  const int each = argc > 2 ? std::atoi(argv[2]) : 10;
  objects::Inputs inputs;
  for (int n = 0; n < nodes; ++n) {
    inputs.nodes.push_back(node_of(n));
    const std::string& name = inputs.nodes.back().name;
    for (const int gpus : {4, 2, 1}) {
      inputs.pods.push_back(pod_of(fmt::format("{}-{}", name, gpus), gpus, name));
    }
  }
  const auto causes = subjects(each);
  for (const auto& [cause, pods] : causes) {
    inputs.pods.insert(inputs.pods.end(), pods.begin(), pods.end());
  }
  std::sort(inputs.pods.begin(), inputs.pods.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  const auto begin = Clock::now();
  explain::WhyOptions options;
  options.plan.now_ns = 1'767'268'800'000'000'000;
  explain::Examiner examiner(inputs, options);
  std::printf("%d nodes, %d GPUs, %zu pods; the snapshot and its plan: %.0f ms\n", nodes, nodes * 8,
              inputs.pods.size(), ms_since(begin));
  std::printf("%-12s %8s %8s %8s %8s  %s\n", "cause", "p50 ms", "p99 ms", "p50 cpu", "p99 cpu",
              "reason");
  Times all;
  for (const auto& [cause, pods] : causes) {
    Times times;
    std::string reason;
    std::size_t fixes = 0;
    for (const model::PodSpec& pod : pods) {
      const auto start = Clock::now();
      const double cpu = cpu_ms();
      const Result<explain::Answer> answer = examiner.why({"pod", pod.ns, pod.name});
      times.wall.push_back(ms_since(start));
      times.cpu.push_back(cpu_ms() - cpu);
      if (!answer.ok()) return 1;
      reason = model::name(answer->reason);
      fixes = answer->fixes.size();
    }
    all.add(times);
    times.print(cause, fmt::format("{}, {} fixes", reason, fixes));
  }
  all.print("all", "");
  return 0;
}
