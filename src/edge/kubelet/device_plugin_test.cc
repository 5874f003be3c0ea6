#include "edge/kubelet/device_plugin.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "edge/kubelet/plugin_for_test.h"

namespace berth::kubelet {
namespace {

using Counts = FakeKubelet::Counts;

std::vector<PluginDevice> with_sick(int sick) {
  std::vector<PluginDevice> devices = eight_devices();
  for (int i = 0; i < sick; ++i) devices[static_cast<std::size_t>(i)].healthy = false;
  return devices;
}

// A handler that keeps what it has to answer.
struct Kept {
  std::vector<std::function<void(Result<model::ContainerGrant>)>> answers;  // the loop's
  std::atomic<int> asked = 0;

  PluginHandler handler() {
    PluginHandler keeps = plain_handler();
    keeps.allocate = [this](const std::vector<std::string>&, auto done) {
      answers.push_back(std::move(done));
      ++asked;
    };
    return keeps;
  }
};

TEST(DevicePlugin, RegistersAndIsCounted) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  LoopThread thread;
  TestPlugin plugin(thread, folder / "gpu.sock");
  EXPECT_EQ(text_of(register_now(thread, kubelet.socket(), "gpu.sock")), "");
  ASSERT_TRUE(kubelet.wait_until([&] { return kubelet.counts(kGpu) == Counts{8, 8}; }));
  const auto registrations = kubelet.registrations();
  ASSERT_EQ(registrations.size(), 1U);
  EXPECT_EQ(registrations[0].version, "v1beta1");
  EXPECT_EQ(registrations[0].endpoint, "gpu.sock");
  EXPECT_FALSE(registrations[0].pre_start);
  EXPECT_TRUE(registrations[0].preferred);
  EXPECT_EQ(kubelet.lists().front().devices, eight_devices());
}

TEST(DevicePlugin, HealthIsToldAtOnceAndEqualListsAreNotSent) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  LoopThread thread;
  TestPlugin plugin(thread, folder / "gpu.sock");
  ASSERT_EQ(text_of(register_now(thread, kubelet.socket(), "gpu.sock")), "");
  ASSERT_TRUE(kubelet.wait_until([&] { return kubelet.counts(kGpu) == Counts{8, 8}; }));
  for (const int sick : {1, 0, 3, 8, 2, 0}) {
    plugin.update(with_sick(sick));
    plugin.update(with_sick(sick));
    ASSERT_TRUE(kubelet.wait_until([&] { return kubelet.counts(kGpu) == Counts{8, 8 - sick}; }));
  }
  const auto lists = kubelet.lists();
  for (std::size_t i = 1; i < lists.size(); ++i) EXPECT_NE(lists[i].devices, lists[i - 1].devices);
  EXPECT_EQ(lists.size(), 7U);
}

TEST(DevicePlugin, SlowReaderMissesListsButNotTheLast) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  LoopThread thread;
  TestPlugin plugin(thread, folder / "gpu.sock");
  kubelet.pause_reading(true);
  ASSERT_EQ(text_of(register_now(thread, kubelet.socket(), "gpu.sock")), "");
  // Enough bytes to fill what the connection buffers, many times over.
  std::vector<PluginDevice> many;
  for (int i = 0; i < 2'000; ++i) {
    many.push_back({std::string(50, 'x') + std::to_string(i), true, 0});
  }
  const int updates = 60;
  for (int i = 0; i < updates; ++i) {
    many[0].healthy = i % 2 == 0;
    many[1].numa = i;
    plugin.update(many);
  }
  kubelet.pause_reading(false);
  ASSERT_TRUE(kubelet.wait_until([&] {
    const auto lists = kubelet.lists();
    return !lists.empty() && lists.back().devices == many;
  }));
  EXPECT_LT(kubelet.lists().size(), static_cast<std::size_t>(updates));
}

