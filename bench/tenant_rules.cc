// tenant-rules: what rules about other pods cost, and whom. A tenant brings pods with many
// anti-affinity terms, another one a pod without any. Times of taking them in and of deciding all,
// for so many terms and twice as many (the ratio shows what they grow with), and how many cycles
// the other tenant's pod waits. --smoke: a tenth of it, once.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "decide/decide.h"
#include "fleet.h"
#include "stopwatch.h"

namespace berth::bench {
namespace {

struct Case {
  const char* name;
  int namespaces, pods, terms;  // pods of each, terms of a pod
  bool all_match = false;       // every term matches every pod of its namespace
};

model::PodSpec pod_with_rules(const Case& c, int tenant, int number) {
  model::PodSpec pod;
  pod.ns = fmt::format("tenant-{}", tenant);
  pod.name = fmt::format("p{}", number);
  pod.labels = {{"app", "x"}};
  pod.requests = {{"cpu", 1000}};
  for (int t = 0; t < c.terms; ++t) {
    const std::string own = fmt::format("v{}", number * c.terms + t);
    text::Requirement r{.key = "app", .op = text::Operator::kIn, .values = {own}};
    if (c.all_match) r.op = text::Operator::kNotIn;
    pod.anti_affinity.push_back({.topology_key = model::kHostnameLabel,
                                 .pods = {.namespaces = {pod.ns}, .selector = {std::move(r)}}});
  }
  return pod;
}

struct Row {
  double take_in_ms = 1e9, decide_ms = 1e9;
  int placed = 0, cycles = 0, waits = 0;
  std::size_t counters = 0;
};

void run(const Case& c, int nodes, Row& row) {
  model::SnapshotBuilder builder;
  FleetOptions options{.nodes = nodes};
  for (int i = 0; i < nodes; ++i) builder.upsert_node(fleet_node(options, i));
  auto start = Clock::now();
  for (int tenant = 0; tenant < c.namespaces; ++tenant) {
    for (int p = 0; p < c.pods; ++p) builder.upsert_pod(pod_with_rules(c, tenant, p));
  }
  builder.state();
  row.take_in_ms = std::min(row.take_in_ms, ms_since(start));
  row.counters = builder.book().counters();
  model::PodSpec quiet;
  quiet.ns = "quiet";
  quiet.name = "late";
  quiet.requests = {{"cpu", 1000}};
  quiet.priority = -1;
  builder.upsert_pod(quiet);
  schedule::Placer placer;
  decide::Turns turns;
  row.placed = row.cycles = row.waits = 0;
  start = Clock::now();
  for (bool more = true; more && row.cycles < 10'000;) {
    const model::Decision decision =
        decide::decide(builder.publish(), 0, placer, {.certificates = false, .turns = &turns});
    decide::apply(decision, builder);
    ++row.cycles;
    row.placed += static_cast<int>(decision.placements.size());
    for (const model::Placement& p : decision.placements) {
      if (p.pod == "quiet/late") row.waits = row.cycles;
    }
    more = decision.postponed > 0;
  }
  row.decide_ms = std::min(row.decide_ms, ms_since(start));
}

}  // namespace

int main_of(int argc, char** argv) {
  const bool smoke = argc == 2 && std::strcmp(argv[1], "--smoke") == 0;
  if (argc != 1 && !smoke) {
    fmt::print("tenant-rules [--smoke]\n");
    return 2;
  }
  const int nodes = smoke ? 100 : 1000, repeats = smoke ? 1 : 3;
  Case cases[] = {{"33,000 terms of 11 tenants", 11, 30, 100},
                  {"66,000 terms of 22 tenants", 22, 30, 100},
                  {"4,000 terms of one tenant", 1, 40, 100},
                  {"4,000 that match all of his", 1, 40, 100, true},
                  {"60,000 terms of one tenant", 1, 200, 300},
                  {"66,000 pods without terms", 22, 3000, 0}};
  fmt::print("{} nodes; best of {}\n{:<30} {:>9} {:>9} {:>7} {:>7} {:>9} {:>10}\n", nodes, repeats,
             "", "take in", "decide", "placed", "cycles", "the other", "counters");
  for (Case& c : cases) {
    if (smoke) c.namespaces = std::max(1, c.namespaces / 10);
    if (smoke) c.pods = std::max(1, c.pods / 10);
    Row row;
    for (int i = 0; i < repeats; ++i) run(c, nodes, row);
    fmt::print("{:<30} {:>6.0f} ms {:>6.0f} ms {:>7} {:>7} {:>9} {:>10}\n", c.name, row.take_in_ms,
               row.decide_ms, row.placed, row.cycles, fmt::format("in cycle {}", row.waits),
               row.counters);
  }
  return 0;
}

}  // namespace berth::bench

int main(int argc, char** argv) { return berth::bench::main_of(argc, argv); }
