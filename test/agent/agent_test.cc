// The whole agent with simulated GPUs, under a fake kubelet that speaks real gRPC. Real time: what
// is waited for has minutes, and nothing is asserted about how long it took.
#include "agent/agent.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

#include "agent/requests.h"
#include "base/system_clock.h"
#include "edge/kubelet/fake_kubelet_for_test.h"
#include "edge/kubelet/plugin_for_test.h"
#include "embedded/nodes/gpu_source.h"

namespace berth::agent {
namespace {

using kubelet::FakeKubelet;
using kubelet::kGpu;
using Counts = FakeKubelet::Counts;

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr const char* kEight =
    "pools: [{name: node, count: 1, model: NVIDIA-H100-80GB-HBM3, gpus: 8}]";

class Quiet final : public LogSink {
 public:
  void write(LogLevel, std::string_view) override {}
};

std::string read_all(const std::string& path) {
  std::ifstream file(path);
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

// One agent process, as far as the kubelet can see.
class TestAgent {
 public:
  TestAgent(const std::string& folder, const std::string& instance, const std::string& fleet_yaml,
            const std::function<void(AgentOptions&)>& change = nullptr)
      : log_(sink_, wall_, {}) {
    thread_.on_loop([&] {
      auto fleet = sim::parse_fleet(fleet_yaml);
      ASSERT_TRUE(fleet.ok()) << fleet.error().to_string();
      auto source = sim::SimGpuSource::make(thread_.loop(), *fleet, "node-0");
      ASSERT_TRUE(source.ok()) << source.error().to_string();
      source_ = std::move(*source);
      AgentOptions options;
      options.node_name = "node-0";
      options.kubelet_dir = folder;
      options.cdi_dir = folder + "/cdi";
      options.state_dir = folder + "/state";
      options.host_root = folder + "/root";
      options.kernel_log.clear();
      options.simulated = true;
      options.instance = instance;
      options.read_ns = 20 * kMillisecond;
      options.pods_ns = 100 * kMillisecond;
      options.exporting.hostname = "node-0";
      if (change) change(options);
      agent_ = std::make_unique<Agent>(thread_.loop(), *source_, nullptr, Random(1), options, log_,
                                       metrics_);
      agent_->start();
    });
  }
  ~TestAgent() { end(); }
  void end() {
    thread_.on_loop([&] {
      agent_.reset();
      source_.reset();
    });
  }
  void inject(const std::string& text) {
    thread_.on_loop([&] {
      auto fault = sim::parse_fault(text, source_->gpus());
      ASSERT_TRUE(fault.ok()) << fault.error().to_string();
      source_->inject(*fault);
    });
  }
  void set_config(const std::string& yaml) {
    thread_.on_loop([&] {
      auto config = advertise::read_plugin_config(yaml, {}, {});
      ASSERT_TRUE(config.ok()) << config.error().to_string();
      agent_->set_config(*config);
    });
  }
  // What `berth agent forgive` does.
  Result<std::string> forgive(const std::string& state_dir, const std::string& gpu) {
    std::promise<Result<std::string>> said;
    std::unique_ptr<Asking> asking;
    const Request request{kForgive, gpu, "alice", "a riser was replaced"};
    thread_.on_loop([&] {
      asking =
          Asking::start(thread_.loop(), requests_folder(state_dir), "test", request, kubelet::kLong,
                        [&](Result<std::string> answer) { said.set_value(std::move(answer)); });
    });
    Result<std::string> out = said.get_future().get();
    thread_.on_loop([&] { asking.reset(); });
    return out;
  }
  Agent& agent() { return *agent_; }
  // Has the page this text? Asked from another thread, as a scrape does.
  bool page_has(const std::string& text) const {
    return agent_->page().find(text) != std::string::npos;
  }

 private:
  const SystemWallClock wall_;
  Quiet sink_;
  Logger log_;
  MetricsRegistry metrics_;
  kubelet::LoopThread thread_;
  std::unique_ptr<sim::SimGpuSource> source_;
  std::unique_ptr<Agent> agent_;
};

class AgentTest : public ::testing::Test {
 protected:
  AgentTest() {
    for (const char* part : {"device-plugins", "pod-resources", "state", "root"}) {
      std::filesystem::create_directories(folder_ / part);
    }
    kubelet_ = std::make_unique<FakeKubelet>(plugins());
    std::filesystem::create_symlink(kubelet_->pod_resources_socket(),
                                    folder_ / "pod-resources/kubelet.sock");
  }
  std::string plugins() const { return folder_ / "device-plugins"; }
  std::unique_ptr<TestAgent> start(const std::string& instance = "a",
                                   const std::function<void(AgentOptions&)>& change = nullptr,
                                   const std::string& fleet = kEight) {
    return std::make_unique<TestAgent>(folder_.path(), instance, fleet, change);
  }
  bool counts_become(Counts wanted, const std::string& resource = kGpu) {
    const bool became = kubelet_->wait_until([&] { return kubelet_->counts(resource) == wanted; });
    if (!became) {
      const Counts now = kubelet_->counts(resource);
      ADD_FAILURE() << resource << ": " << now.capacity << '/' << now.allocatable;
    }
    return became;
  }

  kubelet::TestFolder folder_;
  std::unique_ptr<FakeKubelet> kubelet_;
};

TEST_F(AgentTest, OffersItsGpusAndHandsThemOut) {
  auto agent = start();
  ASSERT_TRUE(counts_become({8, 8}));
  EXPECT_NE(read_all(folder_ / "cdi/berth.dev-gpu.json").find("k8s.device-plugin.nvidia.com/gpu"),
            std::string::npos);
  const auto got = kubelet_->admit("team", "train-0", "main", kGpu, 4);
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  EXPECT_TRUE(got->environment.contains("NVIDIA_VISIBLE_DEVICES"));
  EXPECT_NE(read_all(folder_ / "state/allocations.jsonl").find(kGpu), std::string::npos);
  // The page names the pod once pod-resources told of it.
  EXPECT_TRUE(kubelet_->wait_until([&] { return agent->page_has(R"(pod="train-0")"); }));
}

TEST_F(AgentTest, AKubeletThatRestartsGetsItsDevicesBack) {
  auto agent = start();
  ASSERT_TRUE(counts_become({8, 8}));
  for (int round = 0; round < 3; ++round) {
    const std::size_t before = kubelet_->registrations().size();
    kubelet_->stop();
    kubelet_->start();
    ASSERT_TRUE(kubelet_->wait_until([&] {
      return kubelet_->registrations().size() > before && kubelet_->counts(kGpu) == Counts{8, 8};
    })) << round;
  }
}

TEST_F(AgentTest, AStreamThatEndsAndASocketThatGoesAreServedAnew) {
  auto agent = start();
  ASSERT_TRUE(counts_become({8, 8}));
  std::size_t before = kubelet_->registrations().size();
  kubelet_->close_streams();
  ASSERT_TRUE(kubelet_->wait_until([&] {
    return kubelet_->registrations().size() > before && kubelet_->counts(kGpu) == Counts{8, 8};
  }));
  before = kubelet_->registrations().size();
  for (const auto& entry : std::filesystem::directory_iterator(plugins())) {
    if (entry.path().filename().string().starts_with("berth-")) {
      std::filesystem::remove(entry.path());
    }
  }
  ASSERT_TRUE(kubelet_->wait_until([&] {
    return kubelet_->registrations().size() > before && kubelet_->counts(kGpu) == Counts{8, 8};
  }));
}

TEST_F(AgentTest, AKubeletThatComesLateOrRefusesIsAskedAgain) {
  kubelet_->refuse_registrations("not now");
  auto agent = start();
  ASSERT_TRUE(kubelet_->wait_until([&] { return kubelet_->registrations().size() >= 2; }));
  EXPECT_NE(agent->agent().status().find("not now"), std::string::npos);
  kubelet_->refuse_registrations("");
  ASSERT_TRUE(counts_become({8, 8}));
  agent.reset();
  kubelet_->stop();
  agent = start("b");
  EXPECT_TRUE(kubelet_->wait_until(
      [&] { return agent->agent().status().find("kubelet.sock") != std::string::npos; }));
  kubelet_->start();
  ASSERT_TRUE(counts_become({8, 8}));
}

TEST_F(AgentTest, ABrokenGpuLeavesAloneAndComesBackByEvidence) {
  auto agent = start();
  ASSERT_TRUE(counts_become({8, 8}));
  agent->inject("xid gpu=3 code=79");
  ASSERT_TRUE(counts_become({8, 7}));
  // The right one.
  const auto lists = kubelet_->lists();
  int unhealthy = -1;
  for (std::size_t i = 0; i < lists.back().devices.size(); ++i) {
    if (!lists.back().devices[i].healthy) unhealthy = static_cast<int>(i);
  }
  EXPECT_EQ(unhealthy, 3);
  EXPECT_TRUE(kubelet_->wait_until([&] { return agent->page_has("Xid79"); }));
  agent->inject("recover gpu=3");
  ASSERT_TRUE(counts_become({8, 8}));
}

TEST_F(AgentTest, AFlappingGpuStaysOutUntilAnOperatorForgivesIt) {
  const std::string state = folder_ / "state";
  auto agent = start();
  ASSERT_TRUE(counts_become({8, 8}));
  for (int round = 0; round < 3; ++round) {
    agent->inject("xid gpu=3 code=79");
    ASSERT_TRUE(counts_become({8, 7}));
    agent->inject("recover gpu=3");
    if (round < 2) {
      ASSERT_TRUE(counts_become({8, 8}));
    }
  }
  // What brought it back before does not any more, nor does a restart of the agent.
  ASSERT_TRUE(kubelet_->wait_until([&] { return agent->page_has(R"(code="Flapping")"); }));
  agent.reset();
  agent = start("b");
  ASSERT_TRUE(counts_become({8, 7}));
  const Result<std::string> stranger = agent->forgive(state, "GPU-of-another-node");
  ASSERT_FALSE(stranger.ok());
  EXPECT_NE(stranger.error().to_string().find("want one of this node's: 0 (GPU-"),
            std::string::npos);
  const Result<std::string> said = agent->forgive(state, "3");
  ASSERT_TRUE(said.ok()) << said.error().to_string();
  EXPECT_NE(said->find("was out (Flapping) and takes pods again"), std::string::npos) << *said;
  ASSERT_TRUE(counts_become({8, 8}));
  // Readings are not forgiven.
  agent->inject("gpu-silent gpu=4");
  ASSERT_TRUE(counts_become({8, 7}));
  const Result<std::string> silent = agent->forgive(state, "4");
  ASSERT_FALSE(silent.ok());
  EXPECT_NE(silent.error().to_string().find("stays out"), std::string::npos);
}

TEST_F(AgentTest, AnApplicationsErrorTakesNoGpuAway) {
  auto agent = start();
  ASSERT_TRUE(counts_become({8, 8}));
  const std::size_t lists = kubelet_->lists().size();
  for (const char* fault : {"xid gpu=1 code=31", "xid gpu=1 code=13", "xid gpu=2 code=43"}) {
    agent->inject(fault);
  }
  ASSERT_TRUE(kubelet_->wait_until([&] { return agent->page_has(R"(xid="43")"); }));
  EXPECT_EQ(kubelet_->counts(kGpu), (Counts{8, 8}));
  EXPECT_EQ(kubelet_->lists().size(), lists);
}

TEST_F(AgentTest, ASilentDriverCostsOneGpu) {
  auto agent = start();
  ASSERT_TRUE(counts_become({8, 8}));
  agent->inject("gpu-silent gpu=5");
  ASSERT_TRUE(counts_become({8, 7}));
  const auto got = kubelet_->admit("team", "p", "main", kGpu, 7);
  EXPECT_TRUE(got.ok()) << got.error().to_string();
  agent->inject("recover gpu=5");
  ASSERT_TRUE(counts_become({8, 8}));
}

TEST_F(AgentTest, SharingIsReadAnewWithoutARestart) {
  auto agent = start();
  ASSERT_TRUE(counts_become({8, 8}));
  agent->set_config(
      "{version: v1, sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}}");
  ASSERT_TRUE(counts_become({32, 32}));
  // A broken GPU takes all its replicas along.
  agent->inject("gpu-lost gpu=0");
  ASSERT_TRUE(counts_become({32, 28}));
  agent->inject("recover gpu=0");
  ASSERT_TRUE(counts_become({32, 32}));
  agent->set_config(
      "{version: v1, sharing: {timeSlicing: {renameByDefault: true, resources: [{name: "
      "nvidia.com/gpu, replicas: 2}]}}}");
  ASSERT_TRUE(counts_become({16, 16}, "nvidia.com/gpu.shared"));
  ASSERT_TRUE(counts_become({0, 0}));
}

TEST_F(AgentTest, MigInstancesAreResourcesOfTheirOwn) {
  auto agent = start(
      "a", [](AgentOptions& options) { options.config.mig = advertise::MigStrategy::kMixed; },
      "pools: [{name: node, count: 1, model: NVIDIA-H100-80GB-HBM3, gpus: 2, mig: 1g.10gb}]");
  ASSERT_TRUE(counts_become({14, 14}, "nvidia.com/mig-1g.10gb"));
  agent->inject("xid gpu=1 code=79");
  ASSERT_TRUE(counts_become({14, 7}, "nvidia.com/mig-1g.10gb"));
}

TEST_F(AgentTest, ANewAgentTakesOverWithoutAGap) {
  auto first = start("one");
  ASSERT_TRUE(counts_become({8, 8}));
  auto second = start("two");
  ASSERT_TRUE(kubelet_->wait_until([&] { return kubelet_->endpoints(kGpu) == 2; }));
  EXPECT_EQ(kubelet_->counts(kGpu), (Counts{8, 8}));
  first.reset();
  ASSERT_TRUE(kubelet_->wait_until([&] { return kubelet_->endpoints(kGpu) == 1; }));
  EXPECT_EQ(kubelet_->counts(kGpu), (Counts{8, 8}));
  const auto got = kubelet_->admit("team", "p", "main", kGpu, 8);
  EXPECT_TRUE(got.ok()) << got.error().to_string();
  for (const FakeKubelet::List& list : kubelet_->lists()) EXPECT_EQ(list.devices.size(), 8u);
}

TEST_F(AgentTest, VerdictsAndHoldersSurviveARestart) {
  auto agent = start("one");
  ASSERT_TRUE(counts_become({8, 8}));
  ASSERT_TRUE(kubelet_->admit("team", "p", "main", kGpu, 2).ok());
  agent->inject("xid gpu=3 code=95");  // until it is reset
  ASSERT_TRUE(counts_become({8, 7}));
  agent.reset();
  agent = start("two");
  ASSERT_TRUE(kubelet_->wait_until([&] { return kubelet_->endpoints(kGpu) == 1; }));
  // The new source knows of no trouble; the verdict waits for a reset that was seen.
  ASSERT_TRUE(counts_become({8, 7}));
  EXPECT_TRUE(kubelet_->wait_until([&] { return agent->page_has(R"(pod="p")"); }));
}

TEST_F(AgentTest, DamagedStateIsLeftOut) {
  std::ofstream(folder_ / "state/allocations.jsonl") << "{\"at\": 1, \"resou\n\xff\xfe\nnonsense\n";
  std::ofstream(folder_ / "state/health.json") << "{\"gpus\": [1, 2";
  auto agent = start();
  ASSERT_TRUE(counts_become({8, 8}));
}

// A plugin of somebody else, as far as its socket tells.
class Rival {
 public:
  explicit Rival(const std::string& path) : path_(path), fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string at = path + ".new";  // it has its name when it answers
    std::copy(at.begin(), at.end(), address.sun_path);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd_, 64), 0);
    std::filesystem::rename(at, path);
  }
  Rival(const Rival&) = delete;
  Rival& operator=(const Rival&) = delete;
  ~Rival() {
    ::close(fd_);
    ::unlink(path_.c_str());
  }

