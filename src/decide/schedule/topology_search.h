// The search in a topology whose leaves have counted their pods: phases 1b to 2b of
// topology_tree.h.
//
// Internal to the topology files. Works on domain numbers and counts alone; numbers within a level
// are in order of values, so a tie by number is a tie by values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decide/schedule/topology_tree.h"

namespace berth::schedule {

// An ask with its levels as numbers.
struct TopologyPlan {
  int level = 0;                   // where the search begins
  bool required = false;           // one domain of that level or nothing
  bool climbs = false;             // preferred: wider levels are tried
  bool ascending = false;          // least free first
  bool balanced = false;           // preferred, evenly
  bool leader = false;             // one leader besides
  int slice_level = 0;             // outermost slices
  std::int64_t slice = 1;          // their size
  std::int64_t pods = 0;           // of the workers
  bool layered = false;            // more than one layer of slices was asked for
  std::vector<std::int64_t> unit;  // by level below slice_level: size of inner slices, else 1

  std::int64_t slices() const { return pods / slice; }
  std::int64_t unit_at(int at) const {
    return at <= slice_level ? slice : unit[static_cast<std::size_t>(at)];
  }
};

struct TopologyChoice {
  std::int32_t domain = 0;
  std::int64_t pods = 0;
  bool leader = false;
};

struct TopologyFind {
  bool ok = false;
  int level = 0;          // where a "no" was found
  std::int64_t fits = 0;  // of a "no": slices
  std::vector<TopologyChoice> leaves;
};

class TopologySearch {
 public:
  // rooms: by level; those of the leaves hold their pods.
  TopologySearch(std::span<const TopologyLevel> form, const TopologyPlan& plan,
                 std::vector<std::vector<TopologyRoom>>& rooms)
      : form_(form), plan_(plan), rooms_(rooms) {}

  TopologyFind run();

 private:
  struct Candidate {
    std::int64_t units = 0, pods = 0;  // beside the leader where one is sought
    std::int64_t loss = 0;             // units that the leader costs here
    std::int32_t domain = 0;
  };
  struct Range {
    std::int32_t begin = 0, end = 0;
  };
  // Domains of one level that share a request of so many units, each of so many pods.
  struct Request {
    int level = 0;
    std::int64_t units = 0;
    std::int64_t unit = 1;
    bool leader = false;
  };

  const std::vector<TopologyRoom>& rooms(int level) const {
    return rooms_[static_cast<std::size_t>(level)];
  }
  int lowest() const { return static_cast<int>(form_.size()) - 1; }
  Range all(int level) const {
    return {0, static_cast<std::int32_t>(form_[static_cast<std::size_t>(level)].size())};
  }
  Range children(int level, std::int32_t domain) const {
    const auto& first = form_[static_cast<std::size_t>(level)].first;
    return {first[static_cast<std::size_t>(domain)], first[static_cast<std::size_t>(domain) + 1]};
  }

  // Phase 1b.
  void sum_up();
  void finish_room(int level, TopologyRoom& room) const;

  // Phase 2a.
  std::optional<TopologyChoice> alone(int level) const;
  std::int64_t most_in_one(int level) const;
  std::int64_t most_in_all(int level) const;
  bool seek(TopologyFind& find, std::vector<TopologyChoice>& chosen);

  // Phase 2b. per_parent: counts of the chosen domains hold for their children, above the level of
  // slices too.
  bool descend(int level, bool per_parent, std::vector<TopologyChoice>& chosen);

  // Adds to out the domains that serve the request; false: they do not suffice.
  bool choose(std::span<const Range> ranges, const Request& request,
              std::vector<TopologyChoice>& out);
  bool choose_leader(std::span<const Range> ranges, Request& request,
                     std::vector<TopologyChoice>& out, std::int32_t& host);
  bool choose_workers(const Request& request, std::vector<TopologyChoice>& out);
  void gather(std::span<const Range> ranges, const Request& request, bool led,
              std::int32_t without);
  bool before(const Candidate& a, const Candidate& b) const;
  static bool tighter(const Candidate& a, const Candidate& b);

  // Balanced placement, in topology_balanced.cc.
  struct Balance;
  std::optional<std::vector<TopologyChoice>> balanced(int level);
  std::optional<Balance> best_balance(int level) const;

  std::span<const TopologyLevel> form_;
  const TopologyPlan& plan_;
  std::vector<std::vector<TopologyRoom>>& rooms_;
  std::vector<Candidate> candidates_;
};

}  // namespace berth::schedule
