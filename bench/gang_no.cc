// gang-no: how long a "no" with its certificate takes. Best and median of repeated cold decisions
// (a new Placer each time, so that no cache helps).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "decide/decide.h"
#include "fleet.h"

namespace berth::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Case {
  std::string name;
  int nodes = 0, members = 0, gpus = 0;
  bool full = false;     // every GPU taken
  std::string topology;  // required
};

struct Row {
  double best_ms = 0, median_ms = 0;
  model::Outcome outcome;
};

Row run(const Case& c, int repeats) {
  model::SnapshotBuilder builder;
  FleetOptions options{.nodes = c.nodes};
  for (int i = 0; i < c.nodes; ++i) {
    auto node = fleet_node(options, i);
    node.taints.clear();
    builder.upsert_node(node);
    // Half of each node is taken where the cluster is not full: no rack holds the whole gang.
    model::PodSpec pod = shaped_pod(0, static_cast<std::uint64_t>(i));
    pod.gpu.count = c.full ? options.gpus : options.gpus / 2;
    pod.node_name = node.name;
    for (int g = 0; g < pod.gpu.count; ++g) pod.gpu_indices.push_back(g);
    builder.upsert_pod(pod);
  }
  builder.upsert_gang(
      {.ns = "bench", .name = "gang", .min_member = c.members, .required_topology = c.topology});
  for (int i = 0; i < c.members; ++i) {
    model::PodSpec pod = shaped_pod(0, 1'000'000u + static_cast<std::uint64_t>(i));
    pod.gpu.count = c.gpus;
    pod.gang = "gang";
    builder.upsert_pod(pod);
  }
  auto snapshot = builder.publish();
  std::vector<double> times;
  Row row;
  for (int r = 0; r < repeats; ++r) {
    schedule::Placer placer;
    auto start = Clock::now();
    auto decision = decide::decide(snapshot, 0, placer);
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    row.outcome = decision.outcomes.front();
  }
  std::sort(times.begin(), times.end());
  row.best_ms = times.front();
  row.median_ms = times[times.size() / 2];
  return row;
}

}  // namespace

int main_of(int argc, char** argv) {
  std::string json;
  if (argc == 3 && std::strcmp(argv[1], "--json") == 0) {
    json = argv[2];
  } else if (argc != 1) {
    fmt::print("gang-no [--json FILE]\n");
    return 2;
  }
  const Case cases[] = {
      {"500 full nodes, 10 pods x 8 GPUs", 500, 10, 8, true, ""},
      {"5,000 nodes, 1,000 pods x 1 GPU in one rack", 5000, 1000, 1, false,
       "network.topology.nvidia.com/block"},
  };
  std::string out = "[";
  for (const auto& c : cases) {
    Row row = run(c, 15);
    const auto& o = row.outcome;
    fmt::print("{}: {} {} in {:.2f} ms (best of 15; median {:.2f})\n  {}\n", c.name,
               name(o.verdict), name(o.reason), row.best_ms, row.median_ms, o.message);
    fmt::print(
        "  certificate: {} nodes, {} fit, binding {}, needed {}, best domain {} fits {}, exact "
        "{}\n",
        o.certificate.nodes, o.certificate.fitting_nodes, name(o.certificate.binding),
        o.certificate.needed_pods,
        o.certificate.domains.empty() ? "-" : o.certificate.domains.front().name,
        o.certificate.domains.empty() ? 0 : o.certificate.domains.front().fits,
        o.certificate.exact);
    out += fmt::format(
        "{}\n  {{\"case\": \"{}\", \"best_ms\": {:.3f}, \"median_ms\": {:.3f}, "
        "\"verdict\": \"{}\", \"reason\": \"{}\"}}",
        out.size() > 1 ? "," : "", c.name, row.best_ms, row.median_ms, name(o.verdict),
        name(o.reason));
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
