// The whole agent with simulated GPUs that are cut as declared, under a fake kubelet. Real time:
// what is waited for has minutes, and nothing is asserted about how long it took.
#include <gtest/gtest.h>

#include <filesystem>
#include <list>

#include "agent/agent.h"
#include "base/system_clock.h"
#include "edge/kubelet/fake_kubelet_for_test.h"
#include "edge/kubelet/plugin_for_test.h"
#include "embedded/nodes/gpu_source.h"
#include "node/partition/mig_config.h"

namespace berth::agent {
namespace {

using kubelet::FakeKubelet;
using MigCounts = FakeKubelet::Counts;

constexpr const char* kTwo =
    "pools: [{name: node, count: 1, model: NVIDIA-H100-80GB-HBM3, gpus: 2}]";
constexpr const char* kCuts = R"(
version: v1
mig-configs:
  small: [{devices: all, mig-enabled: true, mig-devices: {"1g.10gb": 7}}]
  halves: [{devices: all, mig-enabled: true, mig-devices: {"3g.40gb": 2}}]
  whole: [{devices: all, mig-enabled: false}]
)";

class MigSilent final : public LogSink {
 public:
  void write(LogLevel, std::string_view) override {}
};

class MigAgentTest : public ::testing::Test {
 protected:
  MigAgentTest() : log_(sink_, wall_, {}) {
    for (const char* part : {"device-plugins", "pod-resources", "state", "root"}) {
      std::filesystem::create_directories(folder_ / part);
    }
    kubelet_ = std::make_unique<FakeKubelet>(folder_ / "device-plugins");
    std::filesystem::create_symlink(kubelet_->pod_resources_socket(),
                                    folder_ / "pod-resources/kubelet.sock");
    thread_.on_loop([&] {
      auto fleet = sim::parse_fleet(kTwo);
      ASSERT_TRUE(fleet.ok()) << fleet.error().to_string();
      source_ = std::move(*sim::SimGpuSource::make(thread_.loop(), *fleet, "node-0"));
    });
  }
  ~MigAgentTest() override {
    end();
    thread_.on_loop([&] { source_.reset(); });
  }
  void start(const std::string& layout, const std::string& instance) {
    thread_.on_loop([&] {
      AgentOptions options;
      options.node_name = "node-0";
      options.kubelet_dir = folder_.path();
      options.cdi_dir = folder_ / "cdi";
      options.state_dir = folder_ / "state";
      options.host_root = folder_ / "root";
      options.kernel_log.clear();
      options.simulated = true;
      options.instance = instance;
      options.read_ns = 20'000'000;
      options.pods_ns = 100'000'000;
      options.config.mig = advertise::MigStrategy::kMixed;
      options.mig_driver = source_.get();
      options.mig_layout = layout;
      auto config = partition::read_mig_config(kCuts);
      ASSERT_TRUE(config.ok()) << config.error().to_string();
      options.mig_config = std::make_shared<const partition::MigConfig>(*config);
      agent_ = std::make_unique<Agent>(thread_.loop(), *source_, nullptr, Random(1), options, log_,
                                       metrics_.emplace_back());
      agent_->start();
    });
  }
  void end() {
    thread_.on_loop([&] { agent_.reset(); });
  }
  bool becomes(const std::string& resource, MigCounts wanted) {
    const bool became = kubelet_->wait_until([&] { return kubelet_->counts(resource) == wanted; });
    if (!became) {
      const MigCounts now = kubelet_->counts(resource);
      ADD_FAILURE() << resource << ": " << now.capacity << '/' << now.allocatable << "\n"
                    << agent_->status();
    }
    return became;
  }
  bool says(const std::string& text) {
    const bool said =
        kubelet_->wait_until([&] { return agent_->status().find(text) != std::string::npos; });
    if (!said) ADD_FAILURE() << text << " is not said in " << agent_->status();
    return said;
  }

  const SystemWallClock wall_;
  MigSilent sink_;
  Logger log_;
  std::list<MetricsRegistry> metrics_;
  kubelet::TestFolder folder_;
  std::unique_ptr<FakeKubelet> kubelet_;
  kubelet::LoopThread thread_;
  std::unique_ptr<sim::SimGpuSource> source_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(MigAgentTest, DeclaredInstancesBecomeResourcesAndHeldOnesAreNotTouched) {
  start("small", "one");
  ASSERT_TRUE(becomes("nvidia.com/mig-1g.10gb", {14, 14}));
  ASSERT_TRUE(says("\"state\": \"success\""));
  ASSERT_TRUE(becomes(kubelet::kGpu, {0, 0}));
  const auto got = kubelet_->admit("team", "train-0", "main", "nvidia.com/mig-1g.10gb", 1);
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  end();
  start("halves", "two");
  ASSERT_TRUE(says("\"reason\": \"MigInUse\""));
  EXPECT_NE(agent_->status().find("team/train-0 holds MIG-"), std::string::npos);
  ASSERT_TRUE(becomes("nvidia.com/mig-1g.10gb", {14, 14}));
  // The pod goes; what was declared happens by itself.
  kubelet_->release("team", "train-0");
  ASSERT_TRUE(becomes("nvidia.com/mig-3g.40gb", {4, 4}));
  ASSERT_TRUE(says("\"state\": \"success\""));
  ASSERT_TRUE(becomes("nvidia.com/mig-1g.10gb", {0, 0}));
  end();
  start("whole", "three");
  ASSERT_TRUE(becomes(kubelet::kGpu, {2, 2}));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "state/mig-intent.json"));
}

TEST_F(MigAgentTest, NoListHasHalfALayout) {
  start("small", "one");
  ASSERT_TRUE(becomes("nvidia.com/mig-1g.10gb", {14, 14}));
  end();
  start("halves", "two");
  ASSERT_TRUE(becomes("nvidia.com/mig-3g.40gb", {4, 4}));
  // The GPUs are cut one after another, in one change: both are out until all of it is done.
  for (const FakeKubelet::List& list : kubelet_->lists()) {
    EXPECT_TRUE(list.devices.empty() || list.devices.size() == 14 || list.devices.size() == 4 ||
                list.devices.size() == 2)
        << list.devices.size();
  }
}

}  // namespace
}  // namespace berth::agent
