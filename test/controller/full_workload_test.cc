// A Workload that its author has filled up to what the server takes gives its quota back all the
// same.
#include "controller/rig.h"

namespace berth::control_test {
namespace {

void team(Rig& rig, const std::string& name) {
  rig.apply(fmt::format(
      "{{apiVersion: v1, kind: Namespace, metadata: {{name: {0}}}}}\n---\n"
      "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {{name: {0}}}, spec: "
      "{{cohortName: all, namespaceSelector: {{}}, preemption: {{reclaimWithinCohort: Any}}, "
      "resourceGroups: [{{coveredResources: [nvidia.com/gpu], flavors: [{{name: f, resources: "
      "[{{name: nvidia.com/gpu, nominalQuota: 4}}]}}]}}]}}}}\n---\n"
      "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {{name: q, namespace: "
      "{0}}}, spec: {{clusterQueue: {0}}}}}",
      name));
}
void add_job(Rig& rig, const std::string& ns, int pods) {
  rig.apply(fmt::format(
      "{{apiVersion: batch/v1, kind: Job, metadata: {{name: j, namespace: {0}, labels: "
      "{{kueue.x-k8s.io/queue-name: q}}}}, spec: {{parallelism: {1}, completions: {1}, template: "
      "{{spec: {{schedulerName: berth, restartPolicy: Never, containers: [{{name: c, image: i, "
      "resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]}}}}}}}}",
      ns, pods));
}
std::size_t running_in(Rig& rig, const std::string& ns) {
  std::size_t out = 0;
  const auto list = rig.get("/api/v1/namespaces/" + ns + "/pods");
  for (const text::Value& pod : list.root().find("items")->items()) {
    out += pod.find("status")->find("phase")->string() == "Running" ? 1 : 0;
  }
  return out;
}

TEST(FullWorkload, GivesItsQuotaBack) {
  Rig rig(kTwoNodes);
  rig.define_kueue();
  rig.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}}");
  team(rig, "mallory");
  team(rig, "quiet");
  rig.run(31 * kSecond);
  rig.start();
  add_job(rig, "mallory", 8);
  ASSERT_TRUE(rig.until([&] { return running_in(rig, "mallory") == 8; }, 60 * kSecond));
  rig.run(5 * kSecond);
  // From now on its status takes no more words than it has.
  rig.brain->transport.refuses = [](const text::HttpRequest& request) {
    const bool status =
        request.target.find("/namespaces/mallory/workloads/") != std::string::npos &&
        request.target.find("/status") != std::string::npos;
    return request.method == "PATCH" && status && request.body.size() > 1'000 ? 413 : 0;
  };
  add_job(rig, "quiet", 4);
  ASSERT_TRUE(rig.until([&] { return running_in(rig, "quiet") == 4; }, 120 * kSecond))
      << rig.get("/apis/kueue.x-k8s.io/v1beta2/workloads").body;
  EXPECT_GE(rig.brain->transport.refusals, 1) << "it was full";
  EXPECT_LE(rig.brain->transport.refusals, 5);
}

}  // namespace
}  // namespace berth::control_test
