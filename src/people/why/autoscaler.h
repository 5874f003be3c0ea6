// What the cluster's autoscalers say of themselves and of a workload, from the objects they write.
//
// cluster-autoscaler: ConfigMap kube-system/cluster-autoscaler-status, as YAML (since 1.30) or as
// the text that it was before. Karpenter: NodePools and NodeClaims. Both: events of the pods.
// ProvisioningRequests of the workload. Told as it stands there: nothing is worked out about what
// an autoscaler will do. What is odd is left out. Pure; bounded by kMostPools and kLongestSaid.
#pragma once

#include <optional>
#include <string>

#include "people/why/answer.h"
#include "people/why/cause.h"
#include "people/why/unit.h"

namespace berth::people {

inline constexpr std::size_t kMostPools = 16;
inline constexpr std::size_t kLongestSaid = 400;  // bytes of what an object says

// nullopt: no object tells of one. sample: the pod that waits; what it asks for counts against the
// limits of a pool.
std::optional<Autoscaler> autoscaler_of(const ObjectSource& objects, const Unit& unit,
                                        const model::PodSpec& sample);

// Puts the pools of nodes that count first, and says how many there are. The labels that clouds
// put on their nodes tell: the name of a node group has their value as a word.
void sort_pools(const NodePicture& picture, const model::ClusterState& state,
                const std::vector<model::NodeSpec>& nodes, Autoscaler& out);
void keep_few_pools(Autoscaler& out);  // the first kMostPools

// Of the pools of such nodes those whose last scale-up failed, and those that may grow all the
// same, for people: "scale-up failed in gpu-a; gpu-b may grow"; empty where none failed.
std::string scale_up_failed(const Autoscaler& autoscaler);

// Between a fix that adds nodes and the limit of limit_in_the_way.
inline constexpr const char* kAboveLimit = ", above the limit of ";
// The limit that keeps nodes like this one from being added, for people: "pool gpu: 8 nodes"; empty
// where there is none, or not of every pool that could.
std::string limit_in_the_way(const Autoscaler& autoscaler, const model::NodeSpec& like);

}  // namespace berth::people
