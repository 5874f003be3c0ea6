#include "kinds/maker_patch.h"

#include <gtest/gtest.h>

#include "text/json.h"
#include "text/patch.h"
#include "text/path.h"
#include "text/yaml.h"

namespace berth::kinds {
namespace {

text::Document parsed(std::string_view yaml) {
  auto documents = text::parse_yaml(yaml);
  EXPECT_TRUE(documents.ok()) << documents.error().to_string();
  return std::move(documents->front());
}
text::Document after(const text::Document& object, const std::string& patch) {
  const auto operations = text::parse_json(patch);
  EXPECT_TRUE(operations.ok()) << patch;
  auto out = text::apply_json_patch(object.root(), operations->root());
  EXPECT_TRUE(out.ok()) << out.error().to_string() << "\n" << patch;
  return std::move(*out);
}

SetStart start_of(const std::string& name, const text::Value* original = nullptr) {
  SetStart out;
  out.name = name;
  out.original = original;
  out.labels = {{"kueue.x-k8s.io/podset", name}};
  out.annotations = {{"kueue.x-k8s.io/workload", "w"}};
  out.node_selector = {{"zone", "b"}};
  out.tolerations = {{.key = "gpu",
                      .op = model::Toleration::Op::kExists,
                      .value = {},
                      .effect = model::TaintEffect::kNoSchedule}};
  return out;
}

constexpr const char* kJob =
    "{metadata: {name: j, resourceVersion: '7'}, spec: {suspend: true, parallelism: 4, template: "
    "{spec: {nodeSelector: {zone: a, old: flavor}, tolerations: [{key: own, operator: Exists}], "
    "containers: [{name: c}]}}}}";
constexpr const char* kOriginal =
    "{spec: {nodeSelector: {own: 'yes'}, tolerations: [{key: own, operator: Exists}], containers: "
    "[{name: c}]}}";

// What an earlier start wrote goes, what the object asks for itself stays.
TEST(MakerPatch, AStartSaysEverythingAnew) {
  const text::Document job = parsed(kJob), original = parsed(kOriginal);
  SetStart start = start_of("main", &original.root());
  start.count = 2;
  const std::string patch = start_patch(kJobMaker, job.root(), std::span(&start, 1));
  EXPECT_EQ(patch.find("resourceVersion"), std::string::npos) << "no list is on the way";
  const text::Document now = after(job, patch);
  EXPECT_EQ(text::to_json(at(now.root(), "spec")),
            R"({"suspend":false,"parallelism":2,"template":{"spec":{"nodeSelector":{"zone":"b",)"
            R"("own":"yes"},"tolerations":[{"key":"own","operator":"Exists"},{"key":"gpu",)"
            R"("operator":"Exists","effect":"NoSchedule"}],"containers":[{"name":"c"}]},)"
            R"("metadata":{"labels":{"kueue.x-k8s.io/podset":"main"},"annotations":)"
            R"({"kueue.x-k8s.io/workload":"w"}}}})");
  // Twice is once.
  EXPECT_EQ(start_patch(kJobMaker, now.root(), std::span(&start, 1)), "");
  const text::Document rests = after(now, rest_patch(kJobMaker, now.root()));
  EXPECT_TRUE(true_at(rests.root(), "spec.suspend"));
  EXPECT_EQ(rest_patch(kJobMaker, rests.root()), "");
}

TEST(MakerPatch, OfAListForThisVersionAlone) {
  const text::Document set = parsed(
      "{metadata: {name: s, resourceVersion: '7'}, spec: {replicatedJobs: [{name: a, template: "
      "{spec: {template: {spec: {containers: [{name: c}]}}}}}, {name: b, template: {spec: "
      "{template: {spec: {containers: [{name: c}]}}}}}]}}");
  const SetStart start = start_of("b");
  const std::string patch = start_patch(kJobSetMaker, set.root(), std::span(&start, 1));
  EXPECT_EQ(patch.find(R"([{"op":"replace","path":"/metadata/resourceVersion","value":"7"})"), 0u)
      << patch;
  const text::Document now = after(set, patch);
  EXPECT_EQ(
      text_at(now.root(), "spec.replicatedJobs[1].template.spec.template.spec.nodeSelector.zone"),
      "b");
  EXPECT_EQ(find(now.root(), "spec.replicatedJobs[0].template.spec.template.spec.nodeSelector"),
            nullptr);
}

TEST(MakerPatch, AWrapperIsToldApart) {
  const text::Document wrapper = parsed(
      "{metadata: {name: w, resourceVersion: '7'}, spec: {suspend: true, components: [{podSets: "
      "[{path: template.a}, {path: template.b}], template: {a: {spec: {}}, b: {spec: {}}}}]}}");
  const SetStart starts[] = {start_of("w-0"), start_of("w-1")};
  const text::Document now = after(wrapper, start_patch(kAppWrapperMaker, wrapper.root(), starts));
  EXPECT_EQ(text_at(now.root(), "spec.components[0].podSetInfos[1].nodeSelector.zone"), "b");
  EXPECT_EQ(text_at(now.root(), "spec.components[0].podSetInfos[0].tolerations[0].key"), "gpu");
  EXPECT_EQ(find(now.root(), "spec.components[0].template.a.spec.nodeSelector"), nullptr);
}

// Each pod set is told of, also one that makes nothing now.
TEST(MakerPatch, AWrapperIsToldOfEachSet) {
  const text::Document wrapper = parsed(
      "{metadata: {name: w, resourceVersion: '7'}, spec: {suspend: true, components: [{podSets: "
      "[{path: template.a, replicas: 0}, {path: template.b}], template: {a: {spec: {}}, b: {spec: "
      "{}}}}]}}");
  const SetStart start = start_of("w-1");
  const text::Document now =
      after(wrapper, start_patch(kAppWrapperMaker, wrapper.root(), std::span(&start, 1)));
  EXPECT_EQ(text::to_json(at(now.root(), "spec.components[0].podSetInfos[0]")), "{}");
  EXPECT_EQ(text_at(now.root(), "spec.components[0].podSetInfos[1].nodeSelector.zone"), "b");
}

TEST(MakerPatch, WhatHasStartedIsToldThatItHasNot) {
  const text::Document fresh = parsed(kJob);
  const text::Document ran = parsed("{spec: {}, status: {startTime: '2026-01-01T00:00:00Z'}}");
  EXPECT_EQ(never_started_patch(kJobMaker, fresh.root()), "");
  EXPECT_EQ(never_started_patch(kJobMaker, ran.root()), R"({"status":{"startTime":null}})");
  EXPECT_EQ(never_started_patch(kJobSetMaker, ran.root()), "");
}

// Whatever is written where a kind wants something else makes nothing, and nothing falls over.
TEST(MakerPatch, NothingIsMadeOfNonsense) {
  for (const char* text :
       {"{}", "{spec: 3}", "{spec: {components: {a: 1}, replicatedJobs: 7, template: []}}",
        "{spec: {components: [1, {podSets: [{path: 'template.a[0'}, {path: ''}], template: 2}]}}",
        "{spec: {components: [{podSets: [{path: 'template.0.1'}], template: {x: [{spec: "
        "{}}]}}]}}"}) {
    const text::Document object = parsed(text);
    for (const PodMaker* maker : {&kJobMaker, &kJobSetMaker, &kAppWrapperMaker}) {
      EXPECT_TRUE(pod_sets_of(*maker, object.root()).empty()) << text;
      EXPECT_EQ(maker->ready(object.root()), 0);
      EXPECT_EQ(maker->active(object.root()), 0);
    }
  }
}

}  // namespace
}  // namespace berth::kinds
