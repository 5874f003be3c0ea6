// The life of nodes: one whose kubelet is silent becomes Ready=Unknown, conditions become taints,
// and pods leave nodes with NoExecute taints after the time they tolerate. Pods of nodes that are
// gone are deleted. Inside this folder.
//
// A kubelet's silence is measured by this process's own clock, from when its Lease was last seen to
// change. A Node without a Lease is judged by the heartbeat in its status; one without either was
// made by hand and is left alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "embedded/workloads/work_context.h"
#include "model/spec.h"

namespace berth::sim {

struct NodeFacts {
  std::string name, uid;
  std::string ready;  // "True", "False", "Unknown", or empty: it says nothing
  bool unschedulable = false;
  std::int64_t heartbeat_ns = 0;  // of the Ready condition; 0: none
  std::string taints_json;        // as they are; empty: none
  bool taints_right = true;       // as the conditions want them
  std::vector<model::Taint> taints;
  std::map<std::string, std::int64_t> taint_times;  // timeAdded of NoExecute taints, by key
};
NodeFacts read_node_facts(const text::Value& node);

// The node's taints as its conditions want them, as a JSON array; nothing: they are right.
std::optional<std::string> wanted_taints(const NodeFacts& node, const text::Value& object,
                                         std::int64_t wall_now);

// When a pod must leave a node with these taints: 0 at once, -1 never, else nanoseconds after
// `since` of the taint. default_grace_ns: for not-ready and unreachable, where the pod says
// nothing.
std::int64_t eviction_delay(const PodInfo& pod, const std::vector<model::Taint>& taints,
                            std::int64_t default_grace_ns);

class NodeLife {
 public:
  explicit NodeLife(WorkContext& context);
  void listen();  // before the informers start: they keep no documents
  void start();   // when everything was read once

 private:
  struct Seen {
    std::string renew;
    std::int64_t ticks = 0;  // when it last changed
  };

  void on_node(const kube::ObjectPtr& before, const kube::ObjectPtr& after);
  void on_lease(const kube::ObjectPtr& after);
  void check();
  void check_node(const NodeFacts& node);
  void pass(const kube::Key& key, const Passes::Finished& finished);  // taints
  void silence_pass(const kube::Key& key, const Passes::Finished& finished);
  void pods_unready(const std::string& node);
  void evict_pass(const kube::Key& key, const Passes::Finished& finished);
  void garbage_pass(const kube::Key& key, const Passes::Finished& finished);
  void look_at_pods(const std::string& node);
  void look_at_pod(const PodInfo& pod);

  WorkContext& context_;
  Passes taint_passes_, silence_passes_, evict_passes_, garbage_passes_;
  std::map<std::string, NodeFacts> nodes_;
  std::map<std::string, Seen> leases_, heartbeats_;
  std::map<std::string, std::int64_t> gone_;  // ticks at which a node went
  bool started_ = false;
};

}  // namespace berth::sim
