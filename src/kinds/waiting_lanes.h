// Workloads that wait and are alike, so that a decision needs to see only the first of them.
//
// A "no" for the first of a lane holds for all behind it, and those are reached only when all
// before them are admitted. So a decision over the first few of each lane is the one over all of
// them, for as many as it can admit at once. Alike are those of one namespace with the same spec
// and annotations that stand as they were made: whoever was evicted, backs off or has checks is
// told apart and always seen. Private to this folder. On one thread. A change costs a hash of its
// object.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "kinds/kueue_workload.h"
#include "kinds/pod_body.h"

namespace berth::kinds {

class WaitingLanes {
 public:
  static constexpr std::size_t kMostSeen = 256;  // by a decision of queues

  explicit WaitingLanes(std::uint64_t seed) : seed_(seed) {}

  // key: of its shelf; object: the same as the API has it.
  void put(const std::string& key, const WorkloadObject& workload, const text::Value& object);
  void erase(const std::string& key);
  // Those that a decision need not see when at most so many waiting ones are to be seen, shared
  // evenly between lanes, and of each lane a few in any case.
  std::set<std::string_view> behind(std::size_t most) const;

 private:
  using Place = std::tuple<std::int64_t, std::string, std::string>;  // created, uid, key
  struct Less {
    bool operator()(const BodyHash& x, const BodyHash& y) const {
      return std::tie(x.a, x.b) < std::tie(y.a, y.b);
    }
  };

  std::uint64_t seed_;
  std::map<BodyHash, std::set<Place>, Less> lanes_;
  std::unordered_map<std::string, std::pair<BodyHash, Place>> at_;
  std::set<std::string> variants_;  // while there are any, all are seen: their parents count
};

// Of all that a decision reads of a Workload, ClusterQueue or LocalQueue: what was only said of a
// wait, and how queues stand, is left out.
BodyHash hash_of_decided(std::string_view kind, const text::Value& object, std::uint64_t seed);

}  // namespace berth::kinds
