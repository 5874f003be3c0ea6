#include "base/run_loop.h"

#include <algorithm>
#include <vector>

#include "base/mutex.h"

namespace berth {

struct RunLoop::State {
  State(const MonotonicClock& monotonic_clock, const WallClock& wall_clock)
      : monotonic(monotonic_clock), wall(wall_clock) {}

  const MonotonicClock& monotonic;
  const WallClock& wall;

  // First, so that it goes last: work that is dropped may keep other threads from posting.
  Mutex mutex;
  CondVar arrived;
  std::vector<Work> posted BERTH_GUARDED_BY(mutex);
  bool stopped BERTH_GUARDED_BY(mutex) = false;

  // The loop's thread alone.
  std::deque<Work> ready;
  std::map<std::pair<std::int64_t, Timer>, Work> timers;  // by due time
  std::map<Timer, std::int64_t> due;
  Timer last_timer = 0;

  bool take_posted() BERTH_EXCLUDES(mutex) {
    std::vector<Work> taken;
    {
      MutexLock lock(mutex);
      if (stopped) return false;
      taken.swap(posted);
    }
    for (Work& work : taken) ready.push_back(std::move(work));
    return true;
  }

  // One timer that is due, or one piece of work. False: there is neither.
  bool run_one() {
    if (!timers.empty() && timers.begin()->first.first <= monotonic.ticks_ns()) {
      auto node = timers.extract(timers.begin());
      due.erase(node.key().second);
      node.mapped()();
      return true;
    }
    if (ready.empty()) return false;
    Work work = std::move(ready.front());
    ready.pop_front();
    work();
    return true;
  }

  void wait() BERTH_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    if (!posted.empty() || stopped) return;
    if (timers.empty()) {
      arrived.wait(mutex);
    } else {
      const std::int64_t left = timers.begin()->first.first - monotonic.ticks_ns();
      if (left > 0) arrived.wait_for(mutex, left);
    }
  }
};

RunLoop::RunLoop(const MonotonicClock& monotonic, const WallClock& wall)
    : state_(std::make_unique<State>(monotonic, wall)) {}

RunLoop::~RunLoop() = default;

void RunLoop::run() {
  {
    MutexLock lock(state_->mutex);
    state_->stopped = false;
  }
  while (state_->take_posted()) {
    if (!state_->run_one()) state_->wait();
  }
}

bool RunLoop::run_ready() {
  bool any = false;
  while (state_->take_posted() && state_->run_one()) any = true;
  return any;
}

void RunLoop::stop() {
  {
    MutexLock lock(state_->mutex);
    state_->stopped = true;
  }
  state_->arrived.notify_all();
}

void RunLoop::post(Work work) {
  bool first = false;
  {
    MutexLock lock(state_->mutex);
    first = state_->posted.empty();
    state_->posted.push_back(std::move(work));
  }
  if (first) state_->arrived.notify_one();
}

Loop::Timer RunLoop::after(std::int64_t delay_ns, Work work) {
  const Timer timer = ++state_->last_timer;
  const std::int64_t due = state_->monotonic.ticks_ns() + std::max<std::int64_t>(delay_ns, 0);
  state_->timers.emplace(std::pair(due, timer), std::move(work));
  state_->due.emplace(timer, due);
  return timer;
}

void RunLoop::cancel(Timer timer) {
  const auto found = state_->due.find(timer);
  if (found == state_->due.end()) return;
  state_->timers.erase({found->second, timer});
  state_->due.erase(found);
}

const MonotonicClock& RunLoop::monotonic() const { return state_->monotonic; }
const WallClock& RunLoop::wall() const { return state_->wall; }

}  // namespace berth
