#include "people/why/no_gpu.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "people/view/words.h"
#include "people/why/no_gpu_pod.h"
#include "text/json.h"

namespace berth::people {
namespace {

constexpr const char* kGoodPod = R"({"metadata":{"namespace":"team","name":"train","uid":"u-1",
  "annotations":{"berth.dev/gpus":"2,3"}},
  "spec":{"nodeName":"gpu-1","containers":[{"name":"main","image":"nvidia/cuda:12.4.1-base",
    "resources":{"limits":{"nvidia.com/gpu":"2"}}}]},
  "status":{"phase":"Running","containerStatuses":[{"name":"main","state":{"running":{}}}]}})";
constexpr const char* kGoodNode = R"({"metadata":{"name":"gpu-1"},
  "status":{"allocatable":{"nvidia.com/gpu":"8"},"conditions":[
    {"type":"GpuReady","status":"True","reason":"Ready","message":"all steps"},
    {"type":"GpuHealthy","status":"True","reason":"AllHealthy","message":"8 healthy"}]}})";
constexpr const char* kGoodGpuNode = R"({"metadata":{"name":"gpu-1"},
  "status":{"driverVersion":"580.159.04","cudaVersion":"13.0","gpus":[
    {"index":2,"health":{"state":"Healthy"},"holders":["u-1"]},
    {"index":3,"health":{"state":"Healthy"},"holders":["u-1"]}]}})";

struct Case {
  std::string pod = kGoodPod, node = kGoodNode, gpu_node = kGoodGpuNode;
  std::string agent = {}, runtime_class = {};
  bool classes_seen = true;
};

text::Document read(const std::string& json) {
  Result<text::Document> out = text::parse_json(json);
  EXPECT_TRUE(out.ok()) << json;
  return std::move(*out);
}

NoGpuAnswer ask(const Case& with) {
  const text::Document pod = read(with.pod), node = read(with.node.empty() ? "{}" : with.node),
                       gpu_node = read(with.gpu_node.empty() ? "{}" : with.gpu_node),
                       agent = read(with.agent.empty() ? "{}" : with.agent),
                       runtime = read(with.runtime_class.empty() ? "{}" : with.runtime_class);
  NoGpuEvidence evidence{.pod = &pod.root()};
  if (!with.node.empty()) evidence.node = &node.root();
  if (!with.gpu_node.empty()) evidence.gpu_node = &gpu_node.root();
  if (!with.agent.empty()) evidence.agent = &agent.root();
  if (!with.runtime_class.empty()) evidence.runtime_classes = {&runtime.root()};
  evidence.runtime_classes_seen = with.classes_seen;
  return why_no_gpu(evidence);
}

