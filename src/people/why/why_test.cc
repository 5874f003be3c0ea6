#include "people/why/why.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "text/json.h"

namespace berth::people {
namespace {

model::NodeSpec small_node(const std::string& name, int gpus) {
  model::NodeSpec node;
  node.name = name;
  node.labels = {{model::kHostnameLabel, name}};
  node.allocatable = {{"cpu", 64'000}, {"memory", std::int64_t{1} << 40}, {"pods", 110}};
  for (int g = 0; g < gpus; ++g) {
    model::GpuSpec gpu;
    gpu.index = g;
    gpu.model = "NVIDIA-H100-80GB-HBM3";
    gpu.memory_mib = 81559;
    node.gpus.push_back(std::move(gpu));
  }
  return node;
}

model::PodSpec small_pod(const std::string& name, int gpus, const std::string& node = "") {
  model::PodSpec pod;
  pod.ns = "team";
  pod.name = name;
  pod.requests = {{"cpu", 1000}};
  pod.gpu = {.kind = model::GpuDemandSpec::Kind::kWhole, .count = gpus};
  pod.gpus_by_container = {gpus};
  pod.node_name = node;
  return pod;
}

Answer answer_of(const kinds::Inputs& inputs, const std::string& name) {
  Examiner examiner(inputs, {});
  Result<Answer> answer = examiner.why({"pod", "team", name});
  EXPECT_TRUE(answer.ok());
  return answer.ok() ? std::move(*answer) : Answer();
}

bool has_fix(const Answer& answer, const std::string& kind) {
  return std::any_of(answer.fixes.begin(), answer.fixes.end(),
                     [&](const Fix& fix) { return fix.kind == kind; });
}

TEST(Why, FragmentedGpusAreCountedAndFixesAreTried) {
  kinds::Inputs inputs;
  inputs.nodes = {small_node("n0", 8), small_node("n1", 8)};
  inputs.pods = {small_pod("a", 6, "n0"), small_pod("b", 5, "n1"), small_pod("want", 4)};
  const Answer answer = answer_of(inputs, "want");
  EXPECT_EQ(answer.reason, model::Reason::kFragmented);
  EXPECT_EQ(answer.standing, Standing::kWaiting);
  EXPECT_EQ(answer.have.free_milli, 5000);
  EXPECT_EQ(answer.have.largest_milli, 3000);
  ASSERT_TRUE(answer.fragmentation.has_value());
  EXPECT_EQ(answer.fragmentation->needed_milli, 4000);
  EXPECT_TRUE(answer.also.empty());
  EXPECT_TRUE(has_fix(answer, "fewer-gpus"));
  EXPECT_TRUE(has_fix(answer, "delete-pod"));
}

// The table names a few; --holders gives each node a line.
TEST(Why, HoldersAreTheFewNearestToRoomOrAll) {
  kinds::Inputs inputs;
  for (int n = 0; n < 3; ++n) {
    const std::string node = 'n' + std::to_string(n);
    inputs.nodes.push_back(small_node(node, 8));
    for (int p = 0; p < 3; ++p) {
      inputs.pods.push_back(small_pod(node + '-' + std::to_string(p), 2, node));
    }
  }
  inputs.pods.push_back(small_pod("want", 4));
  const Answer few = answer_of(inputs, "want");
  const std::string table = why_table(few);
  EXPECT_NE(table.find("  holders  n0: team/n0-0 (2), team/n0-1 (2), team/n0-2 (2) · "),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("+5 pods, all nodes: --holders"), std::string::npos) << table;
  EXPECT_EQ(table.find("n2-0"), std::string::npos) << table;
  const std::string all = why_table(few, true);
  EXPECT_NE(all.find("  holders  n0: team/n0-0 (2), team/n0-1 (2), team/n0-2 (2)\n"
                     "           n1: team/n1-0 (2), team/n1-1 (2), team/n1-2 (2)\n"
                     "           n2: team/n2-0 (2), team/n2-1 (2), team/n2-2 (2)\n"),
            std::string::npos)
      << all;
  WhyOptions options;
  options.most_holders = 5;
  Result<Answer> five = Examiner(inputs, options).why({"pod", "team", "want"});
  ASSERT_TRUE(five.ok());
  EXPECT_EQ(five->holders.size(), 5u);
  EXPECT_EQ(five->holders_more, 4);
  EXPECT_NE(why_table(*five, true).find(" (2) · +4 pods\n"), std::string::npos);
}

// Most nodes have no GPUs at all; they are not why a pod waits that does not tolerate the rest.
TEST(Why, NodesThatCouldNeverTakeItAreNotBlamed) {
  kinds::Inputs inputs;
  for (const char* name : {"c0", "c1", "c2", "c3"}) inputs.nodes.push_back(small_node(name, 0));
  inputs.nodes.push_back(small_node("g0", 8));
  inputs.nodes.back().taints.push_back({.key = "nvidia.com/gpu", .value = ""});
  inputs.pods = {small_pod("want", 4)};
  const Answer answer = answer_of(inputs, "want");
  EXPECT_EQ(answer.reason, model::Reason::kTaintNotTolerated);
  EXPECT_EQ(answer.standing, Standing::kMisconfigured);
  EXPECT_TRUE(has_fix(answer, "tolerate"));
  EXPECT_FALSE(has_fix(answer, "fewer-gpus"));
}

TEST(Why, WhatHoldsItNextIsTold) {
  kinds::Inputs inputs;
  inputs.nodes = {small_node("n0", 8)};
  inputs.nodes[0].taints.push_back({.key = "dedicated", .value = "x"});
  inputs.pods = {small_pod("a", 8, "n0"), small_pod("want", 4)};
  inputs.pods.back().gated = true;
  const Answer answer = answer_of(inputs, "want");
  EXPECT_EQ(answer.reason, model::Reason::kGated);
  std::vector<model::Reason> also;
  for (const Cause& cause : answer.also) also.push_back(cause.reason);
  EXPECT_EQ(also,
            (std::vector{model::Reason::kTaintNotTolerated, model::Reason::kInsufficientGpus}));
}

TEST(Why, TheDecisionBehindAnAnswerIsNamed) {
  kinds::Inputs inputs;
  inputs.nodes = {small_node("n0", 8)};
  inputs.pods = {small_pod("want", 9)};
  WhyOptions options;
  EXPECT_NE(why_json(*Examiner(inputs, options).why({"pod", "team", "want"}))
                .find("\"decision\": null,\n    \"decided\": null,\n    \"cluster\": null"),
            std::string::npos);
  options.decided = {"00000000000022a9", 1'750'000'000'000'000'000, "90412"};
  const Result<Answer> answer = Examiner(inputs, options).why({"pod", "team", "want"});
  ASSERT_TRUE(answer.ok());
  const std::string json = why_json(*answer), table = why_table(*answer);
  EXPECT_NE(json.find("\"decision\": \"00000000000022a9\",\n    \"decided\": "
                      "\"2025-06-15T15:06:40Z\",\n    \"cluster\": \"90412\""),
            std::string::npos)
      << json;
  EXPECT_NE(table.find("evidence decision 00000000000022a9, 15:06:40, cluster 90412;"),
            std::string::npos)
      << table;
}

TEST(Why, AThingOfAnotherKindIsNamed) {
  kinds::Inputs inputs;
  inputs.nodes = {small_node("n0", 8)};
  inputs.pods = {small_pod("want", 9)};
  Examiner examiner(inputs, {});
  const Result<Answer> wrong = examiner.why({"job", "team", "want"});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message(),
            "no job named want in namespace team; there is a Pod team/want");
  EXPECT_EQ(examiner.why({"job", "team", "nobody"}).error().message(),
            "no job named nobody in namespace team");
}

TEST(Why, ANameThatWasMeantIsFound) {
  kinds::Inputs inputs;
  inputs.pods = {small_pod("train", 1), small_pod("serve-6f-x", 1)};
  inputs.pods[1].owner = "ReplicaSet/serve-6f";
  EXPECT_EQ(meant_name(inputs, {"pod", "team", "trian"}), "team/train");
  EXPECT_EQ(meant_name(inputs, {"", "", "trian"}), "train");
  EXPECT_EQ(meant_name(inputs, {"pod", "tema", "train"}), "team/train") << "in another namespace";
  EXPECT_EQ(meant_name(inputs, {"job", "team", "trian"}), "") << "a pod is no job";
  EXPECT_EQ(meant_name(inputs, {"pod", "team", "etl"}), "");
}

// A Deployment's pods are made by a ReplicaSet of another name.
TEST(Why, PodsAreFoundByWhatMadeThem) {
  kinds::Inputs inputs;
  inputs.nodes = {small_node("n0", 1)};
  inputs.pods = {small_pod("a", 1, "n0"), small_pod("serve-6f-x", 1), small_pod("ps-0", 1)};
  inputs.pods[1].owner = "ReplicaSet/serve-6f";
  inputs.pods[2].owner = "PyTorchJob/ps";
  Examiner examiner(inputs, {});
  const auto reason = [&](const Subject& subject) {
    const Result<Answer> answer = examiner.why(subject);
    return answer.ok() ? answer->reason : model::Reason::kNone;
  };
  EXPECT_EQ(reason({"deployment", "team", "serve"}), model::Reason::kInsufficientGpus);
  EXPECT_EQ(reason({"", "", "serve"}), model::Reason::kInsufficientGpus);
  EXPECT_EQ(reason({"pytorchjob", "team", "ps"}), model::Reason::kInsufficientGpus);
  EXPECT_EQ(reason({"deployment", "team", "serv"}), model::Reason::kNone);
  EXPECT_EQ(reason({"rayjob", "team", "serve"}), model::Reason::kNone);
}

TEST(Why, WhatIsBeingDeletedDoesNotWait) {
  kinds::Inputs inputs;
  inputs.nodes = {small_node("n0", 8)};
  inputs.pods = {small_pod("a", 2, "n0"), small_pod("want", 9)};
  inputs.pods[0].terminating = inputs.pods[1].terminating = true;
  EXPECT_EQ(answer_of(inputs, "a").line, "team/a runs on n0, and is being deleted");
  kinds::Note unread;
  unread.object = "Pod team/a";
  unread.path = "metadata.annotations.gpu-fraction";
  unread.message = "found string \"x\"; it runs, so it counts with what can be read";
  inputs.warnings = {unread};
  EXPECT_EQ(answer_of(inputs, "a").line,
            "team/a runs on n0, and is being deleted; metadata.annotations.gpu-fraction: found "
            "string \"x\"; it runs, so it counts with what can be read");
  EXPECT_EQ(answer_of(inputs, "want").line, "team/want is being deleted");
  EXPECT_EQ(answer_of(inputs, "want").standing, Standing::kRunning);
}

TEST(Why, AResourceThatNobodyOffersIsNamed) {
  kinds::Inputs inputs;
  inputs.nodes = {small_node("n0", 8)};
  inputs.pods = {small_pod("want", 0)};
  inputs.pods[0].gpu = {};
  inputs.pods[0].gpus_by_container.clear();
  inputs.pods[0].requests["nvidia.com/gpus"] = 2;
  const Answer answer = answer_of(inputs, "want");
  EXPECT_EQ(answer.message, "no node offers nvidia.com/gpus; what nodes offer: nvidia.com/gpu");
  EXPECT_TRUE(has_fix(answer, "other-resource"));
}

TEST(Why, WhatRunsRunsAndWhatFitsIsToBeDecided) {
  kinds::Inputs inputs;
  inputs.nodes = {small_node("n0", 8)};
  inputs.pods = {small_pod("a", 2, "n0"), small_pod("want", 4)};
  EXPECT_EQ(answer_of(inputs, "a").standing, Standing::kRunning);
  const Answer answer = answer_of(inputs, "want");
  EXPECT_EQ(answer.reason, model::Reason::kPendingEvaluation);
  EXPECT_TRUE(answer.fixes.empty());
}

TEST(Why, NothingOfThatNameIsAnError) {
  kinds::Inputs inputs;
  inputs.nodes = {small_node("n0", 8)};
  inputs.pods = {small_pod("a", 2, "n0")};
  Examiner examiner(inputs, {});
  EXPECT_EQ(examiner.why({"pod", "team", "b"}).error().code(), Code::kNotFound);
  EXPECT_EQ(examiner.why({"pod", "other", "a"}).error().code(), Code::kNotFound);
}

TEST(Why, TheSameAnswerHasTheSameBytesAndFitsTheScreen) {
  kinds::Inputs inputs;
  inputs.nodes = {small_node("n0", 8), small_node("n1", 8)};
  inputs.pods = {small_pod("a", 6, "n0"), small_pod("b", 5, "n1"), small_pod("want-\x1b[31m", 4)};
  const Answer answer = answer_of(inputs, "want-\x1b[31m");
  EXPECT_EQ(why_json(answer), why_json(answer_of(inputs, "want-\x1b[31m")));
  EXPECT_TRUE(text::parse_json(why_json(answer)).ok());
  const std::string table = why_table(answer);
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
  std::size_t width = 0;
  for (const char c : table) {
    width = c == '\n' ? 0 : width + ((static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0);
    EXPECT_LE(width, 80U);
  }
}

}  // namespace
}  // namespace berth::people
