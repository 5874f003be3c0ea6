// Changes that could let a workload start, least disturbance first, and the search among them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "people/why/answer.h"
#include "people/why/cause.h"
#include "people/why/server_rules.h"
#include "people/why/trial.h"
#include "people/why/why.h"

namespace berth::people {

struct Proposal {
  std::string title, kind;
  int disturbance = 1;
  int restarts = 0;
  bool objects_only = false;          // the draft has objects alone: only a second look can tell
  bool against_held = false;          // mends what the API server holds it by
  std::string row;                    // of growing changes, each of which holds those before
  bool larger = false;                // of a row: of no use where a smaller one works
  std::vector<std::string> takes;     // running pods or workloads that have to go: "ns/name"
  std::function<bool(Draft&)> apply;  // false: does not go with what is there
};

// What the search looks at.
struct Situation {
  const WhyOptions& options;
  Trials& trials;
  const Unit& unit;
  const model::PodSpec& sample;          // the pod that waits
  const NodePicture* picture = nullptr;  // of it; null where it was not looked at
  const model::ClusterState* state = nullptr;
  model::Reason reason = model::Reason::kNone;
  const Held* held = nullptr;              // by rules that the model does not know; null: by none
  const Autoscaler* autoscaler = nullptr;  // null: none is known
  Subject subject;

  const kinds::Inputs& inputs() const { return trials.inputs(); }
  const ObjectSource* objects() const { return options.objects; }
};

using Proposals = std::vector<Proposal>;

// Generators, by what they change.
void propose_rules(const Situation& s, Proposals& out);     // taints, selectors, affinity, ports
void propose_sizes(const Situation& s, Proposals& out);     // GPUs, cpu, memory, gangs, topology
void propose_nodes(const Situation& s, Proposals& out);     // uncordon, repair, taints, more nodes
void propose_holders(const Situation& s, Proposals& out);   // who would have to go or move
void propose_devices(const Situation& s, Proposals& out);   // resources that no node offers
void propose_queues(const Situation& s, Proposals& out);    // quota, queues, priority
void propose_flavors(const Situation& s, Proposals& out);   // flavors, what queues cover
void propose_topology(const Situation& s, Proposals& out);  // levels of a Topology
void propose_gates(const Situation& s, Proposals& out);     // gates, suspension, claims
void propose_server(const Situation& s, Proposals& out);    // namespace quota, classes, ranges

// Edits every template of the unit, in the model and in the objects. object may be null.
using ModelEdit = std::function<void(model::PodSpec&)>;
using ObjectEdit = std::function<void(Tree& meta, Tree& spec)>;
bool edit_pods(const Situation& s, Draft& draft, const ModelEdit& model, const ObjectEdit& object);

// The rules of queues for editing, as earlier edits left them.
model::QueueRules& edit_rules(const Situation& s, Draft& draft);
// What is asked about as a workload of a queue, as earlier edits left it; null: it is none.
model::WorkloadSpec* edit_queued(const Situation& s, Draft& draft);

// Labels of its namespace that the ClusterQueue selects by, and its namespace for the selector.
void namespace_labels(const Situation& s, const model::QueueSpec& queue, Proposals& out);

// Levels of a Topology that nodes of its flavor lack, for people; empty: none that is known.
std::string levels_lacking(const kinds::Inputs& inputs, const Unit& unit);

// The limits and the requests of every container of a pod's spec, those of init containers last.
void for_each_amounts(Tree& spec, const std::function<void(Tree& amounts)>& edit);

// Takes the volumes of these claims out of a pod's spec.
void drop_claims(Tree& spec, const std::vector<std::string>& claims);

// Why the decision does not send that pod or workload away itself, by rules that are plain:
// priorities, preemptionPolicy, what the queue allows. nullopt: nothing forbids it as far as is
// known. name: "ns/name".
std::optional<Refused> refused_preemption(const Situation& s, const std::string& name);

struct FoundFixes {
  std::vector<Fix> fixes;            // that work, at most options.most_fixes
  std::vector<std::string> in_vain;  // titles of what was tried and does not
  std::vector<Refused> refused;      // would work as well, a few
};
FoundFixes find_fixes(const Situation& s);

}  // namespace berth::people
