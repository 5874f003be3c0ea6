#include "embedded/workloads/job_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "embedded/workloads/pod_name.h"

namespace berth::sim {

namespace {

using PodPtr = PodBook::PodPtr;
using Action = FailureRule::Action;

constexpr std::int64_t kJobSecond = 1'000'000'000;
constexpr std::int64_t kMaxJobBackoff = 600 * kJobSecond;

std::int64_t backoff_after(int failures, std::int64_t base) {
  if (failures <= 0) return 0;
  std::int64_t delay = std::max<std::int64_t>(base, 0);
  for (int i = 1; i < failures && delay < kMaxJobBackoff; ++i) delay *= 2;
  return std::min(delay, kMaxJobBackoff);
}

class Planner {
 public:
  Planner(const JobView& job, const std::vector<PodPtr>& pods, std::int64_t now,
          std::int64_t backoff_ns)
      : job_(job), pods_(pods), now_(now), backoff_ns_(backoff_ns), status_(job.status) {}

  JobPlan plan();

 private:
  struct Verdict {
    bool success = false, failure = false;
    std::string reason, message;
    bool any() const { return success || failure; }
  };

  bool failed(const PodInfo& pod) const;
  bool valid_index(const PodInfo& pod) const {
    return !job_.indexed || (pod.index >= 0 && pod.index < job_.completions.value_or(0));
  }
  void settle_uncounted();
  void look_at_pods();
  Verdict decide() const;
  std::optional<Verdict> failure_of_pods() const;
  std::optional<Verdict> failure_of_limits() const;
  std::optional<Verdict> failure_of_indexes() const;
  bool past_restarts() const;
  void track(const Verdict& verdict);
  bool must_keep(const PodInfo& pod, const Verdict& verdict) const;
  void manage();
  void remove_surplus(int surplus);
  void create_missing(int missing);
  std::vector<JobPlan::NewPod> pods_for_indexes(int missing);
  std::int64_t job_backoff_left() const;
  void set_condition(std::string_view type, bool value, std::string_view reason,
                     std::string_view message);
  void finish(const Verdict& verdict);
  void count_status();
  void wait_for(std::int64_t ns) {
    ns = std::max<std::int64_t>(ns, 1);
    if (plan_.again_ns < 0 || ns < plan_.again_ns) plan_.again_ns = ns;
  }
  void plan_finished();
  std::string new_name(int index, std::set<std::string>& taken) const;

  const JobView& job_;
  const std::vector<PodPtr>& pods_;
  const std::int64_t now_, backoff_ns_;
  JobStatus status_;
  JobPlan plan_;

