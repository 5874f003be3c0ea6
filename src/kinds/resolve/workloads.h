// Workloads of queues: those of the input, and those that stages add for what waits.
//
// They are at out.queues.workloads, and a place there is what they are known by until the end.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kinds/resolve/known_nodes.h"
#include "kinds/resolve/known_queues.h"
#include "kinds/resolve/pod_references.h"
#include "kinds/resolve/resolution.h"

namespace berth::kinds {

class Workloads : private Part {
 public:
  using Places = std::vector<std::size_t>;

  Workloads(Resolution& all, const KnownNodes& nodes, KnownQueues& queues,
            const PodReferences& references);

  // Under a name of its own; its place.
  std::size_t add(model::WorkloadSpec spec);

  // Of owners, "ns/Kind/name". Null: no workload stands for it; empty: one does, and was refused.
  const Places* of(const std::string& owner) const;
  Places& claim(const std::string& owner);  // whatever comes of it, its pods wait
  void know_uid(std::size_t place, const std::string& uid);
  // Whether what made the object (a JobSet, say) waits or runs as a whole, or its workload holds
  // quota: then the object waits for nothing by itself.
  bool made_by_queued(const Meta& meta) const;
  // A Workload was made for it, finished or not; in a cluster that lives not for one of that name
  // that was before it.
  bool has(const std::string& owner, const std::string& uid) const;
  // In a cluster that lives a pod is of the owner that it names by its UID: another one of that
  // name is not the one that was let in.
  Places of_uid(const Places& places, const std::string& uid) const;
  bool hold_quota(const Places& places) const;  // one of them at least

  // Room for that many more pods of pending workloads in the namespace; else how many there are.
  bool take_waiting(const std::string& ns, std::size_t count, std::size_t& room);
  // What a template is in a workload.
  template <class T>
  model::PodSpec made_pod(const Found<T>& at, const std::string& path, const PodObject& from,
                          const std::string& queue, const std::string& owner) const;
  // By its label of a class; false when it is refused.
  template <class T>
  bool class_priority(const Found<T>& at, const Meta& meta, int& priority) const;

  // Once pods are at their workloads: whose class is gone keeps the priority that they were made
  // with.
  void keep_priorities();
  // One for each flavor, where the queue says so and Kueue's controller did not make them.
  void make_variants();
  void finish();  // what is charged is said

 private:
  void read(Found<WorkloadObject>& found);
  bool settle(const Found<WorkloadObject>& found, model::WorkloadSpec& spec);
  int template_priority(const WorkloadObject& object, bool& gone) const;
  void settle_templates(Found<WorkloadObject>& found, model::WorkloadSpec& spec) const;
  void check_slices();
  void know_variants();
  const model::QueueSpec* queue_of(const model::WorkloadSpec& workload) const;

  const KnownNodes& nodes_;
  KnownQueues& queues_;
  const PodReferences& references_;
  NameSet names_;                                        // ns/name
  std::map<std::string, Places, std::less<>> of_owner_;  // by ns/Kind/name
  std::map<std::string, std::set<std::string>, std::less<>> uids_of_owner_;
  std::map<std::size_t, NameSet> uids_;                      // by place; none: not known
  std::map<std::string, std::size_t, std::less<>> waiting_;  // pods, by namespace
  std::map<std::string, int, std::less<>> classless_;        // by ns/name: the number they give
};

// A pod that is a workload of its own, without its set.
model::WorkloadSpec workload_of(const model::PodSpec& pod, const std::string& queue);
// A pod as a template: what it is apart from which one it is and where.
model::PodSpec as_template(const model::PodSpec& pod);
// Whether two pods differ in nothing but their names, times, labels and places.
bool same_role(const model::PodSpec& a, const model::PodSpec& b);

}  // namespace berth::kinds
