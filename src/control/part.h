// The shape of every controller of the control plane.
//
// Each has one concern and what it has to remember of it. The Controller keeps them in a list, in
// the order in which they hear of a change; it alone decides when there is a cycle. What they do
// goes through one Writer and one recorder of events, what they believe into one World. On the
// loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "control/notices.h"
#include "control/world.h"
#include "control/writer.h"
#include "kinds/object_set.h"
#include "model/decision.h"
#include "text/value.h"

namespace berth::control {

// What all of them work with; it outlives them.
struct Common {
  Loop& loop;
  World& world;
  Writer& writer;
  Notices& notices;
  const Logger& log;
  MetricsRegistry& metrics;
  std::function<bool()> acting;           // we lead, and everything was read
  std::function<bool()> queues_are_ours;  // there are some, and no Kueue runs

  std::int64_t now() const { return loop.monotonic().ticks_ns(); }
};

// An object as the API has it now; the World has taken it in.
struct Change {
  // A pod as the World had it before, if it did.
  struct PodBefore {
    bool known = false, ours = false;  // ours: to be placed by us, and not ended
    bool bound = false, running = false, gated = false;
    bool wants_gpus = false;
    std::string uid, gang, group;
  };
  const kube::Resource& resource;
  const kube::Key& key;
  const text::Value* object;  // null: it is gone
  // Of a Pod alone.
  bool ours = false;  // it names a scheduler of ours
  PodBefore before = {};

  bool is(std::string_view kind) const { return resource.kind == kind; }
  std::string name() const { return key.to_string(); }  // "ns/name"
};

// What a cycle decided.
struct Decided {
  using Members = std::unordered_map<std::string, std::vector<std::string>>;
  const model::Decision& decision;
  const Members& members;  // pods that are there, of workloads that wait in queues
  const std::vector<std::pair<std::string, std::string>>& beyond;  // kinds::Inputs
};

class Part {
 public:
  Part() = default;
  virtual ~Part() = default;
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  // True: there is something to decide.
  virtual bool changed(const Change&) { return false; }
  // A cycle has decided, and what it decided is on its way.
  virtual void decided(const Decided&) {}
  // Once a second, while we lead and everything was read. True: there is something to decide.
  virtual bool tick(std::int64_t) { return false; }
  // The lead is lost: what was decided and planned is forgotten, what the API said is not.
  virtual void clear() {}
};

}  // namespace berth::control
