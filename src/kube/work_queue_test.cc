#include "kube/work_queue.h"

#include <gtest/gtest.h>

namespace berth::kube {
namespace {

constexpr std::int64_t kQueueMs = 1'000'000;

struct QueueWorld {
  explicit QueueWorld(WorkQueueOptions options = {.name = "q"})
      : queue(loop, std::move(options), [this] { ++woken; }, &metrics) {}
  std::string drain() {
    std::string out;
    while (auto item = queue.take()) {
      out += *item + " ";
      queue.done(*item);
    }
    return out;
  }
  MetricsRegistry metrics;
  FakeClock clock;
  SteppedLoop loop{clock};
  int woken = 0;
  WorkQueue queue;
};

TEST(WorkQueue, each_thing_once_highest_priority_first_then_oldest) {
  QueueWorld w;
  for (const char* item : {"a", "b", "a", "c"}) w.queue.add(item);
  w.queue.add("d", 5);
  w.queue.add("c", 7);
  w.queue.add("c", 1);
  EXPECT_EQ(w.woken, 0) << "not inside the call";
  w.loop.run_ready();
  EXPECT_EQ(w.woken, 1);
  EXPECT_EQ(w.queue.waiting(), 4u);
  EXPECT_EQ(w.drain(), "c d a b ");
}

TEST(WorkQueue, added_while_in_work_comes_exactly_once_more) {
  QueueWorld w;
  w.queue.add("a");
  EXPECT_EQ(w.queue.take(), "a");
  w.queue.add("a");
  w.queue.add("a");
  EXPECT_EQ(w.queue.take(), std::nullopt) << "never two at once";
  EXPECT_EQ(w.queue.working(), 1u);
  w.queue.done("a");
  EXPECT_EQ(w.queue.take(), "a");
  w.queue.done("a");
  w.queue.done("a");
  EXPECT_EQ(w.queue.take(), std::nullopt);
}

TEST(WorkQueue, delays_take_the_earliest_and_give_way_to_an_add) {
  QueueWorld w;
  w.queue.add_after("a", 100 * kQueueMs);
  w.queue.add_after("a", 50 * kQueueMs);
  w.queue.add_after("a", 200 * kQueueMs);
  w.queue.add_after("b", 80 * kQueueMs, 3);
  EXPECT_EQ(w.queue.delayed(), 2u);
  w.loop.run_for(49 * kQueueMs);
  EXPECT_EQ(w.drain(), "");
  w.loop.run_for(kQueueMs);
  EXPECT_EQ(w.drain(), "a ");
  w.queue.add("c", 2);
  w.queue.add("b");
  EXPECT_EQ(w.drain(), "b c ") << "with the priority of its delay";
  w.loop.run_for(1'000 * kQueueMs);
  EXPECT_EQ(w.drain(), "");
}

TEST(WorkQueue, retries_wait_twice_as_long_each_time_until_forgotten) {
  QueueWorld w({.name = "q", .longest_ns = 100 * kQueueMs, .qps = 0});
  std::vector<std::int64_t> waits;
  for (int i = 0; i < 7; ++i) {
    if (i == 6) w.queue.forget("a");
    const std::int64_t from = w.clock.ticks_ns();
    w.queue.retry("a");
    ASSERT_TRUE(w.loop.run_until([&] { return w.queue.waiting() > 0; }, 1'000 * kQueueMs));
    waits.push_back((w.clock.ticks_ns() - from) / kQueueMs);
    w.drain();
  }
  EXPECT_EQ(waits, (std::vector<std::int64_t>{5, 10, 20, 40, 80, 100, 5}));
  EXPECT_EQ(w.queue.failures("a"), 1);
}

TEST(WorkQueue, all_retries_together_have_a_rate) {
  QueueWorld w({.name = "q", .qps = 10, .burst = 3});
  for (int i = 0; i < 8; ++i) w.queue.retry(std::to_string(i));
  w.loop.run_for(6 * kQueueMs);
  EXPECT_EQ(w.drain(), "0 1 2 ");
  w.loop.run_for(210 * kQueueMs);
  EXPECT_EQ(w.drain(), "3 4 ");
  w.loop.run_for(1'000 * kQueueMs);
  EXPECT_EQ(w.drain(), "5 6 7 ");
}

TEST(WorkQueue, metrics_and_end) {
  QueueWorld w;
  w.queue.add("a");
  w.loop.run_for(20 * kQueueMs);
  w.queue.take();
  w.loop.run_for(2'000 * kQueueMs);
  w.queue.add("b");
  std::string text = w.metrics.render(MetricFormat::kPrometheusText);
  for (const char* line :
       {R"(berth_kube_queue_depth{queue="q"} 1)", R"(berth_kube_queue_adds_total{queue="q"} 2)",
        R"(berth_kube_queue_wait_seconds_bucket{queue="q",le="0.1"} 1)"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
  EXPECT_NE(text.find(R"(berth_kube_queue_unfinished_seconds{queue="q"} 2)"), std::string::npos)
      << text;
  {
    WorkQueue gone(w.loop, {.name = "x"}, [] { FAIL(); });
    gone.add("a");
    gone.add_after("b", 5);
  }
  w.loop.run_for(1'000 * kQueueMs);
}

}  // namespace
}  // namespace berth::kube