TEST(DevicePlugin, AllocatesSeveralContainersInOrder) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  LoopThread thread;
  PluginHandler handler = plain_handler();
  handler.allocate = [&](std::vector<std::string> ids, auto done) {
    // Later, and in a turn of its own: the next container waits for it.
    thread.loop().post([ids = std::move(ids), done] {
      model::ContainerGrant grant;
      grant.environment["NVIDIA_VISIBLE_DEVICES"] = ids.front();
      grant.annotations["cdi.k8s.io/x"] = ids.back();
      grant.mounts = {{"/in", "/out", true}, {"/rw", "/host", false}};
      grant.nodes = {{"/dev/nvidia0", "/dev/null", "rw"}};
      grant.cdi = ids;
      done(std::move(grant));
    });
  };
  TestPlugin plugin(thread, folder / "gpu.sock", handler);
  ASSERT_EQ(text_of(register_now(thread, kubelet.socket(), "gpu.sock")), "");
  const auto grants = kubelet.allocate(kGpu, {{"a", "b"}, {"c"}, {"d", "d"}});
  ASSERT_TRUE(grants.ok()) << grants.error().to_string();
  ASSERT_EQ(grants->size(), 3U);
  EXPECT_EQ((*grants)[0].cdi, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ((*grants)[0].environment.at("NVIDIA_VISIBLE_DEVICES"), "a");
  EXPECT_EQ((*grants)[0].annotations.at("cdi.k8s.io/x"), "b");
  EXPECT_EQ((*grants)[1].cdi, (std::vector<std::string>{"c"}));
  EXPECT_EQ((*grants)[2].cdi, (std::vector<std::string>{"d", "d"}));
  EXPECT_EQ((*grants)[2].mounts, (std::vector<model::ContainerGrant::Mount>{
                                     {"/in", "/out", true}, {"/rw", "/host", false}}));
  EXPECT_EQ((*grants)[2].nodes,
            (std::vector<model::ContainerGrant::Node>{{"/dev/nvidia0", "/dev/null", "rw"}}));
  EXPECT_EQ(kubelet.allocate(kGpu, {})->size(), 0U);
  EXPECT_FALSE(kubelet.allocate(kGpu, std::vector<std::vector<std::string>>(129)).ok());
}

