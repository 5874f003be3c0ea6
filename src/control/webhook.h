// The admission webhook, as a function: an AdmissionReview in, an AdmissionReview out.
//
// Pods that ask for GPUs and name no scheduler (or Kubernetes' default) get ours: on the pod
// itself, and in every pod template of whatever makes pods, because a Job's template cannot be
// changed later. A Job with a queue is suspended until it is admitted; so is one without, where its
// namespace requires a queue. A Job or pod without one gets the queue "default" of a namespace that
// has it, as Kueue's webhook does. Only creations are changed, and updates of templates that make
// pods anew (Deployment, StatefulSet, CronJob). Who reaches for GPUs that nobody gave him
// (control/bypass.h) is warned, or refused where refuse_bypasses is set: pods, their ephemeral
// containers and new templates; a template that is there already is warned of alone, because others
// than its author update it too. There, too, containers that ask for no GPU get
// NVIDIA_VISIBLE_DEVICES=void, because their image or a ConfigMap may set the variable. Where a
// namespace requires a queue, a pod that names its node and asks for GPUs is refused in any case.
// Nothing else is ever refused. Which namespaces are looked after says the
// MutatingWebhookConfiguration's selector.
//
// Pure but for the board. An object that is not as it should be is let through: the API server
// judges it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/queue_board.h"

namespace berth::control {

inline constexpr std::string_view kManagedLabel = "berth.dev/managed";

struct WebhookOptions {
  std::string scheduler_name = "berth";
  bool suspend_queued_jobs = true;
  bool refuse_bypasses = false;                       // else they are warned of
  std::shared_ptr<const QueueBoard> board = nullptr;  // null: no namespace says anything of queues
};

// Refused: what is no AdmissionReview of admission.k8s.io/v1 with a request. One with too many
// values is answered as if it had a bypass. Memory: the body, and 50 MB at most beside it.
Result<std::string> review(std::string body, const WebhookOptions& options);

}  // namespace berth::control
