// What the agent writes about its node, on the embedded API server.
#include "agent/node_link.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "embedded/api/world_for_test.h"
#include "text/yaml.h"

namespace berth::agent {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

class Nowhere final : public LogSink {
 public:
  void write(LogLevel, std::string_view) override {}
};

class NodeLinkTest : public ::testing::Test {
 protected:
  NodeLinkTest()
      : log_(sink_, world_.clock, {}),
        transport_(world_.loop, *world_.server),
        client_(transport_, world_.loop, Random(3), {.user_agent = "agent"}) {
    std::ifstream file(std::string(BERTH_CRD_DIR) + "/gpunodes.yaml");
    std::stringstream text;
    text << file.rdbuf();
    const auto documents = text::parse_yaml(text.str());
    EXPECT_TRUE(documents.ok());
    const auto made = world_.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                                  text::to_json(documents->front().root()));
    EXPECT_EQ(made.status, 201) << made.body;
  }

  void make_node(const std::string& taints = "[]") {
    const auto made = world_.post(
        "/api/v1/nodes",
        R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","labels":{"mine":"1"}},)"
        R"("spec":{"taints":)" +
            taints + "}}");
    ASSERT_EQ(made.status, 201) << made.body;
  }
  void start() {
    link_ = std::make_unique<NodeLink>(
        client_, Random(4), "n1", [this] { ++changes_; }, log_, metrics_);
  }
  void run(std::int64_t ns = 5 * kSecond) { world_.loop.run_for(ns); }
  std::string node(const std::string& path) { return world_.get("/api/v1/nodes/n1").at(path); }
  std::uint64_t writes(const std::string& what) {
    return metrics_
        .counter({.name = "berth_agent_writes_total",
                  .help = "Writes to the API server, by what and outcome.",
                  .labels = {"what", "outcome"}})
        .with({what, "ok"})
        .value();
  }
  std::string condition(const std::string& type, const std::string& field) {
    const auto object = world_.get("/api/v1/nodes/n1");
    const text::Value* status = object.root().find("status");
    const text::Value* list = status == nullptr ? nullptr : status->find("conditions");
    if (list == nullptr) return "";
    for (const text::Value& one : list->items()) {
      if (one.find("type")->string() == type) return std::string(one.find(field)->string());
    }
    return "";
  }

  sim::TestWorld world_;
  Nowhere sink_;
  Logger log_;
  sim::LocalTransport transport_;
  MetricsRegistry metrics_;
  kube::Client client_;
  std::unique_ptr<NodeLink> link_;
  int changes_ = 0;
};

TEST_F(NodeLinkTest, LabelsComeAndGoByTheirManagerAndAreWrittenOnce) {
  make_node();
  start();
  link_->want_host_labels({{"feature.node.kubernetes.io/pci-10de.present", "true"}});
  link_->want_gpu_labels({{"nvidia.com/gpu.count", "8"}, {"nvidia.com/gpu.product", "H100"}});
  run();
  EXPECT_EQ(node("metadata.labels.mine"), "1");
  EXPECT_NE(world_.get("/api/v1/nodes/n1").body.find(R"("nvidia.com/gpu.count":"8")"),
            std::string::npos);
  run(60 * kSecond);
  EXPECT_LE(writes("gpu-labels"), 2u);
  // What the driver no longer says goes; what the bus says stays.
  link_->want_gpu_labels({{"nvidia.com/gpu.count", "7"}});
  run();
  const std::string body = world_.get("/api/v1/nodes/n1").body;
  EXPECT_NE(body.find(R"("nvidia.com/gpu.count":"7")"), std::string::npos);
  EXPECT_EQ(body.find(R"("nvidia.com/gpu.product":)"), std::string::npos);
  EXPECT_NE(body.find("pci-10de.present"), std::string::npos);
}

