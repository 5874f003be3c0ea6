// In real time, as threads are: a lease of a second, renewed every few milliseconds.
#include "edge/kube/lease_thread.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "base/system_clock.h"

namespace berth::kube {
namespace {

constexpr std::int64_t kThreadMilli = 1'000'000;

// A server with one lease, of which it says when it was written.
struct OneLease {
  std::mutex mutex;
  std::condition_variable changed;
  int version = 0;
  std::string spec = "{}";

  text::HttpResponse serve(const text::HttpRequest& request) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (request.method == "GET" && version == 0) return {404, {}, "{}"};
    if (request.method != "GET") {
      spec = request.body.substr(request.body.rfind("\"spec\":") + 7);
      spec.pop_back();
      ++version;
      changed.notify_all();
    }
    return {200,
            {},
            R"({"metadata":{"name":"l","resourceVersion":")" + std::to_string(version) +
                R"("},"spec":)" + spec + "}"};
  }
  bool reaches(int wanted) {
    std::unique_lock<std::mutex> lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60), [&] { return version >= wanted; });
  }
};

class NearLine final : public Transport {
 public:
  NearLine(Loop& loop, OneLease& lease) : loop_(loop), lease_(lease) {}
  Call send(text::HttpRequest request, const SendOptions&, Answered answered) override {
    loop_.post([this, request = std::move(request), answered = std::move(answered)] {
      answered(lease_.serve(request), nullptr);
    });
    return ++last_;
  }
  Call stream(text::HttpRequest, const StreamOptions&, StreamHandler) override { return 0; }
  void resume(Call) override {}
  void cancel(Call) override {}

 private:
  Loop& loop_;
  OneLease& lease_;
  Call last_ = 0;
};

const ElectorOptions kQuick{.identity = "me",
                            .lease_ns = 3'000 * kThreadMilli,
                            .renew_ns = 2'000 * kThreadMilli,
                            .retry_ns = 5 * kThreadMilli};

TEST(LeaseThread, renews_while_the_home_loop_is_busy) {
  SystemMonotonicClock ticks;
  SystemWallClock wall;
  RunLoop home(ticks, wall);
  OneLease lease;
  bool started = false;
  LeaseThread thread(home, [&](Loop& loop) { return std::make_unique<NearLine>(loop, lease); },
                     Random(1), kQuick, {.started = [&] { started = true; }});
  thread.start();
  // From here on the home loop does nothing, as in a long decision.
  ASSERT_TRUE(lease.reaches(40));
  EXPECT_TRUE(thread.leading());
  EXPECT_FALSE(started) << "calls come on the home loop";
  home.run_ready();
  EXPECT_TRUE(started);
  bool stopped = false;
  thread.stop([&] {
    stopped = true;
    home.stop();
  });
  EXPECT_FALSE(thread.leading());
  home.run();
  EXPECT_TRUE(stopped);
  EXPECT_NE(lease.spec.find(R"("holderIdentity":"")"), std::string::npos) << lease.spec;
}

TEST(LeaseThread, does_not_renew_for_a_loop_that_stands_still) {
  SystemMonotonicClock ticks;
  SystemWallClock wall;
  RunLoop home(ticks, wall);
  OneLease lease;
  std::string why;
  LeaseThread thread(
      home, [&](Loop& loop) { return std::make_unique<NearLine>(loop, lease); }, Random(1),
      {.identity = "me",
       .lease_ns = 300 * kThreadMilli,
       .renew_ns = 200 * kThreadMilli,
       .retry_ns = 5 * kThreadMilli},
      {.stopped =
           [&](const std::string& text) {
             why = text;
             home.stop();
           }},
      nullptr, 100 * kThreadMilli);
  thread.start();
  ASSERT_TRUE(lease.reaches(1));
  while (!thread.leading()) std::this_thread::yield();
  while (thread.leading()) std::this_thread::yield();
  home.run();  // too late: the loop stood still until now
  EXPECT_FALSE(why.empty());
}

TEST(LeaseThread, ends_at_once) {
  SystemMonotonicClock ticks;
  SystemWallClock wall;
  RunLoop home(ticks, wall);
  OneLease lease;
  for (int i = 0; i < 20; ++i) {
    const LeaseThread thread(home,
                             [&](Loop& loop) { return std::make_unique<NearLine>(loop, lease); },
                             Random(1), kQuick, {});
  }
}

}  // namespace
}  // namespace berth::kube