TEST(DevicePlugin, ErrorsReachTheKubeletAsTheirText) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  LoopThread thread;
  PluginHandler handler = plain_handler();
  handler.allocate = [](const std::vector<std::string>& ids, const auto& done) {
    if (ids.front() == "long") return done(Error(Code::kInternal, std::string(5'000, 'x')));
    done(invalid("ids[0]: '" + ids.front() + "' is no device of this node").context("allocate"));
  };
  handler.prefer = [](const auto&, const auto&, int, const auto& done) {
    done(Error(Code::kUnavailable, "no inventory yet"));
  };
  handler.pre_start = [](const std::vector<std::string>& ids, const auto& done) {
    if (ids.empty()) return done({});
    done(Error(Code::kConflict, "in use"));
  };
  TestPlugin plugin(thread, folder / "gpu.sock", handler);
  ASSERT_EQ(text_of(register_now(thread, kubelet.socket(), "gpu.sock")), "");
  EXPECT_TRUE(kubelet.registrations().front().pre_start);
  EXPECT_EQ(kubelet.allocate(kGpu, {{"x"}}).error().message(),
            "allocate: ids[0]: 'x' is no device of this node");
  EXPECT_EQ(kubelet.allocate(kGpu, {{"long"}}).error().message(), std::string(1'024, 'x'));
  EXPECT_EQ(kubelet.prefer(kGpu, {"a"}, {}, 1).error().message(), "no inventory yet");
  EXPECT_EQ(text_of(kubelet.pre_start(kGpu, {"a"})), "in use");
  EXPECT_EQ(text_of(kubelet.pre_start(kGpu, {})), "");
}

TEST(DevicePlugin, WhatIsNotOfferedIsSaid) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  LoopThread thread;
  PluginHandler handler = plain_handler();
  handler.prefer = nullptr;
  TestPlugin plugin(thread, folder / "gpu.sock", handler);
  ASSERT_EQ(text_of(register_now(thread, kubelet.socket(), "gpu.sock")), "");
  EXPECT_FALSE(kubelet.registrations().front().preferred);
  EXPECT_FALSE(kubelet.prefer(kGpu, {"a"}, {}, 1).ok());
  EXPECT_EQ(text_of(kubelet.pre_start(kGpu, {"a"})), "");  // nothing to do before the start
}

TEST(DevicePlugin, AdmitsAsTheKubeletDoes) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  LoopThread thread;
  TestPlugin plugin(thread, folder / "gpu.sock");
  ASSERT_EQ(text_of(register_now(thread, kubelet.socket(), "gpu.sock")), "");
  ASSERT_TRUE(kubelet.wait_until([&] { return kubelet.counts(kGpu) == Counts{8, 8}; }));
  const auto two = kubelet.admit("ns", "a", "main", kGpu, 2);
  ASSERT_TRUE(two.ok()) << two.error().to_string();
  EXPECT_EQ(two->cdi, (std::vector<std::string>{"nvidia.com/gpu=GPU-6", "nvidia.com/gpu=GPU-7"}));
  EXPECT_EQ(kubelet.admit("ns", "b", "main", kGpu, 7).error().message(),
            "requested number of devices unavailable for nvidia.com/gpu. Requested: 7, "
            "Available: 6");
  EXPECT_EQ(kubelet.admit("ns", "b", "main", kGpu, 6)->cdi.size(), 6U);
  kubelet.release("ns", "a");
  EXPECT_EQ(kubelet.admit("ns", "c", "main", kGpu, 2)->cdi, two->cdi);
}

TEST(DevicePlugin, TellsHowManyStreamsAreOpen) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  LoopThread thread;
  std::atomic<int> open = -1;
  PluginHandler handler = plain_handler();
  handler.streams = [&](int now) { open = now; };
  TestPlugin plugin(thread, folder / "gpu.sock", handler);
  ASSERT_EQ(text_of(register_now(thread, kubelet.socket(), "gpu.sock")), "");
  ASSERT_TRUE(kubelet.wait_until([&] { return open == 1; }));
  // An open stream need not have brought the list yet.
  ASSERT_TRUE(kubelet.wait_until([&] { return kubelet.counts(kGpu) == Counts{8, 8}; }));
  kubelet.close_streams();
  ASSERT_TRUE(kubelet.wait_until([&] { return open == 0; }));
  EXPECT_TRUE(kubelet.wait_until([&] { return kubelet.counts(kGpu) == Counts{8, 0}; }));
  kubelet.pass(299'000'000'000);
  EXPECT_EQ(kubelet.counts(kGpu), (Counts{8, 0}));
  kubelet.pass(2'000'000'000);
  EXPECT_EQ(kubelet.counts(kGpu), (Counts{-1, -1}));
  ASSERT_EQ(text_of(register_now(thread, kubelet.socket(), "gpu.sock")), "");
  EXPECT_TRUE(kubelet.wait_until([&] { return open == 1; }));
  EXPECT_TRUE(kubelet.wait_until([&] { return kubelet.counts(kGpu) == Counts{8, 8}; }));
}

TEST(DevicePlugin, AcceptsThePathAsAuthority) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path(), {.path_as_authority = true});
  LoopThread thread;
  TestPlugin plugin(thread, folder / "gpu.sock");
  EXPECT_EQ(text_of(register_now(thread, kubelet.socket(), "gpu.sock")), "");
  EXPECT_TRUE(kubelet.wait_until([&] { return kubelet.counts(kGpu) == Counts{8, 8}; }));
  EXPECT_TRUE(kubelet.admit("ns", "a", "main", kGpu, 8).ok());
}

// ---- the end, at bad moments ----

TEST(DevicePlugin, EndsWhileCallsAreUnderWay) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  LoopThread thread;
  Kept kept;
  TestPlugin plugin(thread, folder / "gpu.sock", kept.handler());
  ASSERT_EQ(text_of(register_now(thread, kubelet.socket(), "gpu.sock")), "");
  std::vector<std::future<std::string>> calls;
  for (int i = 0; i < 4; ++i) {
    calls.push_back(std::async(std::launch::async, [&] {
      return kubelet.allocate(kGpu, {{"a"}, {"b"}}).error().message();
    }));
  }
  ASSERT_TRUE(kubelet.wait_until([&] { return kept.asked == 4; }));
  plugin.end();
  for (auto& call : calls) EXPECT_EQ(call.get(), "the device plugin ends");
  // Too late: nobody is asked for the second container, and nothing is answered.
  thread.on_loop([&] {
    for (const auto& done : kept.answers) done(model::ContainerGrant{});
  });
  EXPECT_EQ(kept.asked, 4);
  EXPECT_TRUE(kubelet.wait_until([&] { return kubelet.counts(kGpu) == Counts{8, 0}; }));
  EXPECT_FALSE(std::filesystem::exists(folder / "gpu.sock"));
}

