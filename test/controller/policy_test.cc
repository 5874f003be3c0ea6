// The BerthPolicy of a cluster that runs: felt when it changes, told in its status, and replayed.
#include "controller/rig.h"

namespace berth::control_test {
namespace {

constexpr const char* kRacks =
    "pools: [{name: a, count: 2, model: NVIDIA-H100-80GB-HBM3, gpus: 4, labels: {rack: a}}, "
    "{name: b, count: 2, model: NVIDIA-H100-80GB-HBM3, gpus: 4, labels: {rack: b}}]";
constexpr const char* kAt = "/apis/berth.dev/v1alpha1/berthpolicies/";

void apply_policy(Rig& rig, const std::string& spec, const std::string& name = "default") {
  rig.apply(fmt::format(
      "{{apiVersion: berth.dev/v1alpha1, kind: BerthPolicy, metadata: {{name: {}}}, spec: {}}}",
      name, spec));
}
void change_policy(Rig& rig, const std::string& json) {
  const auto answer = rig.world.call("PATCH", std::string(kAt) + "default",
                                     R"([{"op":"replace","path":"/spec","value":)" + json + "}]",
                                     "application/json-patch+json");
  ASSERT_EQ(answer.status, 200) << answer.body;
}
void web_job(Rig& rig, const std::string& name, int pods) {
  rig.apply(fmt::format(
      "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {0}, namespace: default}}, spec: "
      "{{parallelism: {1}, completions: {1}, template: {{metadata: {{labels: {{app: web}}}}, spec: "
      "{{schedulerName: berth, restartPolicy: Never, containers: [{{name: c, image: i, resources: "
      "{{limits: {{nvidia.com/gpu: 1}}}}}}]}}}}}}}}",
      name, pods));
}
std::set<std::string> places(Rig& rig, const std::string& from) {
  std::set<std::string> out;
  for (const std::string& one : rig.bound()) {
    if (one.starts_with(from)) out.insert(one.substr(one.find('@') + 1));
  }
  return out;
}

TEST(LivePolicy, IsFeltWhileTheControllerRuns) {
  Rig rig(kRacks);
  rig.define("berth.dev", "v1alpha1", "BerthPolicy", false);
  apply_policy(rig,
               "{placement: {classes: [{name: web, match: {selector: {matchLabels: {app: web}}}, "
               "strategy: Spread, spreadOver: rack}]}}");
  rig.start();
  rig.run(31 * kSecond);
  web_job(rig, "s", 2);
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 2; }));
  std::set<char> racks;
  for (const std::string& node : places(rig, "s")) racks.insert(node[0]);
  EXPECT_EQ(racks.size(), 2u) << "one in each rack";
  EXPECT_EQ(rig.condition(std::string(kAt) + "default", "InForce"), "True");
  // From now on they pack.
  change_policy(rig, R"({"placement":{"packing":"MostAllocated","classes":[{"name":"all",)"
                     R"("match":{},"strategy":"Pack"}]}})");
  rig.run(2 * kSecond);
  web_job(rig, "t", 3);
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 5; }));
  EXPECT_EQ(places(rig, "t").size(), 1u) << "beside one another";
}

TEST(LivePolicy, PreemptionIsTurnedOffAndOn) {
  Rig rig(kTwoNodes);
  rig.define("berth.dev", "v1alpha1", "BerthPolicy", false);
  apply_policy(rig, "{preemption: {enabled: false}}");
  rig.apply(
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 9}");
  for (const char* name : {"low0", "low1"}) rig.pod(name, 4);
  rig.start();
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 2; }, 60 * kSecond));
  rig.pod("high", 4, "priorityClassName: high");
  rig.run(30 * kSecond);
  EXPECT_EQ(rig.node_of("high"), "");
  EXPECT_EQ(rig.bound().size(), 2u) << "nobody went";
  change_policy(rig, R"({"preemption":{"enabled":true}})");
  EXPECT_TRUE(rig.until([&] { return !rig.node_of("high").empty(); }, 60 * kSecond));
}

TEST(LivePolicy, SaysWhatIsInForce) {
  Rig rig(kTwoNodes);
  rig.define("berth.dev", "v1alpha1", "BerthPolicy", false);
  apply_policy(rig, "{placement: {packing: MostAllocated}}");
  apply_policy(rig, "{}", "spare");
  control::ControllerOptions options;
  options.policy.no_preemption = true;
  options.policy.words = {"--no-preemption"};
  rig.start(options);
  const std::string at = std::string(kAt) + "default";
  ASSERT_TRUE(rig.until([&] { return rig.condition(at, "InForce") == "True"; }, 60 * kSecond));
  EXPECT_EQ(rig.condition(at, "InForce", "reason"), "FlagsGoBefore");
  EXPECT_EQ(rig.get(at).root().find("status")->find("flags")->items()[0].string(),
            "--no-preemption");
  EXPECT_EQ(rig.condition(std::string(kAt) + "spare", "InForce", "reason"), "NotNamedDefault");
  const std::uint64_t writes = rig.brain->writes("status");
  rig.run(60 * kSecond);
  EXPECT_EQ(rig.brain->writes("status"), writes) << "said once";
  // What cannot be read is not in force, and says where.
  change_policy(rig, R"({"placement":{"packing":"Best"}})");
  ASSERT_TRUE(rig.until([&] { return rig.condition(at, "Valid") == "False"; }, 60 * kSecond));
  EXPECT_EQ(rig.condition(at, "InForce"), "False");
  EXPECT_NE(rig.condition(at, "Valid", "message").find("spec.placement.packing: found string"),
            std::string::npos);
  // Another leader without flags says so.
  change_policy(rig, "{}");
  rig.start();
  ASSERT_TRUE(
      rig.until([&] { return rig.condition(at, "InForce", "reason") == "Read"; }, 60 * kSecond));
  EXPECT_EQ(rig.get(at).root().find("status")->find("flags")->items().size(), 0u);
}

}  // namespace
}  // namespace berth::control_test
