// What a Job needs next: a pure function of the Job, its pods and the time.
//
// The rules are those of Kubernetes 1.37's Job controller (docs/jobs.md). Counting is safe against
// a crash at any moment: a finished pod keeps the finalizer batch.kubernetes.io/job-tracking until
// its UID (or its index) stands in the status; a later pass turns UIDs whose pods have lost the
// finalizer into counts. So a plan's status is written before its other parts are carried out.
//
// Names of new pods depend on the Job and its state alone: a pass that is repeated after a crash
// asks for the same pods again and is told that they exist.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "embedded/workloads/job_view.h"
#include "embedded/workloads/pod_book.h"

namespace berth::sim {

struct JobPlan {
  struct Removal {
    kube::Key pod;
    std::string uid;
    bool untrack_first = false;  // it does not count as failed
  };
  struct NewPod {
    std::string name;
    int index = -1;
    int failures = 0, ignored = 0;  // of that index before
  };

  std::optional<JobStatus> status;  // only when it differs
  std::vector<kube::Key> untrack;   // pods that lose the finalizer
  std::vector<Removal> remove;
  std::vector<NewPod> create;
  bool remove_job = false;     // its time after finishing is over
  std::int64_t again_ns = -1;  // look again so much later; -1: only when something changes
};

inline constexpr std::size_t kMaxPodsPerPass = 500;
inline constexpr std::size_t kMaxUncounted = 500;

JobPlan plan_job(const JobView& job, const std::vector<PodBook::PodPtr>& pods,
                 std::int64_t wall_now, std::int64_t backoff_ns);

// How a failed pod is judged by the Job's podFailurePolicy; kCount where there is none.
struct FailureVerdict {
  FailureRule::Action action = FailureRule::Action::kCount;
  std::string message;  // of kFailJob
};
FailureVerdict judge_failure(const JobView& job, const PodInfo& pod);

// Which rule of the successPolicy holds; -1: none.
int met_success_rule(const JobView& job, const IndexSet& succeeded);

}  // namespace berth::sim
