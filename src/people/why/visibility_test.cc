#include "people/why/visibility.h"

#include <gtest/gtest.h>

#include "people/why/why.h"

namespace berth::people {
namespace {

kinds::Inputs two_teams() {
  kinds::Inputs out;
  for (const char* name : {"gpu-a", "gpu-b"}) {
    model::NodeSpec node;
    node.name = name;
    node.labels = {{model::kHostnameLabel, name}};
    node.allocatable = {{"cpu", 64'000}, {"memory", std::int64_t{1} << 40}, {"pods", 110}};
    for (int g = 0; g < 4; ++g) {
      model::GpuSpec gpu;
      gpu.index = g;
      gpu.model = "NVIDIA-H100-80GB-HBM3";
      gpu.memory_mib = 81559;
      node.gpus.push_back(std::move(gpu));
    }
    out.nodes.push_back(std::move(node));
  }
  const auto add = [&out](const char* ns, const char* name, int gpus, const char* node) {
    model::PodSpec pod;
    pod.ns = ns;
    pod.name = name;
    pod.requests = {{"cpu", 1000}};
    pod.gpu = {.kind = model::GpuDemandSpec::Kind::kWhole, .count = gpus};
    pod.gpus_by_container = {gpus};
    pod.node_name = node;
    out.pods.push_back(std::move(pod));
  };
  add("mine", "own", 1, "gpu-b");
  add("mine", "want", 4, "");
  add("secret", "holder-a", 2, "gpu-a");
  add("secret", "holder-b", 2, "gpu-b");
  return out;
}

Answer asked_by(const Visibility& visibility) {
  const kinds::Inputs inputs = two_teams();
  Result<Answer> answer = Examiner(inputs, {}).why({"pod", "mine", "want"});
  EXPECT_TRUE(answer.ok());
  if (!answer.ok()) return {};
  summarise(inputs, visibility, *answer);
  return std::move(*answer);
}

TEST(Visibility, OfAnAdministratorTakesNothingOut) {
  const kinds::Inputs inputs = two_teams();
  Result<Answer> plain = Examiner(inputs, {}).why({"pod", "mine", "want"});
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(why_json(asked_by({})), why_json(*plain));
  EXPECT_NE(why_json(*plain).find("secret/holder-a"), std::string::npos) << "there is a name";
}

TEST(Visibility, NamesOfOthersAreTakenOutAndCountsStay) {
  const Answer answer = asked_by({.pods = false, .nodes = false, .namespaces = {"mine"}});
  const std::string json = why_json(answer), table = why_table(answer);
  for (const char* name : {"secret", "holder-a", "holder-b", "gpu-a"}) {
    EXPECT_EQ(json.find(name), std::string::npos) << name << " in " << json;
    EXPECT_EQ(table.find(name), std::string::npos) << name << " in " << table;
  }
  EXPECT_NE(json.find("another team"), std::string::npos);
  EXPECT_NE(json.find("gpu-b"), std::string::npos) << "his own pod says where it runs";
  EXPECT_EQ(answer.have.nodes, 2);
  EXPECT_EQ(answer.reason, asked_by({}).reason);
  EXPECT_EQ(answer.fixes.size(), asked_by({}).fixes.size());
  EXPECT_EQ(answer.evidence.summarised.size(), 2u);
}

TEST(Visibility, OfNodesAloneKeepsTheirNames) {
  const std::string json =
      why_json(asked_by({.pods = false, .nodes = true, .namespaces = {"mine"}}));
  EXPECT_NE(json.find("gpu-a"), std::string::npos);
  EXPECT_EQ(json.find("secret/"), std::string::npos);
}

// What to stop is told by the name of the Job, which is as secret as its pods.
TEST(Visibility, JobsOfOthersHaveNoNamesEither) {
  kinds::Inputs inputs = two_teams();
  for (model::PodSpec& pod : inputs.pods) {
    if (pod.ns == "secret") pod.owner = "Job/merger";
  }
  Result<Answer> answer = Examiner(inputs, {}).why({"pod", "mine", "want"});
  ASSERT_TRUE(answer.ok());
  EXPECT_NE(why_json(*answer).find("merger"), std::string::npos) << "it is named to who may know";
  summarise(inputs, {.pods = false, .nodes = false, .namespaces = {"mine"}}, *answer);
  EXPECT_EQ(why_json(*answer).find("merger"), std::string::npos) << why_json(*answer);
}

TEST(Visibility, PoolsHaveNoNamesWhereNodesHaveNone) {
  const kinds::Inputs inputs = two_teams();
  Result<Answer> plain = Examiner(inputs, {}).why({"pod", "mine", "want"});
  ASSERT_TRUE(plain.ok());
  plain->autoscaler.emplace();
  plain->autoscaler->pools.resize(1);
  plain->autoscaler->pools[0] = {.name = "merger-h100", .failure = "merger is out of H100"};
  plain->fixes.push_back({.title = "add 1 node, above the limit of pool merger-h100 (8 nodes)"});
  Answer answer = *plain;
  summarise(inputs, {.pods = false, .nodes = true, .namespaces = {"mine"}}, answer);
  EXPECT_NE(why_json(answer).find("merger-h100"), std::string::npos) << "he may see nodes";
  summarise(inputs, {.pods = false, .nodes = false, .namespaces = {"mine"}}, *plain);
  EXPECT_EQ(why_json(*plain).find("merger"), std::string::npos) << why_json(*plain);
  EXPECT_EQ(plain->fixes.back().title, "add 1 node");
  EXPECT_EQ(plain->autoscaler->pools[0].name, "pool 1");
}

// The reason of a rule stays; whose it is, and what it allows, is for those who may list it.
TEST(Visibility, RulesOfOthersHaveNeitherNamesNorNumbers) {
  const std::string told = "the ResourceQuota gold allows 12 requests.nvidia.com/gpu";
  Answer answer;
  answer.kind = "Job";
  answer.ns = "mine";
  answer.name = "want";
  answer.reason = model::Reason::kWaitingForQuota;
  answer.message = told;
  answer.line = "mine/want waits: " + told + " (WaitingForQuota)";
  answer.rule = {"ResourceQuota", told};
  answer.in_vain = {"ResourceQuota gold: 12 requests.nvidia.com/gpu"};
  Fix larger;
  larger.title = "ResourceQuota gold: 16 requests.nvidia.com/gpu";
  larger.changes = {{"v1", "ResourceQuota", "mine", "gold", Tree(), Tree()}};
  Fix fewer;
  fewer.title = "run 1 pod at a time";
  fewer.changes = {{"batch/v1", "Job", "mine", "want", Tree(), Tree()}};
  answer.fixes = {fewer, larger};
  const Answer whole = answer;

  summarise({}, {.unseen = {"LimitRange"}}, answer);
  EXPECT_EQ(why_json(answer), why_json(whole)) << "a right that it does not take";
  summarise({}, {.unseen = {"ResourceQuota"}}, answer);
  const std::string json = why_json(answer);
  for (const char* secret : {"gold", "12", "16"}) {
    EXPECT_EQ(json.find(secret), std::string::npos) << secret << " in " << json;
  }
  EXPECT_EQ(answer.reason, whole.reason);
  EXPECT_EQ(answer.line,
            "mine/want waits: a ResourceQuota that you may not list is in its way "
            "(WaitingForQuota)");
  ASSERT_EQ(answer.fixes.size(), 2u);
  EXPECT_EQ(answer.fixes[0].title, "run 1 pod at a time");
  EXPECT_EQ(answer.fixes[0].changes.size(), 1u) << "his own object";
  EXPECT_EQ(answer.fixes[1].title, "by somebody with more rights: change the ResourceQuota");
  EXPECT_TRUE(answer.fixes[1].changes.empty());
  EXPECT_EQ(answer.evidence.summarised, std::vector<std::string>{"objects of kind ResourceQuota"});
}

}  // namespace
}  // namespace berth::people
