// Queues in a decision: the engine of decide/admit/ over the nodes of the snapshot, told in names.
//
// A cycle admits with placements, or evicts; evictions of a cycle are over before the next one.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "decide/admit/engine.h"
#include "decide/input_index.h"
#include "decide/node_ground.h"

namespace berth::decide {

struct QueueSetting {
  const model::QueueRules& rules;                     // until the Queueing is made
  std::vector<const model::WorkloadSpec*> workloads;  // by name
  InputIndex index;                                   // of what the builder has
  bool quota_only = false;                            // nodes count for topologies alone
  bool marked = false;  // pods of holders are PodSpec::queued: they need not be looked at
  model::QueuePolicy policy;
  // Made before from the rules, for decisions with the same ones; null: made anew.
  std::shared_ptr<const admit::Book> book;
  std::shared_ptr<admit::Forms> forms;

  QueueSetting(const model::QueueRules& given, std::vector<const model::WorkloadSpec*> list,
               InputIndex of_input)
      : rules(given), workloads(std::move(list)), index(std::move(of_input)) {}
  QueueSetting(const model::QueueInputs& inputs, const std::vector<model::NodeSpec>& nodes,
               const std::vector<model::PodSpec>& pods);
};

class Queueing {
 public:
  struct Options {  // see decide::Options
    bool live = false;
    bool verdicts_only = false;
    const std::set<std::string>* told = nullptr;
  };
  // The setting outlives it.
  Queueing(const QueueSetting& setting, model::SnapshotBuilder& builder, schedule::Placer& placer,
           std::int64_t now_ns, Options options);
  Queueing(const QueueSetting& setting, model::SnapshotBuilder& builder, schedule::Placer& placer,
           std::int64_t now_ns)
      : Queueing(setting, builder, placer, now_ns, Options()) {}

  // For one that is kept from decision to decision: the workloads by namespace and name, as they
  // are now. What is the same object as before has not changed. The builder has been given the
  // state of now, and the setting its index. room: nodes may have more of it than before.
  using Spec = std::shared_ptr<const model::WorkloadSpec>;
  struct Since {
    bool nodes = true, room = true;  // changed
  };
  void follow(const std::vector<Spec>& workloads, std::int64_t now_ns, Since since);
  // When time alone changes what is decided of them as they are: at the latest.
  std::int64_t next_ns() const;
  void retry() { engine_->flush(); }  // whoever was told no: time, or other rules, may help

  // One cycle; what it decided goes to out. False: nothing changed.
  bool cycle(std::int64_t now_ns, model::Decision& out);
  // Whoever was told to leave before is gone before the next cycle; their names.
  std::vector<std::string> clear_leaving(std::int64_t now_ns);
  // Pods outside of queues came or went. leaving: nodes that some have yet to leave (live).
  void recount(std::set<std::string> leaving = {});
  // When time alone changes a decision next: a backoff ends, a timeout strikes. INT64_MAX: never.
  std::int64_t due_ns(std::int64_t now_ns) const;
  // Those that wait, and how every queue stands.
  void report(model::Decision& out) const;

 private:
  const model::WorkloadSpec& spec(admit::WorkloadId id) const { return *specs_[id]; }
  void know(admit::WorkloadId id, std::int64_t now_ns);
  void put(admit::WorkloadId id, Spec spec, std::int64_t now_ns);
  void forget(admit::WorkloadId id);
  void link();
  std::optional<admit::WorkloadId> find(
      const std::unordered_map<std::string, admit::WorkloadId>& by, const std::string& key) const;
  void release_gone(std::int64_t now_ns);
  void evict_departing(std::int64_t now_ns);
  void replace_failed_nodes();
  void send_away(admit::WorkloadId id, const admit::Departure& departure);
  void take_placements(const std::vector<admit::WorkloadId>& admitted, model::Decision& out);
  void finish_evictions(std::int64_t now_ns);
  model::Admission admission_of(admit::WorkloadId id) const;
  model::Eviction eviction_of(const admit::Eviction& eviction);
  model::Outcome outcome_of(admit::WorkloadId id) const;
  bool variant_runs(const std::string& parent) const;
  model::QueueUse use_of(admit::QueueId id) const;

  bool is_told(admit::WorkloadId id) const;

  const QueueSetting& setting_;
  std::shared_ptr<const admit::Book> book_;
  std::unique_ptr<NodeGround> ground_;  // null: quota alone
  std::unique_ptr<admit::Engine> engine_;
  std::vector<admit::WorkloadId> leaving_;  // evicted here, gone before the next cycle
  std::set<admit::WorkloadId> preemptors_;
  std::set<admit::WorkloadId> decided_;      // admitted here
  std::vector<model::Admission> replaced_;   // holders whose pods moved off a failed node
  std::vector<model::Eviction> departures_;  // evictions that no preemption asked for
  Options options_;
  std::set<std::string> leaving_nodes_;      // what is placed there starts later
  std::vector<std::string> released_;        // evicted ones that are gone
  std::vector<Spec> specs_;                  // by id; null: none has it
  std::vector<admit::WorkloadId> in_order_;  // by namespace and name
  // Those whose specs ask for a look.
  std::set<admit::WorkloadId> parents_;    // of variants
  std::set<admit::WorkloadId> slices_;     // take the place of another
  std::set<admit::WorkloadId> preempted_;  // by another
  std::set<admit::WorkloadId> unhealthy_;  // a node of theirs failed
  std::set<admit::WorkloadId> evicting_;
  std::set<admit::WorkloadId> departing_;                                // whenever they are asked
  std::set<std::pair<std::int64_t, admit::WorkloadId>> times_;           // when others depart
  std::unordered_map<std::string, admit::WorkloadId> by_name_, by_uid_;  // where somebody asks
};

}  // namespace berth::decide
