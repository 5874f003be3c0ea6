// What is left of the quota of Kueue's queues, while pods are matched with what was let in.
//
// A queue has what it is given and what it may borrow; the queues below one top cohort share what
// they lend and what its cohorts are given. Built once for a set of queues and holders, in their
// number; every answer costs the logarithm of it. What is taken stays taken.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "model/workload.h"
#include "text/quantity.h"

namespace berth::kinds {

class QuotaLeft {
 public:
  struct Ask {
    std::string flavor, resource;
    std::int64_t amount = 0;
  };

  explicit QuotaLeft(const model::QueueRules& queues);   // nobody holds any
  explicit QuotaLeft(const model::QueueInputs& queues);  // all of them hold theirs
  void hold(const model::WorkloadSpec& workload);        // if it holds quota

  // True, and taken: the queue and its top cohort have all of it. Otherwise nothing is.
  bool take(const std::string& queue, const std::vector<Ask>& asks);
  // Takes as much of it as there is, and says how much that was.
  std::int64_t take_most(const std::string& queue, const Ask& ask);

 private:
  using Amount = text::Int128;                                    // sums of any amounts
  using Key = std::tuple<std::string, std::string, std::string>;  // owner, flavor, resource
  struct Own {
    Amount kept = 0;  // what it lends to nobody
    Amount most = 0;  // what it is given and may borrow
    Amount used = 0;
  };

  Amount shared(const Own& own) const;  // what it uses of what all have together
  Amount left(const std::string& queue, const Ask& ask);
  void use(const std::string& queue, const Ask& ask);

  std::map<std::string, std::string, std::less<>> top_;  // by queue: its top cohort, if it has one
  std::map<Key, Own> own_;                               // of queues
  std::map<Key, Amount> pool_;                           // of top cohorts
};

}  // namespace berth::kinds
