#include "control/webhook.h"

#include <gtest/gtest.h>

#include "control/bypass.h"
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

// Who says what to a pod: its refusal, or "warned: " and the first warning, or "".
std::string webhook_word(const std::string& object, bool refuse, std::string_view kind = "Pod",
                         std::string_view operation = "CREATE", std::string_view part = "") {
  std::string body = R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":)";
  body.append(R"({"uid":"a1","operation":")").append(operation).append(R"(","subResource":")");
  body.append(part).append(R"(","kind":{"group":"","version":"v1","kind":")").append(kind);
  body.append(R"("},"object":)").append(object).append("}}");
  const auto answer = review(body, {.refuse_bypasses = refuse});
  if (!answer.ok()) return answer.error().to_string();
  const auto document = text::parse_json(*answer);
  const text::Value& response = *document->root().find("response");
  const text::Value* warnings = response.find("warnings");
  if (!response.find("allowed")->as_bool()) {
    EXPECT_EQ(response.find("patch"), nullptr);
    return std::string(response.find("status")->find("message")->string());
  }
  return warnings == nullptr ? "" : "warned: " + std::string(warnings->items()[0].string());
}

// What of the books' GPUs a pod can reach without asking for them. Each is warned of, and refused
// where that was asked for, in every kind of container.
TEST(Webhook, WaysAroundTheBooks) {
  const struct {
    const char *spec, *where;  // "": nothing is said
  } rows[] = {
      {R"("containers":[{"env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}]}])",
       "spec.containers[0].env[0]"},
      {R"("containers":[{"env":[{"name":"A"},{"name":"NVIDIA_VISIBLE_DEVICES","value":"0,1"}]}])",
       "spec.containers[0].env[1]"},
      {R"("containers":[{"env":[{"name":"NVIDIA_VISIBLE_DEVICES","valueFrom":{}}]}])",
       "spec.containers[0].env[0]"},
      {R"("containers":[{"env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"void"}]}])", ""},
      {R"("containers":[{"env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"none"}]}])", ""},
      {R"("containers":[{}],"initContainers":[{},{"restartPolicy":"Always","env":[)"
       R"({"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}]}])",
       "spec.initContainers[1].env[0]"},
      {R"("containers":[{"securityContext":{"privileged":true}}])",
       "spec.containers[0].securityContext.privileged"},
      {R"("containers":[{"securityContext":{"privileged":false}}])", ""},
      {R"("containers":[{}],"initContainers":[{"securityContext":{"privileged":true}}])",
       "spec.initContainers[0].securityContext.privileged"},
      {R"("hostPID":true)", "spec.hostPID"},
      {R"("nodeName":"n1","containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}])",
       "spec.nodeName"},
      {R"("nodeName":"n1","containers":[{"resources":{"limits":{"cpu":"1"}}}])", ""},
      {R"("hostPID":false,"hostNetwork":true)", ""},
      {R"("volumes":[{"emptyDir":{}},{"hostPath":{"path":"/dev/nvidia0"}}])",
       "spec.volumes[1].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"/dev/nvidiactl"}}])", "spec.volumes[0].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"/dev/nvidia-caps/nvidia-cap1"}}])",
       "spec.volumes[0].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"//dev/./x/../nvidia0/"}}])", "spec.volumes[0].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"/dev"}}])", "spec.volumes[0].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"/"}}])", "spec.volumes[0].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"/var/lib/kubelet"}}])", "spec.volumes[0].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"/dev/shm"}}])", ""},
      {R"("volumes":[{"hostPath":{"path":"/data/dev/nvidia0"}}])", ""},
      {R"("volumes":[{"hostPath":{"path":"/proc"}}])", "spec.volumes[0].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"/proc/1/root"}}])", "spec.volumes[0].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"/processed"}}])", ""},
      {R"("volumes":[{"hostPath":{"path":"/dev/char"}}])", "spec.volumes[0].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"/dev/char/195:0"}}])", "spec.volumes[0].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"/run/containerd/containerd.sock"}}])",
       "spec.volumes[0].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"/var/run/containerd"}}])", "spec.volumes[0].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"/run/k3s"}}])", "spec.volumes[0].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"/var/run/docker.sock"}}])", "spec.volumes[0].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"/run/docker.sock"}}])", "spec.volumes[0].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"/run/crio/crio.sock"}}])", "spec.volumes[0].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"/var/run/cri-dockerd.sock"}}])",
       "spec.volumes[0].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"/run"}}])", "spec.volumes[0].hostPath"},
      {R"("volumes":[{"hostPath":{"path":"/run/lock"}}])", ""},
      {R"("containers":[{"volumeMounts":[{"mountPath":"/var/run/nvidia-container-devices/all"}]}])",
       "spec.containers[0].volumeMounts[0]"},
      {R"("containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}])", ""},
      {R"("containers":7,"volumes":[1,{"hostPath":2}],"hostPID":"yes","initContainers":[null])",
       ""},
  };
  for (const auto& row : rows) {
    const std::string pod = R"({"spec":{)" + std::string(row.spec) + "}}";
    const std::string where = row.where;
    const std::string warned = webhook_word(pod, false), refused = webhook_word(pod, true);
    if (where.empty()) {
      EXPECT_EQ(warned + refused, "") << row.spec;
      continue;
    }
    EXPECT_TRUE(warned.starts_with("warned: berth: " + where + ": ")) << row.spec << warned;
    EXPECT_TRUE(refused.starts_with(where + ": ")) << row.spec << refused;
  }
  EXPECT_TRUE(webhook_word(R"({"metadata":{"annotations":{"cdi.k8s.io/x":"nvidia.com/gpu=0"}}})", 1)
                  .starts_with("metadata.annotations: "));
  EXPECT_TRUE(webhook_word(R"({"metadata":{"annotations":{"berth.dev/gpus":"0"}},)"
                           R"("spec":{"nodeName":"n1"}})",
                           true)
                  .starts_with("spec.nodeName: "));
}

