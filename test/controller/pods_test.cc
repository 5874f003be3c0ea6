// Pods and gangs without queues.
#include "controller/rig.h"

namespace berth::control_test {
namespace {

TEST(ControllerPods, SinglePodsAreBoundWithOneWriteEach) {
  Rig rig(kTwoNodes);
  for (int i = 0; i < 5; ++i) rig.pod(fmt::format("a{}", i), 2);
  rig.apply(
      "{apiVersion: v1, kind: Pod, metadata: {name: other, namespace: default}, spec: "
      "{schedulerName: somebody, containers: [{name: c, image: i}]}}");
  rig.start();
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 4; }));
  ASSERT_TRUE(rig.until([&] { return rig.phase_of("a3") == "Running"; }));
  rig.run(3 * kSecond);
  EXPECT_EQ(rig.brain->writes("bind"), 4u);
  EXPECT_EQ(rig.brain->controller.summary().bound, 4u);
  EXPECT_EQ(
      rig.get_pod("a0").at("metadata.annotations").find("berth.dev/gpus") != std::string::npos,
      true);
  EXPECT_EQ(rig.node_of("other"), "");
  const std::string pod = "/api/v1/namespaces/default/pods/a4";
  EXPECT_EQ(rig.condition(pod, "PodScheduled"), "False");
  EXPECT_EQ(rig.condition(pod, "PodScheduled", "reason"), "Unschedulable");
  EXPECT_NE(rig.condition(pod, "PodScheduled", "message"), "");
  const std::uint64_t told = rig.brain->writes("tell");
  rig.delete_pod("a0");
  ASSERT_TRUE(rig.until([&] { return !rig.node_of("a4").empty(); }));
  EXPECT_EQ(rig.brain->writes("bind"), 5u);
  EXPECT_LE(rig.brain->writes("tell"), told + 1);
  EXPECT_FALSE(rig.lines.decided.empty());
}

TEST(ControllerPods, OwnBindingsStartNoCycles) {
  Rig rig(kTwoNodes);
  rig.start();
  rig.run(2 * kSecond);
  rig.pod("a", 1);
  ASSERT_TRUE(rig.until([&] { return rig.phase_of("a") == "Running"; }));
  rig.run(kSecond);
  const std::uint64_t cycles = rig.brain->controller.summary().cycles;
  rig.pod("b", 1);
  ASSERT_TRUE(rig.until([&] { return rig.phase_of("b") == "Running"; }));
  rig.run(5 * kSecond);
  EXPECT_LE(rig.brain->controller.summary().cycles, cycles + 1);
}

TEST(ControllerPods, AGangStartsAsAWholeOrNotAtAll) {
  Rig rig(kTwoNodes);
  rig.define("scheduling.x-k8s.io", "v1alpha1", "PodGroup", true);
  rig.pod("early", 2);
  rig.apply(
      "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g, namespace: "
      "default}, spec: {minMember: 2}}");
  rig.start();
  ASSERT_TRUE(rig.until([&] { return !rig.node_of("early").empty(); }));
  const std::string member = "labels: {scheduling.x-k8s.io/pod-group: g}";
  rig.pod("g0", 4, "", member);
  rig.pod("g1", 4, "", member);
  rig.run(10 * kSecond);
  EXPECT_EQ(rig.bound().size(), 1u);
  rig.delete_pod("early");
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 2; }));
  const std::string group = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups/g";
  ASSERT_TRUE(rig.until([&] { return rig.get(group).at("status.phase") == "Running"; }));
  EXPECT_EQ(rig.get(group).at("status.scheduled"), "2");
}

TEST(ControllerPods, PreemptionWaitsUntilTheVictimsAreGone) {
  Rig rig(kTwoNodes);
  rig.apply(
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, "
      "value: 1000}");
  rig.start();
  for (int i = 0; i < 4; ++i) rig.pod(fmt::format("low{}", i), 2);
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 4; }));
  ASSERT_TRUE(rig.until([&] { return rig.phase_of("low3") == "Running"; }));
  rig.pod("high", 4, "priorityClassName: high");
  ASSERT_TRUE(rig.until([&] { return !rig.node_of("high").empty(); }));
  EXPECT_EQ(rig.brain->controller.summary().evicted, 2u);
  const std::string node = rig.node_of("high");
  for (const std::string& pod : rig.bound()) {
    EXPECT_TRUE(pod.starts_with("high") || !pod.ends_with("@" + node)) << pod;
  }
  ASSERT_TRUE(rig.until([&] { return rig.phase_of("high") == "Running"; }));
  rig.run(30 * kSecond);
  EXPECT_EQ(rig.brain->controller.summary().evicted, 2u) << "nobody else leaves";
}

