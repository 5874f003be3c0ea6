// decide-rate: placements per second and core on a cluster that is 90 % full.
//
// Fills the fleet to 90 % of its GPUs, then for each decision one random running pod leaves and one pod
// arrives, is decided with every constraint and the default policy, and is committed. The time of a
// decision covers the arrival (interning), the placement and the commit; the release is timed with it in
// the rate, not in the percentiles. One thread.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "fleet.h"
#include "schedule/placer.h"

namespace berth::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::vector<int> nodes = {5000, 50000};
  std::vector<std::string> pods = {"shapes", "unique"};
  int decisions = 200000;
  std::string json;
};

struct Row {
  int nodes = 0;
  std::string pods;
  int decisions = 0, placed = 0;
  double per_second = 0, p50_us = 0, p99_us = 0, max_us = 0, rss = 0, fill_seconds = 0;
};

class Run {
 public:
  Run(int nodes, bool unique) : unique_(unique), random_(nodes + (unique ? 1 : 0)) {
    FleetOptions options{.nodes = nodes};
    for (int i = 0; i < nodes; ++i) builder_.upsert_node(fleet_node(options, i));
    capacity_ = std::int64_t{nodes} * options.gpus * model::kMilliPerGpu;
  }

  void fill() {
    for (int failed = 0; used_ * 10 < capacity_ * 9 && failed < 2000;) failed += arrive() ? 0 : 1;
  }

  Row measure(int decisions) {
    Row row{.nodes = static_cast<int>(builder_.state().nodes()), .pods = unique_ ? "unique" : "shapes",
            .decisions = decisions};
    std::vector<double> times;
    times.reserve(static_cast<std::size_t>(decisions));
    auto start = Clock::now();
    for (int i = 0; i < decisions; ++i) {
      while (used_ * 10 > capacity_ * 9) release();
      auto before = Clock::now();
      row.placed += arrive() ? 1 : 0;
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - before).count());
    }
    double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    std::sort(times.begin(), times.end());
    row.per_second = decisions / seconds;
    row.p50_us = times[times.size() / 2];
    row.p99_us = times[times.size() * 99 / 100];
    row.max_us = times.back();
    row.rss = rss_mb();
    return row;
  }

 private:
  bool arrive() {
    auto shape = static_cast<int>(random_.below(kShapes));
    auto id = builder_.upsert_pod(unique_ ? unique_pod(random_, serial_) : shaped_pod(shape, serial_));
    ++serial_;
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
  fmt::print("decide-rate [--nodes 5000,50000] [--pods shapes,unique] [--decisions N] [--json FILE]\n");
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
               "\"per_second\": {:.0f}, \"p50_us\": {:.2f}, \"p99_us\": {:.2f}, \"max_us\": {:.0f}, "
               "\"rss_mb\": {:.0f}}}",
               i == 0 ? "" : ",", r.nodes, r.pods, r.decisions, r.placed, r.per_second, r.p50_us,
               r.p99_us, r.max_us, r.rss);
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
    } else if (is("--json")) {
      options.json = argv[++i];
    } else {
      return usage();
    }
  }
  std::vector<Row> rows;
  fmt::print("{:>7} {:>7} {:>10} {:>9} {:>9} {:>9} {:>9} {:>8}\n", "nodes", "pods", "decisions/s",
             "p50 us", "p99 us", "max us", "placed %", "RSS MB");
  for (int nodes : options.nodes) {
    for (const auto& pods : options.pods) {
      if (nodes <= 0 || options.decisions <= 0) return usage();
      Run run(nodes, pods == "unique");
      run.fill();
      Row row = run.measure(options.decisions);
      rows.push_back(row);
      fmt::print("{:>7} {:>7} {:>10.0f} {:>9.2f} {:>9.2f} {:>9.0f} {:>9.1f} {:>8.0f}\n", row.nodes,
                 row.pods, row.per_second, row.p50_us, row.p99_us, row.max_us,
                 100.0 * row.placed / row.decisions, row.rss);
      std::fflush(stdout);
    }
  }
  if (!options.json.empty()) write_json(options.json, rows);
  return 0;
}

}  // namespace berth::bench

int main(int argc, char** argv) { return berth::bench::main_of(argc, argv); }
