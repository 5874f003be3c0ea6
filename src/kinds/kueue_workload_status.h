// The status of Kueue's Workload (v1beta2) as it changes: kueue_status.cc reads it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/decision.h"
#include "model/reason.h"
#include "text/value.h"

namespace berth::kinds {

// The next status of a Workload, from the one it has.
class WorkloadStatus {
 public:
  WorkloadStatus(const text::Value& workload, std::int64_t now_ns);

  bool is_true(std::string_view type) const;
  bool has(std::string_view type) const;
  std::string_view reason(std::string_view type) const;
  void set(std::string_view type, bool status, std::string_view reason, std::string_view message);
  // Sets it to False where it is True.
  void clear(std::string_view type, std::string_view reason, std::string_view message);

  void admit(const model::Admission& admission);
  void release();  // it holds nothing any more; checks start over
  // Every check of the list has an entry; new ones are Pending.
  void want_checks(const std::vector<std::string>& checks);
  bool checks_ready() const;
  void requeue_at(int count, std::int64_t at_ns);
  // Its pods left this failed node for another; "": whatever failed does not matter any more.
  void forget_node(std::string_view node);

  // Of an object that is as large as it may be: what decisions need, without a word for people.
  void shrink();

  bool changed() const { return changed_; }
  // A merge patch of status: for this object, and unless it ends or takes back what was given, for
  // this version of it.
  std::string patch() const;

 private:
  struct Condition {
    std::string type, status, reason, message, since;
    std::int64_t generation = 0;
  };
  struct Check {
    std::string name, state, message, since;
    std::int64_t retries = 0;
  };
  Condition* find(std::string_view type);
  const Condition* find(std::string_view type) const;

  std::string version_, uid_, now_;
  std::int64_t generation_ = 0;
  std::vector<Condition> conditions_;
  std::vector<Check> checks_;
  std::vector<std::string> unhealthy_;  // nodes
  bool nodes_changed_ = false;
  std::string admission_;  // JSON; empty: as it is; "null": none
  std::string requeue_;
  bool checks_changed_ = false, changed_ = false;
  bool takes_ = false;  // it ends, leaves, or gives its quota back
};

// The reason of the condition QuotaReserved while a workload waits: one that Kueue's users know.
std::string_view waiting_reason(model::Reason reason);
// The message of berth.dev/Preemptions after one more: times of the past hour, at most 64.
std::string preemption_times(const std::vector<std::int64_t>& before, std::int64_t now_ns);

}  // namespace berth::kinds