// Somebody's policy, or the fence, refuses to delete the pods of `name`.
void refuse_to_delete(Rig& rig, const std::string& name, int status) {
  rig.brain->transport.refuses = [name, status](const text::HttpRequest& request) {
    return request.method == "DELETE" && request.target.find(name) != std::string::npos ? status
                                                                                        : 0;
  };
}
const char* const kHighClass =
    "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}";

TEST(ControllerPods, AVictimThatMayNotBeDeletedKeepsItsPlace) {
  for (const int status : {422, 403, 500}) {
    SCOPED_TRACE(status);
    Rig rig("pools: [{name: m, count: 1, model: NVIDIA-H100-80GB-HBM3, gpus: 4}]");
    rig.apply(kHighClass);
    rig.start();
    rig.pod("low", 4);
    ASSERT_TRUE(rig.until([&] { return rig.phase_of("low") == "Running"; }));
    refuse_to_delete(rig, "low", status);
    rig.pod("high", 4, "priorityClassName: high");
    rig.run(120 * kSecond);
    EXPECT_EQ(rig.node_of("high"), "") << "both would hold the same GPUs";
    EXPECT_EQ(rig.phase_of("low"), "Running");
    EXPECT_GE(rig.brain->transport.refusals, 3) << "it is asked again";
    EXPECT_LE(rig.brain->transport.refusals, 20) << "and not all the time";
    EXPECT_EQ(rig.brain->controller.summary().evicted, 0u);
    EXPECT_NE(fmt::format("{}", fmt::join(rig.lines.logged, "")).find("could not be told to leave"),
              std::string::npos);
    rig.brain->transport.refuses = nullptr;
    ASSERT_TRUE(rig.until([&] { return rig.phase_of("high") == "Running"; }, 600 * kSecond));
    EXPECT_EQ(rig.brain->controller.summary().evicted, 1u);
  }
}

TEST(ControllerPods, InsteadOfAVictimThatMayNotBeDeletedAnotherLeaves) {
  Rig rig(kTwoNodes);
  rig.apply(kHighClass);
  rig.start();
  rig.pod("lower", 4);
  rig.pod("other", 4);
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 2; }));
  ASSERT_TRUE(rig.until([&] { return rig.phase_of("other") == "Running"; }));
  refuse_to_delete(rig, "lower", 422);
  rig.pod("high", 4, "priorityClassName: high");
  ASSERT_TRUE(rig.until([&] { return rig.phase_of("high") == "Running"; }));
  EXPECT_EQ(rig.phase_of("lower"), "Running");
}

TEST(ControllerPods, PodsOfOurOwnNamespaceAreNobodysVictims) {
  Rig rig("pools: [{name: m, count: 1, model: NVIDIA-H100-80GB-HBM3, gpus: 4}]");
  rig.apply(kHighClass);
  rig.start({.own_namespace = "default"});
  rig.pod("low", 4);
  ASSERT_TRUE(rig.until([&] { return rig.phase_of("low") == "Running"; }));
  rig.pod("high", 4, "priorityClassName: high");
  rig.run(60 * kSecond);
  EXPECT_EQ(rig.node_of("high"), "");
  EXPECT_EQ(rig.brain->controller.summary().evicted, 0u);
}

TEST(ControllerPods, CordonedNodesAndUnhealthyGpusTakeNothing) {
  Rig rig(kTwoNodes);
  rig.start();
  rig.world.merge("/api/v1/nodes/m-0", R"({"spec":{"unschedulable":true}})");
  rig.nodes->inject({.node = "m-1", .gpu = 0, .kind = sim::FaultKind::kXid, .code = 79});
  rig.run(5 * kSecond);
  for (int i = 0; i < 4; ++i) rig.pod(fmt::format("a{}", i), 1);
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 3; }));
  rig.run(5 * kSecond);
  EXPECT_EQ(rig.bound().size(), 3u);
  for (const std::string& pod : rig.bound()) EXPECT_TRUE(pod.ends_with("@m-1")) << pod;
  rig.world.merge("/api/v1/nodes/m-0", R"({"spec":{"unschedulable":null}})");
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 4; }));
}

