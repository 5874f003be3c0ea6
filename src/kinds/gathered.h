// What a ManifestReader holds between add() and finish(). Private to this folder.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kinds/budget.h"
#include "kinds/counted.h"
#include "kinds/job.h"
#include "kinds/kueue_config.h"
#include "kinds/kueue_workload.h"
#include "kinds/manifest.h"
#include "kinds/node.h"
#include "kinds/other_queues.h"
#include "kinds/policy.h"
#include "kinds/priority.h"
#include "kinds/queued_maker.h"

namespace berth::kinds {

struct Origin {
  std::string source;
  int document = 0;
  std::size_t item = 0;  // of the document, counted over lists
  int line = 0;
  friend auto operator<=>(const Origin&, const Origin&) = default;
};

// Keeps the first kMaxNotes in their order, counts all.
class NoteList {
 public:
  void add(Note note) {
    ++total_;
    kept_.insert(std::move(note));
    if (kept_.size() > kMaxNotes) kept_.erase(std::prev(kept_.end()));
  }
  std::size_t total() const { return total_; }
  std::vector<Note> take() { return {kept_.begin(), kept_.end()}; }

 private:
  std::multiset<Note> kept_;
  std::size_t total_ = 0;
};

template <class T>
struct Found {
  Origin origin;
  std::string shown;  // "Pod ns/name"
  T object;
};

// Devices of a node that a pod has, as the node's agent says.
struct Holding {
  std::string node;
  std::vector<int> indices;
  friend bool operator==(const Holding&, const Holding&) = default;
};

struct Gathered {
  std::vector<Found<NodeObject>> nodes;
  std::vector<Found<GpuNode>> gpu_nodes;
  std::vector<Found<PodObject>> pods;
  std::vector<Found<JobObject>> jobs;
  std::vector<Found<QueuedMaker>> makers;
  std::vector<Found<GroupObject>> groups;
  std::vector<Found<BudgetObject>> budgets;
  std::vector<Found<VolumeObject>> volumes;
  std::vector<Found<ClaimObject>> claims;
  std::vector<Found<PriorityClassObject>> priority_classes;
  std::vector<Found<PolicyObject>> policies;
  std::vector<Found<model::FlavorSpec>> flavors;
  std::vector<Found<model::QueueSpec>> cluster_queues;
  std::vector<Found<model::LocalQueueSpec>> local_queues;
  std::vector<Found<model::CohortSpec>> cohorts;
  std::vector<Found<model::TopologySpec>> topologies;
  std::vector<Found<model::CheckSpec>> checks;
  std::vector<Found<WorkloadClassObject>> workload_classes;
  std::vector<Found<NamespaceObject>> namespaces;
  std::vector<Found<WorkloadObject>> workloads;
  std::vector<Found<QueueConfigObject>> queue_configs;
  std::vector<Found<VolcanoQueue>> volcano_queues;
  std::vector<Found<KaiQueue>> kai_queues;
  std::vector<Found<VolcanoJob>> volcano_jobs;
  std::vector<Found<UpstreamWorkload>> upstream_workloads;
  NoteList ignored, warnings, invalid, notes;
  std::vector<Note> unread;  // what cannot be read of objects that count; also told elsewhere
  Counts counts;

  template <class T>
  void warn(const Found<T>& at, std::string path, std::string message) {
    warnings.add(note(at.origin, at.shown, std::move(path), std::move(message)));
  }
  template <class T>
  void refuse(const Found<T>& at, std::string path, std::string message) {
    ++counts.invalid_objects;
    invalid.add(note(at.origin, at.shown, std::move(path), std::move(message)));
  }
  // An object with errors that counts all the same (counted.h), as what.
  void count_in_part(std::vector<Note> errors, const Counted& as) {
    ++(as.invalid ? counts.invalid_objects : counts.unread_objects);
    for (Note& error : errors) {
      error.message.append("; ").append(as.as);
      if (unread.size() < kMaxNotes) unread.push_back(error);
      (as.invalid ? invalid : warnings).add(std::move(error));
    }
  }
  static Note note(const Origin& at, const std::string& shown, std::string path,
                   std::string message) {
    return {at.source, at.document, at.line, shown, std::move(path), std::move(message)};
  }
};

// Reads one object, or a list of them; version and kind stand in where it does not say.
void read_object(const text::Value& object, std::string_view version, std::string_view kind,
                 Origin origin, Gathered& out);

// One pod of a cluster, read as far as it can be whether or not it may count so (counted.h); what
// is wrong with it.
std::vector<Note> read_pod(const text::Value& object, PodObject& out);

// Cross-object resolution: the second half of ManifestReader::finish().
Inputs resolve(Gathered&& gathered, const ManifestOptions& options);
// What of that namespaces say about queues.
struct QueueDemands;  // object_set.h
QueueDemands demands_of(Gathered&& gathered, const ManifestOptions& options);

}  // namespace berth::kinds
