#include "base/loop.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "base/run_loop.h"
#include "base/system_clock.h"

namespace berth {
namespace {

TEST(SteppedLoop, RunsWorkInOrderAndTimersWhenTheyAreDue) {
  FakeClock clock;
  SteppedLoop loop(clock);
  std::string seen;
  loop.after(20, [&] { seen += "c"; });
  loop.after(10, [&] {
    seen += "b";
    loop.post([&] { seen += "x"; });
  });
  const Loop::Timer gone = loop.after(15, [&] { seen += "!"; });
  loop.post([&] { seen += "a"; });
  loop.cancel(gone);
  loop.cancel(gone);
  loop.cancel(0);
  loop.run_for(10);
  EXPECT_EQ(seen, "abx");
  EXPECT_EQ(clock.ticks_ns(), 10);
  loop.run_for(100);
  EXPECT_EQ(seen, "abxc");
  EXPECT_EQ(clock.ticks_ns(), 110);
  EXPECT_TRUE(loop.idle());
}

TEST(SteppedLoop, EqualTimersRunInTheOrderTheyWereSet) {
  FakeClock clock;
  SteppedLoop loop(clock);
  std::string seen;
  for (char name : {'a', 'b', 'c'}) loop.after(5, [&seen, name] { seen += name; });
  loop.run_for(5);
  EXPECT_EQ(seen, "abc");
}

TEST(SteppedLoop, StopsWhereTheConditionHolds) {
  FakeClock clock;
  SteppedLoop loop(clock);
  int count = 0;
  std::function<void()> again = [&] {
    ++count;
    loop.after(10, again);
  };
  loop.after(-5, again);
  EXPECT_TRUE(loop.run_until([&] { return count == 3; }, 1000));
  EXPECT_EQ(clock.ticks_ns(), 20);
  EXPECT_FALSE(loop.run_until([&] { return count == 100; }, 50));
  EXPECT_EQ(clock.ticks_ns(), 70);
}

TEST(RunLoop, WorkFromAnotherThreadRunsHereInOrder) {
  SystemMonotonicClock monotonic;
  SystemWallClock wall;
  RunLoop loop(monotonic, wall);
  std::vector<int> seen;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) loop.post([&seen, i] { seen.push_back(i); });
    loop.post([&] { loop.stop(); });
  });
  loop.run();
  other.join();
  ASSERT_EQ(seen.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST(RunLoop, TimersFireAndCancelledOnesDoNot) {
  SystemMonotonicClock monotonic;
  SystemWallClock wall;
  RunLoop loop(monotonic, wall);
  std::string seen;
  loop.after(2'000'000, [&] {
    seen += "b";
    loop.stop();
  });
  const Loop::Timer gone = loop.after(1'000'000, [&] { seen += "!"; });
  loop.post([&] { seen += "a"; });
  loop.cancel(gone);
  loop.run();
  EXPECT_EQ(seen, "ab");
  loop.post([&] { seen += "c"; });
  EXPECT_FALSE(loop.run_ready());  // stopped: what is posted waits for the next run()
}

}  // namespace
}  // namespace berth