TEST(ControllerPods, ARefusedMemberStartsTheGangAnew) {
  Rig rig(kTwoNodes);
  rig.apply(
      "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: default, annotations: "
      "{berth.dev/gang: 'true'}}, spec: {parallelism: 2, completions: 2, backoffLimit: 20, "
      "template: {spec: {schedulerName: berth, restartPolicy: Never, containers: [{name: c, image: "
      "i, resources: {limits: {nvidia.com/gpu: 4}}}]}}}}");
  rig.nodes->inject({.node = "m-1", .kind = sim::FaultKind::kRefusePods, .for_ns = 20 * kSecond});
  rig.start();
  ASSERT_TRUE(rig.until(
      [&] {
        const auto bound = rig.bound();
        return bound.size() == 2 &&
               rig.get("/apis/batch/v1/namespaces/default/jobs/j").at("status.ready") == "2";
      },
      900 * kSecond));
  EXPECT_GE(rig.brain->controller.summary().evicted, 1u) << "the other member left with it";
}

TEST(ControllerPods, ADeploymentOfGpuPodsRuns) {
  Rig rig(kTwoNodes);
  rig.start();
  rig.apply(
      "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: default}, spec: "
      "{replicas: 2, selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, "
      "spec: {schedulerName: berth, containers: [{name: c, image: i, resources: {limits: "
      "{nvidia.com/gpu: 1}}}]}}}}");
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 2; }));
  rig.delete_pod(rig.bound()[0].substr(0, rig.bound()[0].find('@')));
  rig.run(kSecond);
  ASSERT_TRUE(rig.until([&] {
    return rig.get("/apis/apps/v1/namespaces/default/deployments/d").at("status.readyReplicas") ==
           "2";
  }));
}

TEST(ControllerPods, AGroupOfKubernetesIsToldThatItWasScheduledOnce) {
  Rig rig(kTwoNodes);
  rig.define("scheduling.k8s.io", "v1beta1", "PodGroup", true);
  rig.apply(
      "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: g, namespace: "
      "default}, spec: {schedulingPolicy: {gang: {minCount: 2}}}}");
  rig.run(31 * kSecond);
  rig.start();
  const std::string group = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups/g";
  rig.pod("g0", 4, "schedulingGroup: {podGroupName: g}");
  rig.run(10 * kSecond);
  EXPECT_EQ(rig.condition(group, "PodGroupInitiallyScheduled"), "");
  rig.pod("g1", 4, "schedulingGroup: {podGroupName: g}");
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 2; }));
  ASSERT_TRUE(
      rig.until([&] { return rig.condition(group, "PodGroupInitiallyScheduled") == "True"; }));
  const std::string version = rig.get(group).at("metadata.resourceVersion");
  rig.delete_pod("g0");
  rig.run(30 * kSecond);
  EXPECT_EQ(rig.condition(group, "PodGroupInitiallyScheduled"), "True");
  EXPECT_EQ(rig.get(group).at("metadata.resourceVersion"), version);
}

// ---- restarts, two at once, a server that is away ----

TEST(ControllerLife, ARestartAtAnyMomentGoesOn) {
  Rig rig("pools: [{name: m, count: 4, model: NVIDIA-H100-80GB-HBM3, gpus: 4}]");
  rig.define("scheduling.x-k8s.io", "v1alpha1", "PodGroup", true);
  rig.apply(
      "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g, namespace: "
      "default}, spec: {minMember: 6}}");
  for (int i = 0; i < 6; ++i) {
    rig.pod(fmt::format("g{}", i), 2, "", "labels: {scheduling.x-k8s.io/pod-group: g}");
  }
  for (int i = 0; i < 4; ++i) rig.pod(fmt::format("a{}", i), 1);
  Random random(5);
  std::size_t before = 0;
  for (int i = 0; i < 200 && rig.bound().size() < 10; ++i) {
    rig.start({.max_writes_at_once = 2}, 100 + static_cast<std::uint64_t>(i));
    rig.run(random.between(0, 60'000'000));  // in the middle of reading, deciding, writing
    EXPECT_GE(rig.bound().size(), before);
    before = rig.bound().size();
  }
  rig.start();
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 10; }));
}

