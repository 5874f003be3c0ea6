// What stages say of pods of the Inputs for those after them, by "ns/name".
#pragma once

#include <map>
#include <string>

#include "kinds/resolve/resolution.h"

namespace berth::kinds {

struct PodMarks {
  std::map<std::string, std::size_t, std::less<>> at;  // that may wait in a queue: where they are
  NameSet kueue_gated;                                 // only Kueue's gates hold them
  NameSet let_in;                                      // their workload holds quota
  NameSet counted;                                     // they run within what it holds
  NameSet dropped;                                     // refused since

  void hold(model::PodSpec& pod) const;  // until its workload starts
  void let(model::PodSpec& pod);         // it has
};

}  // namespace berth::kinds
