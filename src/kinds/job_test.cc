#include "kinds/job.h"

#include "kinds/read_for_test.h"

namespace berth::kinds {
namespace {

std::string job(const char* spec, const char* meta = "", const char* template_meta = "") {
  return "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: j" + std::string(meta) +
         "}\nspec:\n  " + spec + "\n  template: {metadata: {labels: {app: x}" + template_meta +
         "}, spec: {restartPolicy: Never, containers: [{name: c, resources: {limits: "
         "{nvidia.com/gpu: 8}}}]}}\n";
}
std::string owned(const char* name, const char* more = "", const char* status = "") {
  return "---\n{apiVersion: v1, kind: Pod, metadata: {name: " + std::string(name) +
         ", ownerReferences: [{kind: Job, name: j, controller: true}]" + more +
         "}, spec: {containers: [{name: c}]}, status: {" + status + "}}\n";
}
std::vector<std::string> names(const Inputs& in) {
  std::vector<std::string> out;
  for (const auto& pod : in.pods) out.push_back(pod.name);
  return out;
}
using Names = std::vector<std::string>;

TEST(Job, Pods) {
  const Inputs in = read_clean(job("parallelism: 3"));
  EXPECT_EQ(names(in), (Names{"j-0", "j-1", "j-2"}));
  EXPECT_EQ(in.counts.job_pods, 3u);
  EXPECT_EQ(in.pods[0].owner, "Job/j");
  EXPECT_EQ(in.pods[0].gpu.count, 8);
  EXPECT_EQ(in.pods[0].labels.at("app"), "x");
  EXPECT_EQ(in.pods[0].labels.at("job-name"), "j");
  EXPECT_FALSE(in.pods[0].service);
  EXPECT_TRUE(in.gangs.empty());
}

TEST(Job, CompletionsAndExisting) {
  EXPECT_EQ(read_clean(job("backoffLimit: 1")).pods.size(), 1u);
  EXPECT_EQ(read_clean(job("parallelism: 5\n  completions: 2")).pods.size(), 2u);
  EXPECT_EQ(read_clean(job("parallelism: 0")).pods.size(), 0u);
  EXPECT_EQ(names(read_clean(job("parallelism: 3") + owned("j-1") +
                             owned("j-x", "", "phase: Succeeded"))),
            (Names{"j-0", "j-1", "j-2"}));
  const Inputs indexed = read_clean(
      job("parallelism: 3\n  completions: 3\n  completionMode: Indexed") +
      owned("j-0-abc", ", annotations: {batch.kubernetes.io/job-completion-index: '0'}"));
  EXPECT_EQ(names(indexed), (Names{"j-0-abc", "j-1", "j-2"}));
  EXPECT_EQ(indexed.pods[2].labels.at("batch.kubernetes.io/job-completion-index"), "2");
  const std::string done = job("parallelism: 2") +
                           "status: {conditions: [{type: Complete, status: "
                           "'True'}]}\n";
  EXPECT_TRUE(read_clean(done).pods.empty());
}

TEST(Job, Suspended) {
  const Inputs in = read_clean(job("parallelism: 3\n  suspend: true"));
  EXPECT_TRUE(in.pods.empty());
  EXPECT_EQ(in.notes.size(), 1u);
  EXPECT_EQ(in.counts.suspended_jobs, 1u);
}

TEST(Job, Gangs) {
  Inputs in =
      read_clean(job("parallelism: 4", ", annotations: {berth.dev/gang: 'true'}") + owned("j-0"));
  ASSERT_EQ(in.gangs.size(), 1u);
  EXPECT_EQ(in.gangs[0].name, "j");
  EXPECT_EQ(in.gangs[0].min_member, 4);
  ASSERT_EQ(in.pods.size(), 4u);
  for (const auto& pod : in.pods) EXPECT_EQ(pod.gang, "j");

  in = read_clean(job("parallelism: 2", "",
                      ", annotations: {kueue.x-k8s.io/podset-required-topology: x.io/rack}"));
  ASSERT_EQ(in.gangs.size(), 1u);
  EXPECT_EQ(in.gangs[0].required_topology, "x.io/rack");
  EXPECT_EQ(in.gangs[0].min_member, 2);

  in = read_clean(job("parallelism: 2", "", ", annotations: {scheduling.k8s.io/group-name: g}") +
                  "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: "
                  "{name: g}, spec: {minMember: 2}}\n");
  ASSERT_EQ(in.gangs.size(), 1u);
  EXPECT_EQ(in.pods.at(1).gang, "g");
}

TEST(Job, Errors) {
  const auto errors = [](const std::string& text) { return all(read(text).invalid); };
  EXPECT_NE(errors("{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: "
                   "{spec: {containers: [{name: c}]}}}}")
                .find("spec.template.spec.restartPolicy"),
            std::string::npos);
  EXPECT_NE(errors(job("parallelism: 200000")).find("0..100000"), std::string::npos);
  EXPECT_NE(
      errors("{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {}}").find("template"),
      std::string::npos);
  EXPECT_NE(errors(job("parallelism: 1", ", annotations: {berth.dev/gang: 'yes'}"))
                .find("berth.dev/gang"),
            std::string::npos);
  const Inputs clash = read(job("parallelism: 1", ", annotations: {berth.dev/gang: 'true'}") +
                            "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, "
                            "metadata: {name: j}, spec: {}}\n");
  EXPECT_EQ(clash.invalid.size(), 1u);
  EXPECT_TRUE(clash.pods.empty());
}

TEST(Job, OneErrorForAllPods) {
  const std::string text =
      job("parallelism: 500", "", ", annotations: {scheduling.k8s.io/group-name: none}");
  const Inputs in = read(text);
  EXPECT_EQ(in.invalid.size(), 1u);
  EXPECT_EQ(in.invalid[0].path, "spec.template.metadata");
}

}  // namespace
}  // namespace berth::kinds
