// The objects of a cluster that lives, decoded once per change, and the model's Inputs of them.
//
// put() and remove() follow a watch. What decisions need is asked for in two ways:
// - inputs() resolves everything, as ManifestReader::finish() does for the same objects, except
//   that Jobs make no pods (their controller does). O(objects).
// - take_changes() resolves what changed since the last call, for a SnapshotBuilder that is kept.
//   Fed with all changes it holds what a fresh one fed with inputs() holds, apart from pods of
//   queues: those depend on too much and come with inputs() alone (in_queue()).
//
// Pods that are equal but for name, UID, times and place share one decoded body, found by a seeded
// 128-bit hash of the document: 10,000 replicas are decoded once. Pods that have ended, and unbound
// ones of other schedulers, are not kept (ended ones of queues are: their groups count them).
//
// On one thread. Not for files: manifest.h is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/manifest.h"
#include "kinds/pod.h"

namespace berth::kinds {

struct ObjectSetOptions {
  std::vector<std::string> scheduler_names = {};  // whose unbound pods count; empty: everybody's
  std::uint64_t seed = 0;                         // of the hashes that find equal pods
  std::string own_namespace = "berth-system";
};

// What a change means to whoever decides.
enum class Effect : std::uint8_t {
  kNone,   // nothing that is modelled
  kLater,  // the model changes, and nothing can start because of it
  kNow,    // something may start, or must be told
};

struct PodBody {            // what equal pods share
  PodObject object;         // as far as it can be read
  bool valid = false;       // in full: one that is not counts only where it is bound (counted.h)
  std::vector<Note> notes;  // errors, of the first such pod
};

struct LivePod {
  std::string ns, name, uid;
  std::string node;     // empty: not bound
  std::string gpus;     // the annotation berth.dev/gpus
  std::string charged;  // berth.dev/charged-to; means something once it is bound
  std::string phase;
  std::int64_t created_ns = 0, started_ns = 0;
  bool terminating = false, ready = false;
  bool foreign = false;  // of another scheduler
  bool strayed =
      false;  // bound, and its owner or queue are others now than those it was bound with
  bool as_bound = false;  // it says something else now than it did when it was bound, which holds
  std::uint64_t digest = 0;
  std::shared_ptr<const PodBody> body;

  bool finished() const { return phase == "Succeeded" || phase == "Failed"; }
  bool is_charged() const {
    return !node.empty() && !foreign && !charged.empty() && charged != "none";
  }
  bool unread() const { return !body->valid && !node.empty() && !finished(); }  // and counts
  const std::string& owner() const { return body->object.spec.owner; }
  const std::string& group() const { return body->object.member.group; }
};
LivePod read_live_pod(const text::Value& object);  // without body, digest and foreign
// Containers get their GPUs once, and a workload's quota lets in its pods once: whatever is written
// into a pod's metadata later, it holds what it held when it was seen bound first, and counts for
// the owner, group and queue that it had then.
void hold_as_bound(const LivePod& before, LivePod& live);
std::shared_ptr<PodBody> read_pod_body(const text::Value& object, bool ours);  // to place
PodObject live_object(const LivePod& live);  // the body as this pod has it
std::vector<Note> complaints(const std::string& key, const LivePod& live);  // under its name

// What namespaces say about queues to what names none.
struct QueueDemands {
  bool known = true;                // false: nothing was read yet
  bool kueue = false;               // a ClusterQueue is there
  bool pods = true;                 // Kueue looks after pods, too
  std::set<std::string> required;   // namespaces: nothing starts outside of a queue
  std::set<std::string> defaulted;  // with a LocalQueue "default" for it
  friend bool operator==(const QueueDemands&, const QueueDemands&) = default;
};

struct ObjectChanges {
  bool everything = false;  // what was fed before does not count: start with an empty builder
  std::vector<model::NodeSpec> nodes;
  std::vector<std::string> gone_nodes;
  std::vector<model::GangSpec> gangs;
  std::vector<std::string> gone_gangs;  // "ns/name"
  std::vector<model::PodSpec> pods;
  std::vector<std::string> gone_pods;  // "ns/name"; also those that are invalid now
  bool budgets_changed = false;
  std::vector<model::BudgetSpec> budgets;
  std::vector<Note> refused;  // why pods are invalid
  std::vector<Note> unread;   // what cannot be read of objects that count
  bool more = false;          // call again
};

// What decisions of queues read, and what changed of it.
struct QueueChanges {
  bool rules = false;                                                 // others
  bool beyond = false;                                                // Queues::beyond may be
  std::vector<std::string> gone;                                      // workloads, "ns/name"
  std::vector<std::shared_ptr<const model::WorkloadSpec>> workloads;  // new, or others than before
  std::vector<model::PodSpec> pods;    // of queues: new, or with something of theirs changed
  std::vector<std::string> gone_pods;  // "ns/name"; of no queue any more
};
struct Queues {
  const model::QueueRules* rules = nullptr;  // until the next take_queue_changes()
  std::vector<std::shared_ptr<const model::WorkloadSpec>> workloads;  // by namespace and name
  std::vector<std::pair<std::string, std::string>> beyond;            // as of Inputs
};

class ObjectSet {
 public:
  explicit ObjectSet(ObjectSetOptions options = {});
  ~ObjectSet();
  ObjectSet(const ObjectSet&) = delete;
  ObjectSet& operator=(const ObjectSet&) = delete;