TEST(Webhook, WaysAroundTheBooksInTemplatesAndEphemeralContainers) {
  const std::string spec =
      R"("spec":{"containers":[{"securityContext":{"privileged":true}}],"ephemeralContainers":[)"
      R"({"env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}]}]})";
  const std::string pod = "{" + spec + "}", made = R"({"spec":{"template":{)" + spec + "}}}";
  EXPECT_TRUE(webhook_word(pod, true, "Pod", "UPDATE", "ephemeralcontainers")
                  .starts_with("spec.ephemeralContainers[0].env[0]: "));
  EXPECT_EQ(webhook_word(pod, true, "Pod", "UPDATE"), "") << "judged when it was made";
  EXPECT_TRUE(webhook_word(made, true, "Deployment")
                  .starts_with("spec.template.spec.containers[0].securityContext.privileged: "));
  EXPECT_TRUE(webhook_word(made, true, "Deployment", "UPDATE")
                  .starts_with("warned: berth: spec.template.spec.containers[0]"))
      << "Kubernetes itself updates it";
}

// What an image or a ConfigMap sets is not seen; a variable of the pod's own wins over both.
TEST(Webhook, ContainersWithoutGpusSeeNoneWhereBypassesAreRefused) {
  const auto patch = [](const std::string& request, bool refuse) -> std::string {
    const auto answer = review(
        R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u",)"
        R"("kind":{"group":"","version":"v1","kind":"Pod"},)" +
            request + "}}",
        {.refuse_bypasses = refuse});
    if (!answer.ok()) return answer.error().to_string();
    const auto document = text::parse_json(*answer);
    EXPECT_TRUE(document->root().find("response")->find("allowed")->as_bool()) << request;
    const text::Value* found = document->root().find("response")->find("patch");
    return found == nullptr ? "" : *text::base64_decode(found->string());
  };
  const auto made = [&](const std::string& pod, bool refuse = true) {
    return patch(R"("operation":"CREATE","object":)" + pod, refuse);
  };
  const std::string hidden = R"({"name":"NVIDIA_VISIBLE_DEVICES","value":"void"})";
  const std::string plain = R"({"spec":{"containers":[{"envFrom":[{"configMapRef":{}}]}]}})";
  EXPECT_EQ(made(plain),
            R"([{"op":"add","path":"/spec/containers/0/env","value":[)" + hidden + "]}]");
  EXPECT_EQ(made(R"({"spec":{"containers":[{"resources":{"claims":[{"name":"c"}],)"
                 R"("limits":{"nvidia.com/gpu":"0","nvidia.com/x":0,"nvidia.com/y":"0e9"}}}],)"
                 R"("schedulerName":"mine"}})"),
            made(plain))
      << "who asks for none of them is as who does not ask";
  EXPECT_EQ(made(plain, false), "") << "who is only warned is not changed";
  EXPECT_EQ(made(R"({"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}},)"
                 R"({"env":[{"name":"A"}]}],"initContainers":[{}],"schedulerName":"berth"}})"),
            R"([{"op":"add","path":"/spec/containers/1/env/-","value":)" + hidden +
                R"(},{"op":"add","path":"/spec/initContainers/0/env","value":[)" + hidden + "]}]");
  for (const char* left :
       {R"({"spec":{"containers":[{"env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"none"}]}]}})",
        R"({"spec":{"containers":[7]}})",
        R"({"metadata":{"annotations":{"gpu-fraction":"0.5"}},)"
        R"("spec":{"containers":[{}],"schedulerName":"berth"}})"}) {
    EXPECT_EQ(made(left), "") << left;
  }
  EXPECT_EQ(patch(R"("operation":"UPDATE","subResource":"ephemeralcontainers","object":)"
                  R"({"spec":{"ephemeralContainers":[{"name":"old"},{"name":"new"}]}},)"
                  R"("oldObject":{"spec":{"ephemeralContainers":[{"name":"old"}]}})",
                  true),
            R"([{"op":"add","path":"/spec/ephemeralContainers/1/env","value":[)" + hidden + "]}]")
      << "what is there cannot be changed";
}

