// preferred: how long a preferred allocation takes and how good its sets are.
//
// For machines of 8 and 16 GPUs and every size: random GPUs are on offer, in random order as the
// kubelet sends them. Time is the CPU time of Chooser::choose, first call included, and beside it
// the 99th percentile by the clock, which a busy machine makes longer. "best": how often the
// set is as good as the best of all subsets by the levels of docs/placement.md, found here by a
// search of its own; "linked": pairs of the set that NVLink joins; both beside the first n of the
// kubelet's order.
#include "node/allocate/preferred.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"

namespace berth::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Machine {
  std::string name;
  int gpus, per_clique, per_numa, per_switch;
};

model::GpuInventory inventory_of(const Machine& machine) {
  model::GpuInventory out;
  for (int i = 0; i < machine.gpus; ++i) {
    model::GpuDevice gpu;
    gpu.index = i;
    gpu.uuid = fmt::format("GPU-00000000-0000-0000-0000-{:012}", i);
    gpu.numa = i / machine.per_numa;
    gpu.pcie_switch = i / machine.per_switch;
    for (int j = 0; j < machine.gpus; ++j) {
      gpu.nvlinks.push_back(i != j && i / machine.per_clique == j / machine.per_clique ? 18 : 0);
    }
    out.gpus.push_back(std::move(gpu));
  }
  return out;
}

int groups_touched(unsigned set, int gpus, int per_group) {
  int out = 0;
  for (int from = 0; from < gpus; from += per_group) {
    out += (set >> from & ((1u << per_group) - 1)) != 0 ? 1 : 0;
  }
  return out;
}

using Levels = std::array<int, 4>;

Levels levels(const Machine& m, unsigned open, unsigned set) {
  int left = 0;
  for (int from = 0; from < m.gpus; from += m.per_clique) {
    const unsigned clique = ((1u << m.per_clique) - 1) << from;
    if ((set & clique) != 0) left += std::popcount(open & clique & ~set);
  }
  return {groups_touched(set, m.gpus, m.per_clique), groups_touched(set, m.gpus, m.per_numa),
          groups_touched(set, m.gpus, m.per_switch), left};
}

int linked_pairs(const Machine& m, unsigned set) {
  int out = 0;
  for (int from = 0; from < m.gpus; from += m.per_clique) {
    const int n = std::popcount(set >> from & ((1u << m.per_clique) - 1));
    out += n * (n - 1) / 2;
  }
  return out;
}

