// Pods that kubelets refuse: the garbage is bounded, the node is left alone, the work goes on.
#include "controller/rig.h"

namespace berth::control_test {
namespace {

std::string deployment(const std::string& name, int replicas, int gpus) {
  return fmt::format(
      "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {0}, namespace: default}}, spec: "
      "{{replicas: {1}, selector: {{matchLabels: {{app: {0}}}}}, template: {{metadata: {{labels: "
      "{{app: {0}}}}}, spec: {{schedulerName: berth, containers: [{{name: c, image: i, resources: "
      "{{limits: {{nvidia.com/gpu: {2}}}}}}}]}}}}}}}}",
      name, replicas, gpus);
}

// Pods by what they are: failed ones, and those that run.
struct Census {
  int failed = 0, running = 0;
  std::map<std::string, int> on;  // running, by node
};
Census census_of(Rig& rig) {
  Census out;
  const auto list = rig.get("/api/v1/pods");
  for (const text::Value& pod : list.root().find("items")->items()) {
    const std::string_view phase = pod.find("status")->find("phase")->string();
    out.failed += phase == "Failed" ? 1 : 0;
    if (phase != "Running") continue;
    ++out.running;
    ++out.on[std::string(pod.find("spec")->find("nodeName")->string())];
  }
  return out;
}

bool tainted(Rig& rig, const std::string& node) {
  return rig.get("/api/v1/nodes/" + node).body.find("berth.dev/rejecting") != std::string::npos;
}

int events_with(Rig& rig, const std::string& reason) {
  int out = 0;
  const auto list = rig.get("/apis/events.k8s.io/v1/events");
  for (const text::Value& event : list.root().find("items")->items()) {
    const text::Value* found = event.find("reason");
    out += found != nullptr && found->string() == reason ? 1 : 0;
  }
  return out;
}

// #231 of NVIDIA's device plugin: one dead GPU and a Deployment made 12,000 pods.
TEST(ControllerRejections, ADeadGpuMakesNoStorm) {
  Rig rig("pools: [{name: m, count: 2, model: NVIDIA-H100-80GB-HBM3, gpus: 4}]");
  rig.nodes->inject({.node = "m-0", .gpu = 0, .kind = sim::FaultKind::kRefusePods});
  rig.start();
  rig.apply(deployment("d", 4, 1));
  int most = 0;
  bool seen_taint = false;
  const bool served = rig.until(
      [&] {
        const Census now = census_of(rig);
        most = std::max(most, now.failed);
        seen_taint = seen_taint || tainted(rig, "m-0");
        return seen_taint && now.running == 4;
      },
      300 * kSecond);
  EXPECT_TRUE(served) << "work goes elsewhere";
  EXPECT_TRUE(seen_taint);
  for (int i = 0; i < 3600; ++i) {  // an hour of trials
    rig.run(kSecond);
    if (i % 10 == 0) most = std::max(most, census_of(rig).failed);
  }
  EXPECT_LE(most, 10);
  EXPECT_EQ(census_of(rig).running, 4);
  EXPECT_GE(events_with(rig, "Refused"), 1);
  // It heals: the node is free again, and takes pods.
  rig.nodes->inject({.node = "m-0", .kind = sim::FaultKind::kRecover});
  ASSERT_TRUE(rig.until([&] { return !tainted(rig, "m-0"); }, 2000 * kSecond));
  rig.apply(deployment("e", 4, 1));
  ASSERT_TRUE(rig.until([&] { return census_of(rig).running == 8; }, 300 * kSecond));
  rig.run(60 * kSecond);
  EXPECT_FALSE(tainted(rig, "m-0"));
  EXPECT_LE(census_of(rig).failed, 4);
}

TEST(ControllerRejections, ANodeThatRefusesEverythingIsLeftAlone) {
  Rig rig("pools: [{name: m, count: 2, model: NVIDIA-H100-80GB-HBM3, gpus: 8}]");
  rig.nodes->inject({.node = "m-0", .kind = sim::FaultKind::kRefusePods});
  rig.start();
  rig.apply(deployment("d", 8, 1));
  int most = 0;
  ASSERT_TRUE(rig.until(
      [&] {
        most = std::max(most, census_of(rig).failed);
        return census_of(rig).on["m-1"] == 8;
      },
      300 * kSecond));
  EXPECT_LE(most, 10);
  ASSERT_TRUE(rig.until([&] { return census_of(rig).failed <= 2; }));
  EXPECT_TRUE(tainted(rig, "m-0"));
  // A restart knows what the taint says, and a pod that nobody makes again stays where it is.
  rig.start({}, 77);
  rig.run(5 * kSecond);
  EXPECT_TRUE(tainted(rig, "m-0"));
  rig.pod("mine", 1, "tolerations: [{operator: Exists}]");
  ASSERT_TRUE(rig.until([&] { return rig.phase_of("mine") == "Failed"; }));
  rig.run(300 * kSecond);
  EXPECT_EQ(rig.phase_of("mine"), "Failed");
  EXPECT_EQ(rig.get_pod("mine").at("status.reason"), "UnexpectedAdmissionError");
  EXPECT_GE(events_with(rig, "RefusesPods"), 1);
}

TEST(ControllerRejections, AnyOtherTaintStays) {
  Rig rig(
      "pools: [{name: m, count: 1, model: NVIDIA-H100-80GB-HBM3, gpus: 4, taints: [{key: team, "
      "value: a, effect: NoSchedule}]}]");
  rig.nodes->inject({.node = "m-0", .kind = sim::FaultKind::kRefusePods, .for_ns = 30 * kSecond});
  rig.start();
  rig.apply(
      "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: default}, spec: "
      "{parallelism: 3, completions: 3, backoffLimit: 20, template: {spec: {schedulerName: berth, "
      "restartPolicy: Never, tolerations: [{key: team, operator: Exists}], containers: [{name: c, "
      "image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}");
  ASSERT_TRUE(rig.until([&] { return tainted(rig, "m-0"); }));
  ASSERT_TRUE(rig.until([&] { return !tainted(rig, "m-0"); }, 600 * kSecond));
  EXPECT_NE(rig.get("/api/v1/nodes/m-0").body.find("\"team\""), std::string::npos);
  ASSERT_TRUE(rig.until([&] { return census_of(rig).running == 3; }, 300 * kSecond));
}

// Whoever may make pods in one namespace may not take nodes from all others: a kubelet refuses what
// a pod's author sent it by nodeName.
TEST(ControllerRejections, PodsThatTheirAuthorPutOnNodesTaintNone) {
  Rig rig("pools: [{name: m, count: 8, model: NVIDIA-H100-80GB-HBM3, gpus: 8}]");
  rig.start();
  for (int i = 0; i < 24; ++i) {
    rig.pod("evil-" + std::to_string(i), 512, "nodeName: m-" + std::to_string(i % 8),
            "annotations: {berth.dev/gpus: '0'}");
  }
  ASSERT_TRUE(rig.until([&] { return census_of(rig).failed == 24; }));
  rig.run(30 * kSecond);
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(tainted(rig, "m-" + std::to_string(i))) << i;
  // Nor after a restart, which finds them refused.
  rig.start({}, 77);
  rig.run(30 * kSecond);
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(tainted(rig, "m-" + std::to_string(i))) << i;
  // A node that is really broken is found all the same.
  rig.nodes->inject({.node = "m-3", .kind = sim::FaultKind::kRefusePods});
  rig.apply(deployment("d", 60, 1));
  ASSERT_TRUE(rig.until([&] { return tainted(rig, "m-3"); }, 300 * kSecond));
  rig.run(30 * kSecond);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(tainted(rig, "m-" + std::to_string(i)), i == 3) << i;
  }
}

// A fault of many nodes at once (a driver that was updated) must not shut the fleet.
TEST(ControllerRejections, OfManyBrokenNodesAShareIsTainted) {
  Rig rig("pools: [{name: m, count: 8, model: NVIDIA-H100-80GB-HBM3, gpus: 4}]");
  for (int i = 0; i < 8; ++i) {
    rig.nodes->inject({.node = "m-" + std::to_string(i), .kind = sim::FaultKind::kRefusePods});
  }
  rig.start();
  for (int i = 0; i < 6; ++i) rig.apply(deployment("d" + std::to_string(i), 3, 1));
  int most = 0;
  for (int second = 0; second < 60; ++second) {
    rig.run(kSecond);
    int now = 0;
    for (int i = 0; i < 8; ++i) now += tainted(rig, "m-" + std::to_string(i)) ? 1 : 0;
    most = std::max(most, now);
  }
  EXPECT_GE(most, 1);
  EXPECT_LE(most, 2);
}

// One Deployment and nodes that all refuse it: it is told no a few times, not for ever.
TEST(ControllerRejections, AnOwnerThatIsRefusedEverywhereWaits) {
  Rig rig("pools: [{name: m, count: 8, model: NVIDIA-H100-80GB-HBM3, gpus: 4}]");
  for (int i = 0; i < 8; ++i) {
    rig.nodes->inject({.node = "m-" + std::to_string(i), .kind = sim::FaultKind::kRefusePods});
  }
  rig.start();
  rig.apply(deployment("d", 4, 1));
  rig.run(120 * kSecond);
  const std::uint64_t refused = rig.brain->metrics
                                    .counter({.name = "berth_controller_rejected_total",
                                              .help = "Pods that a kubelet refused."})
                                    .get()
                                    .value();
  EXPECT_GE(refused, 3u);
  EXPECT_LE(refused, 200u) << "no storm";
  EXPECT_LE(census_of(rig).failed, 10);
}

// A node boots, its pods come back before the agent and are refused; agent, kubelet and controller
// come in any order. Nothing is lost: what has an owner runs again, what has none says why it does
// not.
TEST(ControllerRejections, AfterARebootInAnyOrderTheWorkRunsAgain) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Rig rig("pools: [{name: m, count: 2, model: NVIDIA-H100-80GB-HBM3, gpus: 4}]");
    rig.start();
    rig.apply(deployment("d", 3, 1));
    rig.apply(
        "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: default}, spec: "
        "{parallelism: 2, completions: 2, backoffLimit: 20, template: {spec: {schedulerName: "
        "berth, restartPolicy: OnFailure, containers: [{name: c, image: i, resources: {limits: "
        "{nvidia.com/gpu: 1}}}]}}}}");
    rig.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: alone, namespace: default}, spec: "
        "{schedulerName: berth, containers: [{name: c, image: i, resources: {limits: "
        "{nvidia.com/gpu: 1}}}]}}");
    ASSERT_TRUE(rig.until([&] { return census_of(rig).running == 6; }));
    const std::string node = random.chance(1, 2) ? rig.node_of("alone") : "m-0";
    rig.nodes->inject({.node = node,
                       .kind = sim::FaultKind::kReboot,
                       .for_ns = random.between(1, 90) * kSecond,
                       .agent_ns = random.between(0, 3) * 20 * kSecond});
    for (int i = 0; i < 4; ++i) {
      rig.run(random.between(1, 60) * kSecond);
      if (random.chance(1, 2)) rig.start({}, seed * 100 + static_cast<std::uint64_t>(i));
      if (random.chance(1, 4)) {
        rig.nodes->inject({.node = node,
                           .kind = sim::FaultKind::kReboot,
                           .for_ns = 5 * kSecond,
                           .agent_ns = random.between(0, 30) * kSecond});
      }
    }
    const bool refused = rig.phase_of("alone") == "Failed";
    const int wanted = refused ? 5 : 6;
    EXPECT_TRUE(rig.until([&] { return census_of(rig).running == wanted; }, 600 * kSecond))
        << census_of(rig).running << " of " << wanted;
    EXPECT_LE(census_of(rig).failed, 6);
    if (refused) {
      EXPECT_EQ(rig.get_pod("alone").at("status.reason"), "UnexpectedAdmissionError");
    }
    EXPECT_TRUE(rig.until([&] { return !tainted(rig, node); }, 2000 * kSecond));
  }
}

}  // namespace
}  // namespace berth::control_test
