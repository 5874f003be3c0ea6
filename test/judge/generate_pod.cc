#include <array>
#include <string>

#include "judge/generate.h"

namespace berth::judging {

using model::PodSpec;
using text::Operator;
using Kind = model::GpuDemandSpec::Kind;

namespace {

constexpr std::array<const char*, 3> kApps{"web", "db", "train"};
constexpr std::array<const char*, 3> kKeys{model::kHostnameLabel, model::kZoneLabel, "rack"};

template <std::size_t n>
std::string pick(Random& random, const std::array<const char*, n>& list) {
  return list[random.below(n)];
}

void add_gpu_demand(Random& random, PodSpec& pod) {
  auto roll = random.below(100);
  model::GpuDemandSpec& gpu = pod.gpu;
  gpu.count = 1;
  if (roll < 25) {
    gpu.count = 0;
  } else if (roll < 60) {
    gpu.kind = Kind::kWhole;
    gpu.count = random.chance(1, 2) ? 1 : static_cast<int>(random.between(2, 8));
    int rest = gpu.count;
    while (rest > 0 && random.chance(1, 2)) {
      pod.gpus_by_container.push_back(static_cast<int>(random.between(0, rest)));
      rest -= pod.gpus_by_container.back();
    }
    if (rest > 0) pod.gpus_by_container.push_back(rest);
  } else if (roll < 76) {
    gpu.kind = Kind::kFraction;
    gpu.milli = static_cast<int>(random.between(1, 10)) * 100;
    if (random.chance(1, 5)) gpu.count = static_cast<int>(random.between(2, 4));
  } else if (roll < 84) {
    gpu.kind = Kind::kMemory;
    gpu.memory_mib = random.between(1, 12) * 4096;
    if (random.chance(1, 5)) gpu.count = 2;
  } else if (roll < 92) {
    gpu.kind = Kind::kShared;
    gpu.count = static_cast<int>(random.between(1, 4));
  } else {
    gpu.kind = Kind::kMig;
    gpu.mig = random.chance(3, 4) ? "nvidia.com/mig-1g.10gb" : "nvidia.com/mig-3g.40gb";
    gpu.count = static_cast<int>(random.between(1, 3));
  }
}

model::NodeSelectorTerm random_term(Random& random) {
  model::NodeSelectorTerm term;
  switch (random.below(7)) {
    case 0:
      term.labels.push_back({"disk", Operator::kIn, {"ssd"}});
      break;
    case 1:
      term.labels.push_back({"disk", Operator::kNotIn, {"hdd"}});
      break;
    case 2:
      term.labels.push_back({"rack", Operator::kExists, {}});
      break;
    case 3:
      term.labels.push_back({"disk", Operator::kDoesNotExist, {}});
      break;
    case 4:
      term.labels.push_back({"generation", Operator::kGt, {"2"}});
      break;
    case 5:
      term.labels.push_back({"generation", Operator::kLt, {"4"}});
      break;
    default:
      break;  // an empty term, unless the next line fills it
  }
  if (random.chance(1, 3)) {
    term.labels.push_back({model::kZoneLabel, Operator::kIn, {"z0", "z1"}});
  }
  if (random.chance(1, 10)) {
    term.fields.push_back({"metadata.name", Operator::kNotIn, {"n10-0", "n50-1"}});
  }
  return term;
}

model::PodSet random_set(Random& random, const PodSpec& pod) {
  model::PodSet set;
  set.namespaces = {pod.ns};
  if (random.chance(1, 4)) set.namespaces = {"a", "b"};
  set.all_namespaces = random.chance(1, 10);
  set.match_nothing = random.chance(1, 20);
  set.selector.push_back({"app", Operator::kIn, {pick(random, kApps)}});
  if (random.chance(1, 4)) set.selector.push_back({"canary", Operator::kDoesNotExist, {}});
  return set;
}

model::PodAffinityTerm random_affinity(Random& random, const PodSpec& pod) {
  return {.topology_key = pick(random, kKeys),
          .pods = random_set(random, pod),
          .weight = static_cast<int>(random.between(1, 100))};
}

void add_node_choice(Random& random, PodSpec& pod) {
  if (random.chance(1, 10)) pod.node_selector["disk"] = random.chance(1, 2) ? "ssd" : "hdd";
  if (random.chance(1, 8)) {
    pod.required_nodes.push_back(random_term(random));
    if (random.chance(1, 2)) pod.required_nodes.push_back(random_term(random));
  }
  while (random.chance(1, 4)) {
    pod.preferred_nodes.push_back(
        {.weight = static_cast<int>(random.between(1, 100)), .term = random_term(random)});
  }
  using Op = model::Toleration::Op;
  using model::TaintEffect;
  if (random.chance(1, 3)) pod.tolerations.push_back({"team", Op::kEqual, "red", {}});
  if (random.chance(1, 8)) pod.tolerations.push_back({"team", Op::kEqual, "blue", {}});
  if (random.chance(1, 6)) {
    pod.tolerations.push_back({"drain", Op::kExists, "", TaintEffect::kNoExecute});
  }
  if (random.chance(1, 8)) {
    pod.tolerations.push_back({"spot", Op::kExists, "", TaintEffect::kPreferNoSchedule});
  }
  if (random.chance(1, 12)) pod.tolerations.push_back({"", Op::kExists, "", {}});
  if (random.chance(1, 12)) {
    model::VolumeLimit claim{.claim = "data", .node_terms = {}};
    if (random.chance(3, 4)) claim.node_terms.push_back(random_term(random));
    pod.volumes.push_back(claim);
  }
  if (random.chance(1, 8)) pod.gpu_models = {"NVIDIA-H100-80GB-HBM3", "Tesla-T4"};
  if (random.chance(1, 10)) pod.gpu_min_memory_mib = 20000;
}

void add_neighbours(Random& random, PodSpec& pod) {
  if (random.chance(1, 10)) pod.affinity.push_back(random_affinity(random, pod));
  if (random.chance(1, 20)) pod.affinity.push_back(random_affinity(random, pod));
  if (random.chance(1, 8)) pod.anti_affinity.push_back(random_affinity(random, pod));
  if (random.chance(1, 6)) pod.preferred_affinity.push_back(random_affinity(random, pod));
  if (random.chance(1, 6)) pod.preferred_anti_affinity.push_back(random_affinity(random, pod));
  for (auto denominator : {5U, 10U}) {
    if (!random.chance(1, denominator)) continue;
    pod.spread.push_back({.max_skew = static_cast<int>(random.between(1, 3)),
                          .topology_key = pick(random, kKeys),
                          .hard = random.chance(1, 2),
                          .pods = random_set(random, pod),
                          .min_domains = random.chance(1, 5) ? 3 : 1,
                          .honor_affinity = random.chance(3, 4),
                          .honor_taints = random.chance(1, 3)});
  }
  if (random.chance(1, 10)) {
    pod.host_ports.push_back({.protocol = random.chance(3, 4) ? "TCP" : "UDP",
                              .ip = random.chance(1, 2) ? "0.0.0.0" : "10.0.0.1",
                              .port = 8080});
  }
}

}  // namespace

PodSpec random_pod(Random& random, Mix mix, const std::string& name) {
  PodSpec pod;
  pod.ns = random.chance(3, 4) ? "a" : "b";
  pod.name = name;
  pod.uid = "uid-" + name;
  pod.labels["app"] = pick(random, kApps);
  if (random.chance(1, 8)) pod.labels["canary"] = "yes";
  if (random.chance(2, 3)) pod.owner = "ReplicaSet/" + pod.labels["app"];
  pod.service = pod.labels["app"] == "web";
  add_gpu_demand(random, pod);
  if (random.chance(9, 10)) pod.requests["cpu"] = random.between(1, 40) * 200;
  if (random.chance(9, 10)) pod.requests["memory"] = random.between(1, 40) << 29;
  if (random.chance(1, 5)) pod.requests["ephemeral-storage"] = random.between(1, 60) << 30;
  if (random.chance(1, 15)) pod.requests["rdma/hca"] = random.between(0, 2);
  pod.created_ns = kGeneratedAt - random.between(1, 50) * kSecond;
  bool constrained = mix == Mix::kConstraints || (mix != Mix::kPlain && random.chance(1, 6));
  if (constrained) {
    add_node_choice(random, pod);
    add_neighbours(random, pod);
    pod.gated = random.chance(1, 40);
    pod.needs_queue = random.chance(1, 40);
    if (random.chance(1, 40)) pod.volume_missing = "lost";
  }
  if (mix == Mix::kPreemption || random.chance(1, 4)) {
    pod.priority = static_cast<int>(random.below(3)) * 10;
  }
  pod.preempts = mix == Mix::kPreemption ? !random.chance(1, 10) : random.chance(1, 4);
  return pod;
}

}  // namespace berth::judging
