// What pods have, or ask for, beyond what their workloads were let in with, in the order in which
// they come to the quota that is left: those that run first, then by name.
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include "kinds/resolve/quota_left.h"

namespace berth::kinds {

struct QuotaAsks {
  enum class Turn : std::uint8_t { kRuns, kReplaces, kWaits, kOfGroup };
  struct Of {
    Turn turn = Turn::kRuns;
    std::string ns, pod;
    friend bool operator<(const Of& x, const Of& y) {
      return std::tie(x.turn, x.ns, x.pod) < std::tie(y.turn, y.ns, y.pod);
    }
  };
  struct Actual {  // of all pods of the set up to this one
    Of of;
    std::string workload, set, resource;  // "ns/name"
    std::int64_t amount = 0;
  };
  struct More {
    Of of;
    std::string key;  // which ask it is: pod and set
    std::string queue;
    std::vector<QuotaLeft::Ask> asks;
    bool granted = false;  // as it was resolved
  };

  std::vector<Actual> actual;
  std::vector<More> more;
  bool empty() const { return actual.empty() && more.empty(); }
};

}  // namespace berth::kinds
