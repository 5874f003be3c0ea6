#include <algorithm>

#include "kinds/resolve/stages.h"

namespace berth::kinds {

namespace {

// It holds these devices at least, whatever else of it can be read.
void raise_demand(model::PodSpec& pod) {
  using Kind = model::GpuDemandSpec::Kind;
  const auto held = static_cast<int>(pod.gpu_indices.size());
  if (pod.gpu.kind == Kind::kNone) {
    pod.gpu.kind = Kind::kFraction;
    pod.gpu.milli = model::kMilliPerGpu;
  }
  if (held <= pod.gpu.count) return;
  pod.gpu.count = held;
  if (pod.gpu.kind == Kind::kWhole) pod.gpus_by_container = {held};
}

class PodStage : private Part {
 public:
  PodStage(Resolution& all, const KnownNodes& nodes, const KnownQueues& queues,
           const PodReferences& references, PodGroups& groups, PodMarks& marks)
      : Part(all),
        nodes_(nodes),
        queues_(queues),
        references_(references),
        groups_(groups),
        marks_(marks) {}

  void run() {
    for (Found<PodObject>& found : in_.pods) {
      if (found.object.finished()) {
        ++in_.counts.finished_pods;
      } else if (groups_.settle(found, "", found.object)) {
        add_pod(found);
      }
    }
  }

 private:
  // Where the pod's GPUs are known: the agent's word first. What cannot be is dropped with a
  // warning.
  void check_indices(const Found<PodObject>& at, model::PodSpec& pod) {
    const std::vector<int>* held = nodes_.held_by(pod);
    if (held != nullptr) {
      std::vector<int> indices = *held;
      std::sort(indices.begin(), indices.end());
      indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
      if (!pod.gpu_indices.empty() && pod.gpu_indices != indices) {
        in_.warn(at, "metadata.annotations",
                 "found berth.dev/gpus other than what the GpuNode reports; the GpuNode holds");
      }
      pod.gpu_indices = std::move(indices);
    }
    if (pod.gpu_indices.empty()) return;
    const model::NodeSpec* node = nodes_.find(pod.node_name);
    if (node == nullptr) return;
    const bool on_node =
        std::all_of(pod.gpu_indices.begin(), pod.gpu_indices.end(), [node](int index) {
          return std::any_of(node->gpus.begin(), node->gpus.end(),
                             [index](const model::GpuSpec& g) { return g.index == index; });
        });
    if (on_node && (held != nullptr || !at.object.gpus_read)) raise_demand(pod);
    using Kind = model::GpuDemandSpec::Kind;
    const bool by_device = pod.gpu.kind == Kind::kFraction || pod.gpu.kind == Kind::kMemory ||
                           (pod.gpu.kind == Kind::kWhole && node->shares_per_gpu == 1);
    const auto& held_now = pod.gpu_indices;  // sorted
    const bool once = std::adjacent_find(held_now.begin(), held_now.end()) == held_now.end();
    const auto asked = static_cast<std::size_t>(pod.gpu.count);
    const bool fits = pod.gpu.kind != Kind::kNone &&
                      (by_device ? once && held_now.size() == asked : held_now.size() <= asked);
    if (on_node && fits) return;
    in_.warn(at, "metadata.annotations",
             on_node ? "found GPU indices that do not go with what the pod asks for; not used"
                     : "found GPU indices that the node does not have; not used");
    pod.gpu_indices.clear();
  }

  void add_pod(Found<PodObject>& found) {
    model::PodSpec& pod = found.object.spec;
    if (pod.node_name.empty()) {
      references_.settle_volumes(found, "", found.object, pod);
    } else {
      check_indices(found, pod);
      if (nodes_.find(pod.node_name) == nullptr) {
        ++in_.counts.stray_pods;
        in_.warn(found, "spec.nodeName",
                 "found node " + quoted(pod.node_name) +
                     ", which is not among the valid nodes of the input; the pod holds nothing");
      }
    }
    const std::string key = qualified(pod.ns, pod.name);
    const Meta& meta = found.object.meta;
    if (meta.labels.contains(kQueueLabel) || !queues_.default_queue(meta).empty()) {
      marks_.at.emplace(key, out_.pods.size());
    }
    if (pod.gated && !found.object.other_gates) marks_.kueue_gated.insert(key);
    out_.pods.push_back(std::move(pod));
  }

  const KnownNodes& nodes_;
  const KnownQueues& queues_;
  const PodReferences& references_;
  PodGroups& groups_;
  PodMarks& marks_;
};

}  // namespace

void resolve_pods(Resolution& all, const KnownNodes& nodes, const KnownQueues& queues,
                  const PodReferences& references, PodGroups& groups, PodMarks& marks) {
  PodStage(all, nodes, queues, references, groups, marks).run();
}

}  // namespace berth::kinds
