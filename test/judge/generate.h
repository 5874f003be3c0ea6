// Random small clusters and requests, the same for the same seed on every machine.
//
// Outputs are plain specs, valid in the sense of model/spec.h. Running pods fit the capacity of
// their nodes; they need not meet the other constraints, as in a real cluster whose labels and
// taints changed. About half of the requests fit.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "judge/judge.h"

namespace berth::judging {

enum class Mix {
  kPlain,        // single pods with cpu, memory and every kind of GPU demand; healthy clusters
  kConstraints,  // single pods with every constraint and preference; worn clusters
  kGangs,        // gangs with minima, topologies and subgroups beside single pods; some constraints
  kPreemption,   // full clusters, priorities, budgets, running gangs; some of everything
};

struct GenerateOptions {
  Mix mix = Mix::kPlain;
  int min_nodes = 3;
  int max_nodes = 12;
  int requests = 4;                  // pending workloads
  int running_per_node = 3;          // tried; those that do not fit are left out
  int unknown_devices_percent = 10;  // running pods that do not say which devices they have
};

inline constexpr std::int64_t kSecond = 1'000'000'000;
// Clusters are made as of this time; nothing in them is newer.
inline constexpr std::int64_t kGeneratedAt = 1'000'000 * kSecond;

JudgeCluster generate(const Random& random, const GenerateOptions& options);

// One more pending workload. `serial` makes its names; each number once in a cluster, from 1000 on.
void add_request(Random& random, const GenerateOptions& options, int serial, JudgeCluster& cluster);

// Carries a decision out: placed pods run from now_ns on, victims are pending again.
void apply(const model::Decision& decision, std::int64_t now_ns, JudgeCluster& cluster);

// Ends about one in `one_in` running jobs (whole gangs, with their specs), and drops nothing else.
void finish_some(Random& random, std::uint64_t one_in, JudgeCluster& cluster);

// The parts, for tests that build their own.
model::NodeSpec random_node(Random& random, Mix mix, int number);
model::PodSpec random_pod(Random& random, Mix mix, const std::string& name);

}  // namespace berth::judging
