#include "edge/kubelet/pod_resources.h"

#include <gtest/gtest.h>

#include "edge/kubelet/plugin_for_test.h"

namespace berth::kubelet {
namespace {

using Held = std::vector<model::HeldDevices>;

class PodResourcesTest : public testing::Test {
 protected:
  PodResourcesTest() : kubelet_(folder_.path()) { open(kubelet_.pod_resources_socket()); }
  ~PodResourcesTest() override { close(); }

  void open(const std::string& path) {
    thread_.on_loop([&] { client_ = std::make_unique<PodResources>(thread_.loop(), path); });
  }
  void close() {
    thread_.on_loop([&] { client_.reset(); });
  }
  Result<Held> list(std::int64_t deadline_ns = kLong) {
    std::promise<Result<Held>> answer;
    thread_.on_loop([&] {
      client_->list(deadline_ns, [&](Result<Held> held) { answer.set_value(std::move(held)); });
    });
    return answer.get_future().get();
  }
  Result<Held> get(const std::string& ns, const std::string& pod) {
    std::promise<Result<Held>> answer;
    thread_.on_loop([&] {
      client_->get(ns, pod, kLong, [&](Result<Held> held) { answer.set_value(std::move(held)); });
    });
    return answer.get_future().get();
  }

  TestFolder folder_;
  FakeKubelet kubelet_;
  LoopThread thread_;
  std::unique_ptr<PodResources> client_;
};

TEST_F(PodResourcesTest, OneEntryForEachContainerAndResource) {
  EXPECT_EQ(list().value(), Held{});
  const model::HeldDevices a{"ns-a", "p", "main", kGpu, {"GPU-1", "GPU-2", "GPU-3"}};
  const model::HeldDevices nic{"ns-a", "p", "main", "rdma/nic", {"mlx5_0"}};
  const model::HeldDevices b{"ns-b", "p", "side", kGpu, {"GPU-0"}};
  for (const auto& held : {b, nic, a}) kubelet_.hold(held);
  EXPECT_EQ(list().value(), (Held{a, nic, b}));
  EXPECT_EQ(get("ns-a", "p").value(), (Held{a, nic}));
  EXPECT_EQ(get("ns-b", "p").value(), (Held{b}));
  kubelet_.release("ns-a", "p");
  EXPECT_EQ(list().value(), Held{b});
  const auto gone = get("ns-a", "p");
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code(), Code::kNotFound);
  EXPECT_EQ(gone.error().to_string(),
            "pod-resources Get ns-a/p: pod p in namespace ns-a not found");
}

TEST_F(PodResourcesTest, RateLimitIsAnErrorAndPasses) {
  kubelet_.hold({"ns", "p", "main", kGpu, {"GPU-1"}});
  kubelet_.refuse_calls(2);
  const auto refused = list();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kExhausted);
  EXPECT_NE(refused.error().to_string().find("rejected by rate limit"), std::string::npos);
  EXPECT_FALSE(get("ns", "p").ok());
  EXPECT_EQ(list().value().size(), 1U);
}

TEST_F(PodResourcesTest, ConnectsAgainAfterARestart) {
  kubelet_.hold({"ns", "p", "main", kGpu, {"GPU-1"}});
  ASSERT_TRUE(list().ok());
  for (int i = 0; i < 3; ++i) {
    kubelet_.stop();
    const auto down = list();
    ASSERT_FALSE(down.ok());
    EXPECT_EQ(down.error().code(), Code::kUnavailable) << down.error().to_string();
    kubelet_.start();
    EXPECT_TRUE(kubelet_.wait_until([&] { return list().ok(); }));
  }
}

TEST_F(PodResourcesTest, LongListsAreRead) {
  Held many;
  for (int pod = 0; pod < 250; ++pod) {
    std::vector<std::string> ids;
    for (int i = 0; i < 64; ++i) ids.push_back(std::string(40, 'x') + std::to_string(1'000 + i));
    many.push_back({"ns", "pod-" + std::to_string(1'000 + pod), "main", kGpu, ids});
    kubelet_.hold(many.back());
  }
  EXPECT_EQ(list().value(), many);
}

TEST_F(PodResourcesTest, TooManyAtOnceAreRefused) {
  std::atomic<int> good = 0, exhausted = 0;
  thread_.on_loop([&] {
    for (int i = 0; i < 17; ++i) {
      client_->list(kLong, [&](const Result<Held>& held) {
        if (held.ok()) {
          ++good;
        } else if (held.error().code() == Code::kExhausted) {
          ++exhausted;
        }
      });
    }
  });
  EXPECT_TRUE(kubelet_.wait_until([&] { return good + exhausted == 17; }));
  EXPECT_GE(good, 16);
}

TEST_F(PodResourcesTest, DestroyedWhileCallsAreUnderWay) {
  auto token = std::make_shared<int>(0);
  for (int i = 0; i < 20; ++i) {
    thread_.on_loop([&] {
      for (int n = 0; n < 4; ++n) {
        client_->list(kLong, [token](const Result<Held>&) { ADD_FAILURE() << "told too late"; });
      }
      client_.reset();
    });
    EXPECT_EQ(token.use_count(), 1);
    open(kubelet_.pod_resources_socket());
  }
}

TEST_F(PodResourcesTest, DestroyedInsideItsAnswer) {
  std::promise<bool> answer;
  thread_.on_loop([&] {
    client_->list(kLong, [&](const Result<Held>& held) {
      client_.reset();
      answer.set_value(held.ok());
    });
  });
  EXPECT_TRUE(answer.get_future().get());
}

TEST_F(PodResourcesTest, BadPathsAndOthersSockets) {
  close();
  open("relative.sock");
  EXPECT_EQ(list().error().to_string(), "pod-resources: 'relative.sock' is not an absolute path");
  close();
  open(folder_ / "nothing.sock");
  EXPECT_EQ(list().error().code(), Code::kUnavailable);
  close();
  open(kubelet_.socket());  // the other service of a kubelet
  EXPECT_NE(list().error().to_string().find("does not offer this call"), std::string::npos);
}

}  // namespace
}  // namespace berth::kubelet