TEST(ControllerLife, OnlyTheLeaderWrites) {
  Rig rig(kTwoNodes);
  int leader = 0;
  Brain a(rig.world, rig.lines, 31, {}, [&] { return leader == 0; });
  Brain b(rig.world, rig.lines, 41, {}, [&] { return leader == 1; });
  for (int i = 0; i < 8; ++i) {
    rig.pod(fmt::format("p{}", i), 1);
    const std::uint64_t of_a = a.controller.summary().bound, of_b = b.controller.summary().bound;
    ASSERT_TRUE(rig.until([&] { return rig.bound().size() == static_cast<std::size_t>(i) + 1; }));
    EXPECT_EQ(a.controller.summary().bound - of_a, leader == 0 ? 1u : 0u);
    EXPECT_EQ(b.controller.summary().bound - of_b, leader == 1 ? 1u : 0u);
    leader = 1 - leader;
    a.controller.wake();
    b.controller.wake();
  }
  EXPECT_EQ(a.writes("bind") + b.writes("bind"), 8u);
}

TEST(ControllerLife, AServerThatIsAwayForTenMinutes) {
  Rig rig(kTwoNodes);
  bool away = false;
  rig.world.server->set_fault_hook([&](const text::HttpRequest& request) {
    sim::ApiFault fault;
    const auto agent = text::find_header(request.headers, "User-Agent");
    if (away && agent && *agent == "brain") fault.kind = sim::ApiFault::Kind::kDropBefore;
    return fault;
  });
  rig.start();
  rig.pod("first", 1);
  ASSERT_TRUE(rig.until([&] { return !rig.node_of("first").empty(); }));
  away = true;
  rig.pod("second", 1);
  rig.run(600 * kSecond);
  EXPECT_EQ(rig.node_of("second"), "");
  EXPECT_LT(rig.brain->writes("bind"), 400u) << "it does not hammer";
  away = false;
  ASSERT_TRUE(rig.until([&] { return !rig.node_of("second").empty(); }, 180 * kSecond));
}

TEST(ControllerLife, AnswersThatAreLostAreNotBelieved) {
  Rig rig(kTwoNodes);
  Random random(9);
  rig.world.server->set_fault_hook([&](const text::HttpRequest& request) {
    sim::ApiFault fault;
    if (!request.target.ends_with("/binding") || random.chance(1, 2)) return fault;
    constexpr sim::ApiFault::Kind kKinds[] = {sim::ApiFault::Kind::kDropBefore,
                                              sim::ApiFault::Kind::kDropAfter,
                                              sim::ApiFault::Kind::kRefuse};
    fault.kind = kKinds[random.below(3)];
    fault.status = 409;
    return fault;
  });
  rig.start();
  for (int i = 0; i < 8; ++i) rig.pod(fmt::format("p{}", i), 1);
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 8; }, 600 * kSecond));
  std::map<std::string, int> on;
  for (const std::string& pod : rig.bound()) ++on[pod.substr(pod.find('@'))];
  EXPECT_EQ(on.size(), 2u);
  ASSERT_TRUE(rig.until([&] {
    for (int i = 0; i < 8; ++i) {
      if (rig.phase_of(fmt::format("p{}", i)) != "Running") return false;
    }
    return true;
  })) << "no node got more than it holds";
}

TEST(ControllerLife, BindingsByOthersAreAbsorbed) {
  Rig rig(kTwoNodes);
  rig.start();
  rig.run(kSecond);
  rig.apply(
      "{apiVersion: v1, kind: Pod, metadata: {name: theirs, namespace: default}, spec: "
      "{schedulerName: somebody, containers: [{name: c, image: i, resources: {limits: "
      "{nvidia.com/gpu: 4}}}]}}");
  rig.world.post("/api/v1/namespaces/default/pods/theirs/binding",
                 R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"theirs"},)"
                 R"("target":{"kind":"Node","name":"m-0"}})");
  rig.pod("ours", 4);
  ASSERT_TRUE(rig.until([&] { return !rig.node_of("ours").empty(); }));
  rig.pod("late", 1);
  EXPECT_EQ(rig.node_of("ours"), "m-1");
  rig.run(5 * kSecond);
  EXPECT_EQ(rig.node_of("late"), "");
}

}  // namespace
}  // namespace berth::control_test
