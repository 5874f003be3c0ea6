#include "kube/work_queue.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace berth::kube {

struct QueueMetrics {
  Gauge depth, unfinished;
  Counter adds, retries;
  Histogram waited, worked;

  static MetricSpec spec(const char* name, const char* help, std::vector<double> buckets = {}) {
    return {.name = name, .help = help, .labels = {"queue"}, .buckets = std::move(buckets)};
  }
  QueueMetrics(MetricsRegistry& registry, const std::string& queue)
      : depth(registry.gauge(spec("berth_kube_queue_depth", "Items that wait to be taken."))
                  .with({queue})),
        unfinished(registry
                       .gauge(spec("berth_kube_queue_unfinished_seconds",
                                   "How long the oldest item in work is there, when last changed."))
                       .with({queue})),
        adds(registry.counter(spec("berth_kube_queue_adds_total", "Items that came to wait."))
                 .with({queue})),
        retries(registry.counter(spec("berth_kube_queue_retries_total", "Items to be tried again."))
                    .with({queue})),
        waited(registry
                   .histogram(spec("berth_kube_queue_wait_seconds", "From waiting to taken.",
                                   {.0001, .001, .01, .1, 1, 10, 100}))
                   .with({queue})),
        worked(registry
                   .histogram(spec("berth_kube_queue_work_seconds", "From taken to done.",
                                   {.0001, .001, .01, .1, 1, 10, 100}))
                   .with({queue})) {}
};

namespace {}  // namespace

struct WorkQueue::State : std::enable_shared_from_this<WorkQueue::State> {
  struct Place {  // in the line
    int priority;
    std::uint64_t number;
    bool operator<(const Place& other) const {
      return priority != other.priority ? priority > other.priority : number < other.number;
    }
  };
  struct Dirty {
    int priority = 0;
    bool queued = false;  // else it is in work and comes back with done()
    Place place = {};
    std::int64_t since = 0;
  };
  struct Delayed {
    std::int64_t due;
    int priority;
    Loop::Timer timer;
  };

  State(Loop& loop_in, WorkQueueOptions options_in, std::function<void()> ready_in)
      : loop(loop_in),
        options(std::move(options_in)),
        ready(std::move(ready_in)),
        tokens(std::max(options.burst, 1)) {}

  std::int64_t now() const { return loop.monotonic().ticks_ns(); }
  void add(const std::string& item, int priority);
  void enqueue(const std::string& item, Dirty& dirty);
  void wake();
  void add_after(const std::string& item, std::int64_t delay, int priority);
  std::int64_t bucket_wait();
  void show();

  Loop& loop;
  const WorkQueueOptions options;
  const std::function<void()> ready;
  std::optional<QueueMetrics> metrics;
  std::map<std::string, Dirty> dirty;
  std::map<Place, std::string> line;
  std::map<std::string, std::int64_t> processing;  // since when
  std::map<std::string, Delayed> delayed;
  std::map<std::string, int> failures;
  std::uint64_t last_number = 0;
  double tokens;
  std::int64_t refilled = -1;
  bool waking = false;
};

void WorkQueue::State::add(const std::string& item, int priority) {
  if (auto later = delayed.find(item); later != delayed.end()) {
    priority = std::max(priority, later->second.priority);
    loop.cancel(later->second.timer);
    delayed.erase(later);
  }
  auto [at, fresh] = dirty.try_emplace(item);
  Dirty& entry = at->second;
  if (!fresh) {
    if (priority <= entry.priority) return;
    entry.priority = priority;
    if (!entry.queued) return;
    line.erase(entry.place);
    entry.place.priority = priority;
    line[entry.place] = item;
    return;
  }
  entry.priority = priority;
  if (metrics) metrics->adds.add();
  if (!processing.contains(item)) enqueue(item, entry);
}

void WorkQueue::State::enqueue(const std::string& item, Dirty& entry) {
  entry.queued = true;
  entry.since = now();
  entry.place = {entry.priority, ++last_number};
  line[entry.place] = item;
  show();
  wake();
}

void WorkQueue::State::wake() {
  if (waking || !ready) return;
  waking = true;
  loop.post([weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self) return;
    self->waking = false;
    if (!self->line.empty()) self->ready();
  });
}

