// What berth writes into an object that waits in queues as a whole: that it rests, or that it may
// start, and where its pods may run. JSON Patches (RFC 6902) against the object as it was read.
//
// A start says everything anew, from the templates that the Workload keeps: what an earlier start
// wrote does not stay. Where a template stands in a list the patch holds for that version of the
// object alone, and fails where the object has changed since. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kinds/pod_maker.h"
#include "model/spec.h"

namespace berth::kinds {

struct SetStart {
  std::string name;                       // of the pod set
  const text::Value* original = nullptr;  // the template as it was queued
  model::Labels labels, annotations;      // what its pods get
  model::Labels node_selector;            // of flavors, over that of the original
  std::vector<model::Toleration> tolerations;
  int count = 0;  // 0: as the object says. For a maker with such a field
};

// "": nothing would change.
std::string start_patch(const PodMaker& maker, const text::Value& object,
                        std::span<const SetStart> sets);
std::string rest_patch(const PodMaker& maker, const text::Value& object);
// Of its status: it has not started yet. "": that is so, or does not matter.
std::string never_started_patch(const PodMaker& maker, const text::Value& object);

}  // namespace berth::kinds
