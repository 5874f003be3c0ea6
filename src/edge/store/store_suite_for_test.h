// What every Store promises, as one suite: a maker opens a store on the same data again and again.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/run_loop.h"
#include "base/system_clock.h"
#include "edge/store/store.h"

namespace berth::store {

struct StoreLoop {
  SystemMonotonicClock monotonic;
  SystemWallClock wall;
  RunLoop loop{monotonic, wall};

  // Runs until so many answers came; gives up after a minute.
  void run_until(const std::function<bool()>& done) {
    bool late = false;
    Loop::Timer timer = loop.after(60'000'000'000, [&] {
      late = true;
      loop.stop();
    });
    std::function<void()> look = [&] {
      if (done()) return loop.stop();
      loop.after(200'000, look);
    };
    look();
    loop.run();
    loop.cancel(timer);
    ASSERT_FALSE(late) << "the store does not answer";
  }
};

struct Loaded {
  std::map<std::string, std::pair<std::string, std::uint64_t>> entries;
  std::vector<std::string> order;
  std::uint64_t version = 0;
};

inline Loaded load_all(Store& store) {
  Loaded found;
  Result<std::uint64_t> version =
      store.load([&](std::string_view key, std::string_view value, std::uint64_t at) {
        found.order.emplace_back(key);
        found.entries[std::string(key)] = {std::string(value), at};
      });
  EXPECT_TRUE(version.ok());
  if (version.ok()) found.version = *version;
  return found;
}

using StoreMaker = std::function<std::unique_ptr<Store>(Loop&)>;

inline Status commit_and_wait(StoreLoop& on, Store& store, std::vector<Write> writes,
                              std::uint64_t version) {
  Status got;
  bool answered = false;
  store.commit(std::move(writes), version, [&](Status status) {
    got = std::move(status);
    answered = true;
  });
  EXPECT_FALSE(answered);  // never inside the call
  on.run_until([&] { return answered; });
  return got;
}

// make() may be called again after the store it gave is gone; `keeps` says whether data outlive it.
inline void check_store(const StoreMaker& make, bool keeps) {
  StoreLoop on;
  std::unique_ptr<Store> store = make(on.loop);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(load_all(*store).version, 0u);

  // Any bytes, by key, each with the version that wrote it last.
  const std::string odd("\0\xff\n'", 4);
  EXPECT_TRUE(commit_and_wait(on, *store, {{"b", "1"}, {"a", ""}, {odd, odd}}, 5).ok());
  EXPECT_TRUE(
      commit_and_wait(on, *store, {{"a", "2"}, {"b", "", true}, {"gone", "", true}}, 6).ok());
  EXPECT_TRUE(commit_and_wait(on, *store, {}, 9).ok());
  Loaded found = load_all(*store);
  EXPECT_EQ(found.version, 9u);
  EXPECT_EQ(found.order, (std::vector<std::string>{odd, "a"}));
  EXPECT_EQ(found.entries["a"], std::pair(std::string("2"), std::uint64_t{6}));
  EXPECT_EQ(found.entries[odd], std::pair(odd, std::uint64_t{5}));

  // Written twice in one batch: the later one counts.
  EXPECT_TRUE(
      commit_and_wait(on, *store, {{"c", "1"}, {"c", "2"}, {"d", "1"}, {"d", "", true}}, 10).ok());
  found = load_all(*store);
  EXPECT_EQ(found.entries["c"].first, "2");
  EXPECT_FALSE(found.entries.contains("d"));

  // Many at once: answered in order.
  std::vector<std::uint64_t> answers;
  for (std::uint64_t v = 11; v < 1'011; ++v) {
    store->commit({{"n" + std::to_string(v % 100), std::to_string(v)}}, v, [&, v](Status status) {
      EXPECT_TRUE(status.ok());
      answers.push_back(v);
    });
  }
  on.run_until([&] { return answers.size() == 1'000; });
  EXPECT_TRUE(std::is_sorted(answers.begin(), answers.end()));
  EXPECT_EQ(load_all(*store).entries.size(), 103u);

  if (keeps) {
    Loaded before = load_all(*store);
    store->commit({{"last", "unanswered"}}, 2'000, [](Status) { FAIL() << "the store is gone"; });
    store.reset();  // writes what waits
    store = make(on.loop);
    ASSERT_NE(store, nullptr);
    Loaded after = load_all(*store);
    EXPECT_EQ(after.version, 2'000u);
    EXPECT_EQ(after.entries.at("last").first, "unanswered");
    after.entries.erase("last");
    EXPECT_EQ(after.entries, before.entries);
  }

  // A version that falls is a mistake of the owner's; from then on nothing is taken.
  EXPECT_FALSE(commit_and_wait(on, *store, {{"x", "1"}}, 3).ok());
  EXPECT_FALSE(commit_and_wait(on, *store, {{"x", "1"}}, 5'000).ok());
  EXPECT_FALSE(load_all(*store).entries.contains("x"));
}

}  // namespace berth::store
