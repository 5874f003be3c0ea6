// Who holds quota, for a first look at one workload of a queue with nobody else waiting.
//
// Whoever the workload cannot send away is one of a crowd: the usage of all of them in a queue is
// that of one holder, so that a look costs what it may change, however many run. Built once for a
// cluster; the specs outlive it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/workload.h"

namespace berth::people {

class Holders {
 public:
  using Cell = std::pair<std::string, std::string>;  // flavor, resource

  Holders(const model::QueueInputs& inputs, std::int64_t now_ns);

  struct Few {
    std::deque<model::WorkloadSpec> crowds;             // what workloads points to
    std::vector<const model::WorkloadSpec*> workloads;  // by name
  };
  // own and its kin, those it may send away by the rules of its queue, and the crowds of the rest.
  Few beside(const model::WorkloadSpec& own, const model::QueueRules& rules,
             const std::set<std::string>& gone) const;

 private:
  struct Holder {
    const model::WorkloadSpec* spec = nullptr;
    std::string name;                                           // "ns/name"
    bool stays = true;                                          // unless it is sent away
    std::size_t queue = 0;                                      // in queues_
    std::vector<std::pair<std::size_t, std::int64_t>> amounts;  // by place in cells_
  };
  struct Waiting {
    const model::WorkloadSpec* spec = nullptr;
    std::string name;
  };
  using Sums = std::vector<std::vector<std::int64_t>>;  // by places in queues_ and cells_

  static void add(const Holder& holder, Sums& sums);
  std::map<std::string, std::map<Cell, std::int64_t>> by_name(const Sums& sums) const;

  std::vector<std::string> queues_;
  std::vector<Cell> cells_;
  std::vector<Holder> holders_;
  std::vector<Waiting> waiting_;
};

}  // namespace berth::people
