// deep-queue: 1,300 nodes, fair sharing and topology, 10,000 jobs waiting in one queue.
//
//   deep-queue [--jobs N] [--nodes N]
//
// All jobs are there at the start; each runs for 60 s of virtual time once it is admitted, with its
// domains, nodes and devices decided. Printed: admissions per second of decision CPU, and the wait
// of the median job beside the shortest that the cluster allows.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <queue>

#include "decide/admit/engine.h"
#include "decide/node_ground.h"
#include "queue_fleet.h"

namespace berth::bench {
namespace {

double cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

int run(int jobs, int nodes) {
  std::vector<model::NodeSpec> hosts;
  model::SnapshotBuilder builder;
  for (int i = 0; i < nodes; ++i) {
    hosts.push_back(gpu_host(i));
    builder.upsert_node(hosts.back());
  }
  auto inputs = gpu_world({gpu_queue("deep", nodes * 8), gpu_queue("other", 0)}, true);
  inputs.config.fair_sharing = true;
  const admit::Book book(inputs);
  schedule::Placer placer;
  const decide::InputIndex index(hosts, {});
  decide::NodeGround ground({.builder = builder, .placer = placer, .book = book, .index = index});
  std::deque<model::WorkloadSpec> specs;
  admit::Engine engine(book, &ground, {.why = false});
  std::int64_t gpus = 0;
  for (int j = 0; j < jobs; ++j) {
    const int pods = 1 << (j % 4);  // 1, 2, 4, 8 nodes
    auto job = gpu_job(fmt::format("job-{:05}", j), "deep", pods, 8, 0, 0);
    job.created_ns = j;
    job.pod_sets[0].topology.mode =
        j % 2 == 0 ? model::TopologyAsk::Mode::kRequired : model::TopologyAsk::Mode::kPreferred;
    job.pod_sets[0].topology.level = kRackKey;
    gpus += pods * 8;
    const model::WorkloadSpec& spec = specs.emplace_back(std::move(job));
    ground.know(engine.add(spec, 0), spec, false);
  }
  using Finish = std::pair<std::int64_t, admit::WorkloadId>;
  std::priority_queue<Finish, std::vector<Finish>, std::greater<>> running;
  std::vector<std::int64_t> waits;
  double spent = 0;
  std::int64_t now = 0;
  while (waits.size() < static_cast<std::size_t>(jobs)) {
    const double before = cpu_s();
    const admit::CycleResult result = engine.step(now);
    spent += cpu_s() - before;
    for (const auto id : result.admitted) {
      waits.push_back(now);
      running.emplace(now + 60 * kSecondNs, id);
    }
    if (running.empty()) break;
    now = running.top().first;
    const double leaving = cpu_s();
    while (!running.empty() && running.top().first == now) {
      engine.finish(running.top().second);
      ground.forget(running.top().second);
      running.pop();
    }
    spent += cpu_s() - leaving;
  }
  std::sort(waits.begin(), waits.end());
  const double bound = static_cast<double>(gpus) / (nodes * 8.0) * 60 / 2;
  fmt::print(
      "deep-queue: {} nodes, {} jobs: {} admitted, {:.0f} admissions per CPU second ({:.1f} s in "
      "all), median wait {:.0f} s (work alone: about {:.0f} s), last {:.0f} s\n",
      nodes, jobs, waits.size(), static_cast<double>(waits.size()) / spent, spent,
      static_cast<double>(waits[waits.size() / 2]) / 1e9, bound,
      static_cast<double>(waits.back()) / 1e9);
  return waits.size() == static_cast<std::size_t>(jobs) ? 0 : 1;
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) {
  int jobs = 10'000, nodes = 1300;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--jobs") == 0) jobs = std::max(1, std::atoi(argv[i + 1]));
    if (std::strcmp(argv[i], "--nodes") == 0) nodes = std::max(1, std::atoi(argv[i + 1]));
  }
  return berth::bench::run(jobs, nodes);
}
