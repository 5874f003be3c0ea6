#include "edge/store/memory_store.h"

#include "edge/store/store_suite_for_test.h"

namespace berth::store {
namespace {

TEST(MemoryStore, KeepsTheSuite) {
  check_store([](Loop& loop) { return std::make_unique<MemoryStore>(loop); }, false);
}

TEST(MemoryStore, SlowAndFullOnRequest) {
  FakeClock clock;
  SteppedLoop loop(clock);
  MemoryStore store(loop);
  std::vector<std::pair<int, bool>> answers;
  auto commit = [&](int v) {
    store.commit({{"k" + std::to_string(v), "v"}}, static_cast<std::uint64_t>(v),
                 [&answers, v](Status status) { answers.push_back({v, status.ok()}); });
  };
  store.delay(1'000);
  commit(1);
  store.delay(0);  // the next one still waits behind it
  commit(2);
  loop.run_ready();
  EXPECT_TRUE(answers.empty());
  loop.run_for(1'000);
  EXPECT_EQ(answers, (std::vector<std::pair<int, bool>>{{1, true}, {2, true}}));
  store.fail_after(1);
  for (int v : {3, 4, 5}) commit(v);
  loop.run_ready();
  EXPECT_EQ(answers.back(), std::pair(5, false));
  EXPECT_EQ(answers[2], std::pair(3, true));
  EXPECT_EQ(load_all(store).version, 3u);
  EXPECT_FALSE(load_all(store).entries.contains("k4"));
}

}  // namespace
}  // namespace berth::store
