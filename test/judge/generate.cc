#include "judge/generate.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "judge/gpus.h"
#include "judge/match.h"
#include "judge/rules.h"

namespace berth::judging {

using model::GangSpec;
using model::PodSpec;

namespace {

constexpr std::array<const char*, 3> kLevels{model::kZoneLabel, "rack", model::kHostnameLabel};

std::string level(Random& random) { return kLevels[random.below(kLevels.size())]; }

void add_topology(Random& random, std::string& required, std::string& preferred) {
  if (random.chance(1, 3)) required = level(random);
  if (random.chance(1, 4)) preferred = level(random);
}

struct RandomGang {
  GangSpec gang;
  std::vector<PodSpec> members;
};

void add_subgroups(Random& random, RandomGang& made) {
  for (const char* name : {"head", "work"}) {
    model::SubgroupSpec subgroup;
    subgroup.name = name;
    if (random.chance(1, 2)) {
      add_topology(random, subgroup.required_topology, subgroup.preferred_topology);
    }
    made.gang.subgroups.push_back(subgroup);
  }
  std::array<int, 2> sizes{};
  for (PodSpec& pod : made.members) {
    auto index = random.below(5);
    if (index == 4) continue;  // of no subgroup
    index = index == 0 ? 0 : 1;
    pod.subgroup = made.gang.subgroups[index].name;
    ++sizes[index];
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    made.gang.subgroups[i].min_member = static_cast<int>(random.between(0, sizes[i]));
  }
}

RandomGang random_gang(Random& random, Mix mix, const std::string& name) {
  RandomGang made;
  PodSpec first = random_pod(random, mix, name + "-0");
  auto size = static_cast<int>(random.between(2, 6));
  bool equal = random.chance(3, 5);
  for (int i = 0; i < size; ++i) {
    std::string member = name + "-" + std::to_string(i);
    PodSpec pod = equal ? first : random_pod(random, mix, member);
    pod.ns = first.ns;
    pod.name = member;
    pod.uid = "uid-" + member;
    pod.gang = name;
    pod.preempts = first.preempts || random.chance(1, 10);
    if (pod.gpu.kind == model::GpuDemandSpec::Kind::kWhole &&
        pod.gpu.count > 3) {  // a gang of wide members rarely fits a small cluster
      pod.gpu.count = 2;
      pod.gpus_by_container = {2};
    }
    made.members.push_back(pod);
  }
  made.gang.ns = first.ns;
  made.gang.name = name;
  made.gang.min_member = static_cast<int>(random.between(1, size));
  if (random.chance(1, 15)) made.gang.min_member = size + 1;
  add_topology(random, made.gang.required_topology, made.gang.preferred_topology);
  if (random.chance(1, 3)) add_subgroups(random, made);
  if (random.chance(1, 4)) made.gang.priority = static_cast<int>(random.below(3)) * 10;
  if (random.chance(1, 2)) made.gang.created_ns = first.created_ns - kSecond;
  return made;
}

// Any devices that serve the demand, not the best: clusters are not tidy.
std::optional<std::vector<Taken>> some_devices(Random& random, const NodeState& node,
                                               const PodSpec& pod) {
  if (random.chance(1, 2)) return choose_devices(node, pod);
  NodeState masked = node;
  for (int& milli : masked.gpu_free) {
    if (random.chance(1, 4)) milli = 0;
  }
  auto chosen = choose_devices(masked, pod);
  return chosen ? chosen : choose_devices(node, pod);
}

// Puts the pod on some node with room for it; false when a few tries find none.
bool start(Random& random, const GenerateOptions& options, std::vector<NodeState>& nodes,
           PodSpec& pod) {
  for (int tries = 0; tries < 3; ++tries) {
    NodeState& node = nodes[random.below(nodes.size())];
    if (rejects_capacity(node, pod) != 0) continue;
    auto devices = some_devices(random, node, pod);
    if (!devices) continue;
    take(node, pod, *devices);
    pod.node_name = node.spec->name;
    pod.started_ns = kGeneratedAt - random.between(0, 40) * kSecond;
    pod.gated = false;
    pod.volume_missing = "";
    pod.terminating = options.mix == Mix::kConstraints && random.chance(1, 30);
    auto percent = static_cast<std::uint64_t>(options.unknown_devices_percent);
    if (random.chance(percent, 100)) return true;
    for (const Taken& part : *devices) {
      pod.gpu_indices.push_back(node.spec->gpus[static_cast<std::size_t>(part.device)].index);
    }
    std::sort(pod.gpu_indices.begin(), pod.gpu_indices.end());
    return true;
  }
  return false;
}

bool gang_wanted(Random& random, Mix mix) {
  return (mix == Mix::kGangs && random.chance(2, 3)) ||
         (mix == Mix::kPreemption && random.chance(1, 3));
}

// Members that find no room stay pending when `keep` says so, else they are left out.
void start_gang(Random& random, const GenerateOptions& options, std::vector<NodeState>& nodes,
                const std::string& name, JudgeCluster& cluster) {
  RandomGang made = random_gang(random, options.mix, name);
  bool keep = random.chance(1, 4);
  bool any = false;
  for (PodSpec& pod : made.members) {
    if (options.mix == Mix::kPreemption) pod.priority = 0;
    bool started = !random.chance(1, 8) && start(random, options, nodes, pod);
    any |= started;
    if (started || keep) cluster.pods.push_back(pod);
  }
  if (any || keep) cluster.gangs.push_back(made.gang);
}

void add_running(Random& random, const GenerateOptions& options, JudgeCluster& cluster) {
  State state = without_pods(cluster);
  int tries = options.running_per_node * static_cast<int>(cluster.nodes.size());
  if (options.mix == Mix::kPreemption) tries *= 2;
  for (int i = 0; i < tries; ++i) {
    std::string name = "r" + std::to_string(i);
    if (random.chance(1, 6) && gang_wanted(random, options.mix)) {
      start_gang(random, options, state.nodes, name, cluster);
      continue;
    }
    PodSpec pod = random_pod(random, options.mix, name);
    if (options.mix == Mix::kPreemption && random.chance(2, 3)) pod.priority = 0;
    if (start(random, options, state.nodes, pod)) cluster.pods.push_back(pod);
  }
}

void add_budgets(Random& random, JudgeCluster& cluster) {
  for (int i = 0; random.chance(2, 3) && i < 3; ++i) {
    model::BudgetSpec budget;
    budget.ns = random.chance(3, 4) ? "a" : "b";
    budget.name = "budget" + std::to_string(i);
    constexpr std::array<const char*, 3> kApps{"web", "db", "train"};
    budget.selector.push_back({"app", text::Operator::kIn, {kApps[random.below(3)]}});
    budget.match_nothing = random.chance(1, 20);
    budget.disruptions_allowed = static_cast<int>(random.below(3));
    cluster.budgets.push_back(budget);
  }
}

std::string job_of(const PodSpec& pod) {
  return pod.gang.empty() ? "pod " + full_name(pod) : "gang " + pod.ns + "/" + pod.gang;
}

}  // namespace

void add_request(Random& random, const GenerateOptions& options, int serial,
                 JudgeCluster& cluster) {
  std::string name = "q" + std::to_string(serial);
  if (gang_wanted(random, options.mix)) {
    RandomGang made = random_gang(random, options.mix, name);
    cluster.gangs.push_back(made.gang);
    cluster.pods.insert(cluster.pods.end(), made.members.begin(), made.members.end());
    return;
  }
  cluster.pods.push_back(random_pod(random, options.mix, name));
}

JudgeCluster generate(const Random& random, const GenerateOptions& options) {
  JudgeCluster cluster;
  Random nodes = random.split("nodes");
  auto count = static_cast<int>(nodes.between(options.min_nodes, options.max_nodes));
  for (int i = 0; i < count; ++i) cluster.nodes.push_back(random_node(nodes, options.mix, i));
  cluster.pods.reserve(64 + 8 * cluster.nodes.size());  // specs are costly to move
  Random running = random.split("running");
  if (count > 0) add_running(running, options, cluster);
  Random budgets = random.split("budgets");
  if (options.mix == Mix::kPreemption) add_budgets(budgets, cluster);
  Random requests = random.split("requests");
  for (int i = 0; i < options.requests; ++i) add_request(requests, options, i, cluster);
  return cluster;
}

void apply(const model::Decision& decision, std::int64_t now_ns, JudgeCluster& cluster) {
  std::map<std::string, PodSpec*> pods;
  for (PodSpec& pod : cluster.pods) pods[full_name(pod)] = &pod;
  for (const model::Preemption& victim : decision.preemptions) {
    PodSpec& pod = *pods.at(victim.pod);
    pod.node_name.clear();
    pod.gpu_indices.clear();
    pod.started_ns = 0;
  }
  for (const model::Placement& placement : decision.placements) {
    PodSpec& pod = *pods.at(placement.pod);
    pod.node_name = placement.node;
    pod.gpu_indices = placement.gpus;
    pod.started_ns = now_ns;
  }
}

void finish_some(Random& random, std::uint64_t one_in, JudgeCluster& cluster) {
  std::set<std::string> jobs, ended;
  for (const PodSpec& pod : cluster.pods) {
    if (!pod.node_name.empty()) jobs.insert(job_of(pod));
  }
  for (const std::string& job : jobs) {
    if (random.chance(1, one_in)) ended.insert(job);
  }
  std::erase_if(cluster.pods, [&](const PodSpec& pod) { return ended.contains(job_of(pod)); });
  std::erase_if(cluster.gangs, [&](const GangSpec& gang) {
    return ended.contains("gang " + gang.ns + "/" + gang.name);
  });
}

}  // namespace berth::judging
