// What an ObjectSet holds, and how a change of one object spreads to others. Private to this
// folder; object_set.cc is its outside.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "kinds/counted.h"
#include "kinds/names.h"
#include "kinds/object_set.h"
#include "kinds/object_shelves.h"
#include "kinds/queue_marks.h"
#include "kinds/unread_book.h"
#include "kinds/waiting_lanes.h"

namespace berth::kinds {

struct ObjectSet::State {
  using Names = std::set<std::string, std::less<>>;
  using Value = text::Value;

  class QueueView;
  class KeptQueues;  // which is one

  explicit State(ObjectSetOptions options_in);
  ~State();

  ObjectSetOptions options;
  Shelves shelves;
  WaitingLanes lanes;
  std::unordered_map<std::string, BodyHash> decided;  // hash_of_decided() by kind|key
  std::map<std::string, LivePod, std::less<>> pods;   // by ns/name
  std::map<std::string, Names, std::less<>> pods_on;  // by node
  std::map<std::string, Names, std::less<>> members;  // by ns/group
  std::map<std::string, Names, std::less<>> owned;  // by ns/Kind/name: owners, and makers of those
  std::unordered_map<BodyHash, std::weak_ptr<const PodBody>, BodyHashHash> bodies;
  std::map<std::string, int, std::less<>> label_keys;       // of nodes, how many have it
  std::map<std::string, Holding, std::less<>> holders;      // by pod UID
  std::map<std::string, int, std::less<>> workload_owners;  // by ns/Kind/name
  std::map<std::string, int, std::less<>> queue_groups;     // count_queue_group()
  std::unordered_map<std::string, std::uint64_t> digests;   // by kind|key
  std::uint64_t digest = 0;
  std::uint64_t revision = 0;
  std::size_t unread_pods = 0;  // that count, and cannot be read in full
  UnreadBook unread;            // other objects

  Names dirty_pods, dirty_nodes, dirty_gangs;
  bool everything = false, budgets_dirty = false, queues_dirty = false;
  std::unique_ptr<QueueView> view;  // since somebody asked for the changes of queues
  // Of the change under way: before_change() for after it.
  bool gpu_facts_same = false, labels_counted = false;

  // ---- pods ----

  void visit(const std::map<std::string, Names, std::less<>>& index, std::string_view at,
             const PodVisitor& f) const;
  std::shared_ptr<const PodBody> body_of(const Value& v);
  ManifestOptions live_options() const;
  Found<PodObject> found_pod(const LivePod& live) const;

  // As it is believed to be: bound, where the API does not show it yet. False: it is left out.
  bool give_pod(const std::string& key, const LivePod& pod, const PlaceOf& believed,
                Gathered& to) const;
  bool ours(const Value& v) const;
  void unlink(const std::string& key, const LivePod& pod);
  void link(const std::string& key, const LivePod& pod);
  Effect put_pod(const Value& v);
  void note_pod(const std::string& key, const LivePod& live);
  Effect remove_pod(std::string_view name);
  bool has_other_queues() const;
  bool kueue() const { return !shelves.cluster_queues.objects.empty(); }
  bool in_queue(const LivePod& pod) const;
  // Whether a workload stands for it, or is to be made for it.
  bool waits_as_one(const std::string& ns, const std::string& owner, int deepest = 4) const;
  bool queues_by_default(const std::string& ns) const;

  // ---- others ----

  void count_label_keys(const NodeObject& node, int by);

  // PodGroups that name a queue of Kueue's, or whose Workload may.
  void count_queue_group(const GroupObject& group, int by);
  void owners_of_workload(const Found<WorkloadObject>& found, int by);

  // Which devices the pods of a node hold, as its agent says.
  void take_holders(const std::string& node, const GpuNode* agent);
  Effect changed(std::string_view version, std::string_view kind, std::string_view ns,
                 std::string_view name);

  void tell_view(std::string_view version, std::string_view kind, std::string_view ns,
                 std::string_view name);
  // Pods that wait in a namespace ("": in all): whether they need a queue may be different now.
  void touch_waiting(std::string_view ns);
  Effect job_changed(std::string_view ns, std::string_view name);
  bool has_queues() const { return kueue() || has_other_queues(); }

  // What waits as one is found by those that it makes, which name its kind.
  std::string key_of(const Shelf* shelf, std::string_view version, std::string_view kind,
                     std::string_view ns, std::string_view name) const;
  Effect put_object(std::string_view version, std::string_view kind, const Value& v);
  void enter_lane(const std::string& key, const Value& v);
  void before_change(std::string_view kind, const std::string& key, const std::string& name,
                     const Gathered& one);
  void after_change(std::string_view kind, const std::string& key, const std::string&);
  Effect remove_object(std::string_view version, std::string_view kind, std::string_view ns,
                       std::string_view name);

  // ---- resolving ----

  // Evicted, and the pod that it was made for is deleted: nothing of it will come back, so it holds
  // nothing, and its object goes the way of its pod.
  bool left_for_good(const WorkloadObject& workload) const;
  void give_pods(const PlaceOf& believed, Gathered& all) const;

  // What is wrong with objects, each under its own name.
  void give_complaints(Gathered& all) const;
  void add_node(const std::string& name, Gathered& to) const;
  void resolve_nodes(ObjectChanges& out);
  void spread_dirty_gangs(ObjectChanges& out);

  // A member that asks for a topology, or says how many belong together, decides for its whole
  // gang: then all of them are read at once.
  bool decides_for_mates(const std::string& gang) const;
  void add_claims(const LivePod& pod, Names& seen, Gathered& to) const;

  // One batch of pods with all that they refer to.
  Gathered gather(const std::vector<const LivePod*>& batch, const Names& gangs,
                  const PlaceOf& believed) const;

  // One pod of a batch, or why it is none.
  void look_at(const std::string& key, const PlaceOf& believed, std::vector<const LivePod*>& batch,
               ObjectChanges& out);
  void resolve_pods(std::size_t max_pods, const PlaceOf& believed, ObjectChanges& out);
  void resolve_budgets(ObjectChanges& out, const ObjectSet& set);
};

}  // namespace berth::kinds
