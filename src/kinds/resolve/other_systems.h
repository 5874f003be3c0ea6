// Queues of Volcano and KAI: their names, their trees, whom they take.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kinds/queue_marks.h"
#include "kinds/resolve/known_queues.h"
#include "kinds/resolve/queue_forest.h"
#include "kinds/resolve/resolution.h"

namespace berth::kinds {

struct OtherSystem {
  std::string root;                                  // "volcano", "kai"
  std::map<std::string, std::string> cluster_queue;  // by queue
  std::set<std::string> resources;                   // that its queues count
  std::vector<ForestQueue> queues;
  std::map<std::string, QueueDoor> doors;  // by queue; its own, or of the nearest above it

  std::string charge_in(const std::string& queue) const { return root + '/' + queue; }
};

class OtherSystems : private Part {
 public:
  OtherSystems(Resolution& all, const KnownQueues& queues);

  bool any() const { return !in_.volcano_queues.empty() || !in_.kai_queues.empty(); }
  std::array<OtherSystem*, 2> all() { return {&volcano_, &kai_}; }
  const std::string& flavor() const { return any_flavor_; }    // which is any node
  OtherSystem* system_of(const std::string& queue, bool kai);  // null: it is none of theirs
  // Why a queue may not be used from the namespace, or "".
  std::string shut_to(const std::string& ns, const std::string& queue,
                      const OtherSystem& system) const;
  // The LocalQueue that stands for a cluster-scoped queue in a namespace, made where needed.
  std::string local_queue(const std::string& ns, const std::string& queue,
                          const OtherSystem& system);
  // Into the Inputs, once it is known what is counted in them.
  void plant_queues();

 private:
  void name_all();
  void straighten(OtherSystem& system);  // parents that are missing, too deep or in a circle
  void find_doors(OtherSystem& system);

  const KnownQueues& queues_;
  OtherSystem volcano_{
      .root = "volcano", .cluster_queue = {}, .resources = {}, .queues = {}, .doors = {}};
  OtherSystem kai_{.root = "kai", .cluster_queue = {}, .resources = {}, .queues = {}, .doors = {}};
  std::string any_flavor_ = "default";
  std::map<std::string, std::string, std::less<>> local_targets_;  // ClusterQueue by ns/LocalQueue
};

}  // namespace berth::kinds
