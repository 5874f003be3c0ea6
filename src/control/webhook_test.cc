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

TEST(Webhook, WhatIsNoReviewIsRefused) {
  EXPECT_FALSE(review("", {}).ok());
  EXPECT_FALSE(review("{}", {}).ok());
  EXPECT_FALSE(review(R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"})", {}).ok());
  EXPECT_FALSE(review(R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1",)"
                      R"("request":{"uid":"u"}})",
                      {})
                   .ok());
}

TEST(Webhook, AReviewOfMillionsOfValuesIsRefused) {
  std::string zeros = "[0";
  for (int i = 0; i < 1'000'000; ++i) zeros += ",0";
  const auto answer = review(zeros + "]", {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kExhausted);
}

}  // namespace
}  // namespace berth::control
