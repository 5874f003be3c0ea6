// reclaim: how long the decision takes that gives a queue its quota back.
//
//   reclaim [--repeat N]
//
// entitled   500 nodes x 8 GPUs, all used by 500 jobs of another queue, half of them borrowed; the
//            owner asks for its 2,000 GPUs in one job of 250 pods.
// topology   2,000 nodes, 700 jobs that may be preempted; a job of 16 x 8 GPUs wants one rack.
// Best and median of repeated cold decisions; quota, topology and devices are decided, nothing is
// left to a later scheduler.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "decide/queueing.h"
#include "queue_fleet.h"

namespace berth::bench {
namespace {

struct Scene {
  std::string name;
  double target_ms = 0;
  bool topology = false;
  std::vector<model::NodeSpec> nodes;
  std::vector<model::PodSpec> pods;
  model::QueueInputs inputs;
};

Scene entitled() {
  Scene out{.name = "entitled: 2,000 of 4,000 GPUs in one job", .target_ms = 100};
  for (int i = 0; i < 500; ++i) out.nodes.push_back(gpu_host(i));
  auto owner = gpu_queue("owner", 2000);
  owner.reclaim = model::Reclaim::kAny;
  out.inputs = gpu_world({gpu_queue("guest", 2000), owner}, false);
  for (int i = 0; i < 500; ++i) {
    auto job = gpu_job(fmt::format("guest-{:03}", i), "guest", 1, 8, 0, i);
    run_on(job, i, false, out.pods);
    out.inputs.workloads.push_back(std::move(job));
  }
  out.inputs.workloads.push_back(gpu_job("owner-job", "owner", 250, 8, 0, 1000));
  return out;
}

// Of 2,000 nodes 1,400 run jobs of two pods that may go, the others jobs that may not.
Scene with_topology() {
  Scene out{.name = "topology: 700 candidates on 2,000 nodes", .target_ms = 500, .topology = true};
  for (int i = 0; i < 2000; ++i) out.nodes.push_back(gpu_host(i));
  auto owner = gpu_queue("owner", 8000);
  owner.reclaim = model::Reclaim::kLowerPriority;
  out.inputs = gpu_world({gpu_queue("guest", 8000), owner}, true);
  for (int i = 0; i < 1000; ++i) {
    const bool may_go = i % 10 < 7;
    auto job = gpu_job(fmt::format("guest-{:04}", i), "guest", 2, 8, may_go ? 0 : 100, i);
    run_on(job, 2 * i, true, out.pods);
    out.inputs.workloads.push_back(std::move(job));
  }
  auto job = gpu_job("owner-job", "owner", 11, 8, 50, 5000);
  job.pod_sets[0].topology.mode = model::TopologyAsk::Mode::kRequired;
  job.pod_sets[0].topology.level = kRackKey;
  out.inputs.workloads.push_back(std::move(job));
  return out;
}

void measure(const Scene& scene, int repeat) {
  std::vector<double> times;
  std::size_t victims = 0, admitted = 0;
  for (int r = 0; r < repeat; ++r) {
    model::SnapshotBuilder builder;
    for (const auto& node : scene.nodes) builder.upsert_node(node);
    for (const auto& pod : scene.pods) builder.upsert_pod(pod);
    schedule::Placer placer;
    const decide::QueueSetting setting(scene.inputs, scene.nodes, scene.pods);
    decide::Queueing queueing(setting, builder, placer, 10'000 * kSecondNs);
    model::Decision decision;
    const auto start = std::chrono::steady_clock::now();
    queueing.cycle(10'000 * kSecondNs, decision);  // who must go
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
    queueing.cycle(10'001 * kSecondNs, decision);  // they are gone
    victims = decision.evictions.size();
    admitted = decision.admissions.size();
  }
  std::sort(times.begin(), times.end());
  fmt::print("{}: {} victims, {}; best {:.1f} ms, median {:.1f} ms, target {:.0f} ms\n", scene.name,
             victims, admitted == 1 ? "then it is admitted" : "NOT admitted", times.front(),
             times[times.size() / 2], scene.target_ms);
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) {
  int repeat = 5;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--repeat") == 0) repeat = std::max(1, std::atoi(argv[i + 1]));
  }
  berth::bench::measure(berth::bench::entitled(), repeat);
  berth::bench::measure(berth::bench::with_topology(), repeat);
  return 0;
}
