// How many rules about other pods (affinity, anti-affinity, spread) a decision has to weigh, and
// who brought them: what one pod, and the pods of one namespace, may bring is bounded, so that no
// tenant makes the decisions about others slow.
//
// A pod that brings too much by itself, and every waiting pod with such rules of a namespace that
// does, waits with the reason TooManyRules, which is said where people look. Rules that pods share
// count once: the replicas of a service bring what one of them brings.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string>
#include <utility>

#include "model/spec.h"

namespace berth::model {

struct RuleCount {
  std::int64_t terms = 0;    // about other pods
  std::int64_t foreign = 0;  // of them, those that reach pods of other namespaces
  std::int64_t words = 0;    // keys and values in all of its rules, those about nodes too
};

inline constexpr std::int64_t kMostTermsOfPod = 128;
inline constexpr std::int64_t kMostWordsOfPod = 4'096;
inline constexpr std::int64_t kMostTermsOfNamespace = 4'096;
inline constexpr std::int64_t kMostForeignOfNamespace = 256;

// What is too much, as a sentence; empty: nothing is.
std::string pod_excess(const RuleCount& count);
std::string namespace_excess(const std::string& ns, const RuleCount& count);

class RuleLedger {
 public:
  // What a pod brings. set 0: no rules about other pods.
  struct Entry {
    std::uint64_t set = 0;
    RuleCount count;
  };
  static Entry entry_of(const PodSpec& pod);

  void add(const std::string& ns, const Entry& entry);
  void remove(const std::string& ns, const Entry& entry);
  RuleCount of(const std::string& ns) const;  // terms and foreign ones
  bool over(const std::string& ns) const;

 private:
  struct Namespace {
    RuleCount sum;
    boost::unordered_flat_map<std::uint64_t, std::uint32_t> sets;  // how many pods bring it
  };
  boost::unordered_flat_map<std::string, Namespace> namespaces_;
};

}  // namespace berth::model
