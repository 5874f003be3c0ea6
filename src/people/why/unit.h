// What is asked about: a pod, the pods of an owner, a gang or a workload of a queue, and where the
// objects behind it stand.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kinds/manifest.h"
#include "people/why/draft.h"

namespace berth::people {

// As people ask. kind: "pod", "job", "workload", "podgroup", or empty for anything of that name; a
// kind that makes pods in small letters ("deployment", "rayjob"): those it made.
struct Subject {
  std::string kind;
  std::string ns;  // empty: any
  std::string name;
};

// Where a pod template stands in an object.
struct TemplatePlace {
  std::string kind, ns, name;
  std::vector<std::string> path;  // to what has metadata and spec; empty: the object itself
  std::size_t pod_set = 0;        // of a queued workload
};

struct Unit {
  enum class Form : std::uint8_t { kPods, kGang, kQueued };
  enum class State : std::uint8_t {
    kPending,    // something of it is to be decided
    kRunning,    // all of it is bound
    kEnded,      // finished
    kSuspended,  // it makes no pods: told says why
    kUnmade,     // it would make pods, and there are none yet
    kInvalid,    // an object of it was refused
    kRefused,    // bound, and it does not run
  };
  Form form = Form::kPods;
  State state = State::kPending;
  std::string kind, ns, name;  // shown: "Job", "vision", "resnet"
  std::string decided;         // what the decision calls it: "ns/name" of the gang or workload
  std::vector<const model::PodSpec*> pending, running;  // its pods, by name
  const model::GangSpec* gang = nullptr;
  const model::WorkloadSpec* queued = nullptr;
  std::string asked_pod;                       // when one pod of several was asked about
  std::vector<const kinds::Note*> complaints;  // kInvalid: what is wrong with it
  std::string told;                            // by the object itself: how it ended, why it rests
  std::vector<TemplatePlace> places;           // where its pods are described
  std::vector<RawObject> objects;              // it consists of, the first is the subject's

  std::string full() const { return ns + '/' + name; }
  const model::PodSpec* sample() const;         // of what waits, else of what runs; may be null
  std::set<std::string> pending_names() const;  // ns/name
};

// Not found, or several of that name: an error that says so.
Result<Unit> find_unit(const kinds::Inputs& inputs, const ObjectSource* source,
                       const Subject& subject);

// Of a name that nothing has: the one that was meant, "train" or "team/train"; else empty. It names
// what is in the inputs, so it is for those who may list them.
std::string meant_name(const kinds::Inputs& inputs, const Subject& subject);

}  // namespace berth::people