  // The object as the API has it now; version and kind as its collection has them. A kind that is
  // not read is ignored.
  Effect put(std::string_view version, std::string_view kind, const text::Value& object);
  Effect remove(std::string_view version, std::string_view kind, std::string_view ns,
                std::string_view name);

  void set_own_namespace(const std::string& ns);

  // A pod that counts as bound although the API does not show it yet; node empty: it does not.
  struct Place {
    std::string node;
    std::vector<int> gpus;
    std::string charged = {};
  };
  using PlaceOf = std::function<Place(const std::string& key, const LivePod& pod)>;
  Inputs inputs(const PlaceOf& believed = {}) const;
  // The same for decisions of queues, kept: what is told has changed since the last call, the first
  // tells everything. A call costs what the objects that have to do with those that changed cost
  // (kin_index.h), in a set with queues of Volcano or KAI everything.
  QueueChanges take_queue_changes(const PlaceOf& believed = {});
  // As of that call. Of many workloads that wait and are alike only the first (waiting_lanes.h);
  // none that was evicted and whose only pod is deleted.
  Queues queues() const;
  const model::QueueRules* queue_rules() const;  // the same of it alone
  // By "ns/name" of LocalQueues: how many of them that leaves out.
  std::map<std::string, int> waiting_behind() const;
  ObjectChanges take_changes(std::size_t max_pods, const PlaceOf& believed = {});
  void touch_pod(const std::string& key);   // told again with the next changes
  void settle_pod(const std::string& key);  // the builder has it as it is: do not tell
  void touch_node(const std::string& name);
  void touch_place(const std::string& pod);  // it is believed elsewhere than before
  void touch_queues();                       // inputs() would say something else than before
  void touch_all();

  const LivePod* pod(std::string_view key) const;  // "ns/name"; null: not kept
  std::size_t pods() const;
  std::size_t nodes() const;
  using PodVisitor = std::function<void(const std::string& key, const LivePod&)>;
  void for_each_pod(const PodVisitor& f) const;
  void for_each_pod_on(std::string_view node, const PodVisitor& f) const;
  void for_each_member(const std::string& group, const PodVisitor& f) const;  // of "ns/name"
  void for_each_owned(const std::string& owner, const PodVisitor& f) const;   // by "ns/Job/x"
  bool has_node(std::string_view name) const;

  bool has_queues() const;                      // of any system
  bool has_cluster_queues() const;              // Kueue's
  bool in_queue(std::string_view key) const;    // a pod that inputs() alone can resolve
  QueueDemands queue_demands() const;           // O(namespaces)
  std::optional<model::Policy> policy() const;  // of the BerthPolicy in force
  bool queues_changed() const;                  // since the last inputs_taken()
  void inputs_taken();

  // By kind: how many objects count although part of them cannot be read.
  std::map<std::string, std::size_t> unread() const;

  // Of every object that counts, by kind, name and resourceVersion; the same in every process.
  std::uint64_t digest() const;
  // Another one whenever inputs() may say something else; what says the same leaves it.
  std::uint64_t revision() const;
  // The same objects, for inputs(), put() and remove() alone, on any one thread: what is decoded is
  // shared. From here on pods of every scheduler count. O(objects), a few pointers for each.
  // With `bound` of the nodes, and of the pods on nodes, only those.
  std::unique_ptr<ObjectSet> copy(const Bound* bound = nullptr) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth::kinds
