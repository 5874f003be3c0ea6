#include "kinds/resolve/pod_marks.h"

namespace berth::kinds {

void PodMarks::hold(model::PodSpec& pod) const {
  pod.queued = true;
  pod.gang.clear();
  pod.subgroup.clear();
  if (kueue_gated.contains(qualified(pod.ns, pod.name))) pod.gated = false;
}

void PodMarks::let(model::PodSpec& pod) {
  const std::string name = qualified(pod.ns, pod.name);
  if (kueue_gated.contains(name)) pod.gated = false;
  let_in.insert(name);
}

}  // namespace berth::kinds
