// When what runs ends, by its own word, and the first of those ends after which something else
// starts: the one way in which berth why and berth fit estimate a start.
//
// What runs says how long by activeDeadlineSeconds of a pod or its Job, by
// maximumExecutionTimeSeconds of its workload, or by the simulator's sim.berth.dev/run-seconds.
// What should have ended by then ends now. Nothing is guessed: a holder that says nothing stays.
// Pure. endings_of costs a look-up for each running pod, 4,096 at most; earliest_start a decision
// for each halving of the list.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kinds/manifest.h"
#include "model/cluster_state.h"
#include "people/why/answer.h"
#include "people/why/draft.h"

namespace berth::people {

// A pod, or a workload of a queue with its pods and its quota.
struct Ending {
  std::int64_t at_ns = 0;
  std::string name;  // "ns/name"
  bool workload = false;
  std::int64_t declared_ns = 0;  // how long it says that it runs; 0: its pods say it
  friend auto operator<=>(const Ending&, const Ending&) = default;
};

struct Endings {
  std::vector<Ending> ends;  // by time, then name
  int silent = 0;            // pods with GPUs that do not say
  bool more = false;         // there are more pods than were looked at
};

// Of a pod alone. owner: "Job/train".
std::optional<std::int64_t> declared_end(const ObjectSource* objects, const std::string& ns,
                                         const std::string& name, std::string_view owner,
                                         std::int64_t started_ns);

// in_the_way: which running pods count; none: all.
Endings endings_of(const kinds::Inputs& inputs, const ObjectSource* objects, std::int64_t now_ns,
                   const std::function<bool(const model::PodSpec&)>& in_the_way = {});

// The model without them.
void take_out(const kinds::Inputs& inputs, std::span<const Ending> ended, Draft& draft);

// starts_without: whether it starts once those have ended. Without a time: why there is none.
Start earliest_start(const Endings& endings,
                     const std::function<bool(std::span<const Ending>)>& starts_without);

}  // namespace berth::people
