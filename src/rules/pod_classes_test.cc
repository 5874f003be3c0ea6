#include "rules/pod_classes.h"

#include <gtest/gtest.h>

#include "text/yaml.h"

namespace berth::rules {
namespace {

text::Document document_of(std::string_view yaml) {
  auto parsed = text::parse_yaml(yaml);
  EXPECT_TRUE(parsed.ok() && parsed->size() == 1) << yaml;
  return parsed.ok() && !parsed->empty() ? std::move(parsed->front()) : text::Document();
}

TEST(PodClasses, ARuntimeClassAdds) {
  const text::Document runtime = document_of(R"(
overhead: {podFixed: {cpu: 250m}}
scheduling:
  nodeSelector: {vm: 'yes', zone: a}
  tolerations: [{key: vm, operator: Exists}, {key: other}]
)");
  const text::Document spec =
      document_of("{nodeSelector: {zone: a}, tolerations: [{operator: Exists, key: vm}]}");
  const RuntimeAdds adds = added_by(runtime.root(), spec.root());
  ASSERT_EQ(adds.labels.size(), 1u);
  EXPECT_EQ(adds.labels[0].first, "vm");
  EXPECT_EQ(adds.tolerations.size(), 1u);
  EXPECT_NE(adds.overhead, nullptr);
  EXPECT_FALSE(adds.clash || adds.other_overhead);

  const text::Document other = document_of("{nodeSelector: {vm: 'no'}, overhead: {cpu: 1}}");
  const RuntimeAdds clashing = added_by(runtime.root(), other.root());
  ASSERT_TRUE(clashing.clash.has_value());
  EXPECT_EQ(words_of(*clashing.clash),
            "conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = "
            "no");
  EXPECT_TRUE(clashing.other_overhead);
  EXPECT_EQ(wrong_overhead(runtime.root(), other.root()),
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
  EXPECT_EQ(wrong_overhead(text::Value(), other.root()),
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead");
  EXPECT_EQ(wrong_overhead(text::Value(), spec.root()), "");
}

TEST(PodClasses, WhatOnlyAClassSays) {
  const Priority high = read_priority_class(
      document_of("{metadata: {name: high}, value: 100, preemptionPolicy: Never}").root());
  const auto wrong = [&high](std::string_view spec) {
    const text::Document pod = document_of(spec);
    return wrong_priority(high, pod.root());
  };
  EXPECT_EQ(wrong("{priority: 100, preemptionPolicy: Never}"), "");
  EXPECT_EQ(
      wrong("{priority: 7}"),
      "the integer value of priority (7) must not be provided in pod spec; priority admission "
      "controller computed 100 from the given PriorityClass name");
  EXPECT_EQ(
      wrong("{preemptionPolicy: PreemptLowerPriority}"),
      "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod "
      "spec; priority admission controller computed Never from the given PriorityClass name");
  EXPECT_EQ(no_account("ns", "x"),
            "error looking up service account ns/x: serviceaccount \"x\" not found");
  EXPECT_EQ(no_runtime_class("x"), "pod rejected: RuntimeClass \"x\" not found");
  EXPECT_EQ(account_of(document_of("{serviceAccount: old}").root()), "old");
}

}  // namespace
}  // namespace berth::rules
