// config.kueue.x-k8s.io Configuration, v1beta1 and v1beta2: what changes decisions.
//
// Fields of Kueue that change none (connections, certificates, metrics, retention) are known and
// not read; deviceClassMappings are warned of. v1beta1's enable
// is off unless given (v1beta2 has none: a section that is there is on), and there blockAdmission
// follows it. recoveryTimeout is timeout where it is not given. The gate DisableWaitForPodsReady
// turns the waiting off.
#pragma once

#include <optional>

#include "model/workload.h"
#include "objects/affinity.h"
#include "objects/kueue.h"

namespace berth::objects {

struct QueueConfigObject {
  model::QueueConfig config;
  std::optional<text::Selector> managed_namespaces;  // absent: all but Kubernetes' own
};
void decode_queue_config(const text::Value& v, KueueVersion version, QueueConfigObject& out,
                         text::Decoder& d);

}  // namespace berth::objects
