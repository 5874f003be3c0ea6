// The informer's copy is right whatever the server does.
#include <gtest/gtest.h>

#include <cstdlib>

#include "edge/kube/chaos_server_for_test.h"
#include "edge/kube/informer.h"
#include "text/json.h"

namespace berth::kube {
namespace {

constexpr std::int64_t kMilli = 1'000'000;
constexpr std::int64_t kMinute = 60'000 * kMilli;

class ChaosRun {
 public:
  ChaosRun(std::uint64_t seed, Keep keep)
      : random_(seed),
        server_(loop_, random_.split("server")),
        client_(server_, loop_, random_.split("client")),
        informer_(
            client_, random_.split("informer"),
            {.resource = resources::pods(), .keep = keep, .watch_list = random_.chance(3, 4)}) {
    informer_.add_handler(
        [this](const ObjectPtr& before, const ObjectPtr& after) { told(before, after); });
    informer_.on_synced([this] { told_synced_ = true; });
  }

  // The first lists are broken off again and again, while objects come and go.
  void start_badly() {
    server_.cut_lists(60);
    for (int i = 0; i < 9; ++i) server_.write("p" + std::to_string(i));
    informer_.start();
    for (int step = 0; step < 40 && !informer_.synced(); ++step) {
      loop_.run_for(random_.between(0, 3'000) * kMilli);
      change();
      check_mirror();
      if (::testing::Test::HasFailure()) return;
    }
    server_.cut_lists(0);
  }
  int deleted_early() const { return deleted_early_; }

  // The server is well again: the copy is the truth in the end.
  void settle() {
    server_.calm();
    loop_.run_for(15 * kMinute);
    check_mirror();
    EXPECT_TRUE(informer_.synced());
    ChaosServer::Items copy;
    for (const ObjectPtr& o : informer_.all()) {
      copy[o->key.name] = {o->uid, std::stoi(o->version)};
    }
    EXPECT_TRUE(copy == server_.items) << show(copy) << "\ninstead of\n" << show(server_.items);
  }

  void run() {
    for (int i = 0; i < 5; ++i) server_.write("p" + std::to_string(i));
    informer_.start();
    for (int step = 0; step < 120; ++step) {
      loop_.run_for(random_.between(0, 3'000) * kMilli);
      change();
      if (random_.chance(1, 25)) server_.compact();
      if (random_.chance(1, 40)) loop_.run_for(12 * kMinute);  // long enough for every deadline
      check_mirror();
      if (::testing::Test::HasFailure()) return;
    }
    settle();
    // Quiet on both sides: nothing but watches that end and begin again.
    const int before = server_.requests();
    loop_.run_for(60 * kMinute);
    EXPECT_LE(server_.requests() - before, 15);
  }

 private:
  // One change, by somebody else or by us; the answer to a write of ours may be late.
  void change() {
    const std::string name = "p" + std::to_string(random_.below(9));
    const bool ours = random_.chance(1, 2);
    const std::int64_t late = random_.chance(1, 3) ? random_.between(0, 2'000) * kMilli : 0;
    if (server_.items.contains(name) && random_.chance(1, 3)) {
      const std::string uid = server_.erase(name);
      if (!ours) return;
      loop_.after(late, [this, name, uid] { informer_.absorb_removed({"d", name}, uid); });
      return;
    }
    const std::string json = server_.write(name);
    if (!ours) return;
    loop_.after(late, [this, json] {
      auto parsed = text::parse_json(json);
      informer_.absorb(std::move(parsed).value());
    });
  }

  // Changes are told in an order that makes sense.
  void told(const ObjectPtr& before, const ObjectPtr& after) {
    const Object& object = after ? *after : *before;
    auto known = mirror_.find(object.key.name);
    ASSERT_TRUE(informer_.synced() || informer_.options().keep == Keep::kKeys);
    if (!told_synced_ && !after) {
      ++deleted_early_;
      auto there = server_.items.find(object.key.name);
      EXPECT_TRUE(there == server_.items.end() || there->second.uid != object.uid)
          << "is there: " << object.key.name;
    }
    if (!before) {
      EXPECT_EQ(known, mirror_.end()) << "added twice: " << object.key.name;
    } else {
      ASSERT_NE(known, mirror_.end()) << "was not there: " << object.key.name;
      EXPECT_EQ(known->second.uid, object.uid);
    }
    if (before && after) {
      EXPECT_LT(known->second.version, std::stoi(after->version)) << "went back";
    }
    if (after) {
      EXPECT_TRUE(after->root().is_object());
      mirror_[object.key.name] = {object.uid, std::stoi(object.version)};
    } else {
      mirror_.erase(known);
    }
  }
  void check_mirror() {
    ChaosServer::Items copy;
    for (const ObjectPtr& o : informer_.all()) {
      copy[o->key.name] = {o->uid, std::stoi(o->version)};
    }
    EXPECT_TRUE(copy == mirror_) << "what was told is not what is there";
  }
  static std::string show(const ChaosServer::Items& items) {
    std::string out;
    for (const auto& [name, item] : items) {
      out += name + " " + item.uid + "@" + std::to_string(item.version) + ", ";
    }
    return out;
  }

  Random random_;
  FakeClock clock_{1'700'000'000'000'000'000};
  SteppedLoop loop_{clock_};
  ChaosServer server_;
  Client client_;
  Informer informer_;
  ChaosServer::Items mirror_;
  bool told_synced_ = false;
  int deleted_early_ = 0;
};

constexpr std::uint64_t kSoakSeeds = 20'000;

TEST(InformerChaos, the_copy_is_right_whatever_the_server_does) {
  const std::uint64_t seeds = std::getenv("BERTH_SOAK") ? kSoakSeeds : 60;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ChaosRun(seed, seed % 2 == 0 ? Keep::kWhole : Keep::kKeys).run();
    if (HasFailure()) return;
  }
}

TEST(InformerChaos, first_lists_that_are_broken_off_leave_nothing_behind) {
  const std::uint64_t seeds = std::getenv("BERTH_SOAK") ? kSoakSeeds : 150;
  int deleted_early = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ChaosRun run(seed, seed % 4 == 0 ? Keep::kWhole : Keep::kKeys);
    run.start_badly();
    if (!HasFailure()) run.settle();  // without another list, which would mend it
    if (HasFailure()) return;
    deleted_early += run.deleted_early();
  }
  EXPECT_GT(deleted_early, 0) << "no seed came to what this is about";
}

}  // namespace
}  // namespace berth::kube
