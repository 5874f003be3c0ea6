// kueue.x-k8s.io ResourceFlavor, ClusterQueue, LocalQueue and Cohort, v1beta1 and v1beta2; the
// small kinds WorkloadPriorityClass, Topology and AdmissionCheck, the same in both; v1 Namespace.
//
// Both versions become one spec: v1beta1's cohort is cohortName, its Borrow and Preempt are
// MayStopSearch (either word is read in either version), its flat admissionChecks hold for every
// flavor. A field of the other version is an unknown field. What an API server would refuse (a
// resource in two groups, a flavor that does not list the covered resources, limits without a
// cohort, lending above nominal, a hostname level that is not the last) is an error here too.
#pragma once

#include "kinds/meta.h"
#include "model/workload.h"

namespace berth::kinds {

enum class KueueVersion : std::uint8_t { kV1beta1, kV1beta2 };

void decode_flavor(const text::Value& v, model::FlavorSpec& out, text::Decoder& d);
void decode_cluster_queue(const text::Value& v, KueueVersion version, model::QueueSpec& out,
                          text::Decoder& d);
void decode_local_queue(const text::Value& v, model::LocalQueueSpec& out, text::Decoder& d);
void decode_cohort(const text::Value& v, KueueVersion version, model::CohortSpec& out,
                   text::Decoder& d);

struct WorkloadClassObject {  // WorkloadPriorityClass
  Meta meta;
  int value = 0;
};
void decode(const text::Value& v, WorkloadClassObject& out, text::Decoder& d);

struct NamespaceObject {
  Meta meta;
};
void decode(const text::Value& v, NamespaceObject& out, text::Decoder& d);

void decode_topology(const text::Value& v, model::TopologySpec& out, text::Decoder& d);
void decode_check(const text::Value& v, model::CheckSpec& out, text::Decoder& d);

// One of status.conditions.
struct StatusCondition {
  std::string type, status, reason, message;
  std::int64_t since_ns = 0;
  bool is_true() const { return status == "True"; }
};
void read_status_conditions(const text::Value& v, std::vector<StatusCondition>& out,
                            text::Decoder& d);

}  // namespace berth::kinds
