// LimitRanges: what they fill into a new pod, and what they refuse, in the API server's words.
//
// A range is read as the API server stores it, with the defaults that it gives its items (a "max"
// is the default limit of containers, and that is the default request). What is filled in is told
// as a list, so that it may be put into whatever tree the caller edits. Pure. Cost: containers
// times bounds.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rules/amounts.h"

namespace berth::rules {

struct RangeItem {
  std::string type;  // Container, Pod, PersistentVolumeClaim
  Sums most, least, limit, request, ratio;
};
// spec.limits of a LimitRange.
std::vector<RangeItem> read_range(const text::Value& range);

// resources.limits (or requests) of one container.
struct Filled {
  std::string_view list;  // "containers", "initContainers"
  std::size_t container;  // its place there
  bool limit;
  std::string resource, amount;
};
// What one LimitRange fills into a pod with that spec.
std::vector<Filled> filled_by(const std::vector<RangeItem>& range, const text::Value& spec);
// "LimitRanger plugin set: cpu request for container main": the annotation that tells of it.
inline constexpr std::string_view kFilledAnnotation = "kubernetes.io/limit-ranger";
std::string filled_note(const std::vector<Filled>& filled, const text::Value& spec);

// One bound that is not kept.
struct Breach {
  enum class Rule : std::uint8_t {
    kMostNoLimit,
    kMostNoRequest,  // of a claim
    kMostLimit,
    kMostRequest,
    kLeastNoRequest,
    kLeastRequest,
    kLeastLimit,
    kRatioNoRequest,
    kRatioNoLimit,
    kRatio,
  };
  Rule rule = Rule::kMostLimit;
  std::string type, resource;
  std::string_view list = "containers";  // of a container: where it stands
  std::size_t container = 0;
  text::Quantity bound, request, limit;
};
// By a pod with that spec, item by item: containers, then init containers; least, most, ratio.
std::vector<Breach> breaches_of(const std::vector<RangeItem>& range, const text::Value& spec);
std::vector<Breach> claim_breaches(const std::vector<RangeItem>& range, const text::Value& claim);

// "maximum cpu usage per Container is 2, but limit is 4"; of several "[a, b]"; of none "".
std::string words_of(const Breach& breach);
std::string words_of(const std::vector<Breach>& breaches);

}  // namespace berth::rules
