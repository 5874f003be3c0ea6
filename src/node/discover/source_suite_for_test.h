// What every GpuSource promises, as one suite, and the loop it runs on.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/loop.h"
#include "base/mutex.h"
#include "node/discover/gpu_source.h"
#include "node/discover/inventory_check.h"

namespace berth::discover {

// Virtual time that the test moves by hand, and work posted from any thread: deadlines pass when
// the test says so, however slow the machine is.
class HandLoop final : public Loop {
 public:
  explicit HandLoop(FakeClock& clock) : clock_(clock) {}

  void post(Work work) override {
    MutexLock lock(mutex_);
    posted_.push_back(std::move(work));
    arrived_.notify_all();
  }
  Timer after(std::int64_t delay_ns, Work work) override {
    const Timer timer = ++last_timer_;
    due_[timer] = clock_.ticks_ns() + std::max<std::int64_t>(delay_ns, 0);
    timers_[{due_[timer], timer}] = std::move(work);
    return timer;
  }
  void cancel(Timer timer) override {
    const auto found = due_.find(timer);
    if (found == due_.end()) return;
    timers_.erase({found->second, timer});
    due_.erase(found);
  }
  const MonotonicClock& monotonic() const override { return clock_; }
  const WallClock& wall() const override { return clock_; }

