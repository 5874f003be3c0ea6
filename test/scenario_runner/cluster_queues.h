// What queues did on a cluster. Private to the cluster engines.
//
// Who was admitted and evicted, by whom and in which order, is told by the controller's log; on
// which flavors, with how many pods and what a queue then holds, by the objects of the API. An
// admission that the API does not show any more has left again.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine.h"
#include "kinds/manifest.h"
#include "text/value.h"

namespace berth::scenario {

class ClusterQueues {
 public:
  // A line of the decision log.
  void decided(const text::Value& line);
  // A Workload that the scenario itself wrote: it goes by its own name. One that the controller
  // made goes by the name of what it stands for.
  void wrote(const std::string& workload) { written_.insert(workload); }

  // What the log told since the last call, and how queues stand. cluster_queues: their objects.
  void observe(const kinds::Inputs& inputs, const std::vector<text::Document>& cluster_queues,
               Observed& out);
  // Outcomes under the names that scenarios use.
  std::map<std::string, model::Outcome> renamed(std::map<std::string, model::Outcome> outcomes,
                                                const kinds::Inputs& inputs) const;

 private:
  std::string shown(const model::WorkloadSpec& workload) const;

  std::set<std::string> written_;
  std::vector<std::string> admitted_;  // in this step, in order
  std::vector<model::Eviction> evicted_;
  std::map<std::string, std::string> known_names_;  // of workloads that are gone by now
};

}  // namespace berth::scenario
