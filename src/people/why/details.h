// The parts of an answer beside its reason and its fixes: arithmetic, nodes, holders, quota, time.
#pragma once

#include <string>
#include <vector>

#include "people/why/answer.h"
#include "people/why/cause.h"
#include "people/why/fixes.h"
#include "people/why/trial.h"

namespace berth::people {

Need need_of(const Unit& unit);
std::vector<std::string> where_it_runs(Trials& trials, const Unit& unit);

// A pod as its queue would make it: with the labels and tolerations of the only flavor.
model::PodSpec queued_sample(const kinds::Inputs& inputs, const Draft& draft, const Unit& unit,
                             std::size_t pod_set = 0);

// One sentence with the numbers, of a reason that nodes give. otherwise: what the decision said.
std::string message_of(const NodePicture& picture, const model::ClusterState& state,
                       const model::PodSpec& pod, model::Reason reason,
                       const std::string& otherwise);

// It asks for a resource that no node offers: says which, and what nodes offer; else empty.
std::string absent_resource(const kinds::Inputs& inputs, const model::PodSpec& pod);

void show_nodes(const NodePicture& picture, const model::ClusterState& state,
                const model::PodSpec& pod, Answer& out);
// most: holders that are named, those of nodes with the most room first.
void show_holders(const NodePicture& picture, const model::ClusterState& state,
                  const ObjectSource* objects, std::size_t most, Answer& out);
std::optional<Quota> quota_of(const model::Decision& decision, const Unit& unit,
                              const model::Outcome& no);
// Its queue asks checks that are not ready.
bool checks_to_come(const kinds::Inputs& inputs, const Unit& unit);
// Those of its status that are not ready, with what each of them wrote: "quota-check (no capacity
// in zone a), other". objects may be null.
std::string checks_not_ready(const ObjectSource* objects, const Unit& unit);
// What the condition PodScheduled of one of its pods says; empty: nothing.
std::string told_by_scheduler(const Unit& unit);
std::optional<Ahead> ahead_of(const Trials& trials, const Unit& unit, const model::Outcome& no);

struct Refusal {
  std::string message;
  bool started = false;  // admitted by the kubelet, containers do not start
};
Refusal refusal_of(const Unit& unit);

// Changes that take away what keeps the unit out of the model, to see what is behind it.
std::vector<ObjectChange> unsuspended(const ObjectSource* objects, const Unit& unit);
std::vector<ObjectChange> without_complaints(const ObjectSource* objects, const Unit& unit);

// When it would start by what running pods say of their end; or why that is not known.
Start start_of(const Situation& s, const Answer& answer);

// Takes the reason away in the model, to see what would hold the unit next; false: no way.
bool relax(const Situation& s, model::Reason reason, Draft& draft);

}  // namespace berth::people
