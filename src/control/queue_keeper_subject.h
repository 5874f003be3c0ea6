// One workload as a round of the keeper sees it, and how its objects are read. Private to the
// keeper's files.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "control/queue_keeper.h"
#include "kinds/kind_table.h"

namespace berth::control {

using text::Value;

inline constexpr std::int64_t kKeeperSecond = 1'000'000'000;
inline constexpr std::int64_t kLeaveFor = 10 * kKeeperSecond;  // for a maker to end its pods

// Keys of writes: whatever is written to one object has one.
inline std::string status_key(const kube::Key& workload) {
  return "workload|" + workload.to_string();
}
inline std::string make_key(const std::string& ns, const std::string& name) {
  return "make|" + ns + '/' + name;
}

struct QueueKeeper::InDecision {  // by workload
  std::unordered_map<std::string_view, const model::Admission*> admissions;
  std::unordered_map<std::string_view, const model::Eviction*> evictions;
  std::unordered_map<std::string_view, const model::Outcome*> outcomes;
  std::unordered_map<std::string_view, std::vector<const model::Placement*>> placements;
};

struct QueueKeeper::Subject {
  const model::WorkloadSpec& spec;
  std::string name;  // ns/name
  kube::ObjectPtr object;
  const kinds::KindRow* row = nullptr;  // of what it stands for as a whole, and that
  kube::ObjectPtr maker;
  kinds::Ended ended = kinds::Ended::kNo;
  const model::Admission* admission = nullptr;
  const model::Eviction* eviction = nullptr;
  const model::Outcome* outcome = nullptr;
  std::vector<const model::Placement*> placements;
  bool runs = false;  // admitted, and not told to leave: as the API has it

  Regarding about() const {
    return {"kueue.x-k8s.io/v1beta2", "Workload", spec.ns, spec.name, object ? object->uid : ""};
  }
  Regarding about_maker() const {
    return {row->api_version(), std::string(row->kind), maker->key.ns, maker->key.name, maker->uid};
  }
  // Writes to it, one at a time.
  std::string maker_key() const { return std::string(row->kind) + '|' + maker->key.to_string(); }
};

}  // namespace berth::control
