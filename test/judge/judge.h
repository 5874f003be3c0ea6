// The judge: docs/placement.md once more, by brute force, for tests to compare the engine with.
//
// Written from that page alone. It keeps strings, looks at every node, term and subset each time,
// has no index and no cache, and shares no code with src/schedule or the snapshot of src/model.
// Meant for 3 to 30 nodes. A pure function; safe from any thread.
//
// Outcome::message stays empty: sentences are for people and are not compared.
//
// Readings: what the page leaves open, and what the judge takes it to mean.
//
//  The cycle
//  R1  A gang and a pod of the same priority, time and name: the gang first.
//  R2  "Its members" of a gang are the pending (gated ones too) and the running. created_ns 0 of a
//      gang is "none of its own". The priority of a running gang as a victim is the same priority
//      that orders the queue; two measures would let two gangs evict one another in turns.
//  R3  Gated members are left aside: the others go on without them, and a gang whose other members
//      are all placed is `partial`, reason Gated. When the rest is too few for a minimum that the
//      gated ones would fill, or nobody else is pending: Gated. Outcome::pods counts them.
//  R4  Checks in the order of the page: Gated, VolumeMissing, GangIncomplete, NoNodes. A subgroup
//      with fewer members than its own minimum is GangIncomplete too. So is a gang without a spec.
//  R5  A pending pod that is terminating is not looked at and has no outcome.
//  R6  A running pod on a node that the cluster lacks counts as a gang member, nowhere else.
//  R7  At least one pending member must be placed: a gang whose running members reach the minimum
//      already, and of which nothing more fits, waits (not `partial` with 0 placed).
//
//  Hard constraints
//  R8  GPU model and memory of a node are those of its first device. Both concern only pods that
//      ask for GPUs (kind and count set).
//  R9  A device whose health is unknown is not usable, like an unhealthy one.
//  R10 GPUs, GPU health and NUMA policy exclude one another, in that order.
//  R11 Pod affinity is judged term by term, as written (kube-scheduler wants one pod that meets
//      all terms, and lets the first of its kind in only when no term has a match).
//  R12 Terminating pods hold their room and count for affinity, not for topology spread (as in
//      kube-scheduler).
//  R13 nodeTaintsPolicy looks at NoSchedule and NoExecute taints, not at cordons.
//  R14 An empty address is 0.0.0.0, an empty protocol TCP. A port wanted twice by one pod is fine.
//  R15 The width of `restricted` counts all unpartitioned devices, whatever their health; what is
//      free counts usable ones. A container whose set has several NUMA nodes empties the lowest
//      one first. One request (scope pod, or a single container with GPUs) admits every subset of
//      the needed width; several containers admit the subsets with the same number of devices of
//      each NUMA node as serving them in order takes.
//
//  Which node, which GPUs
//  R16 Soft spread counts all nodes that have the key, eligible or not; "one more than the
//      highest" is 1 when no domain has a match. Terminating pods as in R12.
//  R17 Replicas apart: same namespace and owner; 0 for a pod without owner. Terminating ones
//      count.
//  R18 Unknown NUMA nodes and PCIe switches count as one of their own, like unknown cliques.
//  R19 "Free devices left in the cliques" are usable ones, entirely free.
//  R20 Placement::gpus lists a device once for each share or slot taken on it. A MIG slot is
//      gpu_milli 0, here and in lost work.
//
//  Gangs
//  R21 A member that fits nowhere is skipped, and the walk goes on with the next.
//  R22 count x milli, for the order: 1000 for each of count, but for fractions their milli.
//  R23 "The minimum" is what must start now: the larger of minMember less the running, and the sum
//      of the subgroups' own minima less their running; at least 1. Also Certificate::needed_pods.
//  R24 Domains with less capacity than the minimum are tried last, and for members of one demand
//      and one set of node rules not at all.
//  R25 With running members in several domains any of those may be taken; running members on nodes
//      without the key bind nothing. For preferred topology they bind the first attempt only.
//  R26 Preferred: a domain is taken only when all members fit. Then, for the few domains, the
//      capacity is counted anew (first remaining member, current state) before each; a domain is
//      used once; domains of capacity 0 are not used.
//  R27 Required and preferred together: preferred inside each required domain.
//  R28 A subgroup with a topology is one unit in the walk. If its domain cannot take its minimum
//      (at least 1), none of it is placed; the walk goes on. Members of it placed before count as
//      running.
//
//  Verdicts
//  R29 `never` is said only of an exact "no" on the empty cluster. On it no gang has running
//      members, but the number that must start stays. Cordons are left aside with the taint that
//      Kubernetes sets for conditions (node.kubernetes.io/...), readiness, health and reservations.
//  R30 Reason of `never` for a gang whose explained member alone would fit the empty cluster:
//      NeverFits.
//  R31 The explained member of a gang: the first unplaced of a partial one; else the first that
//      fits no node on the state before the gang; else the first.
//  R32 The certificate is about the real state, for `never` too. `partial` has one as well. Left-
//      out workloads and NoNodes have none. needed_pods and domains are for gangs only, free GPU
//      figures for pods that ask for GPUs only.
//  R33 Fragmented: the demand is count x the smallest size one part has on the nodes that pass
//      (GPUs that cannot serve the kind at all are left out); in slots for MIG, whose milli
//      figures are 0.
//  R34 Gang reasons: a member fits alone: TopologyDomainTooSmall if it would be placed (of a
//      partial one: all of it) without required topologies, its subgroups' included; else
//      GangDoesNotFit. No member fits alone: the reason of the explained member.
//  R35 `domains`: how many members the walk places in each domain of the gang's required key.
//  R36 `exact`: always for a pod. For a gang when its members are equal (demands, node and
//      pod constraints, subgroup; not labels, which may carry an index), have no constraint between
//      pods and no subgroup with a topology; or equal members exceed the capacity of every domain;
//      or fewer members than needed fit any node alone, affinity and spread set aside.
//
//  Preemption
//  R37 A gang may preempt when all its pending members may. Its own running members are no
//      victims.
//  R38 Every member that fits nowhere looks for victims, beyond the minimum too; it works when the
//      minimum is reached. A `partial` gang does not preempt for the rest.
//  R39 Preferred topology is left aside. Domains: as for placing (capacity before any eviction),
//      then those below the minimum, largest first. Subgroups with a required topology do the same
//      inside.
//  R40 A budget forbids a job when its pods, on top of all evicted before (earlier workloads in
//      the cycle, earlier members), exceed what it allows; each job of a node is judged alone.
//      Victims "against a budget" are counted in the order lower priority, name.
//  R41 The final return uses the job's GPU milli on all nodes, and takes a job back when, with it
//      in place, every member passes again in the order they were placed, on the same node and
//      devices.
//  R42 Running time is 0 when the start is not known (0) or lies ahead.
//  R43 Preemptions are listed by job (lower priority first, then name), then pod name;
//      breaks_budget is counted pod by pod in that order.
//  R44 after_preemption: all members of a workload with victims, and later placements on a node
//      that a victim left in this cycle.
//  R45 A victim has an outcome right after its preemptor's (wait, Preempted; pods: evicted and
//      pending). Its own turn in this cycle, if it was still to come, is dropped.
//
//  Devices of running pods
//  R46 Known indices are taken first: of each listed device what the demand takes of one (all of
//      it where the node cannot serve the demand); a device, like cpu and memory, may fall below
//      0, which counts as nothing free; unknown indices are skipped; shares and slots go around
//      the list until count is reached.
//  R47 Then pods without indices, in name order: by the rule "Which GPUs" on usable devices, NUMA
//      policy included; else on all devices without it; else part by part from the device with the
//      most free milli, lowest index first, and no slots.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/decision.h"
#include "model/spec.h"