const GpuCheck& check(const NoGpuAnswer& answer, const std::string& id) {
  const auto it = std::find_if(answer.checks.begin(), answer.checks.end(),
                               [&](const GpuCheck& each) { return each.id == id; });
  EXPECT_NE(it, answer.checks.end()) << id;
  return it == answer.checks.end() ? answer.checks.front() : *it;
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(NoGpu, NothingIsWrongWithAPodThatHasItsGpus) {
  const NoGpuAnswer answer = ask({});
  EXPECT_EQ(answer.exit_code, 0);
  for (const GpuCheck& each : answer.checks) {
    EXPECT_EQ(each.state, CheckState::kOk) << each.id << ": " << each.saw;
  }
  EXPECT_EQ(answer.checks.size(), 11u);
  EXPECT_NE(answer.line.find("nothing that keeps GPUs from it was found"), std::string::npos);
}

struct Wrong {
  const char* name;
  Case with;
  std::string id;
  CheckState state;
  int exit_code;
  std::string says;  // in saw or fix
};

Wrong pod_wrong(const char* name, const std::string& from, const std::string& to, std::string id,
                CheckState state, int code, std::string says) {
  return {name, {.pod = with(kGoodPod, from, to)}, std::move(id), state, code, std::move(says)};
}

std::vector<Wrong> wrongs() {
  const auto env = [](const char* key, const char* value) {
    return std::string(R"("name":"main","env":[{"name":")") + key + R"(","value":")" + value +
           R"("}])";
  };
  const std::string main = R"("name":"main","image")";
  const auto failed = CheckState::kFailed;
  const auto warns = CheckState::kWarning;
  std::vector<Wrong> out;
  out.push_back(pod_wrong("no limit", R"({"nvidia.com/gpu":"2"})", R"({"cpu":"2"})", "asks", failed,
                          20, "resources.limits"));
  out.push_back(pod_wrong("a limit of 0", R"("2"}})", R"("0"}})", "asks", failed, 20, "none gets"));
  out.push_back(pod_wrong("the other container", R"("containers":[)",
                          R"("containers":[{"name":"side"},)", "asks", warns, 10, "side asks"));
  out.push_back(pod_wrong("pending", R"("nodeName":"gpu-1",)", "", "placed", failed, 10,
                          "berth why pod team/train"));
  out.push_back(pod_wrong("refused", R"("phase":"Running")",
                          R"("phase":"Failed","reason":"UnexpectedAdmissionError",)"
                          R"("message":"no healthy devices present; cannot allocate")",
                          "placed", failed, 40, "no healthy device"));
  out.push_back(pod_wrong("hidden by CUDA", main, env("CUDA_VISIBLE_DEVICES", "-1") + R"(,"image")",
                          "environment", failed, 20, "hides every GPU"));
  out.push_back(pod_wrong("beyond", main, env("CUDA_VISIBLE_DEVICES", "2") + R"(,"image")",
                          "environment", failed, 20, "numbered from 0"));
  out.push_back(pod_wrong("void", main, env("NVIDIA_VISIBLE_DEVICES", "void") + R"(,"image")",
                          "environment", failed, 20, "gives no device"));
  out.push_back(pod_wrong("all", main, env("NVIDIA_VISIBLE_DEVICES", "all") + R"(,"image")",
                          "environment", warns, 10, "not what was allocated"));
  out.push_back(pod_wrong("no compute", main,
                          env("NVIDIA_DRIVER_CAPABILITIES", "utility") + R"(,"image")",
                          "environment", warns, 10, "libcuda"));
  out.push_back(
      pod_wrong("newer CUDA", "cuda:12.4.1", "cuda:14.0.0", "cuda", failed, 20, "wants CUDA 14.0"));
  out.push_back(pod_wrong("newer minor", "cuda:12.4.1", "cuda:13.1.0", "cuda", warns, 10, "PTX"));
  out.push_back(pod_wrong("required CUDA", main,
                          env("NVIDIA_REQUIRE_CUDA", "cuda>=14.1 brand=tesla") + R"(,"image")",
                          "cuda", failed, 20, "NVIDIA_REQUIRE_CUDA"));
  out.push_back(pod_wrong("privileged", main,
                          R"("name":"main","securityContext":{"privileged":true},"image")",
                          "security", warns, 10, "every device"));
  out.push_back(pod_wrong("host device", R"("containers":[)",
                          R"("volumes":[{"name":"d","hostPath":{"path":"/dev/nvidia0"}}],)"
                          R"("containers":[)",
                          "security", warns, 10, "/dev/nvidia0"));
  out.push_back(pod_wrong("no such class", R"("nodeName")",
                          R"("runtimeClassName":"nvidia","nodeName")", "runtime-class", failed, 20,
                          "no RuntimeClass nvidia"));
  out.push_back(pod_wrong("CDI", R"({"running":{}})",
                          R"({"waiting":{"reason":"CreateContainerError","message":)"
                          R"("unresolvable CDI devices berth.dev/gpu=2"}})",
                          "cdi", failed, 40, "enable_cdi"));
  out.push_back(pod_wrong("mismatch", R"({"running":{}})",
                          R"({"waiting":{"reason":"RunContainerError","message":)"
                          R"("nvml error: Driver/library version mismatch"}})",
                          "container", failed, 40, "reload it"));
  out.push_back(pod_wrong("image", R"({"running":{}})",
                          R"({"waiting":{"reason":"ImagePullBackOff","message":"x"}})", "container",
                          failed, 20, "ImagePullBackOff"));
  out.push_back(pod_wrong("kubelet says sick", R"("state":{"running":{}})",
                          R"("state":{"running":{}},"allocatedResourcesStatus":[{"name":)"
                          R"("nvidia.com/gpu","resources":[{"resourceID":"GPU-x",)"
                          R"("health":"Unhealthy"}]}])",
                          "health", failed, 40, "GPU-x"));
  return out;
}

TEST(NoGpu, EachThingThatIsWrongIsFoundAndNamed) {
  for (const Wrong& wrong : wrongs()) {
    const NoGpuAnswer answer = ask(wrong.with);
    const GpuCheck& found = check(answer, wrong.id);
    EXPECT_EQ(found.state, wrong.state) << wrong.name << ": " << found.saw;
    EXPECT_NE((found.saw + ' ' + found.fix).find(wrong.says), std::string::npos)
        << wrong.name << ": " << found.saw << " / " << found.fix;
    EXPECT_EQ(answer.exit_code, wrong.exit_code) << wrong.name << ": " << answer.line;
    EXPECT_FALSE(found.fix.empty()) << wrong.name;
  }
}

