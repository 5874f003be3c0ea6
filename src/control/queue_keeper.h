// Carries out what queues decided: Workload objects and their status, Jobs and other kinds that
// wait as a whole (kinds/pod_maker.h) as they start and stop, gates of pods, the status of queues.
//
// Everything is read from the local copies and compared; a write is sent only where something
// differs, one at a time for each object. The order keeps a crash harmless: an admission is written
// before its Job starts or its pods are bound, an eviction before its Job stops, and quota is given
// back when the pods are gone. On the loop's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "control/binder.h"
#include "control/pace.h"
#include "control/part.h"
#include "kinds/kind_table.h"
#include "kinds/kueue_queue_status.h"
#include "kinds/kueue_workload_status.h"

namespace berth::control {

class QueueKeeper final : public Part {
 public:
  struct Views {
    std::function<kube::Informer&(const kinds::KindRow&)> makers;  // of what is queued as a whole
    kube::Informer& workloads;
    kube::Informer& cluster_queues;
    kube::Informer& local_queues;
    kube::Informer& pods;
  };

  QueueKeeper(const Common& common, Binder& binder, Views views);

  // After a cycle of the queues. Placements that need no Workload object are left to the caller.
  // It looks at workloads of which something changed, or that have something under way; at all of
  // them from time to time, and where asked to.
  struct Round {
    bool all = false;
    bool same = false;  // the decision is that of the round before, carried out
  };
  std::vector<model::Placement> keep(const model::Decision& decision, Round round);
  bool changed(const Change& change) override;
  // Once after a start, or when the lead was won.
  void restore_places();
  // Pods that came for a reserved place, and where it is.
  std::vector<std::pair<std::string, Assumed>> take_places(std::int64_t expire_ns);
  void clear() override;
  std::size_t pending() const { return pending_; }
  // Something waits for its time: a status of a queue of which another was written just before, a
  // maker that others change back, pods that a Job's controller is to end. keep() is due again
  // then.
  bool due(std::int64_t ticks) const { return ticks >= std::min(withheld_until_, retry_at_); }

 private:
  struct Subject;  // one workload and what is known and decided of it
  struct QueueWrite {
    std::int64_t told = 0;  // when the last one was; 0: never
    bool cluster_queue = false;
    kube::Key at;
    std::string key, patch;
  };
  using Spec = std::shared_ptr<const model::WorkloadSpec>;
  struct Seen {
    std::uint64_t round = 0;
    bool settled = false;          // nothing of it is under way
    std::int64_t due = INT64_MAX;  // when it is to be looked at all the same
  };
  struct QueueSeen {  // as its status was compared last
    kube::ObjectPtr object;
    kinds::QueueCounts counts;
    std::string inactive;
  };
  struct InDecision;
  struct Wait {
    std::int64_t since = 0, told_at = 0;  // 0: not told
    std::uint64_t round = 0;              // that it was seen in
  };

