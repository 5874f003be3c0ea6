// What the controller believes: the objects of the API, and over them what it has decided and not
// yet seen.
//
// - An assumed pod counts as bound where we put it, until the API shows it there, or says no.
// - A leaving pod is one that we told to go: the model has it gone, and nothing is bound to its
//   node before it is.
// - A held gang (or pod) waits for its time: it counts as gated.
// - An avoided node has the taint of plans/react/rejected_pods.h, also before the API has it.
// - A failed pod is one whose GPU broke, or whose node is taken away: the workload of a queue that
// it is part of has to leave.
// - A reservation is the place of a workload whose pods do not exist yet.
//
// - A workload that is being admitted holds its quota before the API says so.
//
// One SnapshotBuilder is kept and fed with changes; pods of queues come with read_queues() only,
// and queues are decided upon a copy of it. Every call that changes something is told to a log,
// where there is one: the same calls in the same order give the same decisions (control/replay.h).
// On the loop's thread. Times are monotonic ticks, those of decisions wall time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "control/world_log.h"
#include "decide/decide.h"
#include "decide/input_index.h"
#include "decide/queueing.h"
#include "decide/schedule/placer.h"
#include "kinds/object_set.h"
#include "model/policy.h"
#include "model/snapshot_builder.h"

namespace berth::control {

struct Assumed {
  enum class Stage : std::uint8_t {
    kWaiting,  // for pods to leave its node
    kWriting,
    kWritten,   // answered; the watch will show it
    kDoubtful,  // no answer: the pod is read again
  };
  std::string uid, node, gang;
  std::vector<int> gpus;
  std::string charged = {};  // the queue that lets it in
  Stage stage = Stage::kWaiting;
  std::int64_t since = 0;
};

struct Reservation {
  struct Place {
    model::PodSpec pod;  // with its node and devices
    std::string pod_set;
    std::string taken_by;  // the pod that came for it: "ns/name"

    std::string key() const { return pod.ns + '/' + pod.name; }
  };
  std::string workload;  // "ns/name"
  std::vector<Place> places;
  std::int64_t since = 0;
};

// A place without the pod that it is for, which its workload says.
struct KnownPlace {
  std::string pod_set, pod, node;
  std::vector<int> gpus;
  std::string taken_by = {};
};

class World {
 public:
  World(std::vector<std::string> scheduler_names, std::uint64_t seed, model::PolicyFlags flags);
  // From here on. The log gets a new file now, and with the next cycle whenever it is full.
  void record(WorldLog* log);
  void begin_cycle(std::uint64_t number);

  // What the API has; version and kind as of ObjectSet.
  kinds::Effect put(std::string_view version, std::string_view kind, const text::Value& object);
  kinds::Effect remove(std::string_view version, std::string_view kind, std::string_view ns,
                       std::string_view name);
  const kinds::ObjectSet& objects() const { return objects_; }
  const model::Policy& policy() const { return policy_; }  // as of the last refresh()
  model::SnapshotBuilder& builder() { return *builder_; }

  // Feeds the builder with everything that changed. Invalid pods are told to refused, what cannot
  // be read of objects that count to unread.
  void refresh(std::vector<kinds::Note>& refused, std::vector<kinds::Note>& unread);
  // One decision over pods of no queue. What it places and evicts is believed at once.
  model::Decision decide(std::int64_t now_ns);

  // Feeds the builder with what changed of queues, and knows their workloads.
  void read_queues();
  // As of that call, as the API has them; after a decision with what is decided and not seen yet.
  const kinds::Queues& queues() const { return queues_; }
  const model::WorkloadSpec* workload(std::string_view name) const;  // "ns/name"; null: unknown
  std::uint64_t rules_read() const { return rules_read_; }           // how often they were others
  // "ns/name" of the workload that has the pod, as is_of(); null: none.
  const std::string* workload_of(const std::string& pod) const;
  // One decision of the queues, after read_queues(). Absent: nothing has changed since the last
  // one, which asked for nothing. anyhow: it is made in any case.
  std::optional<model::Decision> decide_queues(std::int64_t now_ns, bool anyhow);

