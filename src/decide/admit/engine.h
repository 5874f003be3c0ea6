// The queue engine: workloads in, admissions and evictions out.
//
// cycle() is one of Kueue's: one head of each queue is nominated on the same state, the entries are
// ordered, and each is admitted, makes room, or goes back. step() repeats cycles until nothing
// changes any more, so it ends where repeated cycles would end; a cycle costs what its heads cost,
// there is no snapshot. State changes only through the methods here, and the stage of a workload
// only along may_follow(). With a Ground a workload is admitted only with a place for all its pods.
//
// Owned by the decision loop; not thread-safe. Same calls, same answers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "decide/admit/assigner.h"
#include "decide/admit/departure.h"
#include "decide/admit/ground.h"
#include "decide/admit/ledger.h"
#include "decide/admit/line.h"
#include "decide/admit/local_usage.h"
#include "decide/admit/preemptor.h"

namespace berth::admit {

struct Eviction {
  WorkloadId id = 0;
  WorkloadId by = 0;
  Cause cause = Cause::kInClusterQueue;
  friend bool operator==(const Eviction&, const Eviction&) = default;
};

struct CycleResult {
  std::vector<WorkloadId> admitted;  // or with quota reserved, where checks are to come
  std::vector<Eviction> evicted;
  std::vector<WorkloadId> settled;  // held quota before, and are admitted now
  std::vector<std::pair<WorkloadId, WorkloadId>>
      replaced;          // (old slice, fresh one): it is finished
  int tried = 0;         // heads looked at
  bool changed = false;  // another cycle may come out differently
  bool moved = false;    // only in that some head has further flavors to try
};

class Engine {
 public:
  struct Options {
    bool why = true;  // keep a message for every workload that waits
    model::QueuePolicy policy;
    std::int64_t start_ns = 0;  // usage of local queues is counted from here
    bool settles = true;        // holders whose checks are done are admitted; else by checks_done()
    const std::set<std::string>* told = nullptr;  // names whose message is kept; null: everybody's
    std::shared_ptr<Forms> forms;                 // of the book; null: made anew
  };

  Engine(const Book& book, Ground* ground, const Options& options);
  explicit Engine(const Book& book, Ground* ground = nullptr) : Engine(book, ground, Options()) {}

  void expect(std::size_t workloads) { ledger_.workloads.reserve(workloads); }
  // A workload of its LocalQueue; with an admission it holds quota. Never refused: what is wrong
  // with it is its reason to wait.
  WorkloadId add(const model::WorkloadSpec& spec, std::int64_t now_ns);

  // For an engine that is kept while its workloads change. What a decision did stands until put()
  // or remove() say how it came out, for each of the touched; what was learned of those that wait
  // (who was tried and parked, and why) is kept.
  void put(WorkloadId id, const model::WorkloadSpec& spec, std::int64_t now_ns);  // as it is now
  void remove(WorkloadId id);  // add() may give the number to another
  std::vector<WorkloadId> take_touched(std::int64_t now_ns);  // and whose backoff is over
  void begin(std::int64_t now_ns);       // the next decision, once all have been put
  std::int64_t backoff_ends_ns() const;  // the first; INT64_MAX: nobody backs off
  void flush_ground();  // nodes have more room: who was parked for want of it is due
  // The fresh one is a larger slice of the old: only what it asks for beyond is charged, on the
  // same flavors, and once it is admitted the old one is finished. Both were added.
  void grows(WorkloadId fresh, WorkloadId old);
  void preempted_before(WorkloadId id, WorkloadId by) { ledger_.workloads[id].preempted_by = by; }
  void finish(WorkloadId id);  // or deleted: whatever it holds is free
  void evict(WorkloadId id);   // told to leave; holds quota until gone()
  void depart(WorkloadId id, const Departure& departure);  // the same, by its own rules
  void gone(WorkloadId id, std::int64_t now_ns);           // its pods have left: pending again
  void checks_done(WorkloadId id);                         // all admission checks are Ready
  void ready(WorkloadId id);                               // its pods are
  void flush();                    // the ground changed: all parked ones are due
  void wake(std::int64_t now_ns);  // backoffs that are over

