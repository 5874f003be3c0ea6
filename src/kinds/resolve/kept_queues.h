// What decisions of queues read of an ObjectSet, kept: after the first call a change of an object
// costs what its kin (kin_index.h) costs, not what the cluster does.
//
// The same as resolving everything at once: kins are independent of one another but for two
// things. Of two workloads of one name that come of two kins these become one kin, and what pods
// have beyond what their workloads were let in with is settled over all kins (quota_asks.h).
// Where queues of Volcano or KAI are, which are parts of the whole cluster, everything is one kin.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kinds/kin_index.h"
#include "kinds/object_set_state.h"
#include "kinds/queue_view.h"
#include "kinds/resolve/kin_inputs.h"

namespace berth::kinds {

class ObjectSet::State::KeptQueues final : public QueueView {
 public:
  explicit KeptQueues(const State& set);
  ~KeptQueues() override;

  void pod_changed(const std::string& key) override { changed_.insert('P' + key); }
  bool object_changed(const Shelf* shelf, const std::string& key) override;
  void node_changed(const std::string& name) override;
  void namespace_changed(const std::string& ns) override;
  void volumes_changed() override;
  void everything_changed() override;

  QueueChanges refresh(const PlaceOf& believed) override;
  Queues queues() const override;
  const model::QueueRules& rules() const override;

 private:
  using Spec = std::shared_ptr<const model::WorkloadSpec>;
  using Key = std::pair<std::string, std::string>;  // namespace and name
  struct Workload {
    Spec resolved, shown;  // shown: with what its pods have beyond it
    std::uint64_t kin = 0;
  };
  using Pods = std::map<std::string, model::PodSpec>;
  struct Kin {
    std::string name;  // one of its names
    std::vector<Key> workloads;
    NameSet pods;  // of queues
    std::vector<std::pair<std::string, std::string>> beyond;
    QuotaAsks asks;
  };
  class Nodes;
  // Of a refresh: what was there before it.
  struct Before {
    std::map<Key, Spec> workloads;
    bool beyond = false;  // some kin has or had any
    NameSet pods;
  };

  void follow(const PlaceOf& believed);
  void make_facts();
  std::vector<std::string> names_of(const std::string& object, const PlaceOf& believed) const;
  std::vector<std::string> names_of_pod(const std::string& key, const PlaceOf& believed) const;
  void resolve_fresh(const PlaceOf& believed, Before& before, Pods& told);
  void forget(std::uint64_t id, Before& before);
  bool is_plain(const KinIndex::Kin& kin, const PlaceOf& believed) const;
  Gathered gather(const KinIndex::Kin& kin, const PlaceOf& believed);
  void take_in(std::uint64_t id, std::string name, KinInputs&& from, Before& before, Pods& told,
               std::vector<std::pair<std::string, std::string>>& ties);
  bool settle_asks(Before& before);
  void show(const Key& key, Spec spec, Before& before);
  void resolve_whole(const PlaceOf& believed, Before& before, Pods& told);

  const State& set_;
  std::unique_ptr<Nodes> nodes_;
  std::unique_ptr<CommonFacts> facts_;
  KinIndex index_;
  std::set<std::string> changed_;                   // objects: a letter for the kind, and the key
  std::set<std::string> spaces_;                    // namespaces
  std::set<std::string> with_claims_;               // objects whose pods wait for volumes
  std::map<std::string, std::string> believed_on_;  // pods, and the nodes they are believed on
  bool all_ = true, rules_ = true, volumes_ = true;
  std::map<std::uint64_t, Kin> kins_;  // with something in a queue
  std::map<Key, Workload> workloads_;
  std::set<std::uint64_t> asking_;  // kins with asks
  std::set<Key> adjusted_;          // workloads that are shown otherwise than resolved
  NameSet granted_;
  NameSet pods_;                              // of queues
  std::unique_ptr<model::QueueRules> whole_;  // where everything is one kin
};

}  // namespace berth::kinds
