// What is to be looked at next, each thing once: names of objects with priorities, delays,
// back-off.
//
// An item that is added while it waits is one item; added while it is being worked on, it is
// handed out once more after done(). take() gives the highest priority first, then the oldest.
// retry() waits 5 ms, doubled per failure up to 1000 s, and for the bucket of all retries (10 a
// second, 100 at once); forget() ends the count of failures.
//
// `ready` is called from the loop, never inside a call, when there is something to take that was
// not there before. On the loop's thread. O(log n) per call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/loop.h"
#include "base/metrics.h"

namespace berth::kube {

struct WorkQueueOptions {
  std::string name;  // for the metrics
  std::int64_t first_ns = 5'000'000;
  std::int64_t longest_ns = 1'000'000'000'000;
  double qps = 10;
  int burst = 100;
};

class WorkQueue {
 public:
  WorkQueue(Loop& loop, WorkQueueOptions options, std::function<void()> ready,
            MetricsRegistry* metrics = nullptr);
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void add(const std::string& item, int priority = 0);  // a higher priority than before counts
  // The earliest of several delays of one item counts.
  void add_after(const std::string& item, std::int64_t delay_ns, int priority = 0);
  void retry(const std::string& item, int priority = 0);
  void forget(const std::string& item);

  std::optional<std::string> take();
  void done(const std::string& item);  // what take() gave

  std::size_t waiting() const;  // to be taken now
  std::size_t delayed() const;
  std::size_t working() const;  // taken, not done
  int failures(const std::string& item) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::kube