 private:
  const std::string path_;
  const int fd_;
};

TEST_F(AgentTest, AnotherVendorsPluginIsNotDoubled) {
  auto rival = std::make_unique<Rival>(plugins() + "/nvidia-gpu.sock");
  auto agent = start();
  ASSERT_TRUE(kubelet_->wait_until(
      [&] { return agent->agent().status().find("nvidia-gpu.sock") != std::string::npos; }));
  EXPECT_NE(agent->agent().status().find("--take-over"), std::string::npos) << "what to do";
  EXPECT_TRUE(kubelet_->registrations().empty());
  rival.reset();
  ASSERT_TRUE(counts_become({8, 8}));
}

// The other one is installed on a node that is served already: it has the devices to itself.
TEST_F(AgentTest, AnotherVendorsPluginThatComesLaterIsNotDoubled) {
  auto agent = start();
  ASSERT_TRUE(counts_become({8, 8}));
  for (const char* name : {"nvidia-gpu.sock", "nvidiaGPU-1700000000.sock"}) {
    auto rival = std::make_unique<Rival>(plugins() + '/' + name);
    ASSERT_TRUE(kubelet_->wait_until([&] { return kubelet_->endpoints(kGpu) == 0; })) << name;
    ASSERT_TRUE(kubelet_->wait_until(
        [&] { return agent->agent().status().find(name) != std::string::npos; }));
    rival.reset();
    ASSERT_TRUE(counts_become({8, 8}));
  }
}

TEST_F(AgentTest, WhoeverTakesOverStandsBesideAnotherVendorsPlugin) {
  const Rival rival(plugins() + "/nvidia-gpu.sock");
  auto agent = start("a", [](AgentOptions& options) { options.take_over = true; });
  ASSERT_TRUE(counts_become({8, 8}));
}

}  // namespace
}  // namespace berth::agent
