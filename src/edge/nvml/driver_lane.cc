#include "edge/nvml/driver_lane.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <system_error>
#include <thread>

namespace berth::nvml {

namespace {

// Between tries of a lane whose thread hangs.
constexpr std::int64_t kFirstPatience = 30'000'000'000;
constexpr std::int64_t kLongestPatience = 3'600'000'000'000;

}  // namespace

bool DriverThreads::start(const char* name, std::function<void()> body) {
  {
    MutexLock lock(mutex_);
    ++live_;
  }
  auto run = [self = shared_from_this(), name = std::string(name),
              body = std::move(body)]() mutable {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);  // they are for main
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
    body();
    body = nullptr;
    MutexLock lock(self->mutex_);
    --self->live_;
    self->ended_.notify_all();
  };
  try {
    std::thread(std::move(run)).detach();
  } catch (const std::system_error&) {
    MutexLock lock(mutex_);
    --live_;
    return false;
  }
  return true;
}

int DriverThreads::live() const {
  MutexLock lock(mutex_);
  return live_;
}

bool DriverThreads::wait_ended(std::int64_t at_most_ns) {
  constexpr std::int64_t kStep = 10'000'000;
  MutexLock lock(mutex_);
  for (std::int64_t waited = 0; live_ > 0 && waited < at_most_ns; waited += kStep) {
    ended_.wait_for(mutex_, kStep);
  }
  return live_ == 0;
}

struct DriverLane::Mailbox {
  struct Letter {
    std::function<void()> work;
    std::function<void()> told;  // posted to the loop when the work is done
  };

  Mutex mutex;
  CondVar arrived;
  std::deque<Letter> letters BERTH_GUARDED_BY(mutex);
  Loop* loop BERTH_GUARDED_BY(mutex) = nullptr;  // null: nobody waits for this thread any more
  bool given_up BERTH_GUARDED_BY(mutex) = false;
  std::function<void()> last BERTH_GUARDED_BY(mutex);

  void put(Letter letter) BERTH_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    letters.push_back(std::move(letter));
    arrived.notify_one();
  }
  void close(bool hangs, std::function<void()> last_work) BERTH_EXCLUDES(mutex) {
    std::deque<Letter> dropped;
    MutexLock lock(mutex);
    loop = nullptr;
    given_up = hangs;
    last = std::move(last_work);
    dropped.swap(letters);
    arrived.notify_one();
  }
  bool was_given_up() BERTH_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    return given_up;
  }
  std::function<void()> take_last() BERTH_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    return std::move(last);
  }
  void serve() BERTH_EXCLUDES(mutex) {
    while (true) {
      Letter letter;
      {
        MutexLock lock(mutex);
        while (letters.empty() && loop != nullptr) arrived.wait(mutex);
        if (loop == nullptr) return;
        letter = std::move(letters.front());
        letters.pop_front();
      }
      letter.work();
      letter.work = nullptr;
      MutexLock lock(mutex);
      if (loop == nullptr) return;
      loop->post(std::move(letter.told));
    }
  }
};

DriverLane::DriverLane(Loop& loop, std::shared_ptr<DriverThreads> threads, std::string name)
    : loop_(loop),
      threads_(std::move(threads)),
      name_(std::move(name)),
      hanging_(std::make_shared<std::atomic<int>>(0)) {}

DriverLane::~DriverLane() { close(); }

void DriverLane::close(std::function<void()> last) {
  alive_.reset();
  for (const Asked& asked : asked_) loop_.cancel(asked.deadline);
  asked_.clear();
  if (mailbox_ != nullptr) mailbox_->close(false, std::move(last));
  mailbox_.reset();
}

bool DriverLane::have_thread() {
  if (mailbox_ != nullptr) return true;
  if (*hanging_ > 0) {
    if (loop_.monotonic().ticks_ns() < next_try_ || !threads_->may_leave_more()) return false;
  } else {
    patience_ = 0;
  }
  auto mailbox = std::make_shared<Mailbox>();
  {
    MutexLock lock(mailbox->mutex);
    mailbox->loop = &loop_;
  }
  auto body = [mailbox, threads = threads_, hanging = hanging_] {
    mailbox->serve();
    if (auto last = mailbox->take_last()) last();
    if (!mailbox->was_given_up()) return;
    --*hanging;
    threads->came_back();
  };
  if (!threads_->start(name_.c_str(), std::move(body))) return false;
  mailbox_ = std::move(mailbox);
  return true;
}

void DriverLane::submit(std::int64_t deadline_ns, std::function<void()> work,
                        std::function<void(bool)> done) {
  std::weak_ptr<bool> alive = alive_;
  if (!have_thread()) {
    loop_.post([alive, done = std::move(done)] {
      if (!alive.expired()) done(false);
    });
    return;
  }
  const std::uint64_t id = ++last_id_;
  asked_.push_back({id, std::move(done), loop_.after(deadline_ns, [this] { give_up(); })});
  mailbox_->put({std::move(work), [this, alive, id] {
                   if (!alive.expired()) answered(id);
                 }});
}

void DriverLane::answered(std::uint64_t id) {
  // A late answer of a thread that was given up finds its question gone.
  if (asked_.empty() || asked_.front().id != id) return;
  Asked asked = std::move(asked_.front());
  asked_.pop_front();
  loop_.cancel(asked.deadline);
  asked.done(true);
}

void DriverLane::give_up() {
  std::deque<Asked> unanswered;
  unanswered.swap(asked_);
  for (const Asked& asked : unanswered) loop_.cancel(asked.deadline);
  ++generation_;
  patience_ = patience_ == 0 ? kFirstPatience : std::min(patience_ * 2, kLongestPatience);
  next_try_ = loop_.monotonic().ticks_ns() + patience_;
  ++*hanging_;
  threads_->left();
  mailbox_->close(true, nullptr);
  mailbox_.reset();
  std::weak_ptr<bool> alive = alive_;
  for (const Asked& asked : unanswered) {
    asked.done(false);
    if (alive.expired()) return;
  }
}

}  // namespace berth::nvml