  // ---- what is decided and not seen yet ----
  void assume(const std::string& pod, Assumed assumed);
  void drop(const std::string& pod);  // it did not come to be
  // Whether the workload had the pod among those that it holds quota for, by the last
  // read_queues().
  bool is_of(const std::string& pod, const std::string& workload) const;
  const std::vector<std::string>& pods_of(const std::string& workload) const;  // the same, all
  Assumed* assumed(const std::string& pod);
  const std::map<std::string, Assumed>& all_assumed() const { return assumed_; }
  // The API has the pod as it is now. True: it is bound where we put it, nothing is new.
  bool confirm(const std::string& pod);

  void leave(const std::string& pod, const std::string& uid, const std::string& node,
             std::int64_t now);
  void stays(const std::string& pod);  // it could not be told to go
  // The API refused to delete it: nobody's victim until let go.
  void keep(const std::string& pod);
  bool let_go(const std::string& pod);  // false: it was not kept
  void protect(const std::string& ns);  // pods of berth's own namespace are nobody's victims
  bool is_leaving(const std::string& pod) const { return leaving_.contains(pod); }
  bool node_has_leaving(const std::string& node) const;
  // Drops those that are gone by now; true: there were some.
  bool sweep_leaving();
  std::vector<std::string> stuck_leaving(std::int64_t since_before) const;

  // Pods of the gang or owner (ns/Kind/name), or the pod itself, are not placed before that.
  void hold(const std::string& name, std::int64_t until);
  // Ends holds that are over; true: there were some. next: when the next one ends.
  bool end_holds(std::int64_t now);
  std::int64_t next_hold_end() const;
  std::optional<std::int64_t> held_until(const std::string& name) const;

  // Nodes that get nothing new for now. True: the set is another one.
  bool avoid(std::set<std::string> nodes);

  // Pods ("ns/name") whose GPU broke, and the sentence that says so. True: the set is another one.
  bool fail(const std::map<std::string, model::Loss>& pods);
  void fail_one(const std::string& pod, const model::Loss& why);  // no message: it did not
  bool is_failed(const std::string& pod) const { return failed_.contains(pod); }

  // The places of a workload that was let in, of the placements of its decision.
  void reserve(const model::WorkloadSpec& spec,
               const std::vector<const model::Placement*>& placements, std::int64_t now);
  // The same from what was written down.
  void restore(const model::WorkloadSpec& spec, const std::vector<KnownPlace>& places,
               std::int64_t now);
  void end_reservation(const std::string& workload);
  Reservation* reservation(const std::string& workload);
  const std::map<std::string, Reservation>& reservations() const { return reservations_; }
  // By the pod's own rules for nodes: labels, taints, models. One that is not known may be
  // anywhere.
  bool may_be_on(const std::string& pod, const std::string& node);
  // The pod came for that place of the workload.
  void take_place(const std::string& workload, std::size_t place, const std::string& pod);

  // Workloads that wait for those whom they preempted. Said by each decision of the queues, before
  // the first one by the objects.
  void set_room_makers(std::set<std::string> workloads) { room_makers_ = std::move(workloads); }

  // The admission is being written; then it is, or it failed.
  void admitting(const std::string& workload, const model::Admission& admission);
  void admitted(const std::string& workload);

  // Of a pod in the builder: "ns/name" of its gang, or empty.
  std::string gang_of(const std::string& pod) const;
  // GPUs, or parts and shares of them, of every pod that the model has on a node, by "ns/name"; of
  // those that leave without end. A bound pod that is not there is a mistake. O(pods).
  std::map<std::string, int> counted() const;
  void forget_everything();  // beliefs, not objects: leadership was lost
  std::uint64_t rebuilds() const { return rebuilds_; }

 private:
  struct Leaving {
    std::string uid, node;
    std::int64_t since = 0;
  };

