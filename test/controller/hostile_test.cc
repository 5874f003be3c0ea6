// A tenant who means harm, and one who is quiet: what the second gets must not depend on the first.
#include "controller/rig.h"

namespace berth::control_test {
namespace {

constexpr const char* kFourNodes =
    "pools: [{name: m, count: 4, model: NVIDIA-H100-80GB-HBM3, gpus: 4}]";

void add_namespace(Rig& rig, const std::string& name) {
  rig.apply(fmt::format("{{apiVersion: v1, kind: Namespace, metadata: {{name: {}}}}}", name));
}

std::string rules(int pod, int terms) {
  std::string out;
  for (int t = 0; t < terms; ++t) {
    out += fmt::format(
        R"({}{{"topologyKey":"kubernetes.io/hostname","labelSelector":{{"matchLabels":{{"app":"x{}"}}}}}})",
        t == 0 ? "" : ",", pod * terms + t);
  }
  return R"({"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[)" + out + "]}}";
}

void post_ruled(Rig& rig, const std::string& ns, int pod, int terms) {
  const auto answer = rig.world.post(
      "/api/v1/namespaces/" + ns + "/pods",
      fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{}"}},"spec":)"
                  R"({{"schedulerName":"berth","affinity":{},"containers":[{{"name":"c",)"
                  R"("image":"i","resources":{{"limits":{{"nvidia.com/gpu":1}}}}}}]}}}})",
                  pod, rules(pod, terms)));
  ASSERT_EQ(answer.status, 201) << answer.body.substr(0, 300);
}

// Pods that bring more rules than are looked at wait, and say why; nobody else notices.
TEST(HostileTenant, RulesWithoutEndAreHisOwnTrouble) {
  Rig rig(kFourNodes);
  add_namespace(rig, "mallory");
  for (int i = 0; i < 40; ++i) post_ruled(rig, "mallory", i, 300);
  for (int i = 40; i < 90; ++i) post_ruled(rig, "mallory", i, 100);
  rig.pod("victim", 1);
  rig.start();
  ASSERT_TRUE(rig.until([&] { return !rig.node_of("victim").empty(); }, 5 * kSecond));
  ASSERT_TRUE(rig.until(
      [&] {
        return rig.condition("/api/v1/namespaces/mallory/pods/p89", "PodScheduled") == "False";
      },
      60 * kSecond));
  const auto said = [&](const std::string& pod) {
    return rig.condition("/api/v1/namespaces/mallory/pods/" + pod, "PodScheduled", "message");
  };
  EXPECT_NE(said("p0").find("300 rules about other pods"), std::string::npos) << said("p0");
  EXPECT_NE(said("p89").find("namespace mallory"), std::string::npos) << said("p89");
  EXPECT_EQ(rig.bound().size(), 1u);
  // With fewer of them they count again.
  for (int i = 0; i < 80; ++i) rig.remove(fmt::format("/api/v1/namespaces/mallory/pods/p{}", i));
  EXPECT_TRUE(rig.until([&] { return rig.bound().size() == 11; }, 60 * kSecond));
}

}  // namespace
}  // namespace berth::control_test