  // Counts with what is finished and not yet in the status.
  int succeeded_ = 0, failed_ = 0, active_ = 0, ready_ = 0, terminating_ = 0;
  IndexSet completed_, failed_indexes_;
  std::map<int, const PodInfo*> latest_;  // of each index: the pod with the most failures behind it
};

// Kubernetes counts a pod that is being deleted as failed, unless only failed ones are replaced.
bool Planner::failed(const PodInfo& pod) const {
  if (pod.phase == PodPhase::kFailed) return true;
  if (job_.replace_failed_only) return false;
  return pod.deleting && pod.phase != PodPhase::kSucceeded;
}

// UIDs whose pod is gone or has lost the finalizer become counts.
void Planner::settle_uncounted() {
  std::set<std::string> held;
  for (const PodPtr& pod : pods_) {
    if (pod->tracked) held.insert(pod->uid);
  }
  const auto settle = [&held](std::vector<std::string>& uids, int& count) {
    const auto done = [&held](const std::string& uid) { return !held.contains(uid); };
    count += static_cast<int>(std::count_if(uids.begin(), uids.end(), done));
    std::erase_if(uids, done);
  };
  settle(status_.uncounted_succeeded, status_.succeeded);
  settle(status_.uncounted_failed, status_.failed);
}

void Planner::look_at_pods() {
  completed_ = status_.completed;
  failed_indexes_ = status_.failed_indexes;
  const std::set<std::string> known_succeeded(status_.uncounted_succeeded.begin(),
                                              status_.uncounted_succeeded.end());
  const std::set<std::string> known_failed(status_.uncounted_failed.begin(),
                                           status_.uncounted_failed.end());
  succeeded_ = status_.succeeded + static_cast<int>(known_succeeded.size());
  failed_ = status_.failed + static_cast<int>(known_failed.size());
  for (const PodPtr& pod : pods_) {
    active_ += pod->active() ? 1 : 0;
    ready_ += pod->active() && pod->ready ? 1 : 0;
    terminating_ += pod->terminating() ? 1 : 0;
    if (!valid_index(*pod)) continue;
    if (job_.indexed) {
      const PodInfo*& latest = latest_[pod->index];
      const auto rank = [](const PodInfo& p) {
        return std::tuple(p.index_failures + p.index_ignored, p.created_ns, p.key.name);
      };
      if (latest == nullptr || rank(*latest) < rank(*pod)) latest = pod.get();
    }
    if (!pod->tracked) continue;
    if (pod->phase == PodPhase::kSucceeded) {
      if (job_.indexed) completed_.add(pod->index);
      if (!known_succeeded.contains(pod->uid)) ++succeeded_;
    } else if (failed(*pod) && !known_failed.contains(pod->uid)) {
      const bool ignored =
          pod->phase == PodPhase::kFailed && judge_failure(job_, *pod).action == Action::kIgnore;
      if (!ignored) ++failed_;
    }
  }
  if (job_.indexed) succeeded_ = completed_.size();
  if (!job_.indexes_fail_alone()) return;
  for (const auto& [index, pod] : latest_) {
    if (!failed(*pod) || completed_.has(index)) continue;
    const Action action = judge_failure(job_, *pod).action;
    const bool over = action == Action::kFailIndex ||
                      (action != Action::kIgnore &&
                       pod->index_failures + 1 > job_.backoff_limit_per_index.value_or(0));
    if (over) failed_indexes_.add(index);
  }
}

std::optional<Planner::Verdict> Planner::failure_of_pods() const {
  if (!job_.has_failure_policy) return std::nullopt;
  for (const PodPtr& pod : pods_) {
    if (pod->phase != PodPhase::kFailed || !pod->tracked) continue;
    const FailureVerdict judged = judge_failure(job_, *pod);
    if (judged.action == Action::kFailJob) {
      return Verdict{false, true, "PodFailurePolicy", judged.message};
    }
  }
  return std::nullopt;
}

// Containers that start again inside their pods count against the limit too.
bool Planner::past_restarts() const {
  if (!job_.restarts_on_failure) return false;
  int restarts = 0;
  for (const PodPtr& pod : pods_) {
    if (pod->phase == PodPhase::kRunning || pod->phase == PodPhase::kPending) {
      restarts += pod->restarts;
    }
  }
  return job_.backoff_limit == 0 ? restarts > 0 : restarts >= job_.backoff_limit;
}

std::optional<Planner::Verdict> Planner::failure_of_limits() const {
  if (failed_ > job_.backoff_limit || past_restarts()) {
    return Verdict{false, true, "BackoffLimitExceeded",
                   "Job has reached the specified backoff limit"};
  }
  if (job_.deadline_seconds && !job_.suspend && status_.start_ns != 0 &&
      now_ - status_.start_ns >= *job_.deadline_seconds * kJobSecond) {
    return Verdict{false, true, "DeadlineExceeded",
                   "Job was active longer than specified deadline"};
  }
  return std::nullopt;
}

std::optional<Planner::Verdict> Planner::failure_of_indexes() const {
  if (!job_.indexes_fail_alone()) return std::nullopt;
  if (job_.max_failed_indexes && failed_indexes_.size() > *job_.max_failed_indexes) {
    return Verdict{false, true, "MaxFailedIndexesExceeded",
                   "Job has exceeded the specified maximal number of failed indexes"};
  }
  if (!failed_indexes_.empty() &&
      failed_indexes_.size() + completed_.size() >= job_.completions.value_or(0)) {
    return Verdict{false, true, "FailedIndexes", "Job has failed indexes"};
  }
  return std::nullopt;
}

Planner::Verdict Planner::decide() const {
  if (const JobCondition* target = status_.condition("FailureTarget")) {
    return {false, true, target->reason, target->message};
  }
  if (const JobCondition* met = status_.condition("SuccessCriteriaMet")) {
    return {true, false, met->reason, met->message};
  }
  for (const auto& failure : {failure_of_pods(), failure_of_limits(), failure_of_indexes()}) {
    if (failure) return *failure;
  }
  if (job_.indexed) {
    if (const int rule = met_success_rule(job_, completed_); rule >= 0) {
      return {true, false, "SuccessPolicy", "Matched rules at index " + std::to_string(rule)};
    }
  }
  return {};
}

// The last failure of an index is its memory until the next pod carries it on.
bool Planner::must_keep(const PodInfo& pod, const Verdict& verdict) const {
  if (!job_.indexes_fail_alone() || verdict.any() || job_.deleting) return false;
  if (pod.phase == PodPhase::kSucceeded || !valid_index(pod)) return false;
  const auto latest = latest_.find(pod.index);
  return latest != latest_.end() && latest->second == &pod && !failed_indexes_.has(pod.index) &&
         !completed_.has(pod.index);
}

// Finished pods into the status; those that stand in it lose the finalizer.
void Planner::track(const Verdict& verdict) {
  std::set<std::string> uncounted(status_.uncounted_succeeded.begin(),
                                  status_.uncounted_succeeded.end());
  uncounted.insert(status_.uncounted_failed.begin(), status_.uncounted_failed.end());
  for (const PodPtr& pod : pods_) {
    if (!pod->tracked) continue;
    const bool is_failed = failed(*pod);
    const bool over = pod->phase == PodPhase::kSucceeded || is_failed || job_.deleting ||
                      (verdict.any() && pod->deleting);
    if (!over || must_keep(*pod, verdict)) continue;
    // The rest in the next pass; those that stand there already are only let go.
    if (plan_.untrack.size() >= kMaxUncounted) break;
    if (uncounted.size() >= kMaxUncounted && !uncounted.contains(pod->uid)) continue;
    plan_.untrack.push_back(pod->key);
    if (pod->phase == PodPhase::kSucceeded) {
      if (!job_.indexed && uncounted.insert(pod->uid).second) {
        status_.uncounted_succeeded.push_back(pod->uid);
      }
      continue;
    }
    // Pods that were not needed any more have not failed.
    const bool in_failure = pod->phase == PodPhase::kFailed;
    if (!in_failure && (verdict.success || (!is_failed && !verdict.failure))) continue;
    const bool ignored = in_failure && judge_failure(job_, *pod).action == Action::kIgnore;
    if (ignored || !valid_index(*pod)) continue;
    if (uncounted.insert(pod->uid).second) status_.uncounted_failed.push_back(pod->uid);
  }
  if (job_.indexed) {
    status_.completed = completed_;
    status_.succeeded = completed_.size();
  }
  if (job_.indexes_fail_alone()) {
    status_.failed_indexes = failed_indexes_;
    status_.has_failed_indexes |= !failed_indexes_.empty();
  }
}

void Planner::remove_surplus(int surplus) {
  std::vector<const PodInfo*> doomed, rest;
  std::set<int> seen;
  for (const PodPtr& pod : pods_) {
    if (!pod->active()) continue;
    // Of an Indexed Job: a second pod of an index, and one of an index that is out of range.
    const bool odd = job_.indexed && (!valid_index(*pod) || completed_.has(pod->index) ||
                                      !seen.insert(pod->index).second);
    (odd ? doomed : rest).push_back(pod.get());
  }
  const auto later_first = [](const PodInfo* a, const PodInfo* b) {
    const auto rank = [](const PodInfo* p) {
      return std::tuple(!p->node.empty(), p->phase == PodPhase::kRunning, p->ready, p->index < 0,
                        -p->index, -p->created_ns);
    };
    return rank(a) < rank(b);
  };
  std::stable_sort(rest.begin(), rest.end(), later_first);
  for (const PodInfo* pod : rest) {
    if (static_cast<int>(doomed.size()) >= surplus) break;
    doomed.push_back(pod);
  }
  if (doomed.size() > kMaxPodsPerPass) doomed.resize(kMaxPodsPerPass);
  for (const PodInfo* pod : doomed) plan_.remove.push_back({pod->key, pod->uid, true});
}

void Planner::manage() {
  if (job_.suspend) return remove_surplus(active_);
  int wanted = job_.parallelism;
  if (!job_.completions) {
    if (succeeded_ > 0) wanted = active_;
  } else {
    wanted = std::clamp(*job_.completions - succeeded_, 0, job_.parallelism);
    if (job_.indexes_fail_alone()) {
      wanted = std::clamp(*job_.completions - succeeded_ - failed_indexes_.size(), 0, wanted);
    }
  }
  remove_surplus(std::max(0, active_ - wanted));
  if (!plan_.remove.empty()) return;
  const int missing = wanted - active_ - (job_.replace_failed_only ? terminating_ : 0);
  if (missing > 0) create_missing(missing);
}

// Failures since the last success make the next pods wait.
std::int64_t Planner::job_backoff_left() const {
  std::int64_t last_success = 0, last_failure = 0;
  const auto end_of = [this](const PodInfo& pod) {
    if (pod.finished_ns != 0) return pod.finished_ns;
    return pod.deleted_ns != 0 ? std::min(pod.deleted_ns, now_) : pod.created_ns;
  };
  for (const PodPtr& pod : pods_) {
    if (pod->phase == PodPhase::kSucceeded) last_success = std::max(last_success, end_of(*pod));
  }
  int failures = 0;
  for (const PodPtr& pod : pods_) {
    if (pod->phase != PodPhase::kFailed || end_of(*pod) < last_success) continue;
    if (judge_failure(job_, *pod).action == Action::kIgnore) continue;
    ++failures;
    last_failure = std::max(last_failure, end_of(*pod));
  }
  return backoff_after(failures, backoff_ns_) - (now_ - last_failure);
}

std::string Planner::new_name(int index, std::set<std::string>& taken) const {
  std::string seed = job_.uid + '/' + std::to_string(job_.generation);
  std::string base = job_.key.name;
  if (index >= 0) {
    base += '-' + std::to_string(index);
    seed += '/' + std::to_string(index);
  }
  for (int n = job_.status.succeeded + job_.status.failed;; ++n) {
    std::string name = pod_name(base, seed + '#' + std::to_string(n));
    if (taken.insert(name).second) return name;
  }
}

std::vector<JobPlan::NewPod> Planner::pods_for_indexes(int missing) {
  std::set<int> busy;
  for (const PodPtr& pod : pods_) {
    if (pod->active() || (job_.replace_failed_only && pod->terminating())) busy.insert(pod->index);
  }
  std::vector<JobPlan::NewPod> out;
  const int completions = job_.completions.value_or(0);
  for (int i = 0; i < completions && static_cast<int>(out.size()) < missing; ++i) {
    if (busy.contains(i) || completed_.has(i) || failed_indexes_.has(i)) continue;
    JobPlan::NewPod pod;
    pod.index = i;
    const auto latest = latest_.find(i);
    if (job_.indexes_fail_alone() && latest != latest_.end()) {
      const PodInfo& before = *latest->second;
      const bool ignored = judge_failure(job_, before).action == Action::kIgnore;
      pod.failures = before.index_failures + (ignored ? 0 : 1);
      pod.ignored = before.index_ignored + (ignored ? 1 : 0);
      const std::int64_t ended = std::max(before.finished_ns, before.created_ns);
      const std::int64_t left =
          backoff_after(pod.failures + pod.ignored, backoff_ns_) - (now_ - ended);
      if (left > 0) {
        wait_for(left);
        continue;
      }
    }
    out.push_back(std::move(pod));
  }
  return out;
}

void Planner::create_missing(int missing) {
  if (!job_.indexes_fail_alone()) {
    if (const std::int64_t left = job_backoff_left(); left > 0) return wait_for(left);
  }
  missing = std::min(missing, static_cast<int>(kMaxPodsPerPass));
  if (job_.indexed) {
    plan_.create = pods_for_indexes(missing);
  } else {
    plan_.create.resize(static_cast<std::size_t>(missing));
  }
  std::set<std::string> taken;
  for (const PodPtr& pod : pods_) taken.insert(pod->key.name);
  for (JobPlan::NewPod& pod : plan_.create) pod.name = new_name(pod.index, taken);
}

void Planner::set_condition(std::string_view type, bool value, std::string_view reason,
                            std::string_view message) {
  const std::string_view status = value ? "True" : "False";
  for (JobCondition& c : status_.conditions) {
    if (c.type != type) continue;
    if (c.status == status && c.reason == reason && c.message == message) return;
    if (c.status != status) c.transition_ns = now_;
    c.status = status;
    c.reason = reason;
    c.message = message;
    c.probe_ns = now_;
    return;
  }
  if (!value) return;  // it never was
  status_.conditions.push_back({std::string(type), std::string(status), std::string(reason),
                                std::string(message), now_, now_});
}

// First that it will end, and when every pod has, that it has.
void Planner::finish(const Verdict& verdict) {
  set_condition(verdict.success ? "SuccessCriteriaMet" : "FailureTarget", true, verdict.reason,
                verdict.message);
  const bool pods_over = std::none_of(pods_.begin(), pods_.end(), [](const PodPtr& pod) {
    return !pod->finished() || pod->tracked;
  });
  const bool counted = status_.uncounted_succeeded.empty() && status_.uncounted_failed.empty();
  if (!pods_over || !counted || !plan_.remove.empty()) return;
  if (status_.start_ns == 0) status_.start_ns = now_;
  set_condition(verdict.success ? "Complete" : "Failed", true, verdict.reason, verdict.message);
  if (verdict.success) status_.completion_ns = now_;
}

void Planner::count_status() {
  const int removed = static_cast<int>(plan_.remove.size());
  status_.active = std::max(0, active_ - removed + static_cast<int>(plan_.create.size()));
  status_.ready = std::min(ready_, status_.active);
  status_.terminating = terminating_;
}

void Planner::plan_finished() {
  for (const PodPtr& pod : pods_) {
    if (pod->tracked) plan_.untrack.push_back(pod->key);
    if (pod->active()) plan_.remove.push_back({pod->key, pod->uid, true});
  }
  if (!job_.ttl_seconds || job_.deleting) return;
  std::int64_t at = 0;
  for (const JobCondition& c : job_.status.conditions) {
    if (c.type == "Complete" || c.type == "Failed") at = std::max(at, c.transition_ns);
  }
  const std::int64_t left = at + *job_.ttl_seconds * kJobSecond - now_;
  if (left <= 0) {
    plan_.remove_job = true;
  } else {
    wait_for(left);
  }
}

JobPlan Planner::plan() {
  if (job_.finished()) {
    plan_finished();
    return std::move(plan_);
  }
  settle_uncounted();
  if (status_.start_ns == 0 && !job_.suspend && !job_.deleting) status_.start_ns = now_;
  look_at_pods();
  Verdict verdict = decide();
  track(verdict);
  if (!verdict.any() && !job_.deleting) {
    manage();
    const bool done = job_.completions ? succeeded_ >= *job_.completions : succeeded_ > 0;
    if (done && active_ == 0 && plan_.create.empty()) {
      verdict = {true, false, "CompletionsReached", "Reached expected number of succeeded pods"};
    } else if (job_.suspend) {
      set_condition("Suspended", true, "JobSuspended", "Job suspended");
    } else if (status_.condition("Suspended") != nullptr) {
      set_condition("Suspended", false, "JobResumed", "Job resumed");
      status_.start_ns = now_;  // the deadline counts from here
    }
  } else if (verdict.any()) {
    for (const PodPtr& pod : pods_) {
      if (pod->active()) plan_.remove.push_back({pod->key, pod->uid, verdict.success});
    }
  }
  if (verdict.any()) finish(verdict);
  count_status();
  if (job_.deadline_seconds && !job_.suspend && !verdict.any()) {
    wait_for(status_.start_ns + *job_.deadline_seconds * kJobSecond - now_);
  }
  if (status_ != job_.status) plan_.status = status_;
  return std::move(plan_);
}

}  // namespace

JobPlan plan_job(const JobView& job, const std::vector<PodPtr>& pods, std::int64_t wall_now,
                 std::int64_t backoff_ns) {
  return Planner(job, pods, wall_now, backoff_ns).plan();
}

}  // namespace berth::sim
