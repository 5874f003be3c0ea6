#include "base/bounded_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace berth {
namespace {

TEST(BoundedQueue, GivesBackInOrder) {
  BoundedQueue<int> queue(3);
  EXPECT_TRUE(queue.try_push(1));
  EXPECT_TRUE(queue.try_push(2));
  EXPECT_EQ(queue.try_pop(), 1);
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_EQ(queue.try_pop(), std::nullopt);
}

TEST(BoundedQueue, RefusesAtTheBoundCountsItAndLeavesTheValue) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  EXPECT_TRUE(queue.try_push(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  EXPECT_FALSE(queue.try_push(std::move(second)));
  ASSERT_NE(second, nullptr);  // NOLINT(bugprone-use-after-move): the promise under test
  EXPECT_EQ(queue.refused(), 1U);
  EXPECT_EQ(queue.size(), queue.bound());
  EXPECT_NE(queue.pop(), std::nullopt);
  EXPECT_TRUE(queue.try_push(std::move(second)));
}

TEST(BoundedQueue, CloseKeepsWhatWasAcceptedAndRefusesTheRest) {
  BoundedQueue<int> queue(4);
  EXPECT_TRUE(queue.try_push(1));
  queue.close();
  queue.close();
  EXPECT_TRUE(queue.closed());
  EXPECT_FALSE(queue.try_push(2));
  EXPECT_EQ(queue.refused(), 1U);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), std::nullopt);
}

TEST(BoundedQueue, PopAllTakesEverythingOnce) {
  BoundedQueue<int> queue(4);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(queue.try_push(i));
  EXPECT_EQ(queue.pop_all(), (std::deque<int>{0, 1, 2, 3}));
  EXPECT_TRUE(queue.pop_all().empty());
  EXPECT_TRUE(queue.try_push(5));
}

TEST(BoundedQueue, CloseWakesAWaitingConsumer) {
  BoundedQueue<int> queue(1);
  std::optional<int> got = 7;
  std::thread consumer([&] { got = queue.pop(); });
  queue.close();
  consumer.join();
  EXPECT_EQ(got, std::nullopt);
}

TEST(BoundedQueue, ManyProducersLoseNothingThatWasAccepted) {
  constexpr int kProducers = 4;
  constexpr int kEach = 5'000;
  BoundedQueue<int> queue(64);
  std::vector<int> next_of(kProducers, 0);
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&queue, p] {
      for (int i = 0; i < kEach; ++i) {
        while (!queue.try_push(p * kEach + i)) std::this_thread::yield();
      }
    });
  }
  for (int received = 0; received < kProducers * kEach; ++received) {
    std::optional<int> value = queue.pop();
    ASSERT_TRUE(value.has_value());
    auto producer = static_cast<std::size_t>(*value / kEach);
    EXPECT_EQ(*value % kEach, next_of[producer]++);  // each producer's own order is kept
  }
  for (auto& producer : producers) producer.join();
  EXPECT_EQ(queue.size(), 0U);
}

TEST(BoundedQueueDeath, NeedsRoom) { EXPECT_DEATH(BoundedQueue<int>(0), "without room"); }

}  // namespace
}  // namespace berth
