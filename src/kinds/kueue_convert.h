// A kueue.x-k8s.io object in the other version, v1beta1 or v1beta2, as JSON.
//
// Pure, for any object: nothing is refused and nothing is lost. Fields that both versions share
// stay as they are, unknown ones and metadata too. What differs:
//   ClusterQueue       cohort / cohortName; flat admissionChecks become admissionChecksStrategy and
//                      Borrow and Preempt become MayStopSearch (no way back: v1beta1 has both)
//   LocalQueue         status.flavorUsage / flavorsUsage
//   Workload           priorityClassName and priorityClassSource / priorityClassRef; the misspelt
//                      accumulatedPastExexcutionTimeSeconds; domains / slices of topology
//                      assignments, in their order
//   MultiKueueCluster  kubeConfig and clusterProfileRef / the same in clusterSource
// Where both spellings stand in one object, or a value has no form in the other version (a class of
// another group, slices that do not fit their levels, an assignment that would grow by megabytes),
// it stays as it is: the schemas of deploy/crds know the fields of either. So down and up again
// gives the same object, but for how the domains of an assignment are packed into slices.
// Of a valid object: what decode_...() reads of the result is what it reads of the object.
//
// Cost: linear in the object, and in the domains of its assignments.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kinds/kueue.h"

namespace berth::kinds {

inline constexpr std::string_view kKueueGroup = "kueue.x-k8s.io";
// "kueue.x-k8s.io/v1beta1" and "/v1beta2"; nothing for any other.
std::optional<KueueVersion> kueue_version(std::string_view api_version);
// Whether the two versions of a kind differ in more than apiVersion.
bool kueue_versions_differ(std::string_view kind);

// An object of an API server whose kinds nobody converts, with v1beta1's fields under v1beta2's
// name: as the server holds what a client of v1beta1 wrote. Objects of files are as they say.
bool kueue_unconverted(const text::Value& object);

std::string convert_kueue(const text::Value& object, KueueVersion to);

}  // namespace berth::kinds
