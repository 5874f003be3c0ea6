// decide-rate: placements per second and core on a cluster that is 90 % full.
//
// Fills the fleet to 90 % of its GPUs, then for each decision one random running pod leaves and one
// pod arrives, is decided with every constraint and the default policy, and is committed. The time
// of a decision covers the arrival (interning the decoded pod), the placement and the commit; the
// release is timed with it in the rate, not in the percentiles. Making up the pods is not timed.
// One thread. The rate is per second of CPU time of that thread, since other work on the machine
// would otherwise count; the wall-clock rate stands beside it. Best of several rounds.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "decide/schedule/placer.h"
#include "fleet.h"

namespace berth::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::vector<int> nodes = {5000, 50000};
  std::vector<std::string> pods = {"shapes", "unique"};
  int decisions = 100000;
  int rounds = 5;
  std::string json;
};

struct Row {
  int nodes = 0;
  std::string pods;
  int decisions = 0, placed = 0;
  double per_second = 0, per_wall_second = 0, p50_us = 0, p99_us = 0, max_us = 0, rss = 0;
};

constexpr int kBatch = 16;  // small: a pod that was just decoded is in the cache

class Run {
 public:
  Run(int nodes, bool unique) : unique_(unique), random_(nodes + (unique ? 1 : 0)) {
    FleetOptions options{.nodes = nodes};
    for (int i = 0; i < nodes; ++i) builder_.upsert_node(fleet_node(options, i));
    capacity_ = std::int64_t{nodes} * options.gpus * model::kMilliPerGpu;
  }

  void fill() {
    for (int failed = 0; used_ * 10 < capacity_ * 9 && failed < 2000;) {
      make_pods(1);
      failed += arrive(pods_[0]) ? 0 : 1;
    }
  }

  // Rounds of decisions; the one with the best rate.
  Row measure(int decisions, int rounds) {
    Row best;
    for (int r = 0; r < rounds; ++r) {
      Row row = round(decisions);
      if (row.per_second > best.per_second) best = row;
    }
    return best;
  }

 private:
  static double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }

  Row round(int decisions) {
    Row row{.nodes = static_cast<int>(builder_.state().nodes()),
            .pods = unique_ ? "unique" : "shapes",
            .decisions = decisions};
    std::vector<double> times;
    times.reserve(static_cast<std::size_t>(decisions));
    double cpu_s = 0, wall_s = 0;
    for (int left = decisions; left > 0; left -= kBatch) {
      make_pods(static_cast<std::size_t>(std::min(left, kBatch)));
      auto start = Clock::now();
      double cpu = cpu_seconds();
      for (const auto& pod : pods_) {
        while (used_ * 10 > capacity_ * 9) release();
        auto before = Clock::now();
        row.placed += arrive(pod) ? 1 : 0;
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - before).count());
      }
      cpu_s += cpu_seconds() - cpu;
      wall_s += std::chrono::duration<double>(Clock::now() - start).count();
    }
    row.per_second = decisions / cpu_s;
    row.per_wall_second = decisions / wall_s;
    std::sort(times.begin(), times.end());
    row.p50_us = times[times.size() / 2];
    row.p99_us = times[times.size() * 99 / 100];
    row.max_us = times.back();
    row.rss = rss_mb();
    return row;
  }

  void make_pods(std::size_t count) {
    pods_.clear();
    for (std::size_t i = 0; i < count; ++i, ++serial_) {
      pods_.push_back(unique_ ? unique_pod(random_, serial_)
                              : shaped_pod(static_cast<int>(random_.below(kShapes)), serial_));
    }
  }

  bool arrive(const model::PodSpec& pod) {
    auto id = builder_.upsert_pod(pod);
    const auto& state = builder_.state();
    auto wanted = state.pod(id).shape;
    placer_.observe(state, *wanted);
    auto target = placer_.find(state, wanted);
    if (!target) {
      builder_.remove_pod(id);
      return false;
    }
    builder_.bind(id, target->slot, target->gpus);
    used_ += target->gpus.milli();
    running_.push_back(id);
    return true;
  }

  void release() {
    auto at = static_cast<std::size_t>(random_.below(running_.size()));
    auto id = running_[at];
    running_[at] = running_.back();
    running_.pop_back();
    used_ -= builder_.state().pod(id).gpus.milli();
    builder_.remove_pod(id);
  }

  bool unique_;
  Random random_;
  model::SnapshotBuilder builder_;
  schedule::Placer placer_;
  std::vector<model::PodId> running_;
  std::int64_t used_ = 0, capacity_ = 0;
  std::uint64_t serial_ = 0;
  std::vector<model::PodSpec> pods_;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    auto end = std::min(text.find(',', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

int usage() {
  fmt::print(
      "decide-rate [--nodes 5000,50000] [--pods shapes,unique] [--decisions N] [--rounds N] "
      "[--json FILE]\n");
  return 2;
}

void write_json(const std::string& path, const std::vector<Row>& rows) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) {
    fmt::print(stderr, "decide-rate: cannot write {}\n", path);
    return;
  }
  fmt::print(file, "[");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& r = rows[i];
    fmt::print(file,
               "{}\n  {{\"nodes\": {}, \"pods\": \"{}\", \"decisions\": {}, \"placed\": {}, "
               "\"per_cpu_second\": {:.0f}, \"per_wall_second\": {:.0f}, \"p50_us\": {:.2f}, "
               "\"p99_us\": {:.2f}, \"max_us\": {:.0f}, "
               "\"rss_mb\": {:.0f}}}",
               i == 0 ? "" : ",", r.nodes, r.pods, r.decisions, r.placed, r.per_second,
               r.per_wall_second, r.p50_us, r.p99_us, r.max_us, r.rss);
  }
  fmt::print(file, "\n]\n");
  std::fclose(file);
}

}  // namespace

int main_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    auto is = [&](const char* name) { return std::strcmp(argv[i], name) == 0 && i + 1 < argc; };
    if (is("--nodes")) {
      options.nodes.clear();
      for (const auto& n : split(argv[++i])) options.nodes.push_back(std::atoi(n.c_str()));
    } else if (is("--pods")) {
      options.pods = split(argv[++i]);
    } else if (is("--decisions")) {
      options.decisions = std::atoi(argv[++i]);
    } else if (is("--rounds")) {
      options.rounds = std::atoi(argv[++i]);
    } else if (is("--json")) {
      options.json = argv[++i];
    } else {
      return usage();
    }
  }
  std::vector<Row> rows;
  fmt::print("{:>7} {:>7} {:>12} {:>9} {:>8} {:>8} {:>8} {:>9} {:>7}\n", "nodes", "pods",
             "per CPU s", "per wall", "p50 us", "p99 us", "max us", "placed %", "RSS MB");
  for (int nodes : options.nodes) {
    for (const auto& pods : options.pods) {
      if (nodes <= 0 || options.decisions <= 0) return usage();
      Run run(nodes, pods == "unique");
      run.fill();
      Row row = run.measure(options.decisions, options.rounds);
      rows.push_back(row);
      fmt::print("{:>7} {:>7} {:>12.0f} {:>9.0f} {:>8.2f} {:>8.2f} {:>8.0f} {:>9.1f} {:>7.0f}\n",
                 row.nodes, row.pods, row.per_second, row.per_wall_second, row.p50_us, row.p99_us,
                 row.max_us, 100.0 * row.placed / row.decisions, row.rss);
      std::fflush(stdout);
    }
  }
  if (!options.json.empty()) write_json(options.json, rows);
  return 0;
}

}  // namespace berth::bench

int main(int argc, char** argv) { return berth::bench::main_of(argc, argv); }