double cpu_us() {
  timespec at{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return static_cast<double>(at.tv_sec) * 1e6 + static_cast<double>(at.tv_nsec) * 1e-3;
}

double quantile(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
}

struct Row {
  std::vector<double> cpu_us, wall_us;
  int asks = 0, weighed = 0, best = 0, first_best = 0;
  double linked = 0, linked_first = 0, linked_most = 0;
};

void weigh(const Machine& m, unsigned open, unsigned got, unsigned first, int size, Row& row) {
  Levels best = levels(m, open, got);
  const Levels own = best;
  int most = 0;
  for (unsigned set = 0; set < 1u << m.gpus; ++set) {
    if ((set & ~open) != 0 || std::popcount(set) != size) continue;
    best = std::min(best, levels(m, open, set));
    most = std::max(most, linked_pairs(m, set));
  }
  ++row.weighed;
  row.best += own == best ? 1 : 0;
  row.first_best += levels(m, open, first) == best ? 1 : 0;
  const double pairs = std::max(1, size * (size - 1) / 2);
  row.linked += linked_pairs(m, got) / pairs;
  row.linked_first += linked_pairs(m, first) / pairs;
  row.linked_most += most / pairs;
}

Row run(const Machine& m, int size, int asks, int weighed, Random& random) {
  const model::GpuInventory inventory = inventory_of(m);
  model::OfferedResource resource{.name = "nvidia.com/gpu"};
  for (const auto& gpu : inventory.gpus) {
    resource.devices.push_back({.id = gpu.uuid, .uuid = gpu.uuid, .gpu = gpu.index});
  }
  const allocate::Chooser chooser(inventory, resource, false);
  Row row;
  for (row.asks = 0; row.asks < asks; ++row.asks) {
    std::vector<int> order;
    for (int i = 0; i < m.gpus; ++i) order.push_back(i);
    random.shuffle(order);
    // Every other ask has all GPUs on offer: the most subsets.
    if (row.asks % 2 == 0) order.resize(static_cast<std::size_t>(random.between(size, m.gpus)));
    allocate::Ask ask{.available = {}, .must_include = {}, .size = size};
    unsigned open = 0, got = 0, first = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto gpu = static_cast<std::size_t>(order[i]);
      ask.available.push_back(inventory.gpus[gpu].uuid);
      open |= 1u << gpu;
      if (i < static_cast<std::size_t>(size)) first |= 1u << gpu;
    }
    const auto start = Clock::now();
    const double before = cpu_us();
    auto choice = chooser.choose(ask, {});
    row.cpu_us.push_back(cpu_us() - before);
    row.wall_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    if (!choice.ok() || choice->ids.size() != static_cast<std::size_t>(size)) {
      fmt::print("a choice failed\n");
      std::exit(1);
    }
    if (row.asks >= weighed) continue;
    for (const std::string& id : choice->ids) got |= 1u << std::stoi(id.substr(id.size() - 4));
    weigh(m, open, got, first, size, row);
  }
  std::sort(row.cpu_us.begin(), row.cpu_us.end());
  std::sort(row.wall_us.begin(), row.wall_us.end());
  return row;
}

}  // namespace

int main_of(int argc, char** argv) {
  std::string json;
  if (argc == 3 && std::strcmp(argv[1], "--json") == 0) {
    json = argv[2];
  } else if (argc != 1) {
    fmt::print("preferred [--json FILE]\n");
    return 2;
  }
  const Machine machines[] = {{"8 GPUs, one NVSwitch", 8, 8, 4, 2},
                              {"8 GPUs, NVLink pairs", 8, 2, 4, 4},
                              {"16 GPUs, two NVSwitch boards", 16, 8, 8, 2},
                              {"16 GPUs, NVLink pairs", 16, 2, 8, 4}};
  std::string out = "[";
  Random random(1);
  for (const Machine& m : machines) {
    fmt::print("{}\n  size  p50 us  p99 us   clock   best  first n   linked  most  first n\n",
               m.name);
    for (int size = 1; size <= m.gpus; ++size) {
      const Row row = run(m, size, 2000, 60, random);
      const double part = 100.0 / row.weighed;
      fmt::print(
          "  {:4}  {:6.1f}  {:6.1f}  {:6.1f}  {:4.0f}%    {:4.0f}%    {:4.0f}% {:4.0f}%    "
          "{:4.0f}%\n",
          size, quantile(row.cpu_us, 0.5), quantile(row.cpu_us, 0.99), quantile(row.wall_us, 0.99),
          row.best * part, row.first_best * part, row.linked * part, row.linked_most * part,
          row.linked_first * part);
      out += fmt::format(
          "{}\n  {{\"machine\": \"{}\", \"size\": {}, \"cpu_p50_us\": {:.1f}, \"cpu_p99_us\": "
          "{:.1f}, "
          "\"best_percent\": {:.1f}, \"first_n_best_percent\": {:.1f}}}",
          out.size() > 1 ? "," : "", m.name, size, quantile(row.cpu_us, 0.5),
          quantile(row.cpu_us, 0.99), row.best * part, row.first_best * part);
    }
  }
  out += "\n]\n";
  if (!json.empty()) {
    if (std::FILE* file = std::fopen(json.c_str(), "w")) {
      std::fputs(out.c_str(), file);
      std::fclose(file);
    }
  }
  return 0;
}

}  // namespace berth::bench

int main(int argc, char** argv) { return berth::bench::main_of(argc, argv); }
