#include "embedded/workloads/passes.h"

#include <algorithm>
#include <utility>

namespace berth::sim {

struct Passes::State : std::enable_shared_from_this<Passes::State> {
  struct Entry {
    bool queued = false, running = false, again = false;
    int failures = 0;
    Loop::Timer timer = 0;
    std::int64_t due = 0;
  };

  State(Loop& loop_in, Pass pass_in, std::size_t at_once)
      : loop(loop_in), pass(std::move(pass_in)), free(std::max<std::size_t>(at_once, 1)) {}

  void add(const kube::Key& key);
  void add_after(const kube::Key& key, std::int64_t delay_ns);
  void pump();
  void finished(const kube::Key& key, bool ok);
  void forget(const kube::Key& key);

  Loop& loop;
  Pass pass;
  std::size_t free;
  std::map<kube::Key, Entry> entries;
  std::deque<kube::Key> queue;
  bool posted = false;
};

Passes::Passes(Loop& loop, Pass pass, std::size_t at_once)
    : state_(std::make_shared<State>(loop, std::move(pass), at_once)) {}

Passes::~Passes() {
  for (const auto& [key, entry] : state_->entries) state_->loop.cancel(entry.timer);
  state_->queue.clear();
}

void Passes::add(const kube::Key& key) { state_->add(key); }
void Passes::add_after(const kube::Key& key, std::int64_t delay_ns) {
  state_->add_after(key, delay_ns);
}
bool Passes::idle() const { return state_->entries.empty(); }

void Passes::State::add(const kube::Key& key) {
  Entry& entry = entries[key];
  if (entry.queued) return;
  if (entry.running) {
    entry.again = true;
    return;
  }
  loop.cancel(entry.timer);
  entry.timer = 0;
  entry.queued = true;
  queue.push_back(key);
  if (std::exchange(posted, true)) return;
  loop.post([weak = weak_from_this()] {
    if (const auto alive = weak.lock()) {
      alive->posted = false;
      alive->pump();
    }
  });
}

void Passes::State::add_after(const kube::Key& key, std::int64_t delay_ns) {
  if (delay_ns <= 0) return add(key);
  Entry& entry = entries[key];
  if (entry.queued) return;
  const std::int64_t due = loop.monotonic().ticks_ns() + delay_ns;
  if (entry.timer != 0 && entry.due <= due) return;
  loop.cancel(entry.timer);
  entry.due = due;
  entry.timer = loop.after(delay_ns, [weak = weak_from_this(), key] {
    const auto alive = weak.lock();
    if (alive == nullptr) return;
    alive->entries[key].timer = 0;
    alive->add(key);
  });
}

void Passes::State::pump() {
  while (free > 0 && !queue.empty()) {
    const kube::Key key = std::move(queue.front());
    queue.pop_front();
    Entry& entry = entries[key];
    entry.queued = false;
    entry.running = true;
    --free;
    pass(key, [weak = weak_from_this(), key, done = false](bool ok) mutable {
      if (std::exchange(done, true)) return;
      if (const auto alive = weak.lock()) alive->finished(key, ok);
    });
  }
}

void Passes::State::finished(const kube::Key& key, bool ok) {
  constexpr std::int64_t kFirst = 1'000'000'000, kMost = 60 * kFirst;
  ++free;
  Entry& entry = entries[key];
  entry.running = false;
  const bool again = std::exchange(entry.again, false);
  entry.failures = ok ? 0 : std::min(entry.failures + 1, 20);
  if (!ok) {
    add_after(key, std::min(kFirst << std::min(entry.failures - 1, 6), kMost));
  } else if (again) {
    add(key);
  } else {
    forget(key);
  }
  if (!queue.empty() && !std::exchange(posted, true)) {
    loop.post([weak = weak_from_this()] {
      if (const auto alive = weak.lock()) {
        alive->posted = false;
        alive->pump();
      }
    });
  }
}

void Passes::State::forget(const kube::Key& key) {
  const auto it = entries.find(key);
  if (it == entries.end()) return;
  const Entry& entry = it->second;
  if (!entry.queued && !entry.running && entry.timer == 0) entries.erase(it);
}

}  // namespace berth::sim
