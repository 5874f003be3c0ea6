// What an object that makes pods (kinds/pod_maker.h) makes next, as objects that a plan reads.
//
// Pure; what is not written as its kind wants makes nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "people/why/draft.h"
#include "people/why/unit.h"

namespace berth::people {

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

}  // namespace berth::people