  std::unordered_set<const model::WorkloadSpec*> who_is_due(const model::Decision& decision,
                                                            bool same);
  void look_at(const model::WorkloadSpec& spec, const InDecision& decided,
               std::vector<model::Placement>& direct);
  void unsettled() { acted_ = true; }  // the one that is looked at is due in the next round, too
  void send(Write write);
  void withhold(std::int64_t until);
  void meet(const model::WorkloadSpec& spec);
  void forget(const model::WorkloadSpec& spec);
  void count_anew();
  void count(const model::WorkloadSpec& spec, int by);
  void count(const model::WorkloadSpec& spec, const std::vector<model::PodSetAdmission>* sets,
             const std::string& queue, bool admitted, int by);
  bool of_kueue(const Subject& s) const;
  void make_object(const Subject& s);
  void make_object_of_pods(const model::WorkloadSpec& spec);
  void create(const model::WorkloadSpec& spec, const std::string& name, std::string body,
              const Regarding& about);
  void keep_status(Subject& s);
  static bool is_orphan(const Subject& s);
  bool end_orphan(Subject& s, kinds::WorkloadStatus& status);
  void keep_holder(Subject& s, kinds::WorkloadStatus& status);
  bool follow_labels(const Subject& s);
  bool give_back_rest(Subject& s, kinds::WorkloadStatus& status);
  void keep_waiting(Subject& s, kinds::WorkloadStatus& status);
  void admit(Subject& s, kinds::WorkloadStatus& status);
  static void start(kinds::WorkloadStatus& status, bool wait_for_pods_ready);
  static void say_admitted(const model::Admission& a, bool wait_for_pods_ready,
                           std::string_view seats, kinds::WorkloadStatus& status);
  std::string seats_to_write(const Subject& s) const;
  bool tells_wait(const Subject& s, bool same);
  void evict(Subject& s, kinds::WorkloadStatus& status);
  void release(Subject& s, kinds::WorkloadStatus& status);
  static void give_back(
      kinds::WorkloadStatus& status);  // of an evicted one: it holds nothing any more
  bool all_gone(const Subject& s) const;
  void keep_maker(Subject& s);
  void start_maker(const Subject& s);
  void keep_pods(Subject& s);
  void adopt_pods(const Subject& s);
  void finish_pods(Subject& s);
  // then: true where it was written. At most one write of a Workload at a time.
  void write_status(const kube::Key& at, std::string patch, std::function<void(bool)> then = {},
                    WriteClass kind = WriteClass::kAct);
  void forget_start(const Subject& s);
  void end_left(const Subject& s);
  void patch_maker(const Subject& s, std::string patch, std::string_view event,
                   const std::string& note);
  bool waits_its_turn(const Subject& s);  // of a maker that others change back
  void patch_workload(const kube::Key& at, std::string patch);
  void keep_queues(const model::Decision& decision);
  // Of one queue whose status says something else; none where it was written just before.
  std::optional<QueueWrite> queue_write(const kube::ObjectPtr& object,
                                        const kinds::QueueCounts& counts,
                                        const std::vector<model::ResourceGroup>& groups,
                                        bool cluster_queue, const std::string& inactive,
                                        bool& settled);
  void compare_queue(const kube::ObjectPtr& object, kinds::QueueCounts counts,
                     const std::vector<model::ResourceGroup>& groups, bool cluster_queue,
                     const std::string& inactive, std::vector<QueueWrite>& writes);
  void write_queues(std::vector<QueueWrite> writes);
  void forget_old();
  const model::QueueRules& rules() const { return *world_.queues().rules; }
  std::vector<const model::FlavorSpec*> flavors_of(const model::PodSetAdmission& set) const;

  const Common& common_;
  World& world_;
  Binder& binder_;
  Views views_;
  struct Leaving {
    std::int64_t since = 0;
    std::uint64_t round = 0;
  };
  std::map<std::string, Leaving> leaving_since_;      // workloads of Jobs that are told to leave
  std::map<std::string, std::int64_t> orphan_since_;  // holders that nothing seems to come for
  struct Turns {
    std::int64_t last = 0;
    int count = 0;
  };
  std::map<std::string, Turns> turns_;           // of makers that rest and start, lately
  std::map<std::string, std::int64_t> told_at_;  // queue statuses
  std::map<std::string, Wait> waits_;            // by workload
  Pace wait_statuses_{50, 200}, queue_statuses_{50, 200};
  std::uint64_t round_ = 0;  // keep()s so far
  std::unordered_map<Spec, Seen> seen_;
  std::unordered_set<std::string> due_;  // workloads, and owners "ns/Kind/name"
  std::unordered_map<std::string, std::vector<const model::WorkloadSpec*>> of_owner_;
  std::unordered_map<std::string, std::size_t> told_outcomes_;  // hashes
  std::map<std::string, kinds::QueueCounts> of_queue_, of_local_;
  std::map<std::string, std::string> queue_of_local_;
  std::map<std::string, QueueSeen> queues_seen_;  // by key of their writes
  std::uint64_t rules_ = 0;                       // World::rules_read()
  std::int64_t looked_at_all_ = INT64_MIN / 2;
  // Of the one that is looked at.
  bool acted_ = false;
  std::int64_t due_at_ = INT64_MAX;
  std::map<std::string, std::string> replaced_;  // slices whose larger one holds quota
  // Workloads that are as large as the server takes: an author may fill his, and shall not keep its
  // quota by that.
  std::set<std::string> full_;
  std::size_t pending_ = 0;
  bool restored_ = false;  // places that were written down before we started
  std::int64_t withheld_until_ = INT64_MAX;
  std::int64_t retry_at_ = INT64_MAX;  // of a maker that others change back
};

}  // namespace berth::control
