// A kueue.x-k8s.io object in the other version, v1beta1 or v1beta2, as JSON.
//
// Fields that both versions share stay as they are, unknown ones too. What differs:
//   ClusterQueue  cohort / cohortName; flat admissionChecks become admissionChecksStrategy (there
//   is
//                 no way back: v1beta1 reads the strategy too); Borrow and Preempt become
//                 MayStopSearch (which v1beta1 reads as well)
//   LocalQueue    status.flavorUsage / flavorsUsage
//   Workload      priorityClassName and priorityClassSource / priorityClassRef; the misspelt
//                 accumulatedPastExexcutionTimeSeconds; domains / slices of topology assignments;
//                 podsetSliceRequiredTopologyConstraints is dropped on the way down
// Of a valid object: what decode_...() reads of the result is what it reads of the object.
#pragma once

#include <string>

#include "objects/kueue.h"

namespace berth::objects {

std::string convert_kueue(const text::Value& object, KueueVersion to);

}  // namespace berth::objects