TEST(NoGpu, TheNodeIsBlamedWhereItIsTheNode) {
  NoGpuAnswer answer = ask({.node = with(kGoodNode, R"("status":"True","reason":"Ready")",
                                         R"("status":"False","reason":"CdiFailed")")});
  EXPECT_EQ(check(answer, "node").state, CheckState::kFailed);
  EXPECT_EQ(answer.exit_code, 40);
  answer = ask({.node = with(kGoodNode, R"("nvidia.com/gpu":"8")", R"("nvidia.com/gpu":"0")")});
  EXPECT_NE(check(answer, "node").saw.find("offers 0"), std::string::npos);
  answer = ask({.node = ""});
  EXPECT_EQ(answer.exit_code, 40) << "a node that does not exist";
  answer = ask({.gpu_node = with(kGoodGpuNode, R"("holders":["u-1"]},)", R"("holders":[]},)")});
  EXPECT_EQ(check(answer, "allocation").state, CheckState::kWarning) << "hint against truth";
  answer = ask({.gpu_node = R"({"status":{"cudaVersion":"13.0","gpus":[]}})"});
  EXPECT_EQ(check(answer, "allocation").state, CheckState::kFailed);
  answer = ask({.gpu_node = with(kGoodGpuNode, R"({"state":"Healthy"})",
                                 R"({"state":"Unhealthy","reason":"Xid 79"})")});
  EXPECT_NE(check(answer, "health").saw.find("Xid 79"), std::string::npos);
  EXPECT_EQ(answer.exit_code, 40);
}

TEST(NoGpu, WhatIsNotSeenIsUnknown) {
  const NoGpuAnswer answer = ask({.gpu_node = "", .classes_seen = false});
  for (const char* id : {"allocation", "health", "cuda"}) {
    EXPECT_EQ(check(answer, id).state, CheckState::kUnknown) << id;
  }
  EXPECT_EQ(answer.exit_code, 0);
  EXPECT_NE(answer.line.find("3 checks could not be looked at"), std::string::npos) << answer.line;
}

TEST(NoGpu, TheAgentOfTheNodeTellsOfCdi) {
  const NoGpuAnswer answer = ask({.agent = R"({"ready":false,"steps":[{"step":"cdi",
      "state":"failed","reason":"CdiFailed","text":"/var/run/cdi: read-only file system"}]})"});
  EXPECT_EQ(check(answer, "cdi").state, CheckState::kFailed);
  EXPECT_NE(check(answer, "cdi").saw.find("read-only"), std::string::npos);
}

TEST(NoGpu, OddObjectsAreAnswered) {
  for (const char* pod : {"{}", "[]", "7", R"({"spec":7,"status":[]})",
                          R"({"spec":{"containers":[7,{"env":7,"resources":{"limits":[]}}]}})",
                          R"({"metadata":{"name":"a\u001b[31m"},"spec":{"nodeName":"n"}})"}) {
    const NoGpuAnswer answer = ask({.pod = pod});
    EXPECT_EQ(answer.checks.size(), 11u) << pod;
    const std::string table = no_gpu_table(answer);
    EXPECT_EQ(table.find('\x1b'), std::string::npos);
    EXPECT_TRUE(text::parse_json(no_gpu_json(answer)).ok()) << no_gpu_json(answer);
  }
}

TEST(NoGpu, TheLongestNameOfACheckKeepsItsDistance) {
  const std::string table = no_gpu_table(ask({}));
  EXPECT_NE(table.find("runtime-class none is asked for"), std::string::npos) << table;
}

TEST(NoGpu, TheTableFitsEightyColumns) {
  for (const Wrong& wrong : wrongs()) {
    const std::string table = no_gpu_table(ask(wrong.with));
    for (std::size_t at = 0; at < table.size();) {
      const std::size_t end = table.find('\n', at);
      EXPECT_LE(width_of(table.substr(at, end - at)), 80u) << table.substr(at, end - at);
      at = end + 1;
    }
  }
}

TEST(NoGpu, VersionsOfCudaAreReadFromImages) {
  const auto wanted = [](const std::string& image) {
    GpuContainer container;
    const text::Document empty = read("{}");
    container.spec = &empty.root();
    container.image = image;
    std::string by;
    return wanted_cuda(container, by);
  };
  EXPECT_EQ(wanted("nvidia/cuda:12.4.1-runtime-ubuntu22.04"), (CudaVersion{12, 4}));
  EXPECT_EQ(wanted("pytorch/pytorch:2.3.0-cuda12.1-cudnn8-runtime"), (CudaVersion{12, 1}));
  EXPECT_EQ(wanted("registry:5000/cuda/app:7"), std::nullopt) << "the folder does not count";
  EXPECT_EQ(wanted("tensorflow:2.16-gpu"), std::nullopt);
  EXPECT_EQ(wanted("x/cuda@sha256:12"), std::nullopt);
  EXPECT_EQ(parse_cuda("13"), (CudaVersion{13, 0}));
  EXPECT_EQ(parse_cuda("7.5"), std::nullopt);
  EXPECT_EQ(parse_cuda(""), std::nullopt);
}

}  // namespace
}  // namespace berth::people
