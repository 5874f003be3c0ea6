// Amounts of resources as the API server adds them up: exact, and in the format of who wrote them
// first, because its answers print the sums.
//
// Pure. The sums over containers are those of k8s.io/component-helpers/resource: app containers and
// sidecars add up, a plain init container counts beside the sidecars before it, the pod has the
// larger of the two or what spec.resources says, and its overhead comes on top. Cost: a pass over
// the containers.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "text/quantity.h"
#include "text/value.h"

namespace berth::rules {

using Sums = std::map<std::string, text::Quantity, std::less<>>;  // by resource

// What of {"cpu": "2", ...} can be read; numbers count as their text.
Sums read_sums(const text::Value& list);
void add(Sums& to, const Sums& more);
void keep_most(Sums& of, const Sums& other);
// "cpu=2,pods=1": as messages list them.
std::string listed(const Sums& sums);

// Of one container as the API server stores it: a limit is the request where none is stated.
Sums requests_of(const text::Value& container);

struct PodSums {
  Sums requests, limits;
};
enum class Overhead { kIn, kOut };
// Of a pod that is as its spec says. status: of one that exists, which may be in the middle of a
// resize and then has the most of what is asked for, set aside and given; null: there is none.
PodSums sums_of_pod(const text::Value& spec, const text::Value& status, Overhead overhead);

}  // namespace berth::rules