void WorkQueue::State::add_after(const std::string& item, std::int64_t delay, int priority) {
  if (delay <= 0) return add(item, priority);
  const std::int64_t due = now() + delay;
  auto [at, fresh] = delayed.try_emplace(item, Delayed{due, priority, 0});
  if (!fresh) {
    at->second.priority = std::max(at->second.priority, priority);
    if (at->second.due <= due) return;
    loop.cancel(at->second.timer);
    at->second.due = due;
  }
  at->second.timer = loop.after(delay, [weak = weak_from_this(), item] {
    auto self = weak.lock();
    if (!self) return;
    auto found = self->delayed.find(item);
    if (found == self->delayed.end()) return;
    const int with = found->second.priority;
    self->delayed.erase(found);
    self->add(item, with);
  });
}

std::int64_t WorkQueue::State::bucket_wait() {
  if (options.qps <= 0) return 0;
  const std::int64_t at = now();
  if (refilled >= 0) {
    tokens = std::min(static_cast<double>(std::max(options.burst, 1)),
                      tokens + static_cast<double>(at - refilled) * 1e-9 * options.qps);
  }
  refilled = at;
  tokens -= 1;
  return tokens >= 0 ? 0 : static_cast<std::int64_t>(-tokens / options.qps * 1e9);
}

void WorkQueue::State::show() {
  if (!metrics) return;
  metrics->depth.set(static_cast<double>(line.size()));
  std::int64_t oldest = now();
  for (const auto& [item, since] : processing) oldest = std::min(oldest, since);
  metrics->unfinished.set(static_cast<double>(now() - oldest) * 1e-9);
}

WorkQueue::WorkQueue(Loop& loop, WorkQueueOptions options, std::function<void()> ready,
                     MetricsRegistry* metrics)
    : state_(std::make_shared<State>(loop, std::move(options), std::move(ready))) {
  if (metrics) state_->metrics.emplace(*metrics, state_->options.name);
}

WorkQueue::~WorkQueue() {
  for (auto& [item, delayed] : state_->delayed) state_->loop.cancel(delayed.timer);
}

void WorkQueue::add(const std::string& item, int priority) { state_->add(item, priority); }

void WorkQueue::add_after(const std::string& item, std::int64_t delay_ns, int priority) {
  state_->add_after(item, delay_ns, priority);
}

void WorkQueue::retry(const std::string& item, int priority) {
  int& failed = state_->failures[item];
  std::int64_t delay = state_->options.first_ns;
  for (int i = 0; i < failed && delay < state_->options.longest_ns; ++i) delay *= 2;
  ++failed;
  delay = std::min(delay, state_->options.longest_ns);
  if (state_->metrics) state_->metrics->retries.add();
  state_->add_after(item, std::max(delay, state_->bucket_wait()), priority);
}

void WorkQueue::forget(const std::string& item) { state_->failures.erase(item); }

std::optional<std::string> WorkQueue::take() {
  State& state = *state_;
  if (state.line.empty()) return {};
  std::string item = std::move(state.line.begin()->second);
  state.line.erase(state.line.begin());
  auto entry = state.dirty.find(item);
  if (state.metrics) {
    const std::int64_t waited = state.now() - entry->second.since;
    state.metrics->waited.observe(static_cast<double>(waited) * 1e-9);
  }
  state.dirty.erase(entry);
  state.processing[item] = state.now();
  state.show();
  return item;
}

void WorkQueue::done(const std::string& item) {
  State& state = *state_;
  auto found = state.processing.find(item);
  if (found == state.processing.end()) return;
  if (state.metrics) {
    state.metrics->worked.observe(static_cast<double>(state.now() - found->second) * 1e-9);
  }
  state.processing.erase(found);
  auto again = state.dirty.find(item);
  if (again != state.dirty.end()) {
    state.enqueue(item, again->second);
  } else {
    state.show();
  }
}

std::size_t WorkQueue::waiting() const { return state_->line.size(); }
std::size_t WorkQueue::delayed() const { return state_->delayed.size(); }
std::size_t WorkQueue::working() const { return state_->processing.size(); }
int WorkQueue::failures(const std::string& item) const {
  auto found = state_->failures.find(item);
  return found == state_->failures.end() ? 0 : found->second;
}

}  // namespace berth::kube
