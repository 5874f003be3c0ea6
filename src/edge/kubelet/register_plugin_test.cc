#include <gtest/gtest.h>

#include <fstream>

#include "edge/kubelet/plugin_for_test.h"

namespace berth::kubelet {
namespace {

using Counts = FakeKubelet::Counts;

TEST(RegisterPlugin, RefusesWhatLeadsElsewhere) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  LoopThread thread;
  const auto told = [&](const std::string& endpoint, const std::string& resource = kGpu) {
    return text_of(register_now(thread, kubelet.socket(), endpoint, kLong, resource));
  };
  for (const char* endpoint : {"../x.sock", "..", ".", "a/b.sock", "/x.sock"}) {
    EXPECT_NE(told(endpoint).find("leads elsewhere"), std::string::npos) << endpoint;
  }
  EXPECT_EQ(told(""),
            "register nvidia.com/gpu: the endpoint is empty; it names the plugin's socket");
  EXPECT_NE(told(std::string(76, 'x')).find("at most 75"), std::string::npos);
  EXPECT_NE(told("a.sock", "gpu").find("'gpu' is not the name of an extended resource"),
            std::string::npos);
  EXPECT_NE(told("a.sock", "/gpu").find("is not the name"), std::string::npos);
  EXPECT_TRUE(kubelet.registrations().empty());
}

TEST(RegisterPlugin, SaysWhyThereIsNoKubelet) {
  TestFolder folder;
  LoopThread thread;
  const std::string missing = text_of(register_now(thread, folder / "kubelet.sock", "a.sock"));
  EXPECT_EQ(missing, "register nvidia.com/gpu: no kubelet listens at " + (folder / "kubelet.sock") +
                         ": it is not running, or its device-plugins folder is not this one");
  std::ofstream(folder / "kubelet.sock") << "x";
  EXPECT_NE(
      text_of(register_now(thread, folder / "kubelet.sock", "a.sock")).find("is not a socket"),
      std::string::npos);

  // A socket that another program serves, and one that nobody does.
  TestPlugin plugin(thread, folder / "other.sock");
  EXPECT_NE(text_of(register_now(thread, folder / "other.sock", "a.sock"))
                .find("does not offer this call"),
            std::string::npos);
  {
    std::filesystem::remove(folder / "kubelet.sock");
    FakeKubelet kubelet(folder.path());
    std::filesystem::create_hard_link(kubelet.socket(), folder / "dead.sock");
  }
  const Status dead = register_now(thread, folder / "dead.sock", "a.sock");
  EXPECT_NE(text_of(dead).find("cannot reach the kubelet at"), std::string::npos) << text_of(dead);
  EXPECT_EQ(dead.error().code(), Code::kUnavailable);
}

TEST(RegisterPlugin, PassesOnWhatTheKubeletSays) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  LoopThread thread;
  kubelet.refuse_registrations("the ResourceName \"nvidia.com/gpu\" is invalid");
  EXPECT_EQ(text_of(register_now(thread, kubelet.socket(), "a.sock")),
            "register nvidia.com/gpu: the kubelet at " + kubelet.socket() +
                " says: the ResourceName \"nvidia.com/gpu\" is invalid");
  kubelet.refuse_registrations("");
  EXPECT_NE(text_of(register_now(thread, kubelet.socket(), "a.sock"))
                .find("failed to get device plugin options"),
            std::string::npos);
  EXPECT_EQ(kubelet.counts(kGpu), Counts{});
}

TEST(RegisterPlugin, EndsAtTheDeadline) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  LoopThread thread;
  kubelet.hang_registrations(true);
  const Status status = register_now(thread, kubelet.socket(), "a.sock", 50'000'000);
  EXPECT_EQ(text_of(status), "register nvidia.com/gpu: the kubelet at " + kubelet.socket() +
                                 " did not answer in time; it may still be starting");
  EXPECT_EQ(status.error().code(), Code::kUnavailable);
}

