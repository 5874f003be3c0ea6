// A work queue of keys: one pass over a key at a time, another one when it was added meanwhile,
// and again later when a pass failed (1 s, doubled, at most a minute).
//
// On the loop's thread. Cost: a map entry for each key that waits, runs or has failed.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "base/loop.h"
#include "edge/kube/client.h"

namespace berth::sim {

class Passes {
 public:
  // Called exactly once for each pass: did it do what it wanted?
  using Finished = std::function<void(bool ok)>;
  using Pass = std::function<void(const kube::Key&, Finished)>;

  Passes(Loop& loop, Pass pass, std::size_t at_once = 32);
  ~Passes();
  Passes(const Passes&) = delete;
  Passes& operator=(const Passes&) = delete;

  void add(const kube::Key& key);
  void add_after(const kube::Key& key, std::int64_t delay_ns);  // the earliest one counts
  bool idle() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::sim
