// What the controllers of this folder keep of every pod, found by owner, node and namespace.
//
// The informer keeps keys alone; a PodInfo is what they decide by. Kept up to date by apply(), on
// the loop's thread. Pointers are valid until the pod changes or goes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "edge/kube/informer.h"
#include "model/spec.h"
#include "text/value.h"

namespace berth::sim {

enum class PodPhase : std::uint8_t { kPending, kRunning, kSucceeded, kFailed, kUnknown };

struct NoExecuteToleration {
  model::Toleration rule;
  std::int64_t seconds = -1;  // -1: for ever
};

struct ContainerEnd {
  std::string container;
  int exit_code = 0;
};

struct PodInfo {
  kube::Key key;
  std::string uid;
  std::string owner_kind, owner_name, owner_uid;  // the controlling owner
  std::string node;
  model::Labels labels;
  PodPhase phase = PodPhase::kPending;
  bool ready = false, deleting = false;
  bool tracked = false;  // has the finalizer of the Job controller
  bool disruption_target = false;
  int restarts = 0;  // of all containers
  int index = -1;    // completion index
  int index_failures = 0, index_ignored = 0;
  int deletion_cost = 0;
  std::int64_t created_ns = 0, deleted_ns = 0, ready_ns = 0;
  std::int64_t finished_ns = 0;    // of the last container
  std::vector<ContainerEnd> ends;  // of containers that ended with another code than 0
  std::vector<std::pair<std::string, std::string>> conditions;  // type, status; not the usual ones
  std::vector<NoExecuteToleration> tolerations;

  bool finished() const { return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed; }
  bool active() const { return !finished() && !deleting; }
  bool terminating() const { return !finished() && deleting; }
};

inline constexpr std::string_view kJobFinalizer = "batch.kubernetes.io/job-tracking";
inline constexpr std::string_view kIndexKey = "batch.kubernetes.io/job-completion-index";

PodInfo read_pod_info(const text::Value& pod);

class PodBook {
 public:
  using PodPtr = std::shared_ptr<const PodInfo>;
  // before is null for a new pod, after for one that is gone.
  using Watcher = std::function<void(const PodInfo* before, const PodInfo* after)>;

  void watch(Watcher watcher) { watchers_.push_back(std::move(watcher)); }
  void apply(const kube::ObjectPtr& before, const kube::ObjectPtr& after);

  const PodInfo* find(const kube::Key& key) const;
  // By key. Whoever names an owner of another namespace is not owned.
  std::vector<PodPtr> of_owner(const std::string& ns, const std::string& uid) const;
  std::vector<PodPtr> on_node(const std::string& node) const;     // by key
  std::vector<PodPtr> in_namespace(const std::string& ns) const;  // by key
  const std::map<kube::Key, PodPtr>& all() const { return pods_; }

 private:
  using Index = std::map<std::string, std::set<kube::Key>>;
  std::vector<PodPtr> found(const Index& index, const std::string& name) const;
  void put(PodPtr pod);
  void take(const kube::Key& key);

  std::map<kube::Key, PodPtr> pods_;
  Index by_owner_, by_node_;
  std::vector<Watcher> watchers_;
};

}  // namespace berth::sim
