#include "people/view/page.h"

#include <gtest/gtest.h>

#include "kinds/manifest.h"
#include "text/json.h"
#include "text/yaml.h"

namespace berth::people {
namespace {

constexpr const char* kPageCluster = R"(
apiVersion: v1
kind: Node
metadata:
  name: n1
  labels: {topology.kubernetes.io/rack: r1, nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}
status:
  allocatable: {cpu: "64", memory: 512Gi, pods: "110", nvidia.com/gpu: "4"}
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: v1
kind: Pod
metadata:
  name: runs
  namespace: a
  annotations: {berth.dev/gpus: "1,2"}
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: train, uid: u, controller: true}]
spec: {nodeName: n1, containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 2}}}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: b}
spec: {containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 3}}}]}
)";

struct PageText {
  std::string members;
  text::Document document;
};

PageText page_of(const PageFacts& facts) {
  kinds::ManifestReader reader;
  int number = 0;
  const Status read = text::read_yaml(kPageCluster, [&](text::Document document) -> Status {
    reader.add("cluster.yaml", ++number, document);
    return {};
  });
  EXPECT_TRUE(read.ok());
  const kinds::Inputs inputs = reader.finish();
  EXPECT_TRUE(inputs.invalid.empty());
  const PageMembers parts = page_members(inputs, make_plan(inputs, {}), facts, 0);
  std::string members = parts.facts + ',' + parts.counts;
  Result<text::Document> document = text::parse_json("{" + members + "}");
  EXPECT_TRUE(document.ok());
  return {std::move(members), std::move(*document)};
}

std::string json_at(const PageText& page, std::string_view key) {
  const text::Value* value = page.document.root().find(key);
  return value == nullptr ? std::string("absent") : text::to_json(*value);
}

TEST(Page, EveryGpuHasOneStateAndItsHolder) {
  PageFacts facts;
  facts.busy = [](std::string_view node, int gpu) { return node == "n1" ? 10 * gpu : -1; };
  const PageText page = page_of(facts);
  EXPECT_EQ(json_at(page, "gpus"),
            R"({"total":4,"used":2,"free":2,"unhealthy":0,"reserved":0,"unknown":0})");
  const text::Value& node = page.document.root().find("nodes")->items()[0];
  EXPECT_EQ(node.find("states")->string(), "FUUF");
  EXPECT_EQ(text::to_json(*node.find("busy")), "[-1,10,20,-1]");
  EXPECT_EQ(text::to_json(*node.find("holder")), "[-1,0,0,-1]");
  EXPECT_EQ(node.find("rack")->string(), "r1");
  const text::Value& pod = page.document.root().find("pods")->items()[0];
  EXPECT_EQ(pod.find("name")->string(), "a/runs");
  EXPECT_EQ(pod.find("workload")->string(), "a/train");
}

TEST(Page, WhatWaitsComesBeforeWhatRuns) {
  const PageText page = page_of({});
  const auto rows = page.document.root().find("workloads")->items();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].find("name")->string(), "waits");
  EXPECT_EQ(rows[0].find("kind")->string(), "Pod");
  EXPECT_EQ(rows[0].find("reason")->string(), "InsufficientGpus");
  EXPECT_EQ(rows[0].find("gpus")->as_int64(), 3);
  EXPECT_EQ(rows[1].find("kind")->string(), "Job");
  EXPECT_EQ(rows[1].find("name")->string(), "train");
  EXPECT_EQ(rows[1].find("state")->string(), "running");
  EXPECT_EQ(json_at(page, "pending"),
            R"([{"reason":"InsufficientGpus","workloads":1,"gpus":3,"config":false}])");
}

TEST(Page, TheSameFactsAreTheSameBytes) {
  PageFacts facts;
  facts.cluster = "here";
  facts.teams = {{"a", 1.5, 1, 0.25, 0.25}};
  EXPECT_EQ(page_of(facts).members, page_of(facts).members);
}

TEST(Page, TellsTheLastDayAndWhoMeasures) {
  PageFacts facts;
  const PageText none = page_of(facts);
  EXPECT_EQ(json_at(none, "healthEvents"), "[]");
  EXPECT_EQ(json_at(none, "trend"), "[]");
  EXPECT_EQ(json_at(none, "telemetry"), R"({"nodes":0,"silent":0,"oldest":null})");
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  facts.health_events.push_back({60 * kSecondNs, "n1", 3, false, "Xid79"});
  facts.trend.push_back({300 * kSecondNs, 2, 1, 1, 40});
  facts.measured_nodes = 1;
  facts.measured_ns = 90 * kSecondNs;
  const PageText page = page_of(facts);
  EXPECT_EQ(
      json_at(page, "healthEvents"),
      R"([{"at":"1970-01-01T00:01:00Z","node":"n1","gpu":3,"inService":false,"reason":"Xid79"}])");
  EXPECT_EQ(json_at(page, "trend"),
            R"([{"at":"1970-01-01T00:05:00Z","used":2,"free":1,"out":1,"busy":40}])");
  EXPECT_EQ(json_at(page, "telemetry"),
            R"({"nodes":1,"silent":0,"oldest":"1970-01-01T00:01:30Z"})");
}

}  // namespace
}  // namespace berth::people
