// The status of PodGroups, of all kinds that there are: how many pods they have, and why they wait.
//
// Compared when a pod of theirs changed or the reason of their waiting did. On the loop's thread.
// Memory: an entry for each group that waits, and for each that is to be compared.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "control/part.h"
#include "control/watches.h"
#include "kinds/group_status.h"

namespace berth::control {

class GroupStatuses final : public Part {
 public:
  GroupStatuses(const Common& common, Watches& watches) : common_(common), watches_(watches) {}

  bool changed(const Change& change) override;
  void decided(const Decided& what) override;
  bool tick(std::int64_t now) override;

 private:
  kinds::GroupCounts count(const std::string& name) const;
  bool keep(const std::string& name);  // false: later

  const Common& common_;
  Watches& watches_;
  std::set<std::string> dirty_;  // ns/name
  // Gangs and workloads of queues that wait: reason and message.
  std::map<std::string, std::pair<std::string, std::string>> waits_;
};

}  // namespace berth::control