TEST_F(NodeLinkTest, ALabelThatSomebodyTookAwayComesBack) {
  make_node();
  start();
  link_->want_gpu_labels({{"nvidia.com/gpu.count", "8"}});
  run();
  world_.merge("/api/v1/nodes/n1", R"({"metadata":{"labels":{"nvidia.com/gpu.count":null}}})");
  EXPECT_EQ(world_.get("/api/v1/nodes/n1").body.find(R"("nvidia.com/gpu.count":"8")"),
            std::string::npos);
  run();
  EXPECT_NE(world_.get("/api/v1/nodes/n1").body.find(R"("nvidia.com/gpu.count":"8")"),
            std::string::npos);
}

TEST_F(NodeLinkTest, TheStateOfAMigLayoutIsALabelOfItsOwnAndGoesAgain) {
  make_node();
  start();
  link_->want_mig_labels({});
  link_->want_gpu_labels({{"nvidia.com/gpu.count", "8"}});
  run();
  EXPECT_EQ(writes("mig-labels"), 0u);
  world_.merge("/api/v1/nodes/n1", R"({"metadata":{"labels":{"nvidia.com/mig.config":"mixed"}}})");
  run();
  EXPECT_EQ(link_->labels().at("nvidia.com/mig.config"), "mixed");
  link_->want_mig_labels({{"nvidia.com/mig.config.state", "pending"}});
  run();
  link_->want_mig_labels({{"nvidia.com/mig.config.state", "success"}});
  run();
  EXPECT_EQ(link_->labels().at("nvidia.com/mig.config.state"), "success");
  EXPECT_EQ(writes("mig-labels"), 2u);
  link_->want_mig_labels({});
  run();
  EXPECT_FALSE(link_->labels().contains("nvidia.com/mig.config.state"));
  EXPECT_EQ(link_->labels().at("nvidia.com/gpu.count"), "8") << "another manager's";
  EXPECT_EQ(link_->labels().at("nvidia.com/mig.config"), "mixed") << "people's";
}

TEST_F(NodeLinkTest, ConditionsKeepTheirTimeUntilTheyTurn) {
  make_node();
  start();
  link_->want_conditions({{"GpuReady", "False", "NotRegistered", "one"}});
  run();
  const std::string since = condition("GpuReady", "lastTransitionTime");
  EXPECT_EQ(condition("GpuReady", "reason"), "NotRegistered");
  link_->want_conditions({{"GpuReady", "False", "NotAllocatable", "two"}});
  run(20 * kSecond);
  EXPECT_EQ(condition("GpuReady", "reason"), "NotAllocatable");
  EXPECT_EQ(condition("GpuReady", "lastTransitionTime"), since);
  link_->want_conditions({{"GpuReady", "True", "Ready", "three"}});
  run(20 * kSecond);
  EXPECT_EQ(condition("GpuReady", "status"), "True");
  EXPECT_NE(condition("GpuReady", "lastTransitionTime"), since);
  EXPECT_LE(writes("conditions"), 6u);
}

TEST_F(NodeLinkTest, ConditionsOfWhichThereIsNothingToSayGo) {
  make_node();
  start();
  link_->want_conditions({{"GpuReady", "False", "DriverUnavailable", "not asked yet"}});
  run();
  EXPECT_EQ(condition("GpuReady", "status"), "False");
  start();  // an agent that has judged nothing yet leaves what is there
  run();
  EXPECT_EQ(condition("GpuReady", "status"), "False");
  link_->want_conditions({});
  run();
  const std::string body = world_.get("/api/v1/nodes/n1").body;
  EXPECT_EQ(body.find("GpuReady"), std::string::npos) << body;
  link_->want_conditions({{"GpuReady", "True", "Ready", "a GPU came"}});
  run(20 * kSecond);
  EXPECT_EQ(condition("GpuReady", "status"), "True");
}

TEST_F(NodeLinkTest, OnlyTheStartupTaintIsTakenAway) {
  make_node(R"([{"key":"berth.dev/agent-not-ready","effect":"NoSchedule"},)"
            R"({"key":"other","effect":"NoExecute"}])");
  start();
  run();
  EXPECT_NE(world_.get("/api/v1/nodes/n1").body.find("agent-not-ready"), std::string::npos);
  link_->want_no_startup_taint();
  run();
  const std::string body = world_.get("/api/v1/nodes/n1").body;
  EXPECT_EQ(body.find("agent-not-ready"), std::string::npos);
  EXPECT_NE(body.find(R"("key":"other")"), std::string::npos);
}

