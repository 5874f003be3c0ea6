// Kinds that make pods: where their templates stand, how many pods of each they make at once, and
// what they make next, as objects that a plan reads.
//
// Pure; what is not of a known kind, or is not written as its kind wants, makes nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "explain/draft.h"
#include "explain/unit.h"

namespace berth::explain {

// Looked for where nothing else has the name.
inline constexpr const char* kMakersOfPods[] = {
    "Deployment",      "ReplicaSet", "StatefulSet", "JobSet",     "CronJob",
    "LeaderWorkerSet", "RayJob",     "RayCluster",  "RayService", "MPIJob",
    "TFJob",           "PyTorchJob", "XGBoostJob",  "PaddleJob",  "JAXJob"};

struct MadeSet {
  std::string name;               // "worker"; of a kind with one template "main"
  std::vector<std::string> path;  // to the template
  int count = 0;                  // pods at once, were nothing in the way
};
std::vector<MadeSet> made_sets(const RawObject& object);
std::vector<TemplatePlace> places_of(const RawObject& object);
// What stands at the place, with metadata and spec; null: nothing does.
const text::Value* template_at(const RawObject& object, const TemplatePlace& place);

// The field by which it rests: "spec.suspend", "spec.runPolicy.suspend"; empty: by none.
std::string held_by_field(const RawObject& object);
// Of Kueue, by its label; empty: none, or no queue is in the input.
std::string queue_of(const ObjectSource& objects, const RawObject& object);

// How many pods stand behind the place, once its queue lets it go; 0 where it rests otherwise.
int pods_at(const ObjectSource& objects, const RawObject& object, const TemplatePlace& place);

// Adds what the object makes next: the Workload of its queue, the Job of a CronJob, else its pods,
// but for those that are there. now: the object, with templates as the API server stores them.
void make_next(const ObjectSource& objects, const RawObject& object, const Tree& now, Draft& draft);

}  // namespace berth::explain