namespace berth::judging {

struct JudgeCluster {
  std::vector<model::NodeSpec> nodes;  // gpus by index
  std::vector<model::PodSpec> pods;    // running: node_name set
  std::vector<model::GangSpec> gangs;
  std::vector<model::BudgetSpec> budgets;
  friend bool operator==(const JudgeCluster&, const JudgeCluster&) = default;
};

// A node before the pod is put on it; valid during the call only.
struct JudgeNodeView {
  const model::NodeSpec& node;
  std::int64_t free_cpu_milli, free_memory, free_ephemeral, free_pods;
  const model::Amounts& free_extended;
  const std::vector<int>& gpu_free_milli;  // by position in node.gpus; 0 for partitioned devices
};

struct LocalityWeight {
  std::string key, value;
  int weight = 0;
};

// Fewest free GPU milli (of unpartitioned devices, usable or not) after placement.
std::int64_t pack_score(const JudgeNodeView& before, const model::PodSpec& pod);

struct JudgePolicy {
  std::function<std::int64_t(const JudgeNodeView& before, const model::PodSpec& pod)> score =
      pack_score;  // level 5, higher is better
  // Level 3 counts for these, over a label of nodes first where it names one.
  std::function<std::optional<std::string>(const model::PodSpec&)> spreads =
      [](const model::PodSpec& pod) {
        return pod.service ? std::optional(std::string()) : std::nullopt;
      };
  std::vector<LocalityWeight> locality;  // level 4
};

// One cycle over all pending pods.
model::Decision judge(const JudgeCluster& cluster, const JudgePolicy& policy, std::int64_t now_ns,
                      bool certificates);

// Every constraint that rejects the node for the pod as the cluster stands, by the table's order:
// for tests that check placements one by one. The pod is pending, the node exists.
std::vector<model::Constraint> rejections(const JudgeCluster& cluster, const model::PodSpec& pod,
                                          const std::string& node);

}  // namespace berth::judging
