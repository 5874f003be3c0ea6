// A batch/v1 Job as its controller reads it, and its status as the controller writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "edge/kube/client.h"
#include "embedded/workloads/index_set.h"
#include "text/value.h"

namespace berth::sim {

struct JobCondition {
  std::string type, status, reason, message;
  std::int64_t probe_ns = 0, transition_ns = 0;
  friend bool operator==(const JobCondition&, const JobCondition&) = default;
};

struct JobStatus {
  std::int64_t start_ns = 0, completion_ns = 0;  // wall time; 0: none
  int active = 0, ready = 0, terminating = 0, succeeded = 0, failed = 0;
  IndexSet completed, failed_indexes;
  bool has_failed_indexes = false;                                 // of Jobs with a limit per index
  std::vector<std::string> uncounted_succeeded, uncounted_failed;  // UIDs
  std::vector<JobCondition> conditions;

  const JobCondition* condition(std::string_view type) const;  // that is True, or nullptr
  friend bool operator==(const JobStatus&, const JobStatus&) = default;
};

struct FailureRule {
  enum class Action : std::uint8_t { kFailJob, kFailIndex, kIgnore, kCount };
  Action action = Action::kCount;
  bool by_exit_code = false;
  std::string container;  // empty: any
  bool in = true;         // operator In; false: NotIn
  std::vector<int> codes;
  std::vector<std::pair<std::string, std::string>> conditions;  // type, status
};

struct SuccessRule {
  std::optional<IndexSet> indexes;
  std::optional<int> count;
};

struct JobView {
  kube::Key key;
  std::string uid, version;
  std::int64_t generation = 0;
  bool deleting = false;
  bool managed_here = true;  // spec.managedBy names nobody else
  int parallelism = 1;
  std::optional<int> completions;
  int backoff_limit = 6;
  std::optional<int> backoff_limit_per_index, max_failed_indexes;
  std::optional<std::int64_t> deadline_seconds, ttl_seconds;
  bool suspend = false, indexed = false, replace_failed_only = false, restarts_on_failure = false;
  bool has_failure_policy = false;
  std::vector<FailureRule> failure_rules;
  std::vector<SuccessRule> success_rules;
  JobStatus status;

  bool finished() const;
  bool indexes_fail_alone() const { return indexed && backoff_limit_per_index.has_value(); }
};

JobView read_job(const text::Value& job);

// A merge patch of jobs/status that holds only if nobody changed the Job since version.
std::string job_status_patch(const JobStatus& status, const std::string& version);

}  // namespace berth::sim
