// pack-or-spread: what keeping the replicas of services apart costs those who need whole nodes, and
// what it saves when a node or a rack is lost.
//
// Services of 3 to 10 one-GPU replicas come and go on 64 nodes of 8 GPUs in 8 racks; jobs of one
// pod with 8 GPUs come between them. Time is counted in events, so a run says the same everywhere.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "decide/decide.h"

namespace berth::bench {
namespace {

constexpr int kNodes = 64, kGpus = 8, kRacks = 8;
constexpr int kServed = 288;                  // 56 % of the GPUs
constexpr int kJobEvery = 3, kJobLasts = 75;  // 39 %
constexpr const char* kRack = "rack";

struct Figures {
  double stranded = 0;   // of the free GPUs, those that no 8-GPU pod can have
  double wait = 0;       // of a job, in events
  double rack_loss = 0;  // of the replicas of a service, gone with its worst rack
  double node_loss = 0;  // ... with its worst node
};

class Day {
 public:
  Day(const model::PlacementPolicy& policy, std::uint64_t seed)
      : random_(seed), builder_(schedule::keeps_apart(policy)), placer_(policy) {
    for (int i = 0; i < kNodes; ++i) {
      model::NodeSpec node;
      node.name = fmt::format("n{:02}", i);
      node.labels = {{kRack, fmt::format("r{}", i / (kNodes / kRacks))},
                     {model::kHostnameLabel, node.name}};
      node.allocatable = {{"cpu", 96'000}, {"memory", std::int64_t{1} << 40}, {"pods", 110}};
      for (int g = 0; g < kGpus; ++g) {
        node.gpus.push_back({.index = g, .uuid = "", .model = "NVIDIA-H100-80GB-HBM3"});
      }
      builder_.upsert_node(node);
    }
  }

  Figures run(int events) {
    Figures sum;
    int samples = 0;
    for (now_ = 0; now_ < events; ++now_) {
      leave();
      arrive();
      decide();
      if (now_ < events / 3 || now_ % 10 != 0) continue;
      const Figures one = look();
      sum.stranded += one.stranded;
      sum.rack_loss += one.rack_loss;
      sum.node_loss += one.node_loss;
      ++samples;
    }
    sum.stranded /= samples;
    sum.rack_loss /= samples;
    sum.node_loss /= samples;
    sum.wait = started_ == 0 ? 0 : waited_ / started_;
    return sum;
  }

 private:
  struct Job {
    int came = 0;
    bool runs = false;
  };

  void add(const std::string& name, const std::string& owner, int gpus) {
    model::PodSpec pod;
    pod.ns = "bench";
    pod.name = name;
    pod.owner = owner;
    pod.service = owner.starts_with("ReplicaSet/");
    pod.created_ns = now_;
    pod.requests = {{"cpu", gpus * 4'000}};
    pod.gpu = {.kind = model::GpuDemandSpec::Kind::kWhole, .count = gpus};
    builder_.upsert_pod(pod);
  }
  void remove(const std::string& name) {
    builder_.remove_pod("bench/" + name);
    at_.erase(name);
  }

  void leave() {
    for (const int service : ends_[now_]) {
      for (int r = 0; r < services_.at(service); ++r) remove(fmt::format("s{}-{}", service, r));
      served_ -= services_.at(service);
      services_.erase(service);
    }
    for (const std::string& job : job_ends_[now_]) {
      remove(job);
      jobs_.erase(job);
    }
  }

  void arrive() {
    // Two at a time at most.
    for (int n = 0; n < 2 && served_ < kServed; ++n) {
      const int service = made_++, replicas = static_cast<int>(random_.between(3, 10));
      for (int r = 0; r < replicas; ++r) {
        add(fmt::format("s{}-{}", service, r), fmt::format("ReplicaSet/s{}", service), 1);
      }
      services_[service] = replicas;
      served_ += replicas;
      ends_[now_ + static_cast<int>(random_.between(60, 300))].push_back(service);
    }
    if (now_ % kJobEvery != 0) return;
    const std::string job = fmt::format("j{}", made_++);
    add(job, "Job/" + job, kGpus);
    jobs_[job] = {.came = now_};
  }

  void decide() {
    placer_.learn_present(builder_.state());
    const model::Decision decision = decide::decide(builder_.publish(), now_, placer_);
    decide::apply(decision, builder_);
    for (const model::Placement& placed : decision.placements) {
      const std::string name = placed.pod.substr(placed.pod.find('/') + 1);
      at_[name] = placed.node;
      const auto job = jobs_.find(name);
      if (job == jobs_.end()) continue;
      job->second.runs = true;
      waited_ += now_ - job->second.came;
      ++started_;
      job_ends_[now_ + kJobLasts].push_back(name);
    }
  }

  Figures look() {
    Figures out;
    const model::ClusterState& state = builder_.state();
    int free = 0, stranded = 0;
    std::map<std::string, std::string> rack_of;
    for (std::size_t slot = 0; slot < state.nodes(); ++slot) {
      int here = 0;
      for (int g = 0; g < kGpus; ++g) here += (state.node(slot).whole >> g) & 1;
      free += here;
      stranded += here < kGpus ? here : 0;
      rack_of[state.info(slot).name] = fmt::format("r{}", slot / (kNodes / kRacks));
    }
    out.stranded = free == 0 ? 0 : static_cast<double>(stranded) / free;
    int seen = 0;
    for (const auto& [service, replicas] : services_) {
      std::map<std::string, int> racks, nodes;
      int all = 0, worst_rack = 0, worst_node = 0;
      for (int r = 0; r < replicas; ++r) {
        const auto at = at_.find(fmt::format("s{}-{}", service, r));
        if (at == at_.end()) continue;
        ++all;
        worst_node = std::max(worst_node, ++nodes[at->second]);
        worst_rack = std::max(worst_rack, ++racks[rack_of[at->second]]);
      }
      if (all == 0) continue;
      ++seen;
      out.rack_loss += static_cast<double>(worst_rack) / all;
      out.node_loss += static_cast<double>(worst_node) / all;
    }
    if (seen > 0) {
      out.rack_loss /= seen;
      out.node_loss /= seen;
    }
    return out;
  }

  Random random_;
  model::SnapshotBuilder builder_;
  schedule::Placer placer_;
  int now_ = 0, made_ = 0, started_ = 0, served_ = 0;
  double waited_ = 0;
  std::map<int, int> services_;           // replicas, by number
  std::map<int, std::vector<int>> ends_;  // by event
  std::map<std::string, Job> jobs_;
  std::map<int, std::vector<std::string>> job_ends_;
  std::map<std::string, std::string> at_;  // nodes
};

}  // namespace

int main_of(int argc, char** argv) {
  const bool smoke = argc == 2 && std::strcmp(argv[1], "--smoke") == 0;
  if (argc > 1 && !smoke) {
    fmt::print("pack-or-spread [--smoke]\n");
    return 2;
  }
  const int seeds = smoke ? 1 : 10, events = smoke ? 120 : 1'200;
  const std::pair<const char*, model::PlacementPolicy> policies[] = {
      {"Pack", {.classes = {{.name = "all"}}}},
      {"Spread (nodes)", {.classes = {{.name = "all", .spread = true}}}},
      {"Spread over racks", {.classes = {{.name = "all", .spread = true, .over = kRack}}}},
  };
  fmt::print("{:<20}{:>12}{:>12}{:>16}{:>16}\n", "services", "stranded", "job waits",
             "lost with rack", "lost with node");
  for (const auto& [name, policy] : policies) {
    Figures sum;
    for (int seed = 1; seed <= seeds; ++seed) {
      const Figures one = Day(policy, static_cast<std::uint64_t>(seed)).run(events);
      sum.stranded += one.stranded / seeds;
      sum.wait += one.wait / seeds;
      sum.rack_loss += one.rack_loss / seeds;
      sum.node_loss += one.node_loss / seeds;
    }
    fmt::print("{:<20}{:>11.1f}%{:>12.1f}{:>15.1f}%{:>15.1f}%\n", name, 100 * sum.stranded,
               sum.wait, 100 * sum.rack_loss, 100 * sum.node_loss);
  }
  return 0;
}

}  // namespace berth::bench

int main(int argc, char** argv) { return berth::bench::main_of(argc, argv); }
