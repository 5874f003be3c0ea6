// Labels and annotations of queues: Kueue's on Jobs, pods and templates, and our own on namespaces
// and on queues of other schedulers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/topology.h"
#include "model/workload.h"

namespace berth::kinds {

inline constexpr std::string_view kQueueLabel = "kueue.x-k8s.io/queue-name";
inline constexpr std::string_view kWorkloadAnnotation = "kueue.x-k8s.io/workload";
inline constexpr std::string_view kKueueCharge = "kueue/";  // before the ClusterQueue's name
// The queue that let a pod in, written with its binding, and of Kueue's the workload that did:
// "kueue/cq/train", "volcano/q", "kai/q", "none".
inline constexpr std::string_view kChargedAnnotation = "berth.dev/charged-to";
void read_charge(std::string_view text, model::PodSpec& out);  // charged and let_in_by
inline constexpr std::string_view kLocalQueueLabel = "kueue.x-k8s.io/local-queue-name";
inline constexpr std::string_view kGroupName = "kueue.x-k8s.io/pod-group-name";
inline constexpr std::string_view kClassLabel = "kueue.x-k8s.io/priority-class";
inline constexpr std::string_view kMaxExecution = "kueue.x-k8s.io/max-exec-time-seconds";
inline constexpr std::int64_t kMostSeconds = 2'147'483'647;
inline constexpr std::string_view kPodSetLabel = "kueue.x-k8s.io/podset";

// On a Namespace, "true": what waits in no queue does not start there.
inline constexpr std::string_view kQueueRequiredLabel = "berth.dev/queue-required";
// On a Queue of Volcano or KAI: the namespaces that may use it.
inline constexpr std::string_view kNamespacesAnnotation = "berth.dev/namespaces";

// A label or annotation that says what cannot be.
struct BadMark {
  std::string path;     // metadata.annotations["kueue.x-k8s.io/podset-slice-size"]
  std::string message;  // found "x", want ...
};

// Whom a queue takes: names with commas between them, or "*". What cannot be read takes nobody.
struct QueueDoor {
  bool given = false, all = false, bad = false;
  std::vector<std::string> names;  // sorted
  bool takes(const std::string& ns) const;
};
QueueDoor parse_queue_door(std::string_view text);
std::optional<BadMark> read_queue_door(const Meta& meta, QueueDoor& out);

std::string label_value(const Meta& meta, std::string_view key);  // "" when it has none
// "" when it has neither; the label first.
std::string label_or_annotation(const Meta& meta, std::string_view key);
std::string mark_path(std::string_view kind, std::string_view key);  // kind: labels, annotations

// How a pod set of count pods is kept together: podset-required-topology, -preferred- and
// -unconstrained-, podset-slice-required-topology with podset-slice-size or
// podset-slice-required-topology-constraints, podset-group-name. named:
// what read_topology() found, in any spelling; where it asks for both, required holds.
std::optional<BadMark> read_topology_ask(const Meta& meta, const TopologyRequest& named, int count,
                                         model::TopologyAsk& out);

// A whole number 1..most; absent: out is left as it is.
std::optional<BadMark> read_number_label(const Meta& meta, std::string_view key, std::int64_t most,
                                         int& out);
std::optional<BadMark> read_number_annotation(const Meta& meta, std::string_view key,
                                              std::int64_t most, int& out);

}  // namespace berth::kinds
