#include "node/monitor/node_state.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "text/json.h"

namespace berth::monitor {
namespace {

NodeSights good_node() {
  NodeSights s;
  s.driver_answers = true;
  s.driver_version = "580.159.04";
  s.gpus = {{0, "GPU-0", {}}, {1, "GPU-1", {}}};
  s.gpus_on_bus = 2;
  s.cdi_written = true;
  s.resources = {{"nvidia.com/gpu", 2, 2, true, "", 2}};
  return s;
}

Verdict fallen() {
  Verdict v;
  v.healthy = false;
  v.severity = Severity::kFatal;
  v.code = "Xid79";
  v.action = "reboot the node";
  v.text = "Xid 79: the GPU has fallen off the bus";
  v.heals = Probe::kReset;
  v.since_ns = 5;
  return v;
}

struct StepCase {
  std::string_view step, state, reason, text;
  std::function<void(NodeSights&)> change;
};

TEST(NodeState, EveryStepHasItsReason) {
  const StepCase cases[] = {
      {"driver", "waiting", "DriverUnavailable", "the driver was not asked yet",
       [](auto& s) { s.driver_answers = false; }},
      {"driver", "failed", "DriverUnavailable", "libnvidia-ml.so.1 is missing",
       [](auto& s) {
         s.driver_answers = false;
         s.driver_error = "libnvidia-ml.so.1 is missing";
       }},
      {"devices", "failed", "NoDevices", "the driver shows no GPU, the PCI bus 2",
       [](auto& s) { s.gpus.clear(); }},
      {"devices", "failed", "BadConfiguration", "strategy single needs equal instances",
       [](auto& s) { s.offer_error = "strategy single needs equal instances"; }},
      {"cdi", "waiting", "CdiNotWritten", "the CDI spec is not written yet",
       [](auto& s) { s.cdi_written = false; }},
      {"cdi", "failed", "CdiNotWritten", "disk full",
       [](auto& s) {
         s.cdi_written = false;
         s.cdi_error = "disk full";
       }},
      {"registration", "waiting", "NotRegistered",
       "nvidia.com/gpu is not registered with the kubelet yet",
       [](auto& s) { s.resources[0].registered = false; }},
      {"registration", "failed", "NotRegistered", "nvidia.com/gpu: no such socket",
       [](auto& s) {
         s.resources[0].registered = false;
         s.resources[0].error = "no such socket";
       }},
      {"registration", "failed", "NotRegistered", "the configuration offers no resource",
       [](auto& s) { s.resources.clear(); }},
      {"allocatable", "waiting", "NotAllocatable", "nvidia.com/gpu is not on the Node yet",
       [](auto& s) { s.resources[0].allocatable = -1; }},
      {"allocatable", "waiting", "NotAllocatable", "nvidia.com/gpu: 1 on the Node, 2 healthy",
       [](auto& s) { s.resources[0].allocatable = 1; }},
  };
  for (const StepCase& c : cases) {
    SCOPED_TRACE(c.text);
    NodeSights sights = good_node();
    c.change(sights);
    NodeState state = node_state(sights);
    EXPECT_FALSE(state.ready);
    ASSERT_EQ(state.steps.size(), 5u);
    bool before = true;
    for (const ReadyStep& step : state.steps) {
      if (step.step == c.step) {
        before = false;
        EXPECT_EQ(name(step.state), c.state);
        EXPECT_EQ(step.reason, c.reason);
        EXPECT_EQ(step.text, c.text);
      } else if (before) {
        EXPECT_EQ(step.state, StepState::kOk) << step.step;
      } else {
        EXPECT_EQ(step.state, StepState::kWaiting) << step.step;
        EXPECT_EQ(step.text, "waits for " + std::string(c.step));
      }
    }
    EXPECT_EQ(state.conditions[0],
              (NodeCondition{"GpuReady", "False", c.reason,
                             std::string(c.step) + ": " + std::string(c.text)}));
  }
}

TEST(NodeState, ReadyWhenAllStepsAre) {
  NodeState state = node_state(good_node());
  EXPECT_TRUE(state.ready);
  EXPECT_EQ(state.conditions[0].status, "True");
  EXPECT_EQ(state.conditions[0].reason, "GpusReady");
  EXPECT_EQ(state.conditions[1], (NodeCondition{"GpuHealthy", "True", "AllHealthy", "2 healthy"}));
  NodeSights alone = good_node();  // no API server, no CDI
  alone.node_watched = alone.cdi_wanted = alone.cdi_written = false;
  alone.resources[0].allocatable = -1;
  EXPECT_TRUE(node_state(alone).ready);
  NodeSights late = good_node();  // the kubelet still shows the GPU that fell
  late.gpus[1].verdict = fallen();
  late.resources[0].healthy = 1;
  EXPECT_TRUE(node_state(late).ready);
}

TEST(NodeState, ANodeWithoutGpusIsReadyAndSaysNothing) {
  NodeSights sights;
  sights.gpus_on_bus = 0;
  EXPECT_FALSE(node_state(sights).ready) << "the driver was not asked yet";
  sights.driver_error = "libnvidia-ml.so.1 is missing";
  const NodeState state = node_state(sights);
  EXPECT_TRUE(state.ready);
  EXPECT_TRUE(state.conditions.empty());
  ASSERT_EQ(state.steps.size(), 5u);
  for (const ReadyStep& step : state.steps) EXPECT_EQ(step.reason, "NoGpus");
  sights.gpus_on_bus = 1;
  EXPECT_FALSE(node_state(sights).ready) << "one that lacks its driver";
  sights.gpus_on_bus = -1;
  EXPECT_FALSE(node_state(sights).ready) << "nobody looked";
  sights.gpus_on_bus = 0;
  sights.gpus.push_back({0, "GPU-0", {}});
  EXPECT_FALSE(node_state(sights).ready) << "it had one";
}

TEST(NodeState, HealthIsAConditionOfItsOwn) {
  NodeSights sights = good_node();
  sights.gpus[1].verdict = fallen();
  auto health = node_state(sights).conditions[1];
  EXPECT_EQ(health.status, "False");
  EXPECT_EQ(health.reason, "GpuUnhealthy");
  EXPECT_EQ(health.message,
            "1 of 2 not healthy; GPU 1 (GPU-1) Xid79: Xid 79: the GPU has fallen off the bus");
  sights = good_node();
  sights.gpus_on_bus = 3;
  health = node_state(sights).conditions[1];
  EXPECT_EQ(health.reason, "GpuMissing");
  EXPECT_EQ(health.message, "0 of 2 not healthy; the driver does not show 1 of 3 GPUs");
  sights = good_node();
  sights.driver_answers = false;
  health = node_state(sights).conditions[1];
  EXPECT_EQ(health.status, "Unknown");
  EXPECT_EQ(health.reason, "DriverUnavailable");
  sights = good_node();
  for (int i = 0; i < 16; ++i) {
    sights.gpus.push_back({i, "GPU-" + std::string(200, 'x'), fallen()});
    sights.gpus.back().verdict.text = "\xc3\xbc\xc3\xbc\xc3\xbc" + std::string(300, 'y');
  }
  health = node_state(sights).conditions[1];
  EXPECT_LE(health.message.size(), 1024u);
  EXPECT_TRUE(is_utf8(health.message));
}

TEST(NodeState, TableFitsATerminal) {
  NodeSights sights = good_node();
  sights.gpus[0].uuid = "GPU-6f1c2a34-0000-4000-8000-0123456789ab";
  sights.gpus[1].verdict = fallen();
  EXPECT_EQ(status_table(sights, node_state(sights)),
            "ready\n"
            "\n"
            "STEP         STATE   REASON             DETAIL\n"
            "driver       ok      DriverAnswers      driver 580.159.04\n"
            "devices      ok      DevicesFound       2 GPUs\n"
            "cdi          ok      CdiWritten         the CDI spec is written\n"
            "registration ok      Registered         1 resource\n"
            "allocatable  ok      Allocatable        the Node shows all that is healthy\n"
            "\n"
            "GPU UUID                                     HEALTH    CODE\n"
            "0   GPU-6f1c2a34-0000-4000-8000-0123456789ab healthy   -\n"
            "1   GPU-1                                    unhealthy Xid79\n"
            "    Xid 79: the GPU has fallen off the bus; reboot the node\n"
            "    healed by gpu-reset\n");
  sights.driver_answers = false;
  sights.driver_error = std::string(300, 'x') + "\x1b[2J\n\xff";
  for (auto& gpu : sights.gpus) {
    gpu.uuid = std::string(100, 'u');
    gpu.verdict.code = std::string(100, 'c');
    gpu.verdict.text = std::string(100, 't') + "\x1b";
  }
  const std::string table = status_table(sights, node_state(sights));
  std::size_t column = 0;
  for (std::string_view left = table; !left.empty();) {
    auto c = decode_utf8(left);
    ASSERT_TRUE(c.valid);
    left.remove_prefix(c.size);
    column = c.code == '\n' ? 0 : column + 1;
    ASSERT_LE(column, 80u) << table;
    ASSERT_TRUE(c.code == '\n' || !is_unprintable(c.code));
  }
}

TEST(NodeState, JsonSaysTheSame) {
  NodeSights sights = good_node();
  sights.gpus[1].verdict = fallen();
  sights.cdi_written = false;
  sights.cdi_error = "no \"room\"\xff";
  auto document = text::parse_json(status_json(sights, node_state(sights)));
  ASSERT_TRUE(document.ok());
  const text::Value& root = document->root();
  EXPECT_FALSE(root.find("ready")->as_bool());
  ASSERT_EQ(root.find("steps")->size(), 5u);
  EXPECT_EQ(root.find("steps")->items()[2].find("state")->string(), "failed");
  EXPECT_EQ(root.find("conditions")->items()[0].find("reason")->string(), "CdiNotWritten");
  EXPECT_EQ(root.find("gpus")->items()[1].find("healedBy")->string(), "gpu-reset");
}

TEST(NodeState, AMigLayoutIsShownWithAllThatIsInItsWay) {
  NodeSights sights;
  sights.driver_answers = true;
  EXPECT_EQ(status_table(sights, node_state(sights)).find("MIG"), std::string::npos);
  sights.mig = {"mixed", "failed", "MigInUse",
                "GPU 0 (NVIDIA H200): team/train-0 holds MIG-64506373-2817-5a82-a193-8a6102242fab; "
                "the layout wants 7 x 1g.18gb there\x1b"};
  const std::string table = status_table(sights, node_state(sights));
  EXPECT_NE(table.find("\nmixed                                    failed   MigInUse\n"
                       "  GPU 0 (NVIDIA H200): team/train-0 holds\n"
                       "  MIG-64506373-2817-5a82-a193-8a6102242fab; the layout wants 7 x 1g.18gb\n"
                       "  there\\x1b\n"),
            std::string::npos)
      << table;
  EXPECT_NE(status_json(sights, node_state(sights)).find("\"reason\": \"MigInUse\""),
            std::string::npos);
}

}  // namespace
}  // namespace berth::monitor
