// How long an answer of berth why takes on a loaded cluster of 5,000 nodes / 40,000 GPUs.
//
// Nodes of 8 GPUs hold 4 + 2 + 1, so that one GPU is free on each; a backlog waits as well. Each
// cause is put into several subjects; building the Examiner (once per snapshot) is shown apart.
// The second table is of the same nodes with 20 queues in a cohort: what runs are their workloads,
// 50 more wait in each, and jobs of queues and gangs are asked about. In the third the queues
// preempt, and have done so: what runs has the priority of what waits, or a higher one. Times are
// by the wall and of the processor: on a machine that does other work the two differ.
// why [NODES [SUBJECTS OF EACH CAUSE [CAUSE]]]
#include "people/why/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <map>
#include <memory>
#include <string_view>

#include "stopwatch.h"

namespace {

using namespace berth;
using bench::Clock;
using bench::ms_since;

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

// What is asked about, by cause.
using Asked = std::map<std::string, std::vector<people::Subject>>;

constexpr int kQueues = 20, kWaiting = 50, kNodesOfAWorkload = 5;

model::PodSetSpec set_of(const std::string& name, int gpus, int count) {
  model::PodSetSpec out;
  out.name = name;
  out.count = count;
  out.pod = std::make_shared<const model::PodSpec>(pod_of(name, gpus));
  out.requests = out.pod->requests;
  out.requests["nvidia.com/gpu"] = gpus;
  return out;
}

model::WorkloadSpec workload_of(std::string name, int queue, std::vector<model::PodSetSpec> sets) {
  model::WorkloadSpec out;
  out.ns = "team";
  out.name = std::move(name);
  out.queue = fmt::format("q{:02}", queue);
  out.pod_sets = std::move(sets);
  return out;
}

void add_queue(const std::string& name, std::int64_t gpus, model::StopPolicy stop,
               kinds::Inputs& inputs) {
  model::QueueSpec queue;
  queue.name = name;
  queue.cohort = "all";
  queue.stop = stop;
  queue.namespaces = text::Selector();
  const auto any = std::numeric_limits<std::int64_t>::max();
  queue.groups = {{.covered = {"cpu", "memory", "nvidia.com/gpu"},
                   .flavors = {{.flavor = "h100",
                                .resources = {{.resource = "cpu", .nominal = any},
                                              {.resource = "memory", .nominal = any},
                                              {.resource = "nvidia.com/gpu", .nominal = gpus}}}}}};
  inputs.queues.queues.push_back(queue);
  inputs.queues.local_queues.push_back({.ns = "team", .name = name, .queue = name});
}

// What runs on some nodes becomes one workload, which holds quota of a queue.
model::WorkloadSpec running_on(kinds::Inputs& inputs, int number, std::size_t first_pod) {
  std::vector<model::PodSetSpec> sets = {set_of("four", 4, kNodesOfAWorkload),
                                         set_of("two", 2, kNodesOfAWorkload),
                                         set_of("one", 1, kNodesOfAWorkload)};
  for (std::size_t i = 0; i < std::size_t{3} * kNodesOfAWorkload; ++i) {
    model::PodSpec& pod = inputs.pods[first_pod + i];
    pod.queued = true;
    sets[i % 3].pods.push_back(pod.ns + '/' + pod.name);
  }
  model::AdmissionSpec admission;
  admission.queue = fmt::format("q{:02}", number % kQueues);
  for (const model::PodSetSpec& set : sets) {
    model::PodSetAdmission one;
    one.name = set.name;
    one.count = set.count;
    for (const auto& [resource, amount] : set.requests) {
      one.flavors[resource] = "h100";
      one.usage[resource] = amount * set.count;
    }
    admission.pod_sets.push_back(std::move(one));
  }
  auto out = workload_of(fmt::format("runs-{:04}", number), number % kQueues, std::move(sets));
  out.admission = std::move(admission);
  out.admitted = true;
  return out;
}

void ask(kinds::Inputs& inputs, Asked& asked, const std::string& cause, int number, int queue,
         model::PodSetSpec set) {
  const std::string name = fmt::format("{}-{:03}", cause, number);
  inputs.queues.workloads.push_back(workload_of(name, queue, {std::move(set)}));
  asked[cause].push_back({"workload", "team", name});
}

void add_gang(kinds::Inputs& inputs, Asked& asked, const std::string& cause, int number,
              int members, int gpus, const std::string& topology) {
  model::GangSpec gang;
  gang.ns = "team";
  gang.name = fmt::format("{}-{:03}", cause, number);
  gang.min_member = members;
  gang.required_topology = topology;
  for (int i = 0; i < members; ++i) {
    auto pod = pod_of(fmt::format("{}-{:03}", gang.name, i), gpus);
    pod.gang = gang.name;
    inputs.pods.push_back(std::move(pod));
  }
  asked[cause].push_back({"podgroup", "team", gang.name});
  inputs.gangs.push_back(std::move(gang));
}

// inputs: nodes and what runs on them, in their order.
Asked add_queues_and_gangs(kinds::Inputs& inputs, int each) {
  Asked out;
  inputs.queues.flavors.push_back({.name = "h100"});
  inputs.queues.namespaces["team"];
  const int workloads = static_cast<int>(inputs.nodes.size()) / kNodesOfAWorkload;
  const std::int64_t used = std::int64_t{7} * kNodesOfAWorkload * workloads / kQueues;
  for (int q = 0; q < kQueues; ++q) {
    add_queue(fmt::format("q{:02}", q), used, model::StopPolicy::kNone, inputs);
  }
  add_queue(fmt::format("q{:02}", kQueues), 8, model::StopPolicy::kHold, inputs);
  add_queue(fmt::format("q{:02}", kQueues + 1), 4096, model::StopPolicy::kNone, inputs);
  inputs.queues.queues.back().cohort.clear();
  for (int w = 0; w < workloads; ++w) {
    const auto first = static_cast<std::size_t>(w) * 3 * kNodesOfAWorkload;
    inputs.queues.workloads.push_back(running_on(inputs, w, first));
  }
  for (int i = 0; i < kQueues * kWaiting; ++i) {
    inputs.queues.workloads.push_back(workload_of(fmt::format("waits-{:04}", i), i % kQueues,
                                                  {set_of("main", 1 + i % 8, 1 + i % 4)}));
  }
  for (int i = 0; i < each; ++i) {
    ask(inputs, out, "quota", i, i % kQueues, set_of("main", 8, 1 + i % 4));
    ask(inputs, out, "too-large", i, i % kQueues, set_of("main", 8, 6000 + i));
    ask(inputs, out, "on-hold", i, kQueues, set_of("main", 1, 1));
    ask(inputs, out, "no-room", i, kQueues + 1, set_of("main", 4, 2 + i % 4));
    model::PodSetSpec other = set_of("main", 1, 1);
    auto pod = *other.pod;
    pod.requests["rdma/hca"] = other.requests["rdma/hca"] = 1 + i;
    other.pod = std::make_shared<const model::PodSpec>(std::move(pod));
    ask(inputs, out, "not-covered", i, i % kQueues, std::move(other));
    add_gang(inputs, out, "gang", i, 16, 4 + i % 4, "");
    add_gang(inputs, out, "gang-of-rack", i, 17 + i, 1, "topology.kubernetes.io/rack");
  }
  return out;
}

void let_queues_preempt(kinds::Inputs& inputs) {
  for (model::QueueSpec& queue : inputs.queues.queues) {
    queue.within = model::PreemptWithin::kLowerPriority;
    queue.reclaim = model::Reclaim::kAny;
  }
  for (std::size_t i = 0; i < inputs.queues.workloads.size(); ++i) {
    model::WorkloadSpec& spec = inputs.queues.workloads[i];
    spec.priority = spec.admission && i % 2 == 0 ? 30 : 20;
  }
}

kinds::Inputs running(int nodes) {
  kinds::Inputs inputs;
  for (int n = 0; n < nodes; ++n) {
    inputs.nodes.push_back(node_of(n));
    const std::string& name = inputs.nodes.back().name;
    for (const int gpus : {4, 2, 1}) {
      inputs.pods.push_back(pod_of(fmt::format("{}-{}", name, gpus), gpus, name));
    }
  }
  return inputs;
}

// Answers for all, and a line for each cause; false: somebody is not found.
bool measure(kinds::Inputs inputs, const Asked& asked, std::string_view only) {
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  std::sort(inputs.pods.begin(), inputs.pods.end(), by_name);
  std::sort(inputs.gangs.begin(), inputs.gangs.end(), by_name);
  std::sort(inputs.queues.workloads.begin(), inputs.queues.workloads.end(), by_name);
  const auto begin = Clock::now();
  people::WhyOptions options;
  options.plan.now_ns = 1'767'268'800'000'000'000;
  people::Examiner examiner(inputs, options);
  std::printf(
      "%zu nodes, %zu GPUs, %zu pods, %zu workloads of queues; the snapshot and its plan: %.0f "
      "ms\n",
      inputs.nodes.size(), inputs.nodes.size() * 8, inputs.pods.size(),
      inputs.queues.workloads.size(), ms_since(begin));
  std::printf("%-12s %8s %8s %8s %8s  %s\n", "cause", "p50 ms", "p99 ms", "p50 cpu", "p99 cpu",
              "reason");
  Times all;
  for (const auto& [cause, subjects] : asked) {
    if (!only.empty() && cause != only) continue;
    Times times;
    std::string reason;
    std::size_t fixes = 0;
    for (const people::Subject& subject : subjects) {
      const auto start = Clock::now();
      const double cpu = cpu_ms();
      const Result<people::Answer> answer = examiner.why(subject);
      times.wall.push_back(ms_since(start));
      times.cpu.push_back(cpu_ms() - cpu);
      if (!answer.ok()) return false;
      reason = model::name(answer->reason);
      fixes = answer->fixes.size();
    }
    all.add(times);
    times.print(cause, fmt::format("{}, {} fixes", reason, fixes));
  }
  if (!all.wall.empty()) all.print("all", "");
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 5000;
  const int each = argc > 2 ? std::atoi(argv[2]) : 10;
  const std::string_view only = argc > 3 ? argv[3] : "";
  kinds::Inputs inputs = running(nodes);
  kinds::Inputs with_queues = inputs;
  Asked asked;
  for (const auto& [cause, pods] : subjects(each)) {
    for (const model::PodSpec& pod : pods) {
      asked[cause].push_back({"pod", pod.ns, pod.name});
      inputs.pods.push_back(pod);
    }
  }
  const Asked of_queues = add_queues_and_gangs(with_queues, each);
  kinds::Inputs preempting = with_queues;
  let_queues_preempt(preempting);
  const bool answered = measure(std::move(inputs), asked, only) &&
                        measure(std::move(with_queues), of_queues, only) &&
                        measure(std::move(preempting), of_queues, only);
  return answered ? 0 : 1;
}
