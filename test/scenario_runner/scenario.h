// A scenario file as values: steps of objects, deletions and expectations. docs/scenarios.md is the
// grammar.
//
// parse_scenario() turns every shorthand into the Kubernetes manifest it stands for, so that any
// engine can apply it; an error names the file and the line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/plan/policy_option.h"
#include "base/result.h"

namespace berth::scenario {

inline constexpr std::int64_t kSecond = 1'000'000'000;
// Noon of 2025-01-01; "at +30s" counts from here.
inline constexpr std::int64_t kStart = 1'735'732'800 * kSecond;

struct Object {
  std::string kind, name;  // "Pod", "ns/name"; cluster-scoped kinds have no "ns/"
  std::string json;        // the manifest
  int line = 0;
};

struct Deletion {
  std::string kind, name;
  int line = 0;
};

struct Expectation {
  enum class Kind {
    kOn,         // name on nodes[0] [gpus]
    kPlaced,     // name placed [on nodes]
    kPlacedIn,   // name placed in key value
    kNotPlaced,  // name waits/never/partial reason "text"
    kRemoved,    // name: constraint, number; only: that alone
    kOnly,
    kBinding,
    kFits,       // name: members that fit in a domain
    kFree,       // name: free and largest free, in GPUs
    kCounts,     // placed, waiting, preempted, invalid, ignored, warnings
    kPreempted,  // names
    kBreaks,     // names: evicted against a budget
    kText,       // invalid/warning/ignored "text"
    kExit,
    kAdmitted,    // of queues, queue_expect.h: name; names: flavors
    kEvicted,     // name, by names[0], reason
    kDomains,     // name, word: the pod set, names: "domain=pods"
    kPosition,    // name, number
    kAdmissions,  // names, in order
    kEvictions,   // names
    kQueue,       // name: a queue; word: what; reason: a resource, text: a flavor
  };
  Kind kind = Kind::kOn;
  std::string name;  // workload or pod
  std::string word;  // verdict, constraint key, count or list name, label key
  std::string reason, text;
  std::vector<std::string> names;  // nodes or pods
  std::vector<int> gpus;
  bool has_gpus = false;
  int number = -1, total = -1;
  int line = 0;
  std::string source;  // the line as written
};

struct Step {
  std::int64_t at_ns = kStart;
  std::vector<Object> apply;
  std::vector<Deletion> remove;
  std::vector<Expectation> expect;
  int line = 0;
};

struct Scenario {
  std::string path;
  std::string title;  // the first comment
  app::PolicyArguments policy;
  int cycles = 0;  // 0: until stable
  bool quota_only = false;
  std::vector<Step> steps;
};

Result<Scenario> parse_scenario(const std::string& path, std::string_view text);

// "kubernetes.io/hostname" for "host", ...; other words as they are.
std::string topology_label(std::string_view word);

}  // namespace berth::scenario
