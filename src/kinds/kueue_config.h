// config.kueue.x-k8s.io Configuration, v1beta1 and v1beta2: what changes decisions.
//
// Fields of Kueue that change none (connections, certificates, metrics, retention) are known and
// not read; deviceClassMappings are warned of. v1beta1's enable
// is off unless given (v1beta2 has none: a section that is there is on), and there blockAdmission
// follows it. recoveryTimeout is timeout where it is not given. The gate DisableWaitForPodsReady
// turns the waiting off.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/affinity.h"
#include "kinds/kueue.h"
#include "model/workload.h"

namespace berth::kinds {

struct QueueConfigObject {
  model::QueueConfig config;
  std::optional<text::Selector> managed_namespaces;    // absent: all but Kubernetes' own
  std::optional<std::vector<std::string>> frameworks;  // integrations; absent: those shipped
  bool manages(std::string_view framework) const;
};
void decode_queue_config(const text::Value& v, KueueVersion version, QueueConfigObject& out,
                         text::Decoder& d);

// v1 ConfigMap as Kueue is installed with: the Configuration stands in its data, as YAML.
inline constexpr std::string_view kConfigKey = "controller_manager_config.yaml";
bool holds_queue_config(const text::Value& config_map);
void decode_config_map(const text::Value& v, QueueConfigObject& out, text::Decoder& d);

}  // namespace berth::kinds
