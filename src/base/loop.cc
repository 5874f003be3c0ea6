#include "base/loop.h"

#include <algorithm>

namespace berth {

Loop::Timer SteppedLoop::after(std::int64_t delay_ns, Work work) {
  const Timer timer = ++last_timer_;
  const std::int64_t due = clock_.ticks_ns() + std::max<std::int64_t>(delay_ns, 0);
  timers_.emplace(std::pair(due, timer), std::move(work));
  due_.emplace(timer, due);
  return timer;
}

void SteppedLoop::cancel(Timer timer) {
  const auto found = due_.find(timer);
  if (found == due_.end()) return;
  timers_.erase({found->second, timer});
  due_.erase(found);
}

bool SteppedLoop::run_one() {
  if (!timers_.empty() && timers_.begin()->first.first <= clock_.ticks_ns()) {
    auto node = timers_.extract(timers_.begin());
    due_.erase(node.key().second);
    node.mapped()();
    return true;
  }
  if (posted_.empty()) return false;
  Work work = std::move(posted_.front());
  posted_.pop_front();
  work();
  return true;
}

bool SteppedLoop::run_ready() {
  bool any = false;
  while (run_one()) any = true;
  return any;
}

void SteppedLoop::run_for(std::int64_t ns) {
  run_until([] { return false; }, ns);
}

bool SteppedLoop::run_until(const std::function<bool()>& done, std::int64_t at_most_ns) {
  const std::int64_t end = clock_.ticks_ns() + at_most_ns;
  if (done()) return true;
  while (true) {
    if (run_one()) {
      if (done()) return true;
      continue;
    }
    const std::int64_t next = timers_.empty() ? end : std::min(end, timers_.begin()->first.first);
    if (timers_.empty() || timers_.begin()->first.first > end) {
      clock_.advance(end - clock_.ticks_ns());
      return false;
    }
    clock_.advance(next - clock_.ticks_ns());
  }
}

}  // namespace berth
