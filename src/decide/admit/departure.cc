#include "decide/admit/departure.h"

#include <algorithm>

namespace berth::admit {

namespace {
constexpr std::int64_t kSecond = 1'000'000'000;
}

std::int64_t backoff_s(const model::QueueConfig& config, int tries) {
  std::int64_t wait = config.backoff_base_s;
  for (int i = 1; i < tries && wait < config.backoff_max_s; ++i) wait *= 2;
  return std::min<std::int64_t>(wait, config.backoff_max_s);
}

std::optional<Departure> departure_of(const Book& book, const model::WorkloadSpec& spec,
                                      QueueId queue, std::int64_t now_ns) {
  using model::StopPolicy;
  if (!spec.active) {
    return Departure{
        .reason = "Deactivated", .message = "The workload is deactivated", .deactivates = true};
  }
  for (const auto& [check, state] : spec.checks) {
    if (state == model::CheckState::kRejected) {
      return Departure{.reason = "DeactivatedDueToAdmissionCheck",
                       .message = "the admission check " + check + " rejected it",
                       .deactivates = true};
    }
  }
  for (const auto& [check, state] : spec.checks) {
    if (state == model::CheckState::kRetry) {
      return Departure{.reason = "AdmissionCheck",
                       .message = "the admission check " + check + " asks to try again",
                       .requeue_at_ns = spec.retry_after_s > 0
                                            ? now_ns + std::int64_t{spec.retry_after_s} * kSecond
                                            : 0,
                       .orders_anew = true};
    }
  }
  const StopPolicy stop = book.queue(queue).spec.stop;
  if (stop == StopPolicy::kHoldAndDrain || (stop == StopPolicy::kHold && !spec.admitted)) {
    return Departure{.reason = "ClusterQueueStopped", .message = "The ClusterQueue is stopped"};
  }
  if (const LocalId local = book.find_local(spec.ns, spec.queue); local != kNoId) {
    const StopPolicy policy = book.local(local).spec.stop;
    if (policy == StopPolicy::kHoldAndDrain || (policy == StopPolicy::kHold && !spec.admitted)) {
      return Departure{.reason = "LocalQueueStopped", .message = "The LocalQueue is stopped"};
    }
  }
  if (spec.loss) return Departure{.reason = spec.loss->reason, .message = spec.loss->message};
  if (spec.unhealthy_nodes.size() > 1) {
    return Departure{.reason = "NodeFailures",
                     .message = "more than one of its nodes failed; one at a time is replaced"};
  }
  if (!spec.admitted || spec.admitted_ns == 0) return std::nullopt;
  const std::int64_t ran_s = (now_ns - spec.admitted_ns) / kSecond;
  if (spec.max_execution_s > 0 && spec.past_execution_s + ran_s > spec.max_execution_s) {
    return Departure{.reason = "DeactivatedDueToMaximumExecutionTimeExceeded",
                     .message = "it ran longer than its maximumExecutionTimeSeconds",
                     .deactivates = true};
  }
  const model::QueueConfig& config = book.config();
  // Pods that were ready once have a time of their own, from when they were lost.
  const bool recovers = spec.recovering && spec.unready_ns > 0;
  const std::int64_t late_s = recovers ? (now_ns - spec.unready_ns) / kSecond : ran_s;
  const int allowed_s = recovers ? config.recovery_timeout_s : config.pods_ready_timeout_s;
  if (config.wait_for_pods_ready && !spec.pods_ready && late_s > allowed_s) {
    if (config.backoff_limit && spec.requeues >= *config.backoff_limit) {
      return Departure{.reason = "DeactivatedDueToRequeuingLimitExceeded",
                       .message = "it was put back for late pods as often as is allowed",
                       .deactivates = true};
    }
    return Departure{.reason = "PodsReadyTimeout",
                     .message = "its pods were not ready in time",
                     .requeue_at_ns = now_ns + backoff_s(config, spec.requeues + 1) * kSecond,
                     .orders_anew = !config.requeue_by_creation};
  }
  return std::nullopt;
}

std::int64_t departs_at(const Book& book, const model::WorkloadSpec& spec) {
  if (!spec.admitted || spec.admitted_ns == 0) return 0;
  std::int64_t out = 0;
  const auto sooner = [&out](std::int64_t at) { out = out == 0 ? at : std::min(out, at); };
  if (spec.max_execution_s > 0) {
    const int left_s = std::max(0, spec.max_execution_s - spec.past_execution_s);
    sooner(spec.admitted_ns + (std::int64_t{left_s} + 1) * kSecond);
  }
  const model::QueueConfig& config = book.config();
  if (config.wait_for_pods_ready && !spec.pods_ready) {
    const bool recovers = spec.recovering && spec.unready_ns > 0;
    const int allowed_s = recovers ? config.recovery_timeout_s : config.pods_ready_timeout_s;
    sooner((recovers ? spec.unready_ns : spec.admitted_ns) +
           (std::int64_t{allowed_s} + 1) * kSecond);
  }
  return out;
}

}  // namespace berth::admit
