// The stages of a resolve(), in their order; each runs once.
#pragma once

#include <string>

#include "kinds/resolve/known_nodes.h"
#include "kinds/resolve/known_queues.h"
#include "kinds/resolve/members.h"
#include "kinds/resolve/other_systems.h"
#include "kinds/resolve/pod_groups.h"
#include "kinds/resolve/pod_marks.h"
#include "kinds/resolve/pod_references.h"
#include "kinds/resolve/workloads.h"

namespace berth::kinds {

// Kinds that wait in Kueue's queues as a whole, other than Jobs: the workloads they make.
void queue_makers(Resolution& all, KnownQueues& queues, const PodReferences& references,
                  Workloads& workloads);
// Jobs: the workloads they make, else the pods that they would make.
void resolve_jobs(Resolution& all, KnownQueues& queues, const PodReferences& references,
                  PodGroups& groups, Workloads& workloads);
void resolve_volcano_jobs(Resolution& all, const PodReferences& references, PodGroups& groups);
void resolve_pods(Resolution& all, const KnownNodes& nodes, const KnownQueues& queues,
                  const PodReferences& references, PodGroups& groups, PodMarks& marks);

// Groups of any scheduler whose pods wait in Kueue's queues.
void queue_kueue_gangs(Resolution& all, const KnownQueues& queues, PodGroups& groups,
                       Workloads& workloads, Members& members, PodMarks& marks);
// Pods, and groups by Kueue's labels, that wait in its queues.
void queue_pods(Resolution& all, KnownQueues& queues, const PodGroups& groups, Workloads& workloads,
                Members& members, PodMarks& marks);
// The pod as a workload of its own.
void queue_alone(model::PodSpec& pod, const std::string& queue, const model::QueueConfig& config,
                 Workloads& workloads, const PodMarks& marks);

// Groups and pods that name a queue of Volcano or KAI.
void queue_in_other_systems(Resolution& all, const KnownNodes& nodes, PodGroups& groups,
                            Workloads& workloads, OtherSystems& systems, PodMarks& marks);
// What runs and is more than its workload holds quota for, or whose workload is gone, counts until
// it is gone as well: quota that is given back before its GPUs are would be given twice.
void count_leftovers(Resolution& all, const KnownNodes& nodes, const KnownQueues& queues,
                     const PodGroups& groups, Workloads& workloads, OtherSystems& systems,
                     const PodMarks& marks);
// Pods that wait, of namespaces that require a queue, and that no workload of a queue stands for.
void hold_outsiders(Resolution& all, const KnownQueues& queues, const PodMarks& marks);

}  // namespace berth::kinds