TEST_F(NodeLinkTest, TheGpuNodeBelongsToTheNodeAndReturnsWhenItIsDeleted) {
  make_node();
  start();
  kinds::GpuNode wanted;
  wanted.name = "n1";
  wanted.driver_version = "580.159.04";
  wanted.gpus.resize(2);
  wanted.gpus[1].gpu.index = 1;
  wanted.gpus[1].holders = {"uid-1"};
  link_->want_gpu_node(wanted);
  run();
  const std::string path = "/apis/berth.dev/v1alpha1/gpunodes/n1";
  EXPECT_EQ(world_.get(path).at("status.driverVersion"), "580.159.04");
  EXPECT_EQ(world_.get(path).at("metadata.ownerReferences").find("Node") != std::string::npos,
            true);
  world_.call("DELETE", path);
  wanted.gpus[1].holders.clear();
  link_->want_gpu_node(wanted);
  run(30 * kSecond);
  EXPECT_EQ(world_.get(path).at("status.driverVersion"), "580.159.04");
}

TEST_F(NodeLinkTest, ANodeThatIsMadeAnewGetsEverythingAgain) {
  start();
  link_->want_gpu_labels({{"nvidia.com/gpu.count", "8"}});
  kinds::GpuNode wanted;
  wanted.name = "n1";
  wanted.driver_version = "1";
  link_->want_gpu_node(wanted);
  run();
  EXPECT_FALSE(link_->heard());
  make_node();
  run();
  EXPECT_TRUE(link_->heard());
  const std::string path = "/apis/berth.dev/v1alpha1/gpunodes/n1";
  EXPECT_EQ(world_.get(path).at("status.driverVersion"), "1");
  world_.call("DELETE", "/api/v1/nodes/n1");
  world_.call("DELETE", path);
  run();
  make_node();
  run(30 * kSecond);
  EXPECT_NE(world_.get("/api/v1/nodes/n1").body.find(R"("nvidia.com/gpu.count":"8")"),
            std::string::npos);
  EXPECT_EQ(world_.get(path).at("status.driverVersion"), "1");
}

TEST_F(NodeLinkTest, ReadsAllocatableAndThePodsOfItsNode) {
  make_node();
  world_.merge("/api/v1/nodes/n1/status",
               R"({"status":{"allocatable":{"nvidia.com/gpu":"7","cpu":"8"}}})");
  const auto pod = [&](const std::string& name, const std::string& node) {
    const auto made =
        world_.post("/api/v1/namespaces/default/pods",
                    R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
                        R"(","annotations":{"berth.dev/gpus":"0,3"}},"spec":{"nodeName":")" + node +
                        R"(","containers":[{"name":"c","image":"i","resources":{"limits":)"
                        R"({"nvidia.com/gpu":"2"}}}]}})");
    ASSERT_EQ(made.status, 201) << made.body;
  };
  pod("mine", "n1");
  pod("other", "n2");
  start();
  run();
  EXPECT_EQ(link_->allocatable(), (std::map<std::string, std::int64_t>{{"nvidia.com/gpu", 7}}));
  ASSERT_EQ(link_->pods().size(), 1u);
  const allocate::NodePod& found = link_->pods().begin()->second;
  EXPECT_EQ(found.name, "mine");
  EXPECT_EQ(found.gpus, (std::vector<int>{0, 3}));
  EXPECT_EQ(found.asks, (std::vector<allocate::NodePod::Ask>{{"nvidia.com/gpu", 2}}));
  const int before = changes_;
  world_.call("DELETE", "/api/v1/namespaces/default/pods/mine?gracePeriodSeconds=0");
  run();
  EXPECT_TRUE(link_->pods().empty());
  EXPECT_GT(changes_, before);
}

}  // namespace
}  // namespace berth::agent