TEST(DevicePlugin, EndsInsideItsOwnHandler) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  LoopThread thread;
  std::unique_ptr<DevicePlugin> plugin;
  PluginHandler handler = plain_handler();
  auto token = std::make_shared<int>(1);
  handler.allocate = [&plugin, token](const std::vector<std::string>&, const auto& done) {
    plugin.reset();
    EXPECT_EQ(*token, 1);  // what the handler holds is still there
    done(model::ContainerGrant{});
  };
  thread.on_loop([&] {
    plugin =
        DevicePlugin::start(thread.loop(), folder / "gpu.sock", eight_devices(), handler).value();
  });
  ASSERT_EQ(text_of(register_now(thread, kubelet.socket(), "gpu.sock")), "");
  EXPECT_FALSE(kubelet.allocate(kGpu, {{"a"}}).ok());
  thread.on_loop([&] { EXPECT_EQ(plugin, nullptr); });
  handler = {};
  thread.on_loop([] {});
  EXPECT_EQ(token.use_count(), 1);
}

TEST(DevicePlugin, LoopMayStopBeforeThePluginEnds) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  std::future<bool> call;
  {
    auto thread = std::make_unique<LoopThread>();
    std::unique_ptr<DevicePlugin> plugin;
    Kept kept;
    thread->on_loop([&] {
      plugin =
          DevicePlugin::start(thread->loop(), folder / "gpu.sock", eight_devices(), kept.handler())
              .value();
    });
    ASSERT_EQ(text_of(register_now(*thread, kubelet.socket(), "gpu.sock")), "");
    ASSERT_TRUE(kubelet.wait_until([&] { return kubelet.counts(kGpu) == Counts{8, 8}; }));
    thread->stop();
    call = std::async(std::launch::async, [&] { return kubelet.allocate(kGpu, {{"a"}}).ok(); });
    plugin.reset();
  }
  EXPECT_FALSE(call.get());
}

// A kubelet that is killed leaves calls behind; what is answered later goes nowhere.
TEST(DevicePlugin, KubeletGoesAwayDuringAllocate) {
  TestFolder folder;
  auto kubelet = std::make_unique<FakeKubelet>(folder.path());
  LoopThread thread;
  Kept kept;
  std::atomic<int> open = -1;
  PluginHandler handler = kept.handler();
  handler.streams = [&](int now) { open = now; };
  TestPlugin plugin(thread, folder / "gpu.sock", handler);
  ASSERT_EQ(text_of(register_now(thread, kubelet->socket(), "gpu.sock")), "");
  auto call = std::async(std::launch::async, [&] { return kubelet->allocate(kGpu, {{"a"}}).ok(); });
  ASSERT_TRUE(kubelet->wait_until([&] { return kept.asked == 1 && open == 1; }));
  kubelet->stop();
  ASSERT_TRUE(kubelet->wait_until([&] { return open == 0; }));
  thread.on_loop([&] { kept.answers.front()(model::ContainerGrant{}); });
  call.get();
}