  // Runs what is posted and due until the condition holds; waits a minute at most.
  void run_until(const std::function<bool()>& done) {
    for (int waited = 0; !done();) {
      if (run_one()) continue;
      BERTH_ASSERT(++waited <= 12'000, "what a test waits for does not happen");
      MutexLock lock(mutex_);
      if (posted_.empty()) arrived_.wait_for(mutex_, 5'000'000);
    }
  }
  void run_ready() {
    while (run_one()) {
    }
  }
  // Moves time, stopping at every timer on the way.
  void advance(std::int64_t ns) {
    const std::int64_t end = clock_.ticks_ns() + ns;
    run_ready();
    while (!timers_.empty() && timers_.begin()->first.first <= end) {
      clock_.advance(timers_.begin()->first.first - clock_.ticks_ns());
      run_ready();
    }
    clock_.advance(end - clock_.ticks_ns());
  }
  int posts_run() const { return posts_run_; }
  bool has_timers() const { return !timers_.empty(); }
  std::int64_t next_timer_in() const {
    return timers_.empty() ? -1 : timers_.begin()->first.first - clock_.ticks_ns();
  }

 private:
  bool run_one() {
    if (!timers_.empty() && timers_.begin()->first.first <= clock_.ticks_ns()) {
      auto node = timers_.extract(timers_.begin());
      due_.erase(node.key().second);
      node.mapped()();
      return true;
    }
    Work work;
    {
      MutexLock lock(mutex_);
      if (posted_.empty()) return false;
      work = std::move(posted_.front());
      posted_.pop_front();
    }
    ++posts_run_;
    work();
    return true;
  }

  FakeClock& clock_;
  Mutex mutex_;
  CondVar arrived_;
  std::deque<Work> posted_ BERTH_GUARDED_BY(mutex_);
  std::map<std::pair<std::int64_t, Timer>, Work> timers_;
  std::map<Timer, std::int64_t> due_;
  Timer last_timer_ = 0;
  int posts_run_ = 0;
};

inline Result<model::GpuInventory> inventory_of(HandLoop& loop, GpuSource& source) {
  std::vector<Result<model::GpuInventory>> got;
  source.take_inventory(
      [&](const Result<model::GpuInventory>& inventory) { got.push_back(inventory); });
  EXPECT_TRUE(got.empty()) << "answered inside the call";
  loop.run_until([&] { return !got.empty(); });
  loop.run_ready();
  EXPECT_EQ(got.size(), 1u);
  return got.empty() ? Result<model::GpuInventory>(invalid("no answer")) : got.front();
}

inline std::vector<model::GpuReading> readings_of(HandLoop& loop, GpuSource& source) {
  int answers = 0;
  std::vector<model::GpuReading> got;
  source.read([&](std::vector<model::GpuReading> readings) {
    ++answers;
    got = std::move(readings);
  });
  EXPECT_EQ(answers, 0) << "answered inside the call";
  loop.run_until([&] { return answers > 0; });
  loop.run_ready();
  EXPECT_EQ(answers, 1);
  return got;
}

struct SourceCase {
  // A machine with two GPUs or more that all answer.
  std::function<std::unique_ptr<GpuSource>(Loop&)> make;
  // Where the fixture can: an Xid happens on a GPU.
  std::function<void(const std::string& uuid, int xid)> emit;
  // Where the fixture can: a GPU does not answer any more. The others have answered when so many
  // posts ran after the ask; then the deadline passes.
  std::function<void(const std::string& uuid)> hush;
  int posts_when_hushed = 0;
  std::int64_t deadline_ns = 0;
};

inline void check_readings(const model::GpuInventory& inventory,
                           const std::vector<model::GpuReading>& readings) {
  ASSERT_EQ(readings.size(), inventory.gpus.size());
  for (std::size_t i = 0; i < readings.size(); ++i) {
    EXPECT_EQ(readings[i].uuid, inventory.gpus[i].uuid);
    EXPECT_EQ(readings[i].answer, model::GpuAnswer::kFine) << readings[i].error;
  }
}

// What is asked is answered, once each, also many at a time.
inline void check_answers(HandLoop& loop, GpuSource& source, model::GpuInventory& inventory) {
  EXPECT_TRUE(readings_of(loop, source).empty()) << "readings before the first inventory";
  Result<model::GpuInventory> first = inventory_of(loop, source);
  ASSERT_TRUE(first.ok()) << first.error().to_string();
  inventory = *first;
  ASSERT_GE(inventory.gpus.size(), 2u);
  const Status valid = check_inventory(inventory);
  EXPECT_TRUE(valid.ok()) << (valid.ok() ? "" : valid.error().to_string());
  EXPECT_EQ(*inventory_of(loop, source), inventory);
  check_readings(inventory, readings_of(loop, source));

  int inventories = 0, readings = 0;
  for (int i = 0; i < 3; ++i) {
    source.take_inventory([&](const Result<model::GpuInventory>& again) {
      ++inventories;
      EXPECT_TRUE(again.ok() && *again == inventory);
    });
    source.read([&](const std::vector<model::GpuReading>& got) {
      ++readings;
      check_readings(inventory, got);
    });
  }
  loop.run_until([&] { return inventories >= 3 && readings >= 3; });
  loop.run_ready();
  EXPECT_EQ(inventories, 3);
  EXPECT_EQ(readings, 3);
}

inline void check_source(const SourceCase& fixture) {
  FakeClock clock;
  HandLoop loop(clock);
  std::unique_ptr<GpuSource> source = fixture.make(loop);
  model::GpuInventory inventory;
  check_answers(loop, *source, inventory);
  if (testing::Test::HasFatalFailure()) return;

  std::vector<model::GpuEvent> events;
  source->watch([&](const model::GpuEvent& event) { events.push_back(event); });
  const std::string& first = inventory.gpus.front().uuid;
  const std::string& last = inventory.gpus.back().uuid;
  if (fixture.emit) {
    for (const int xid : {13, 31, 79}) fixture.emit(first, xid);
    loop.run_until([&] { return events.size() >= 3; });
    ASSERT_EQ(events.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(events[i].kind, model::GpuEvent::Kind::kXid);
      EXPECT_EQ(events[i].uuid, first);
      EXPECT_EQ(events[i].code, (std::vector<int>{13, 31, 79}[i]));
    }
  }
  if (fixture.hush) {
    fixture.hush(last);
    std::vector<model::GpuReading> got;
    const int before = loop.posts_run();
    source->read([&](std::vector<model::GpuReading> readings) { got = std::move(readings); });
    loop.run_until([&] { return loop.posts_run() - before >= fixture.posts_when_hushed; });
    loop.advance(fixture.deadline_ns);
    ASSERT_EQ(got.size(), inventory.gpus.size());
    for (const model::GpuReading& reading : got) {
      EXPECT_EQ(reading.answer,
                reading.uuid == last ? model::GpuAnswer::kSilent : model::GpuAnswer::kFine);
    }
  }

  // Gone: nothing is called any more.
  source->take_inventory([](const Result<model::GpuInventory>&) { FAIL() << "it is gone"; });
  source->read([](const std::vector<model::GpuReading>&) { FAIL() << "it is gone"; });
  if (fixture.emit) fixture.emit(first, 43);
  const std::size_t told = events.size();
  source.reset();
  loop.advance(3'600'000'000'000);
  EXPECT_EQ(events.size(), told);
  EXPECT_FALSE(loop.has_timers()) << "a source that is gone holds no timers";
}

}  // namespace berth::discover