  CycleResult cycle(std::int64_t now_ns);
  CycleResult step(std::int64_t now_ns, int max_cycles = 1'000'000);
  std::uint64_t cycles() const { return cycle_; }

  const Workload& workload(WorkloadId id) const { return ledger_.workloads[id]; }
  std::size_t size() const { return ledger_.workloads.size(); }
  const Ledger& ledger() const { return ledger_; }
  const Book& book() const { return ledger_.book; }
  std::vector<WorkloadId> pending(QueueId queue) const { return lines_[queue].in_order(); }
  std::size_t pending_count(QueueId queue) const { return lines_[queue].size(); }
  bool is_parked(WorkloadId id) const { return lines_[ledger_.workloads[id].queue].is_parked(id); }

  // Usage adds up: what holders say is what the tree says. Empty when it does.
  std::string check() const;

 private:
  enum class Requeue : std::uint8_t {
    kFailedAfterNomination,
    kPendingPreemption,
    kPreemptionGated,
    kNoFit,
    kNoCandidates,
    kGeneric,
  };
  struct Entry {
    WorkloadId id = 0;
    QueueId queue = 0;
    Assignment assignment;
    std::vector<Target> targets;
    WorkloadId old = kNoId;        // the slice that makes way for it
    std::vector<Use> beyond = {};  // what it asks for more than that one
    std::span<const Use> charged() const { return old == kNoId ? assignment.uses : beyond; }
  };
  // While a slice is tried, the old one is out of its way.
  class OutOfTheWay {
   public:
    OutOfTheWay(Ledger& ledger, WorkloadId old);
    OutOfTheWay(const OutOfTheWay&) = delete;
    OutOfTheWay& operator=(const OutOfTheWay&) = delete;
    ~OutOfTheWay();

   private:
    Ledger& ledger_;
    WorkloadId old_;
  };

  bool tells(const Workload& w) const {
    return options_.why && (options_.told == nullptr || options_.told->contains(w.name));
  }
  void set_stage(WorkloadId id, Stage stage);
  void take_in(WorkloadId id, const model::WorkloadSpec& spec, std::int64_t now_ns);
  void take_out(WorkloadId id);
  void leave_family(WorkloadId id);
  void next_is_due(QueueId queue);
  Hold hold_of(const model::WorkloadSpec& spec, const Workload& w, std::int64_t now_ns) const;
  Hold aside_of(const model::WorkloadSpec& spec, const Workload& w) const;
  void hold(WorkloadId id, Hold why, const model::WorkloadSpec& spec);
  void enqueue(WorkloadId id);
  void take_in_holder(WorkloadId id, const model::WorkloadSpec& spec);
  void left(QueueId queue, bool held);  // a workload of the queue's tree left
  void touch(NodeId root) { due_[root] = true; }

  CycleResult run(const std::vector<WorkloadId>& heads, std::int64_t now_ns);
  bool goes_on(const CycleResult& result, int& fruitless) const;
  std::vector<WorkloadId> heads_of(NodeId root);
  void serves(QueueId queue, int borrowing);
  bool makes_way(const Entry& entry) const;
  bool stands_back(const Entry& entry);
  bool let_forward(const std::vector<WorkloadId>& heads);
  Entry nominate(WorkloadId id);
  bool try_counts(WorkloadId id, const Assigner::Options& options, Entry& entry);
  void ground_check(WorkloadId id, Assignment& assignment, bool why);
  bool search_partial(WorkloadId id, const Assigner::Options& options, Entry& entry);
  bool delays(QueueId queue, const std::vector<Choice>& pod_sets) const;
  std::vector<std::string> checks_of(const Workload& w) const;  // that apply to its flavors
  void settle_reserved(CycleResult& result);

