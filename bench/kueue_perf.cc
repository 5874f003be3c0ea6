// kueue-perf: the load of Kueue's own scheduler performance tests, without an API server.
//
//   kueue-perf [baseline|large-scale|tas|all] [--virtual] [--min-runtime-ms N] [--repeat N]
//
// Workloads arrive by the clock, run for their time once admitted, and finish; a preempted one
// starts again from nothing. In real time the clock is the machine's and decisions take what they
// take; --virtual jumps from event to event and a decision takes no time. Printed: makespan beside
// the work-conserving bound, mean time to admission by class, decision CPU, peak memory.
// --min-runtime-ms turns on the policy of that name: whoever runs is nobody's victim for so long.
// Kueue's rules alone cannot come near the bound: the large class preempts every 1.2 s what needs
// 0.5 s to run, so the medium class only finishes when the large one has.
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <queue>
#include <string>

#include "decide/admit/engine.h"
#include "decide/node_ground.h"

namespace berth::bench {
namespace {

constexpr std::int64_t kMs = 1'000'000;

struct Class {
  const char* name;
  int count;  // per queue
  std::int64_t cpu_milli, run_ms, every_ms;
  int priority;
  int pods;  // with topology
};

struct Load {
  std::string name;
  int cohorts = 5, queues = 6;
  std::array<Class, 3> classes;
  bool topology = false;
  double target_s = 0;
};

Load load_of(const std::string& name) {
  Load out{.name = name,
           .classes = {{{"small", 350, 1000, 200, 100, 50, 2},
                        {"medium", 100, 5000, 500, 500, 100, 4},
                        {"large", 50, 20000, 1000, 1200, 200, 8}}},
           .target_s = 70};
  if (name == "large-scale") {
    out.cohorts = 10;
    out.queues = 100;
    out.classes[0].count = 36;
    out.classes[1].count = 11;
    out.classes[2].count = 3;
    out.target_s = 8;
  }
  out.topology = name == "tas";
  return out;
}

constexpr const char* kBlock = "cloud.provider.com/topology-block";
constexpr const char* kRack = "cloud.provider.com/topology-rack";

model::QueueInputs world_of(const Load& load) {
  model::QueueInputs out;
  out.flavors.emplace_back();
  out.flavors.back().name = "default";
  if (load.topology) {
    out.flavors.back().topology = "default";
    out.topologies.push_back({.name = "default", .levels = {kBlock, kRack, model::kHostnameLabel}});
    out.config.gates["TASBalancedPlacement"] = true;
  }
  for (int c = 0; c < load.cohorts; ++c) {
    for (int q = 0; q < load.queues; ++q) {
      model::QueueSpec queue;
      queue.name = fmt::format("cq-{}-{}", c, q);
      queue.cohort = fmt::format("cohort-{}", c);
      queue.namespaces = text::Selector{};
      queue.within = model::PreemptWithin::kLowerPriority;
      queue.reclaim = model::Reclaim::kAny;
      queue.groups = {{.covered = {"cpu"},
                       .flavors = {{.flavor = "default",
                                    .resources = {{.resource = "cpu",
                                                   .nominal = 20'000,
                                                   .borrowing_limit = 100'000,
                                                   .lending_limit = {}}}}}}};
      out.local_queues.push_back({.ns = queue.name, .name = "lq", .queue = queue.name});
      out.queues.push_back(std::move(queue));
    }
  }
  return out;
}

std::vector<model::NodeSpec> nodes_of(const Load& load) {
  std::vector<model::NodeSpec> out;
  if (!load.topology) return out;
  for (int i = 0; i < 640; ++i) {
    model::NodeSpec node;
    node.name = fmt::format("node-{:03}", i);
    node.labels = {
        {kBlock, "b0"}, {kRack, fmt::format("r{:02}", i / 64)}, {model::kHostnameLabel, node.name}};
    node.allocatable = {{"cpu", 96'000}, {"memory", 256LL << 30}, {"pods", 110}};
    out.push_back(std::move(node));
  }
  return out;
}

// When something happens: an arrival, or the end of a run.
struct Event {
  std::int64_t at_ms = 0;
  std::uint32_t index = 0;  // of the job
  std::uint32_t run = 0;    // which of its starts; 0: the arrival
  bool operator>(const Event& other) const {
    return at_ms != other.at_ms ? at_ms > other.at_ms : index > other.index;
  }
};

struct Job {
  std::uint32_t kind = 0;
  std::int64_t created_ms = 0;
  std::uint32_t runs = 0;
  std::int64_t first_admitted_ms = -1;
};

double thread_cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

struct Report {
  double makespan_s = 0, cpu_s = 0, busy = 0;
  std::array<double, 3> wait_s{};
  std::uint64_t cycles = 0, evictions = 0, steps = 0;
};

class Run {
 public:
  Run(const Load& load, bool real_time, std::int64_t min_runtime_ms)
      : load_(load),
        real_(real_time),
        book_(world_of(load)),
        nodes_(nodes_of(load)),
        index_(nodes_, {}),
        ground_({.builder = builder_,
                 .placer = placer_,
                 .book = book_,
                 .index = index_,
                 .topology_only = true}),
        engine_(book_, load.topology ? &ground_ : nullptr,
                {.why = false, .policy = {.min_runtime_ns = min_runtime_ms * kMs}}) {
    make_jobs();
  }

  Report run() {
    start_ = std::chrono::steady_clock::now();
    std::size_t left = jobs_.size();
    while (left > 0) {
      const std::int64_t now = advance();
      const double before = thread_cpu_s();
      while (!events_.empty() && events_.top().at_ms <= now) {
        const Event event = events_.top();
        events_.pop();
        left -= happen(event, now) ? 1 : 0;
      }
      decide(now);
      report_.cpu_s += thread_cpu_s() - before;
      ++report_.steps;
      last_ms_ = now;
    }
    report_.makespan_s = static_cast<double>(last_ms_) / 1000;
    report_.cycles = engine_.cycles();
    finish_report();
    return report_;
  }

 private:
  void make_jobs() {
    for (int c = 0; c < load_.cohorts * load_.queues; ++c) {
      for (std::uint32_t k = 0; k < 3; ++k) {
        for (int i = 0; i < load_.classes[k].count; ++i) {
          jobs_.push_back({.kind = k, .created_ms = i * load_.classes[k].every_ms});
          queue_of_.push_back(static_cast<std::uint32_t>(c));
        }
      }
    }
    for (std::uint32_t j = 0; j < jobs_.size(); ++j) {
      events_.push({.at_ms = jobs_[j].created_ms, .index = j, .run = 0});
    }
    ids_.resize(jobs_.size(), admit::kNoId);
    for (const auto& kind : load_.classes) {
      auto pod = std::make_shared<model::PodSpec>();
      pod->requests = {{"cpu", load_.topology ? kind.cpu_milli / kind.pods : kind.cpu_milli}};
      templates_.push_back(std::move(pod));
    }
  }

  model::WorkloadSpec spec_of(std::uint32_t j) const {
    const Job& job = jobs_[j];
    const Class& kind = load_.classes[job.kind];
    model::WorkloadSpec out;
    out.ns = book_.queue(queue_of_[j]).spec.name;
    out.name = fmt::format("{}-{}", kind.name, j);
    out.queue = "lq";
    out.priority = kind.priority;
    out.created_ns = job.created_ms * kMs;
    out.pod_sets.resize(1);
    out.pod_sets[0].pod = templates_[job.kind];
    out.pod_sets[0].requests = templates_[job.kind]->requests;
    if (load_.topology) {
      out.pod_sets[0].count = kind.pods;
      // A third required, a third preferred at the level of racks, a third anywhere.
      using Mode = model::TopologyAsk::Mode;
      const Mode mode = j % 3 == 0   ? Mode::kRequired
                        : j % 3 == 1 ? Mode::kPreferred
                                     : Mode::kUnconstrained;
      out.pod_sets[0].topology.mode = mode;
      if (mode != Mode::kUnconstrained) out.pod_sets[0].topology.level = kRack;
    }
    return out;
  }

  // The time to go on at: the next event, or now when it is due.
  std::int64_t advance() {
    const std::int64_t next = events_.empty() ? last_ms_ : events_.top().at_ms;
    if (!real_) return std::max(last_ms_, next);
    const auto passed = [&] {
      return std::chrono::duration_cast<std::chrono::milliseconds>(
                 std::chrono::steady_clock::now() - start_)
          .count();
    };
    if (const auto left = next - passed(); left > 0) poll(nullptr, 0, static_cast<int>(left));
    return passed();
  }

  // True when a job is done.
  bool happen(const Event& event, std::int64_t now) {
    Job& job = jobs_[event.index];
    if (event.run == 0) {
      const model::WorkloadSpec& spec = specs_.emplace_back(spec_of(event.index));
      ids_[event.index] = engine_.add(spec, now * kMs);
      by_id_.push_back(event.index);
      if (load_.topology) ground_.know(ids_[event.index], spec, false);
      return false;
    }
    if (event.run != job.runs) return false;  // that start was preempted
    engine_.finish(ids_[event.index]);
    if (load_.topology) ground_.forget(ids_[event.index]);
    busy_ += load_.classes[job.kind].cpu_milli * load_.classes[job.kind].run_ms;
    return true;
  }

  void decide(std::int64_t now) {
    while (true) {
      const admit::CycleResult result = engine_.step(now * kMs);
      for (const auto id : result.admitted) {
        Job& job = jobs_[by_id_[id]];
        if (job.first_admitted_ms < 0) job.first_admitted_ms = now;
        ++job.runs;
        events_.push(
            {.at_ms = now + load_.classes[job.kind].run_ms, .index = by_id_[id], .run = job.runs});
      }
      if (result.evicted.empty()) return;
      for (const auto& eviction : result.evicted) {
        ++jobs_[by_id_[eviction.id]].runs;
        ++report_.evictions;
        engine_.gone(eviction.id, now * kMs);
      }
    }
  }

  void finish_report() {
    std::array<double, 3> sum{}, count{};
    for (const Job& job : jobs_) {
      sum[job.kind] += static_cast<double>(job.first_admitted_ms - job.created_ms) / 1000;
      count[job.kind] += 1;
    }
    for (std::size_t k = 0; k < 3; ++k) report_.wait_s[k] = sum[k] / count[k];
    const double capacity = 20'000.0 * load_.cohorts * load_.queues * report_.makespan_s * 1000;
    report_.busy = static_cast<double>(busy_) / capacity;
  }

  Load load_;
  bool real_;
  admit::Book book_;
  std::vector<model::NodeSpec> nodes_;
  decide::InputIndex index_;
  std::deque<model::WorkloadSpec> specs_;  // of those that came
  model::SnapshotBuilder builder_;
  schedule::Placer placer_;
  decide::NodeGround ground_;
  admit::Engine engine_;
  std::vector<Job> jobs_;
  std::vector<std::uint32_t> queue_of_, by_id_;
  std::vector<admit::WorkloadId> ids_;
  std::vector<std::shared_ptr<const model::PodSpec>> templates_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::chrono::steady_clock::time_point start_;
  std::int64_t last_ms_ = 0;
  std::int64_t busy_ = 0;
  Report report_;
};

double bound_s(const Load& load) {
  double work = 0, arrivals = 0;
  for (const auto& kind : load.classes) {
    work += static_cast<double>(kind.count * kind.cpu_milli * kind.run_ms) / 1e6;
    arrivals = std::max(arrivals,
                        static_cast<double>((kind.count - 1) * kind.every_ms + kind.run_ms) / 1e3);
  }
  return std::max(work / 20, arrivals);
}

void print(const Load& load, bool real, const Report& r) {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  int workloads = 0;
  for (const auto& kind : load.classes) workloads += kind.count * load.cohorts * load.queues;
  fmt::print(
      "{} ({}, {} workloads): makespan {:.1f} s, bound {:.1f} s, target {:.0f} s; mean wait small "
      "{:.1f} medium {:.1f} large {:.1f} s; usage {:.0f} %; {} cycles, {} evictions; decision CPU "
      "{:.2f} s ({:.1f} us per admission), peak memory {} MB\n",
      load.name, real ? "real time" : "virtual time", workloads, r.makespan_s, bound_s(load),
      load.target_s, r.wait_s[0], r.wait_s[1], r.wait_s[2], r.busy * 100, r.cycles, r.evictions,
      r.cpu_s, r.cpu_s * 1e6 / static_cast<double>(workloads + static_cast<int>(r.evictions)),
      use.ru_maxrss / 1024);
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) {
  using namespace berth::bench;
  bool real = true;
  int repeat = 1, min_runtime_ms = 0;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--virtual") == 0) {
      real = false;
    } else if (std::strcmp(argv[i], "--min-runtime-ms") == 0 && i + 1 < argc) {
      min_runtime_ms = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--repeat") == 0 && i + 1 < argc) {
      repeat = std::atoi(argv[++i]);
    } else {
      names.emplace_back(argv[i]);
    }
  }
  if (names.empty() || names == std::vector<std::string>{"all"}) {
    names = {"baseline", "large-scale", "tas"};
  }
  for (const std::string& name : names) {
    if (name != "baseline" && name != "large-scale" && name != "tas") {
      fmt::print(stderr, "found {}, want baseline, large-scale, tas or all\n", name);
      return 2;
    }
    for (int i = 0; i < repeat; ++i) {
      const Load load = load_of(name);
      Run run(load, real, min_runtime_ms);
      print(load, real, run.run());
      std::fflush(stdout);
    }
  }
  return 0;
}