// ---- the socket ----

TEST(DevicePlugin, SocketIsForTheOwnerAlone) {
  TestFolder folder;
  LoopThread thread;
  TestPlugin plugin(thread, folder / "gpu.sock");
  struct stat found{};
  ASSERT_EQ(lstat((folder / "gpu.sock").c_str(), &found), 0);
  EXPECT_TRUE(S_ISSOCK(found.st_mode));
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
  EXPECT_TRUE(plugin.socket_is_ours());
}

TEST(DevicePlugin, TakesOverAStaleSocketAndLeavesAnothersAlone) {
  TestFolder folder;
  LoopThread thread;
  TestPlugin first(thread, folder / "gpu.sock");
  TestPlugin second(thread, folder / "gpu.sock");
  EXPECT_FALSE(first.socket_is_ours());
  EXPECT_TRUE(second.socket_is_ours());
  first.end();
  EXPECT_TRUE(second.socket_is_ours());
  second.end();
  EXPECT_FALSE(std::filesystem::exists(folder / "gpu.sock"));
}

TEST(DevicePlugin, NoticesThatItsSocketIsGone) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  LoopThread thread;
  TestPlugin plugin(thread, folder / "gpu.sock");
  EXPECT_TRUE(plugin.socket_is_ours());
  kubelet.stop();
  kubelet.start();
  EXPECT_FALSE(plugin.socket_is_ours());
}

TEST(DevicePlugin, RefusesBadPathsAndDevices) {
  TestFolder folder;
  LoopThread thread;
  std::ofstream(folder / "file.sock") << "precious";
  const auto start = [&](const std::string& path, std::vector<PluginDevice> devices) {
    std::string text = "started";
    thread.on_loop([&] {
      auto started = DevicePlugin::start(thread.loop(), path, std::move(devices), plain_handler());
      if (!started.ok()) text = started.error().to_string();
    });
    return text;
  };
  const std::string path = folder / "gpu.sock";
  EXPECT_EQ(start(path, {}), "started");
  EXPECT_EQ(start("gpu.sock", {}), "'gpu.sock' is not an absolute path");
  EXPECT_EQ(start(folder / "file.sock", {}),
            folder / "file.sock" + " is not a socket; it is left alone");
  EXPECT_EQ(std::filesystem::file_size(folder / "file.sock"), 8U);
  EXPECT_EQ(start(folder / "no/gpu.sock", {}),
            "cannot listen at " + (folder / "no/.pu.sock") + ": No such file or directory");
  const std::string longest = folder / std::string(107 - folder.path().size() - 1, 'x');
  EXPECT_EQ(start(longest, {}), "started");
  EXPECT_NE(start(longest + "x", {}).find("has 108 bytes; a unix socket's path has at most 107"),
            std::string::npos);
  EXPECT_EQ(start(folder / "%41?#.sock", {}), "started");
  EXPECT_EQ(start(path, {{"a"}, {"b"}, {"a"}}), "two devices have id 'a'");
  EXPECT_EQ(start(path, {{""}}), "a device without id");
  EXPECT_EQ(start(path, {{std::string(63, 'x')}}), "started");
  EXPECT_NE(start(path, {{std::string(64, 'x')}}).find("has 64 bytes"), std::string::npos);
  EXPECT_EQ(start(path, {{"\xff"}}), "a device id is not UTF-8");
}

TEST(DevicePlugin, BadDevicesOfAnUpdateAreLeftOut) {
  TestFolder folder;
  FakeKubelet kubelet(folder.path());
  LoopThread thread;
  TestPlugin plugin(thread, folder / "gpu.sock");
  ASSERT_EQ(text_of(register_now(thread, kubelet.socket(), "gpu.sock")), "");
  plugin.update({{"a"}, {"a", false}, {""}, {"b", false}});
  EXPECT_TRUE(kubelet.wait_until([&] { return kubelet.counts(kGpu) == Counts{2, 1}; }));
}

}  // namespace
}  // namespace berth::kubelet