  // Slices and variants (variants.cc).
  WorkloadId old_slice(WorkloadId id) const;  // while it holds quota; kNoId
  Assignment pinned_to(WorkloadId old, const Form& form) const;
  void set_beyond(Entry& entry) const;
  void take_over(const Entry& entry, CycleResult& result);
  void join_family(WorkloadId id, const model::WorkloadSpec& spec);
  WorkloadId running_sibling(WorkloadId id) const;  // kNoId
  std::string outdone(WorkloadId id) const;         // why a variant is not to be tried, or empty
  bool may_preempt(WorkloadId id) const;
  void migrate(Entry& entry, WorkloadId sibling, CycleResult& result);
  void sort_classical(std::vector<Entry>& entries) const;
  struct Standing;  // of an entry in a node of the tree, were it admitted
  bool sooner(const Entry& a, const Entry& b) const;
  std::size_t fair_next(const std::vector<Entry>& entries);
  std::optional<std::size_t> fair_winner(const std::vector<Entry>& entries, NodeId at);
  Standing standing(const Entry& entry, NodeId at);

  void process(Entry& entry, std::int64_t now_ns, CycleResult& result);
  bool still_fits(Entry& entry);
  bool overlaps(const Entry& entry) const;
  bool recompute(Entry& entry, const std::vector<WorkloadId>& admitted);
  void reserve(const Entry& entry);
  void assume(QueueId queue, std::span<const Use> uses);
  void admit(Entry& entry, std::int64_t now_ns, CycleResult& result);
  void issue(Entry& entry, CycleResult& result);
  void requeue(const Entry& entry, Requeue why, NoReason reason, std::string message,
               CycleResult& result);
  bool blocked_by_unready() const;
  bool sort_out(WorkloadId id, CycleResult& result);

  Ledger ledger_;
  Ground* ground_;
  Options options_;
  Preemptor preemptor_;
  Assigner assigner_;
  std::shared_ptr<Forms> forms_;
  LocalUsage usage_;
  std::vector<Line> lines_;                    // by queue
  std::vector<std::vector<QueueId>> of_root_;  // queues by root node
  std::vector<bool> due_;                      // by root node
  std::vector<std::uint64_t> generation_;      // by root node: leaves so far
  std::vector<WorkloadId> backoffs_;
  std::vector<WorkloadId> reserved_;                // hold quota, are not admitted yet
  std::vector<std::vector<WorkloadId>> families_;   // of variants
  std::map<std::string, std::uint32_t> family_of_;  // by parent
  bool by_priority_ = true;                         // PrioritySortingWithinCohort
  bool preemptors_first_ = false;                   // PrioritizePreemptorWorkloads
  std::int64_t now_ns_ = 0;                         // of the running cycle
  std::uint64_t cycle_ = 0;
  int fruitless_ = 0;  // cycles in a row that only moved
  int longest_scan_ = 1;
  int puts_ = 0;             // changes of the ground in this cycle: a nomination may be stale
  std::size_t unready_ = 0;  // admitted, pods not ready

  std::vector<WorkloadId> free_;      // numbers
  std::vector<WorkloadId> touched_;   // whose stage decisions changed
  std::vector<WorkloadId> tried_;     // heads since begin()
  std::set<WorkloadId> room_makers_;  // as their specs say

  // Queues whose head was put off for owners_first: not asked again while owners are served.
  std::vector<QueueId> standing_back_;

  // Of the running cycle.
  // By root: the least that one who is admitted borrows, or who comes after one that is parked may.
  std::map<NodeId, int> served_;
  std::vector<WorkloadId> claimed_;                            // victims of entries before
  std::vector<std::pair<QueueId, std::vector<Use>>> assumed_;  // taken back at its end
};

}  // namespace berth::admit
