// Admission fair sharing: what local queues have used, with old use fading away.
//
// Consumed use is sampled: with a = 1 - 0.5^(elapsed / halfLife) it becomes
// (1 - a) x consumed + a x what the admitted workloads of the local queue use now. A workload that
// gets quota is charged a(sampling interval) x its request at once, so that a queue does not win
// again and again until the next sample; the charge of one that only holds quota is taken back when
// it leaves. A local queue's usage is the weighted sum over resources, divided by its own weight.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "decide/admit/ledger.h"

namespace berth::admit {

class LocalUsage {
 public:
  LocalUsage(Ledger& ledger, std::int64_t now_ns);

  void restart(std::int64_t now_ns);  // from what the local queues' objects say
  void sample(std::int64_t now_ns);   // of the local queues that are due
  void charge(WorkloadId id);         // it got quota
  void settle(WorkloadId id);         // it was admitted after all: the charge stays
  void forget(WorkloadId id);         // it left

 private:
  using Past = std::vector<double>;  // by resource
  double decay(double elapsed_s) const;
  void refresh(LocalId local);

  Ledger& ledger_;
  bool on_;
  std::vector<Past> consumed_;  // by local queue
  std::vector<std::int64_t> sampled_ns_;
  std::map<WorkloadId, Past> charges_;  // of those that hold quota and are not admitted yet
};

}  // namespace berth::admit
