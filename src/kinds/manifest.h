// The one way from Kubernetes manifests to the model: give it documents, take the Inputs.
//
// Read: Node, Pod, Namespace, PersistentVolume, PersistentVolumeClaim (v1), PriorityClass,
// PodDisruptionBudget, Job, GpuNode, BerthPolicy (policy.h), PodGroups (group.h), Kueue's
// ResourceFlavor, ClusterQueue, LocalQueue, Cohort, Topology, AdmissionCheck,
// WorkloadPriorityClass, Workload (kueue.h, kueue_workload.h) and Configuration (kueue_config.h),
// by itself or in the ConfigMap of an installation, the Queues of Volcano and KAI, Volcano's Job,
// the upstream Workload (other_queues.h), and lists of any of these. Every other kind is named in
// ignored. An object with an error is named in invalid, with every error, and the rest goes on; one
// that holds something counts with what can be read of it, and its errors are warnings (counted.h).
// Unknown fields and assumptions are warnings.
//
// The result does not depend on the order of the documents: of two objects with one name the
// first by (source, document, place in it) is taken, outputs are sorted by namespace and name,
// notes by where they belong. At most kMaxNotes of each list are kept (the first in that order);
// the counts tell how many there were.
//
// Decisions that need several objects (resolve.cc):
// - Pods that are Succeeded or Failed are left out and counted.
// - A pending pod whose group does not exist is invalid, unless the annotation
//   scheduling.volcano.sh/group-min-member says how many belong together: then that makes the
//   group. A bound pod is never dropped for it: it keeps its resources and has no group.
// - Topology annotations on members go to the group, or to the member's subgroup where the group
//   lists it; the PodGroup's own come first, then those of Jobs and of pods, by name.
// - spec.priority wins over the class (it is what the API server stored); an unknown class without
//   it makes a pending pod invalid.
// - A pod bound to a node that is not in the input is left out, with a warning.
//
// What waits in queues (resolve_queues.cc, resolve_queued.cc), only where the input has a
// ClusterQueue:
// - A Workload that is not finished is one of Inputs.queues.workloads. Its priority is
//   spec.priority, else its class; an unknown class makes a pending one invalid.
// - A Job with a queue (label kueue.x-k8s.io/queue-name, or a LocalQueue "default" in its
//   namespace) is a workload of its own unless a Workload names it as owner. Its pods are made only
//   when its Workload holds quota and it is not suspended. One that runs without a Workload in the
//   input is left as it is.
// - A pending pod with that label is a workload, a Kueue pod group one for the whole group. Such
//   pods stay in Inputs.pods, marked queued: the ordinary order of pods does not place them.
// Queues of Volcano and KAI (resolve_other_queues.cc, resolve_other_groups.cc) become ClusterQueues
// and Cohorts (queue_forest.h). Pending groups that name one become workloads, running ones hold
// its quota; so do pods of no group.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/policy.h"
#include "model/workload.h"
#include "text/value.h"

namespace berth::kinds {

inline constexpr std::size_t kMaxNotes = 1000;

struct ManifestOptions {
  // Pods made from Jobs, over all Jobs of one input; a Job beyond it is invalid.
  std::size_t max_job_pods = 250'000;
  // Of a cluster that lives: pods that do not exist yet are made by others, so Jobs make none here,
  // and those that exist are of a queue only by their labels, which Kueue's webhook has set.
  bool live = false;
  std::string own_namespace = "berth-system";  // what runs there waits in no queue unasked
};

struct Note {
  std::string source;  // a file name, as given to add()
  int document = 0;
  int line = 0;        // 0 when unknown
  std::string object;  // "Pod team-a/train-0", "Node n1"
  std::string path;    // may be empty
  std::string message;
  friend auto operator<=>(const Note&, const Note&) = default;
};

struct Counts {
  std::size_t objects = 0;  // of known kinds, valid or not
  std::size_t invalid_objects = 0;
  std::size_t unread_objects = 0;  // that count although part of them cannot be read
  std::size_t finished_pods = 0;   // Succeeded or Failed, left out
  std::size_t stray_pods = 0;      // bound to a node that is not in the input, left out
  std::size_t job_pods = 0;        // made from Jobs
  std::size_t suspended_jobs = 0;
  // Also those that were not kept.
  std::size_t ignored = 0, warnings = 0, invalid = 0, notes = 0;
};

struct Inputs {
  std::vector<model::NodeSpec> nodes;
  std::vector<model::PodSpec> pods;
  std::vector<model::GangSpec> gangs;
  std::vector<model::BudgetSpec> budgets;
  model::QueueInputs queues;
  std::optional<model::Policy> policy;  // of the BerthPolicy in force
  // Pods ("ns/name") that wait although their workload is admitted, and why.
  std::vector<std::pair<std::string, std::string>> beyond;
  std::vector<Note> ignored, warnings, invalid;
  std::vector<Note> notes;  // nothing wrong, worth knowing: suspended Jobs
  Counts counts;
};

// Of a cluster that is read without its nodes and the pods on them: those that are read all the
// same.
struct Bound {
  std::set<std::string> pods;   // "ns/name"
  std::set<std::string> nodes;  // names
};

// Not thread-safe. Documents may go away after add().
class ManifestReader {
 public:
  explicit ManifestReader(ManifestOptions options = {});
  ~ManifestReader();
  ManifestReader(ManifestReader&&) noexcept;
  ManifestReader& operator=(ManifestReader&&) noexcept;

  void add(std::string source_name, int document_index, const text::Document& document);
  Inputs finish();  // once; the reader is empty afterwards

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth::kinds