// The agent is told to stop while a kubelet does not answer.
TEST(RegisterPlugin, LoopMayEndBeforeTheAnswer) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  auto token = std::make_shared<int>(0);
  for (int i = 0; i < 20; ++i) {
    LoopThread thread;
    kubelet.hang_registrations(i % 2 == 0);
    thread.on_loop([&] {
      for (int n = 0; n < 3; ++n) {
        register_plugin(thread.loop(), kubelet.socket(), "a.sock", kGpu, false, kLong,
                        [token](const Status&) {});
      }
    });
  }
  kubelet.hang_registrations(false);
  EXPECT_EQ(token.use_count(), 1);
}

TEST(RegisterPlugin, AfterAKubeletRestartWithANewSocket) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  LoopThread thread;
  {
    TestPlugin plugin(thread, folder / "a.sock");
    ASSERT_EQ(text_of(register_now(thread, kubelet.socket(), "a.sock")), "");
    ASSERT_TRUE(kubelet.wait_until([&] { return kubelet.counts(kGpu) == Counts{8, 8}; }));
    kubelet.stop();
    EXPECT_FALSE(register_now(thread, kubelet.socket(), "a.sock").ok());
    kubelet.start();
    EXPECT_EQ(kubelet.counts(kGpu), (Counts{0, 0}));
    EXPECT_FALSE(plugin.socket_is_ours());
  }
  TestPlugin plugin(thread, folder / "b.sock");
  ASSERT_EQ(text_of(register_now(thread, kubelet.socket(), "b.sock")), "");
  EXPECT_TRUE(kubelet.wait_until([&] { return kubelet.counts(kGpu) == Counts{8, 8}; }));
}

// ---- two plugins for one resource ----

TEST(RegisterPlugin, ANewInstanceTakesOverWithoutADip) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  LoopThread thread;
  TestPlugin first(thread, folder / "first.sock");
  ASSERT_EQ(text_of(register_now(thread, kubelet.socket(), "first.sock")), "");
  ASSERT_TRUE(kubelet.wait_until([&] { return kubelet.counts(kGpu) == Counts{8, 8}; }));
  TestPlugin second(thread, folder / "second.sock");
  ASSERT_EQ(text_of(register_now(thread, kubelet.socket(), "second.sock")), "");
  ASSERT_TRUE(kubelet.wait_until([&] { return kubelet.lists().size() == 2; }));
  bool dipped = false;
  const auto healthy = [&] { dipped |= kubelet.counts(kGpu) != Counts{8, 8}; };
  healthy();
  first.end();
  ASSERT_TRUE(kubelet.wait_until([&] {
    healthy();
    return kubelet.endpoints(kGpu) == 1;
  }));
  EXPECT_FALSE(dipped);
  EXPECT_TRUE(kubelet.admit("ns", "a", "main", kGpu, 2).ok());
  second.end();
  EXPECT_TRUE(kubelet.wait_until([&] { return kubelet.counts(kGpu) == Counts{8, 0}; }));
}

TEST(RegisterPlugin, TheSameSocketTwiceIsRefused) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  LoopThread thread;
  TestPlugin plugin(thread, folder / "a.sock");
  ASSERT_EQ(text_of(register_now(thread, kubelet.socket(), "a.sock")), "");
  EXPECT_NE(text_of(register_now(thread, kubelet.socket(), "a.sock")).find("already connected"),
            std::string::npos);
}

TEST(RegisterPlugin, BeforeSeveralEndpointsTheLastWins) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path(), {.several_endpoints = false});
  LoopThread thread;
  TestPlugin first(thread, folder / "first.sock");
  ASSERT_EQ(text_of(register_now(thread, kubelet.socket(), "first.sock")), "");
  TestPlugin second(thread, folder / "second.sock");
  ASSERT_EQ(text_of(register_now(thread, kubelet.socket(), "second.sock")), "");
  ASSERT_TRUE(kubelet.wait_until([&] { return kubelet.lists().size() == 2; }));
  first.end();
  EXPECT_EQ(kubelet.counts(kGpu), (Counts{8, 8}));
  second.end();
  EXPECT_TRUE(kubelet.wait_until([&] { return kubelet.counts(kGpu) == Counts{8, 0}; }));
}

}  // namespace
}  // namespace berth::kubelet
