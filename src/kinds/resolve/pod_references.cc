#include "kinds/resolve/pod_references.h"

#include <type_traits>

namespace berth::kinds {

PodReferences::PodReferences(Resolution& all) : Part(all) {
  for (const Found<PriorityClassObject>& c : in_.priority_classes) priorities_.add(c.object);
  for (const Found<VolumeObject>& v : in_.volumes) volumes_.add(v.object);
  for (const Found<ClaimObject>& c : in_.claims) volumes_.add(c.object);
}

template <class T>
bool PodReferences::settle_priority(const Found<T>& at, const std::string& path,
                                    PodObject& pod) const {
  const auto resolved = priorities_.find(pod.spec.priority_class);
  if (!resolved && !pod.priority) {
    const std::string where = path + "spec.priorityClassName";
    const std::string message =
        "found " + quoted(pod.spec.priority_class) +
        ", want a PriorityClass of the input: add priorityclasses to what kubectl gets";
    if (pod.spec.node_name.empty()) {
      in_.refuse(at, where, message);
      return false;
    }
    in_.warn(at, where, message + "; it runs, so priority 0 is assumed");
  }
  if (resolved) {
    pod.spec.priority = resolved->value;
    pod.spec.preempts = resolved->preempts;
    pod.spec.priority_class = resolved->name;
  }
  // The numbers of a pod are the API server's own; those of a template are anybody's, and it
  // refuses pods that are made with them.
  constexpr bool kPod = std::is_same_v<T, PodObject>;
  if (pod.priority && (kPod || !resolved)) pod.spec.priority = *pod.priority;
  if (pod.preempts && (kPod || !resolved)) pod.spec.preempts = *pod.preempts;
  return true;
}

template bool PodReferences::settle_priority(const Found<PodObject>&, const std::string&,
                                             PodObject&) const;
template bool PodReferences::settle_priority(const Found<JobObject>&, const std::string&,
                                             PodObject&) const;
template bool PodReferences::settle_priority(const Found<QueuedMaker>&, const std::string&,
                                             PodObject&) const;
template bool PodReferences::settle_priority(const Found<VolcanoJob>&, const std::string&,
                                             PodObject&) const;

}  // namespace berth::kinds
