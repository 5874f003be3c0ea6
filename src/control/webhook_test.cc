#include "control/webhook.h"

#include <gtest/gtest.h>

#include "text/base64.h"
#include "text/json.h"

namespace berth::control {
namespace {

// The patch that comes of a request for this object; "" for none.
std::string webhook_patch(std::string_view group, std::string_view kind, std::string_view object,
                          std::string_view operation = "CREATE") {
  std::string body = R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":)";
  body.append(R"({"uid":"u1","operation":")").append(operation);
  body.append(R"(","kind":{"group":")").append(group).append(R"(","version":"v1","kind":")");
  body.append(kind).append(R"("},"object":)").append(object).append("}}");
  auto answer = review(body, {});
  if (!answer.ok()) return answer.error().to_string();
  auto document = text::parse_json(*answer);
  const text::Value* response = document->root().find("response");
  EXPECT_EQ(response->find("uid")->string(), "u1");
  EXPECT_TRUE(response->find("allowed")->as_bool());
  const text::Value* patch = response->find("patch");
  return patch == nullptr ? "" : *text::base64_decode(patch->string());
}

constexpr const char* kGpuSpec =
    R"("spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}]})";

TEST(Webhook, WhoGetsOurScheduler) {
  const std::string gpu = kGpuSpec;
  const std::string set = R"([{"op":"add","path":"/spec/schedulerName","value":"berth"}])";
  EXPECT_EQ(webhook_patch("", "Pod", "{" + gpu + "}"), set);
  EXPECT_EQ(webhook_patch("", "Pod", "{" + gpu + "}", "UPDATE"), "");
  EXPECT_EQ(webhook_patch("", "Pod", R"({"spec":{"containers":[{}]}})"), "") << "no GPU";
  EXPECT_EQ(webhook_patch("", "Pod",
                          R"({"metadata":{"annotations":{"gpu-fraction":"0.5"}},)"
                          R"("spec":{"schedulerName":"default-scheduler"}})"),
            set);
  EXPECT_EQ(webhook_patch("", "Pod",
                          R"({"metadata":{"annotations":{"gpu-fraction":"0.5"}},)"
                          R"("spec":{"schedulerName":"volcano"}})"),
            "")
      << "somebody chose";
  EXPECT_EQ(webhook_patch("apps", "Deployment", R"({"spec":{"template":{)" + gpu + "}}}", "UPDATE"),
            R"([{"op":"add","path":"/spec/template/spec/schedulerName","value":"berth"}])");
  EXPECT_EQ(
      webhook_patch("kubeflow.org", "PyTorchJob",
                    R"({"spec":{"pytorchReplicaSpecs":{"Worker":{"template":{)" + gpu + "}}}}}"),
      R"([{"op":"add","path":"/spec/pytorchReplicaSpecs/Worker/template/spec/schedulerName",)"
      R"("value":"berth"}])");
  EXPECT_EQ(webhook_patch("batch.volcano.sh", "Job",
                          R"({"spec":{"tasks":[{"template":{)" + gpu + "}}]}}"),
            R"([{"op":"add","path":"/spec/tasks/0/template/spec/schedulerName",)"
            R"("value":"berth"}])");
}

TEST(Webhook, JobsOfQueuesAreSuspended) {
  const std::string labels = R"("metadata":{"labels":{"kueue.x-k8s.io/queue-name":"lq"}})";
  const std::string hold = R"([{"op":"add","path":"/spec/suspend","value":true}])";
  const std::string plain = R"("template":{"spec":{"containers":[{}]}})";
  EXPECT_EQ(webhook_patch("batch", "Job", "{" + labels + R"(,"spec":{)" + plain + "}}"), hold);
  EXPECT_EQ(webhook_patch("batch", "Job", "{" + labels + R"(,"spec":{"suspend":true}})"), "");
  EXPECT_EQ(webhook_patch("batch", "Job", R"({"spec":{)" + plain + "}}"), "");
  EXPECT_EQ(webhook_patch("batch", "Job", "{" + labels + R"(,"spec":{)" + plain + "}}", "UPDATE"),
            "");
}

// What namespaces say about queues reaches those that name none.
TEST(Webhook, NamespacesThatRequireOrHaveAQueue) {
  const auto board = std::make_shared<QueueBoard>();
  const auto patch = [&](const std::string& kind, const std::string& ns,
                         const std::string& object) {
    const std::string group = kind == "Job" ? "batch" : "";
    auto answer = review(
        R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u",)"
        R"("operation":"CREATE","namespace":")" +
            ns + R"(","kind":{"group":")" + group + R"(","version":"v1","kind":")" + kind +
            R"("},"object":)" + object + "}}",
        {.board = board});
    auto document = text::parse_json(*answer);
    const text::Value* found = document->root().find("response")->find("patch");
    return found == nullptr ? "" : *text::base64_decode(found->string());
  };
  const std::string plain = R"("spec":{"template":{"spec":{"containers":[{}]}}})";
  const std::string job = "{" + plain + "}";
  const std::string gpu_pod = std::string("{") + kGpuSpec + "}";
  const std::string hold = R"([{"op":"add","path":"/spec/suspend","value":true}])";
  EXPECT_EQ(patch("Job", "team", job), "") << "nothing is known yet";
  board->tell({.kueue = true, .pods = true, .required = {"team"}, .defaulted = {"lab"}});
  EXPECT_EQ(patch("Job", "team", job), hold);
  EXPECT_EQ(patch("Job", "web", job), "");
  EXPECT_EQ(patch("Job", "team",
                  R"({"metadata":{"ownerReferences":[{"kind":"JobSet","controller":true}]},)" +
                      plain + "}"),
            "")
      << "who made it waits";
  EXPECT_EQ(patch("Job", "team",
                  R"({"metadata":{"ownerReferences":[{"kind":"CronJob","controller":true}]},)" +
                      plain + "}"),
            hold);
  EXPECT_EQ(patch("Job", "team",
                  R"({"spec":{"template":{"metadata":{"labels":{"kai.scheduler/queue":"q"}},)"
                  R"("spec":{"containers":[{}]}}}})"),
            "");
  const std::string label =
      R"({"op":"add","path":"/metadata/labels","value":{"kueue.x-k8s.io/queue-name":"default"}})";
  EXPECT_EQ(patch("Job", "lab", job),
            "[" + label + R"(,{"op":"add","path":"/spec/suspend","value":true}])");
  EXPECT_NE(patch("Pod", "lab", gpu_pod).find(label), std::string::npos);
  EXPECT_NE(
      patch("Pod", "lab", std::string(R"({"metadata":{"labels":{"a":"b"}},)") + kGpuSpec + "}")
          .find(R"("/metadata/labels/kueue.x-k8s.io~1queue-name")"),
      std::string::npos);
  EXPECT_EQ(patch("Pod", "lab", R"({"spec":{"containers":[{}]}})"), "") << "not ours";
  EXPECT_EQ(patch("Pod", "team", gpu_pod).find("labels"), std::string::npos);
  board->tell({.kueue = false, .pods = true, .required = {"team"}, .defaulted = {}});
  EXPECT_EQ(patch("Job", "team", job), "") << "nobody would start it again: its pods wait";
}

TEST(Webhook, WhatIsNoReviewIsRefused) {
  EXPECT_FALSE(review("", {}).ok());
  EXPECT_FALSE(review("{}", {}).ok());
  EXPECT_FALSE(review(R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"})", {}).ok());
  EXPECT_FALSE(review(R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1",)"
                      R"("request":{"uid":"u"}})",
                      {})
                   .ok());
}

}  // namespace
}  // namespace berth::control
