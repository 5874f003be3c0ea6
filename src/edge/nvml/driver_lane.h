// Calls into a driver that may hang, made so that nobody waits for them.
//
// A lane is a queue of calls and the thread that makes them, one after another. A call that has not
// returned by its deadline is given up: its thread is left alone with it and the lane goes on with
// a new one. Threads cannot be killed: while one of its own still hangs a lane tries again less and
// less often, and not at all while as many hang, over all lanes, as DriverThreads allows.
//
// DriverLane belongs to the loop's thread. Answers come on the loop, exactly once, never inside
// call(), and not after the lane is gone. What a call uses must be kept alive by what it captures:
// a thread left hanging may return at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/loop.h"
#include "base/mutex.h"

namespace berth::nvml {

// The threads of one source. Thread-safe.
class DriverThreads : public std::enable_shared_from_this<DriverThreads> {
 public:
  explicit DriverThreads(int most_left) : most_left_(most_left) {}

  // False: the system gives no thread.
  bool start(const char* name, std::function<void()> body) BERTH_EXCLUDES(mutex_);
  // One more is left hanging, or one came back.
  void left() { ++left_; }
  void came_back() { --left_; }
  bool may_leave_more() const { return left_ < most_left_; }
  int left_hanging() const { return left_; }
  int live() const BERTH_EXCLUDES(mutex_);
  // Waits until all threads have ended, at most so long. True: they have.
  bool wait_ended(std::int64_t at_most_ns) BERTH_EXCLUDES(mutex_);

 private:
  const int most_left_;
  std::atomic<int> left_{0};
  mutable Mutex mutex_;
  CondVar ended_;
  int live_ BERTH_GUARDED_BY(mutex_) = 0;
};

class DriverLane {
 public:
  DriverLane(Loop& loop, std::shared_ptr<DriverThreads> threads, std::string name);
  ~DriverLane();
  DriverLane(const DriverLane&) = delete;
  DriverLane& operator=(const DriverLane&) = delete;

  // work runs on the lane's thread; done gets its value, or nothing when the driver is silent.
  template <class T>
  void call(std::int64_t deadline_ns, std::function<T()> work,
            std::function<void(std::optional<T>)> done) {
    auto box = std::make_shared<std::optional<T>>();
    submit(
        deadline_ns, [box, work = std::move(work)] { *box = work(); },
        [box, done = std::move(done)](bool answered) {
          done(answered ? std::move(*box) : std::nullopt);
        });
  }

  // No answers from now on, no further calls: the thread ends when its call does, after the last
  // work, which is for letting go of what belongs to it. Without a thread that is not run.
  void close(std::function<void()> last = nullptr);
  bool idle() const { return asked_.empty(); }
  // Goes up whenever a thread is given up: what it used is still in its hands.
  int generation() const { return generation_; }

 private:
  struct Mailbox;
  struct Asked {
    std::uint64_t id = 0;
    std::function<void(bool)> done;
    Loop::Timer deadline = 0;
  };

  void submit(std::int64_t deadline_ns, std::function<void()> work, std::function<void(bool)> done);
  bool have_thread();
  void answered(std::uint64_t id);
  void give_up();

  Loop& loop_;
  const std::shared_ptr<DriverThreads> threads_;
  const std::string name_;
  std::shared_ptr<Mailbox> mailbox_;
  std::shared_ptr<std::atomic<int>> hanging_;  // threads of this lane that have not come back
  std::deque<Asked> asked_;
  std::uint64_t last_id_ = 0;
  int generation_ = 0;
  std::int64_t next_try_ = 0, patience_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace berth::nvml
