// kueue.x-k8s.io ResourceFlavor, ClusterQueue, LocalQueue and Cohort, v1beta1 and v1beta2.
//
// Both versions become one spec: v1beta1's cohort is cohortName, its Borrow and Preempt are
// MayStopSearch (either word is read in either version), its flat admissionChecks hold for every
// flavor. A field of the other version is an unknown field. What an API server would refuse (a
// resource in two groups, a flavor that does not list the covered resources, limits without a
// cohort, lending above nominal) is an error here too. Not yet read by ManifestReader: that comes
// with the decision that uses them.
#pragma once

#include "model/queue.h"
#include "objects/meta.h"

namespace berth::objects {

enum class KueueVersion : std::uint8_t { kV1beta1, kV1beta2 };

void decode_flavor(const text::Value& v, model::FlavorSpec& out, text::Decoder& d);
void decode_cluster_queue(const text::Value& v, KueueVersion version, model::QueueSpec& out,
                          text::Decoder& d);
void decode_local_queue(const text::Value& v, model::LocalQueueSpec& out, text::Decoder& d);
void decode_cohort(const text::Value& v, KueueVersion version, model::CohortSpec& out,
                   text::Decoder& d);

}  // namespace berth::objects
