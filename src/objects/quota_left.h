// What is left of the quota of Kueue's queues, while pods are matched with what was let in.
//
// A queue has what it is given and what it may borrow; the queues below one top cohort have
// together what they and its cohorts are given. Built once for a set of queues and holders, in
// their number; every answer costs the logarithm of it. What is taken stays taken.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "model/workload.h"
#include "text/quantity.h"

namespace berth::objects {

class QuotaLeft {
 public:
  struct Ask {
    std::string flavor, resource;
    std::int64_t amount = 0;
  };

  explicit QuotaLeft(const model::QueueInputs& queues);

  // True, and taken: the queue and its top cohort have all of it. Otherwise nothing is.
  bool take(const std::string& queue, const std::vector<Ask>& asks);

 private:
  using Amount = text::Int128;                                    // sums of any amounts
  using Key = std::tuple<std::string, std::string, std::string>;  // owner, flavor, resource

  void give(const std::string& owner, const std::vector<model::ResourceGroup>& groups,
            bool may_borrow);

  std::map<std::string, std::string, std::less<>> top_;  // by queue: its top cohort, if it has one
  std::map<Key, Amount> left_;                           // of queues, and of "cohort/" and a cohort
};

}  // namespace berth::objects