// An API server writes "<" as six bytes, and lets in what its webhook has no answer to.
TEST(Webhook, ThePodIsLookedAtHoweverItIsWritten) {
  std::string escaped;
  for (int i = 0; i < 3'000'000; ++i) escaped += "\\u003c";
  const std::string pod =
      R"({"spec":{"hostPID":true,"containers":[{"args":[")" + escaped + R"("]}]}})";
  EXPECT_TRUE(webhook_word(pod, true).starts_with("spec.hostPID: "));
}

TEST(Webhook, ThousandsOfContainersAreNotChangedOneByOne) {
  std::string spec = R"({"spec":{"containers":[{})";
  for (int i = 0; i < 1'000; ++i) spec += ",{}";
  EXPECT_TRUE(webhook_word(spec + "]}}", true).starts_with("spec.containers: too many"));
  EXPECT_EQ(webhook_word(spec + "]}}", false), "");
}

// A pod can be as large as it likes; what is said of it cannot.
TEST(Webhook, WaysAroundTheBooksAreToldOfInBounds) {
  std::string spec = R"({"spec":{"containers":[)";
  for (int i = 0; i < 100; ++i) {
    spec += std::string(i == 0 ? "" : ",") + R"({"securityContext":{"privileged":true}})";
  }
  const auto document = text::parse_json(spec + "]}}");
  ASSERT_TRUE(document.ok());
  EXPECT_EQ(find_bypasses(document->root(), "", false).size(), kMostBypasses);
}

// What namespaces say about queues reaches those that name none.
TEST(Webhook, NamespacesThatRequireOrHaveAQueue) {
  const auto board = std::make_shared<QueueBoard>();
  const auto patch = [&](const std::string& kind, const std::string& ns,
                         const std::string& object) {
    const std::string group = kind == "Job"          ? "batch"
                              : kind == "JobSet"     ? "jobset.x-k8s.io"
                              : kind == "AppWrapper" ? "workload.codeflare.dev"
                                                     : "";
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
  const auto refuses_node = [&](const std::string& ns) {
    const auto answer = review(
        R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u",)"
        R"("operation":"CREATE","namespace":")" +
            ns +
            R"(","kind":{"group":"","version":"v1","kind":"Pod"},"object":{"spec":{"nodeName":"n",)"
            R"("containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}}})",
        {.board = board});
    return answer.ok() && answer->find(R"("allowed":false)") != std::string::npos;
  };
  EXPECT_TRUE(refuses_node("team") && refuses_node("web")) << "either may require a queue";
  board->tell({.kueue = true, .pods = true, .required = {"team"}, .defaulted = {"lab"}});
  EXPECT_EQ(patch("Job", "team", job), hold);
  EXPECT_TRUE(refuses_node("team"));
  EXPECT_FALSE(refuses_node("web"));
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
  // So do other kinds that wait as a whole; those that berth does not queue are left alone.
  for (const char* kind : {"JobSet", "AppWrapper"}) {
    EXPECT_EQ(patch(kind, "team", R"({"spec":{}})"), hold) << kind;
    EXPECT_EQ(patch(kind, "web", R"({"spec":{}})"), "") << kind;
    EXPECT_EQ(patch(kind, "web",
                    R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"q"}},"spec":{}})"),
              hold)
        << kind;
    EXPECT_EQ(patch(kind, "team", R"({"spec":{"suspend":true}})"), "") << kind;
    EXPECT_EQ(patch(kind, "team",
                    R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"q"},"ownerReferences":)"
                    R"([{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper",)"
                    R"("name":"w","controller":true}]},"spec":{}})"),
              "")
        << "its wrapper lets it go on";
  }
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

TEST(Webhook, AReviewOfMillionsOfValuesIsRefused) {
  std::string zeros = "[0";
  for (int i = 0; i < 1'000'000; ++i) zeros += ",0";
  const std::string pod = R"({"spec":{"containers":[{"args":)" + zeros + "]}]}}";
  EXPECT_TRUE(webhook_word(pod, true).starts_with("it is too large"));
  EXPECT_TRUE(webhook_word(pod, false).starts_with("warned: berth: it is too large"));
  // Where it runs cannot be known either, so it is kept out where that matters.
  WebhookOptions options;
  auto board = std::make_shared<QueueBoard>();
  options.board = board;
  board->tell({.kueue = true, .pods = true, .required = {"team"}, .defaulted = {}});
  const auto kept_out = review(
      R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"a-1",)"
      R"("object":)" +
          pod + "}}",
      options);
  ASSERT_TRUE(kept_out.ok());
  EXPECT_NE(kept_out->find(R"("allowed":false)"), std::string::npos) << *kept_out;
  const auto answer = review(zeros + "]", {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kExhausted);
}

}  // namespace
}  // namespace berth::control
