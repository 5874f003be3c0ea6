#include "kinds/kept.h"

#include <gtest/gtest.h>

#include "text/json.h"

namespace berth::kinds {
namespace {

std::string kept(std::string_view json, const KeepOptions& options = {}) {
  const auto document = text::parse_json(json);
  EXPECT_TRUE(document.ok());
  text::JsonWriter out;
  write_kept(out, document->root(), options);
  return std::move(out).take();
}

TEST(Kept, WhatMayHoldSecretsIsLeftOut) {
  // Without and with what is asked for.
  const struct {
    const char *object, *usual, *asked;
  } rows[] = {
      {R"({"env":[{"name":"A","value":"s"},{"name":"NCCL_DEBUG","value":"INFO"}]})",
       R"x({"env":[{"name":"A","value":"(left out)"},{"name":"NCCL_DEBUG","value":"INFO"}]})x",
       R"x({"env":[{"name":"A","value":"(left out)"},{"name":"NCCL_DEBUG","value":"INFO"}]})x"},
      {R"({"env":["s"]})", R"x({"env":["(left out)"]})x", R"x({"env":["(left out)"]})x"},
      {R"({"metadata":{"managedFields":[1],"name":"n"}})", R"({"metadata":{"name":"n"}})",
       R"({"metadata":{"name":"n"}})"},
      {R"({"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"s","a.io/x":"t",)"
       R"("berth.dev/gang":"true","gpu-fraction":"0.5","plain":"u"}})",
       R"({"annotations":{"berth.dev/gang":"true","gpu-fraction":"0.5"}})",
       R"({"annotations":{"a.io/x":"t","berth.dev/gang":"true","gpu-fraction":"0.5",)"
       R"("plain":"u"}})"},
      {R"({"a":[{"template":{"containers":[{"args":["s"],"command":["s"],"name":"c"}]}}]})",
       R"({"a":[{"template":{"containers":[{"name":"c"}]}}]})",
       R"({"a":[{"template":{"containers":[{"args":["s"],"command":["s"],"name":"c"}]}}]})"},
      {R"({"livenessProbe":{"httpGet":{"httpHeaders":[{"value":"s"}]}},"lifecycle":{"x":"s"}})",
       R"({})",
       R"({"livenessProbe":{"httpGet":{"httpHeaders":[{"value":"s"}]}},"lifecycle":{"x":"s"}})"},
      {R"({"csi":{"driver":"d","volumeAttributes":{"p":"s"}},"mountOptions":["password=s"]})",
       R"({"csi":{"driver":"d"}})",
       R"({"csi":{"driver":"d","volumeAttributes":{"p":"s"}},"mountOptions":["password=s"]})"},
      {R"({"terminated":{"message":"s","reason":"Error"}})", R"({"terminated":{"reason":"Error"}})",
       R"({"terminated":{"message":"s","reason":"Error"}})"},
      {R"({"terminated":{"message":"no such device","reason":"StartError"}})",
       R"({"terminated":{"message":"no such device","reason":"StartError"}})",
       R"({"terminated":{"message":"no such device","reason":"StartError"}})"},
      // Labels of these names.
      {R"({"labels":{"args":"a","command":"c","env":"prod","options":"o"}})",
       R"({"labels":{"args":"a","command":"c","env":"prod","options":"o"}})",
       R"({"labels":{"args":"a","command":"c","env":"prod","options":"o"}})"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(kept(row.object), row.usual);
    EXPECT_EQ(kept(row.object, {.arguments = true}), row.asked);
  }
  EXPECT_EQ(kept(R"({"status":{"images":[{"names":["a"]}]}})", {.node_images = false}),
            R"({"status":{}})");
}

// A wrapped Secret is a Secret.
TEST(Kept, OfAWholeObjectInAnotherItsDataIsLeftOut) {
  const std::string wrapped =
      R"({"spec":{"components":[{"template":{"apiVersion":"v1","kind":"Secret","metadata":)"
      R"({"name":"s"},"data":{"key":"cGxhbnRlZA=="},"stringData":{"key":"planted"}}}]}})";
  EXPECT_EQ(kept(wrapped),
            R"({"spec":{"components":[{"template":{"apiVersion":"v1","kind":"Secret","metadata":)"
            R"({"name":"s"}}}]}})");
}

// What readers read of annotations: a snapshot or a replay without one is another cluster.
TEST(Kept, AnnotationsThatDecideStay) {
  for (const char* key : {"autoscaling.x-k8s.io/consume-provisioning-request",
                          "batch.kubernetes.io/job-completion-index",
                          "berth.dev/charged-to",
                          "berth.dev/gang",
                          "berth.dev/gpu-memory-min",
                          "berth.dev/gpu-model",
                          "berth.dev/gpus",
                          "berth.dev/on-gpu-failure",
                          "berth.dev/seats",
                          "berth.dev/topology-required",
                          "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
                          "controller-gen.kubebuilder.io/version",
                          "gpu-fraction",
                          "gpu-fraction-num-devices",
                          "gpu-memory",
                          "kai.scheduler/topology-required-placement",
                          "kueue.x-k8s.io/podset-required-topology",
                          "pod-group-name",
                          "scheduling.k8s.io/group-name",
                          "scheduling.volcano.sh/group-name",
                          "scheduling.volcano.sh/queue-name",
                          "sim.berth.dev/run-seconds",
                          "storageclass.kubernetes.io/is-default-class",
                          "volcano.sh/task-spec",
                          "volume.kubernetes.io/selected-node"}) {
    EXPECT_TRUE(is_known_annotation(key)) << key;
  }
  for (const char* key : {"", "/", "example.com/x", "kubectl.kubernetes.io/restartedAt",
                          "x/berth.dev", "evilberth.dev/x"}) {
    EXPECT_FALSE(is_known_annotation(key)) << key;
  }
}

}  // namespace
}  // namespace berth::kinds
