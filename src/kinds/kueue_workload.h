// kueue.x-k8s.io Workload, v1beta1 and v1beta2: pod sets that start together, and where they stand.
//
// v1beta1's priorityClassName and priorityClassSource are priorityClassRef, its domains of a
// topology assignment are slices. What Kueue's webhook refuses is an error: 1 to 18 pod sets of
// different names, count at least 1 (and at most kMaxJobPods), minCount 1..count on one pod set,
// one of required, preferred and unconstrained, slice sizes that divide one another, groups of two
// pod sets of which one has one pod, a class without its source, an admission that does not name
// every pod set once, negative usage. Annotations: priority-boost, admission-gated-by,
// workload-slice-replacement-for (a larger slice of an elastic job),
// workload-allowed-resource-flavors (with a Workload as controller: a variant of it),
// berth.dev/seats (where the pods of a holder are to run; also the condition berth.dev/Placed). A
// workload holds quota where status.admission is given and the condition QuotaReserved is not
// False.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/job.h"
#include "kinds/kueue.h"
#include "model/workload.h"

namespace berth::text {
class JsonWriter;
}

namespace berth::kinds {

inline constexpr std::size_t kMostPodSets = 18;
inline constexpr std::string_view kSeatsAnnotation = "berth.dev/seats";
// The same as a condition of its status, with the list as its message: it is written together with
// the admission. It goes before the annotation, which stands where the list is too long for it.
inline constexpr std::string_view kPlacedCondition = "berth.dev/Placed";
// When it was preempted in the past hour, as its message: times with commas.
inline constexpr std::string_view kPreemptionsCondition = "berth.dev/Preemptions";
inline constexpr std::size_t kMostPreemptions = 64;

struct WorkloadObject {
  Meta meta;
  model::WorkloadSpec spec;          // priority, pods and requests come with the other objects
  std::vector<PodObject> templates;  // of spec.pod_sets, one each
  std::optional<int> priority;
  std::string priority_class;
  bool pod_class = false;  // a PriorityClass, not a WorkloadPriorityClass
  int boost = 0;           // annotation priority-boost
  std::vector<std::string> preemption_gates;
  bool read = true;  // in full; else what it holds may have to be completed
};
void decode_workload(const text::Value& v, KueueVersion version, WorkloadObject& out,
                     text::Decoder& d);

// The status; spec must have been read. kueue_status.cc.
void read_workload_status(const text::Value& v, KueueVersion version, WorkloadObject& out,
                          text::Decoder& d);

// v1beta1's domains and v1beta2's slices as one. kueue_topology.cc.
void read_topology_assignment(const text::Value& v, KueueVersion version,
                              std::optional<model::TopologyAssignment>& out, text::Decoder& d);
void write_topology_assignment(const model::TopologyAssignment& assignment, KueueVersion version,
                               text::JsonWriter& out);

// Adds all seats of {"main": [{"node": "n1", "gpus": [0, 1]}, ...]}: "". None: what is wanted.
std::string seats_in(std::string_view text, std::vector<model::WorkloadSpec::Seat>& out);
// What the condition says where the annotation has the seats.
inline constexpr std::string_view kSeatsDigest = "sha256:";
std::string seats_digest(std::string_view seats);

// "" or what is wrong with the sizes: want <this>.
std::string slices_wrong(const std::vector<model::TopologyAsk::Slice>& slices, int count);

}  // namespace berth::kinds
