// Objects of which something cannot be read: what they hold is nobody else's.
#include <set>

#include "controller/rig.h"

namespace berth::control_test {
namespace {

double unreadable(Brain& brain, const std::string& kind) {
  return brain.metrics
      .gauge({.name = "berth_controller_unreadable_objects",
              .help = "Objects that count although part of them cannot be read, by kind.",
              .labels = {"kind"}})
      .with({kind})
      .value();
}

bool told(Rig& rig, const std::string& part) {
  const auto list = rig.get("/apis/events.k8s.io/v1/events");
  for (const text::Value& event : list.root().find("items")->items()) {
    const text::Value* reason = event.find("reason");
    const text::Value* note = event.find("note");
    if (reason != nullptr && reason->string() == "Unreadable" && note != nullptr &&
        note->string().find(part) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

TEST(ControllerUnreadable, AnAnnotationOfAPodThatRunsFreesNothing) {
  Rig rig(kTwoNodes);
  rig.pod("a", 4);
  rig.pod("b", 4);
  rig.start();
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 2; }));
  rig.pod("waits", 4);
  const char* const bad[] = {
      R"({"gpu-fraction":"x"})",
      R"({"gpu-fraction":"0.1"})",
      R"({"gpu-memory":"-5"})",
      R"({"gpu-fraction-num-devices":"x"})",
      R"({"berth.dev/gpus":"-1"})",
      R"({"berth.dev/gpus":"0,x"})",
      R"({"berth.dev/gpu-model":","})",
      R"({"berth.dev/gpu-memory-min":"x"})",
      R"({"berth.dev/topology-required":"a b"})",
      R"({"scheduling.k8s.io/group-name":"A B"})",
      R"({"scheduling.volcano.sh/group-min-member":"x"})",
  };
  std::set<std::string> keys;
  for (const char* one : bad) {
    keys.insert(std::string(one).substr(1, std::string(one).find(':')));
    rig.annotate_pod("a", one);
    rig.run(2 * kSecond);
    EXPECT_EQ(rig.brain->controller.counted()["default/a"], 4) << one;
    EXPECT_EQ(rig.node_of("waits"), "") << one;
    EXPECT_EQ(unreadable(*rig.brain, "Pod"), 1) << one;
  }
  EXPECT_TRUE(told(rig, "gpu-fraction"));
  EXPECT_TRUE(told(rig, "it runs, so it counts"));
  rig.start({}, 22);  // a new one reads everything afresh
  rig.run(10 * kSecond);
  EXPECT_EQ(rig.node_of("waits"), "");
  EXPECT_EQ(unreadable(*rig.brain, "Pod"), 1);
  for (const std::string& key : keys) rig.annotate_pod("a", "{" + key + "null}");
  rig.run(2 * kSecond);
  EXPECT_EQ(unreadable(*rig.brain, "Pod"), 0);
  rig.delete_pod("a");
  EXPECT_TRUE(rig.until([&] { return !rig.node_of("waits").empty(); }));
}

// Whoever saw it start knows which part it has; whoever comes later counts the whole GPU.
TEST(ControllerUnreadable, APartOfAGpuBecomesAWholeOneToWhoDidNotSeeItStart) {
  Rig rig("pools: [{name: m, count: 1, model: NVIDIA-H100-80GB-HBM3, gpus: 1}]");
  const auto part = [&rig](const std::string& name) {
    rig.apply(
        fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {}, namespace: default, "
                    "annotations: {{gpu-fraction: '0.4'}}}}, spec: {{schedulerName: berth, "
                    "containers: [{{name: c, image: i}}]}}}}",
                    name));
  };
  part("a");
  rig.start();
  ASSERT_TRUE(rig.until([&] { return !rig.node_of("a").empty(); }));
  rig.annotate_pod("a", R"({"gpu-fraction":"most of it"})");
  rig.run(2 * kSecond);
  part("b");
  ASSERT_TRUE(rig.until([&] { return !rig.node_of("b").empty(); }));
  rig.delete_pod("b");
  rig.start();
  rig.run(5 * kSecond);
  part("c");
  rig.run(5 * kSecond);
  EXPECT_EQ(rig.node_of("c"), "");
  rig.annotate_pod("a", R"({"gpu-fraction":"0.4"})");
  rig.run(5 * kSecond);
  EXPECT_EQ(rig.node_of("c"), "") << "what it was seen to hold";
  rig.delete_pod("a");
  EXPECT_TRUE(rig.until([&] { return !rig.node_of("c").empty(); }));
}

// The binding is on its way when the annotation is spoilt.
TEST(ControllerUnreadable, APodIsSpoiltWhileItIsBound) {
  Rig rig("pools: [{name: m, count: 1, model: NVIDIA-H100-80GB-HBM3, gpus: 4}]");
  rig.start();
  rig.run(2 * kSecond);
  rig.world.server->set_fault_hook([](const text::HttpRequest& request) {
    const bool slow = request.target.find("/binding") != std::string::npos;
    return slow ? sim::ApiFault{.kind = sim::ApiFault::Kind::kDelay, .delay_ns = 3 * kSecond}
                : sim::ApiFault{};
  });
  rig.pod("a", 4);
  rig.run(kSecond);
  ASSERT_EQ(rig.node_of("a"), "");
  rig.annotate_pod("a", R"({"gpu-memory":"x"})");
  rig.pod("b", 4);
  rig.run(10 * kSecond);
  EXPECT_EQ(rig.node_of("a"), "m-0");
  EXPECT_EQ(rig.node_of("b"), "");
}

TEST(ControllerUnreadable, OneThatWaitsIsRefused) {
  Rig rig(kTwoNodes);
  rig.pod("a", 1, "", "annotations: {gpu-memory: x}");
  rig.start();
  rig.run(5 * kSecond);
  EXPECT_EQ(rig.node_of("a"), "");
  EXPECT_NE(rig.condition("/api/v1/namespaces/default/pods/a", "PodScheduled", "message")
                .find("gpu-memory"),
            std::string::npos);
  EXPECT_EQ(unreadable(*rig.brain, "Pod"), 0);
}

}  // namespace
}  // namespace berth::control_test
