// What a workload asks for. Equal forms are decided alike: a "no" for one is a "no" for all of its
// queue, so forms are shared and everything that depends on the form alone is worked out once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "decide/admit/book.h"

namespace berth::admit {

struct Ask {
  ResourceId resource = kNoId;  // kNoId: no quota knows it; see name
  std::string name;             // of a resource that no quota knows
  std::int64_t amount = 0;      // of one pod
  friend auto operator<=>(const Ask&, const Ask&) = default;
};

struct PodSet {
  std::string name;
  int count = 0;
  int min_count = -1;     // -1: all or none
  std::vector<Ask> asks;  // by resource
  std::shared_ptr<const model::PodSpec> pod;
  model::TopologyAsk topology;
};

// Whether a flavor's nodes can take the pods at all.
enum class Match : std::uint8_t {
  kUnknown,
  kYes,
  kTaint,
  kAffinity,
  kTopology,
  kNoTopology,
  kNotAllowed
};

struct Form {
  int priority = 0;
  std::vector<PodSet> pod_sets;
  // Pod sets that get their flavors together (a podSetGroupName), in order; others alone.
  std::vector<std::vector<std::uint32_t>> units;
  bool partial = false;                // some pod set may shrink
  std::vector<std::string> allowed;    // flavors, of a variant; empty: all
  mutable std::vector<Match> matches;  // units x flavors, filled as asked
};

// Pods of the unit on nodes of the flavor: taints, selectors and affinity over the flavor's labels,
// and topology. implied: a queue whose flavors all have a topology.
Match match(const Book& book, const Form& form, std::uint32_t unit, FlavorId flavor, bool implied);
std::string describe_mismatch(const Book& book, const Form& form, std::uint32_t unit,
                              FlavorId flavor, Match found);

// Forms by what they hold; the same form for equal content.
class Forms {
 public:
  // lasting: specs that outlive it unchanged; their forms are kept and found by address.
  explicit Forms(const Book& book, std::span<const model::WorkloadSpec> lasting = {})
      : book_(book), lasting_(lasting), of_lasting_(lasting.size()) {}
  // reclaimable: pods that are done, by pod set.
  std::shared_ptr<const Form> get(const model::WorkloadSpec& spec);
  std::size_t size() const { return forms_.size(); }

 private:
  std::shared_ptr<const Form> make(const model::WorkloadSpec& spec);

  const Book& book_;
  std::span<const model::WorkloadSpec> lasting_;
  std::vector<std::shared_ptr<const Form>> of_lasting_;
  std::unordered_map<std::string, std::weak_ptr<const Form>> forms_;
  std::size_t sweep_at_ = 1024;
};

}  // namespace berth::admit
