// Pods of a queue that another scheduler places: let in by the queue, and never bound by us.
#include "controller/rig.h"

namespace berth::control_test {
namespace {

constexpr const char* kQueue =
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}}\n---\n"
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: cq}, spec: "
    "{namespaceSelector: {}, resourceGroups: [{coveredResources: [nvidia.com/gpu, cpu], flavors: "
    "[{name: f, resources: [{name: nvidia.com/gpu, nominalQuota: 4}, {name: cpu, nominalQuota: "
    "100}]}]}]}}\n---\n"
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq, namespace: "
    "default}, spec: {clusterQueue: cq}}\n";

void queued_pod(Rig& rig, const std::string& name, const std::string& scheduler) {
  rig.apply(fmt::format(
      "{{apiVersion: v1, kind: Pod, metadata: {{name: {}, namespace: default, labels: "
      "{{kueue.x-k8s.io/queue-name: lq}}}}, spec: {{schedulerName: {}, restartPolicy: Never, "
      "schedulingGates: [{{name: kueue.x-k8s.io/admission}}], containers: [{{name: c, image: i, "
      "resources: {{limits: {{nvidia.com/gpu: 3}}, requests: {{cpu: 1}}}}}}]}}}}",
      name, scheduler));
}
bool is_gated(Rig& rig, const std::string& name) {
  const auto pod = rig.get_pod(name);
  const text::Value* gates = pod.root().find("spec")->find("schedulingGates");
  return gates != nullptr && gates->size() > 0;
}

TEST(OtherSchedulers, APodOfOneIsLetInAndLeftToIt) {
  Rig rig(kTwoNodes);
  rig.define_kueue();
  rig.apply(kQueue);
  rig.run(31 * kSecond);
  rig.start();
  queued_pod(rig, "theirs", "default-scheduler");
  ASSERT_TRUE(rig.until([&] { return !is_gated(rig, "theirs"); }, 60 * kSecond));
  rig.run(90 * kSecond);
  EXPECT_EQ(rig.node_of("theirs"), "");
  // It holds its quota: ours waits, and takes the rest of the nodes' GPUs once it may.
  queued_pod(rig, "ours", "berth");
  rig.run(20 * kSecond);
  EXPECT_TRUE(is_gated(rig, "ours"));
  const auto bound =
      rig.world.post("/api/v1/namespaces/default/pods/theirs/binding",
                     R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"theirs"},)"
                     R"("target":{"name":"m-1"}})");
  ASSERT_EQ(bound.status, 201) << bound.body;
  ASSERT_TRUE(rig.until([&] { return rig.phase_of("theirs") == "Running"; }, 60 * kSecond));
  rig.remove("/api/v1/namespaces/default/pods/theirs");
  EXPECT_TRUE(rig.until([&] { return !rig.node_of("ours").empty(); }, 120 * kSecond));
}

}  // namespace
}  // namespace berth::control_test