  void start_over();
  void begin_log();
  bool is_decided(std::int64_t now_ns) const;
  bool retries(std::int64_t now_ns) const;
  void charge_again(const kinds::QueueChanges& changes);
  void learn_mix();
  void believe(std::int64_t now_ns);
  std::optional<std::size_t> find_workload(std::string_view name) const;  // in queues_
  void know_workload(const std::shared_ptr<const model::WorkloadSpec>& spec);
  void forget_workload(const std::string& name);
  void feed_queue_pod(model::PodSpec pod);
  void index_pod(const std::string& pod);
  void note(std::string_view op, std::initializer_list<WorldLog::Field> fields = {}) {
    if (log_ != nullptr) log_->note(op, fields);
  }
  void touch_gang(const std::string& name);  // or owner, and the pod of that name
  std::optional<model::Loss> loss_of(const model::WorkloadSpec& spec) const;
  kinds::ObjectSet::PlaceOf believed() const;
  bool overlay(model::PodSpec& pod) const;  // false: the model has it gone
  void overlay(model::NodeSpec& node) const;
  void feed_pod(model::PodSpec& pod, bool gives_room = true);
  bool is_kept(const Reservation& of, const Reservation::Place& place) const;
  model::PodSpec stand_in(const Reservation::Place& place) const;
  using Stands = std::map<std::string, model::PodSpec>;
  void believe_places(model::SnapshotBuilder& builder, decide::InputIndex& index,
                      Stands& stands) const;
  void feed_places();
  void feed_again(const std::string& pod);  // as it is and as it is believed

  std::vector<std::string> scheduler_names_;
  kinds::ObjectSet objects_;
  model::PolicyFlags flags_;
  model::Policy policy_;
  WorldLog* log_ = nullptr;
  std::unique_ptr<model::SnapshotBuilder> builder_;
  std::unique_ptr<schedule::Placer> placer_;
  bool learned_ = false;  // the placer knows the mix of pods
  decide::Turns turns_;
  std::optional<std::size_t> known_words_;  // of the builder's book, when it was filled last
  std::map<std::string, Assumed> assumed_;
  std::map<std::string, Leaving> leaving_;
  std::map<std::string, int, std::less<>> leaving_on_;  // by node
  std::set<std::string> kept_;
  std::string own_namespace_;
  std::map<std::string, std::int64_t> holds_;
  std::map<std::string, Reservation> reservations_;
  std::map<std::string, model::Admission> admitting_;
  std::optional<std::set<std::string>> room_makers_;
  std::set<std::string> avoided_;  // nodes
  struct Charge {
    std::string workload, queue;
  };
  std::string charge_of(const std::string& pod) const;
  std::unordered_map<std::string, Charge> charges_;                    // by pod of a workload
  std::unordered_map<std::string, std::vector<std::string>> pods_of_;  // by "ns/workload"
  std::map<std::string, model::Loss> failed_;                          // pods, and why
  struct QueuePod {
    model::PodSpec fed;
    std::optional<model::PodSpec> now = {};  // as it is believed, where that is something else
  };
  std::map<std::string, QueuePod> queue_pods_;
  Stands phantoms_;                               // in the builder: places of reservations
  std::map<std::string, model::NodeSpec> nodes_;  // as they were fed
  bool nodes_changed_ = false;
  decide::InputIndex index_;  // of nodes_, and of queue_pods_ and phantoms_ as believed
  kinds::Queues queues_;
  std::uint64_t rules_read_ = 0;
  std::vector<std::string> uncharged_;  // pods whose workload was forgotten just now
  using Spec = std::shared_ptr<const model::WorkloadSpec>;
  std::unordered_map<std::string, Spec> workloads_;  // by "ns/name", as the API has them
  // Those whose places are written down, without them: reservations say it.
  std::unordered_map<const model::WorkloadSpec*, Spec> unseated_;
  // In queues_ in place of the API's: what it says, and as it is believed; by "ns/name".
  std::map<std::string, std::pair<Spec, Spec>> believed_;
  // What decides upon queues is kept as long as their rules are, over a copy of the builder for
  // each decision. A placer of their own: its memory speaks of pods that are in copies alone.
  std::unique_ptr<schedule::Placer> queue_placer_;
  model::SnapshotBuilder scratch_;
  std::unique_ptr<decide::QueueSetting> setting_;
  std::unique_ptr<decide::Queueing> queueing_;
  std::int64_t retried_ns_ = 0;  // when all were asked again
  bool room_changed_ = false;    // nodes may have more of it than at the last decision
  bool had_nodes_ = false;       // then
  std::vector<Spec> decided_;    // what that was over, where it asked for nothing
  std::map<std::string, model::GangSpec> gangs_;  // as they were fed
  std::uint64_t rebuilds_ = 0;
};

}  // namespace berth::control
