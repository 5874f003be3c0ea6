#include "kinds/gpu_demand.h"

#include "kinds/read_for_test.h"

namespace berth::kinds {
namespace {

using model::GpuDemandSpec;
using Kind = GpuDemandSpec::Kind;

std::string limits(const char* amounts) {
  return "  containers: [{name: c, resources: {limits: {" + std::string(amounts) + "}}}]\n";
}
std::string notes(const char* annotations) {
  return "  annotations: {" + std::string(annotations) + "}\n";
}

struct DemandCase {
  const char* name;
  const char* limits;
  const char* annotations;
  GpuDemandSpec want;
};
class DemandTest : public ::testing::TestWithParam<DemandCase> {};

TEST_P(DemandTest, Reads) {
  const auto pod = clean_pod(limits(GetParam().limits), notes(GetParam().annotations));
  EXPECT_EQ(pod.gpu, GetParam().want);
  EXPECT_FALSE(pod.requests.contains("nvidia.com/gpu"));
}

INSTANTIATE_TEST_SUITE_P(
    Table, DemandTest,
    ::testing::Values(
        DemandCase{"none", "cpu: 1", "", {}}, DemandCase{"zero", "nvidia.com/gpu: 0", "", {}},
        DemandCase{"whole", "nvidia.com/gpu: 4", "", {Kind::kWhole, 4, 0, 0, ""}},
        DemandCase{"quoted", "nvidia.com/gpu: '2'", "", {Kind::kWhole, 2, 0, 0, ""}},
        DemandCase{"shared", "nvidia.com/gpu.shared: 3", "", {Kind::kShared, 3, 0, 0, ""}},
        DemandCase{"mig",
                   "nvidia.com/mig-1g.10gb: 2",
                   "",
                   {Kind::kMig, 2, 0, 0, "nvidia.com/mig-1g.10gb"}},
        DemandCase{"fraction", "cpu: 1", "gpu-fraction: '0.5'", {Kind::kFraction, 1, 500, 0, ""}},
        DemandCase{
            "fraction_one", "cpu: 1", "gpu-fraction: '1'", {Kind::kFraction, 1, 1000, 0, ""}},
        DemandCase{"fraction_devices",
                   "cpu: 1",
                   "gpu-fraction: '.25', gpu-fraction-num-devices: '2'",
                   {Kind::kFraction, 2, 250, 0, ""}},
        DemandCase{"memory", "cpu: 1", "gpu-memory: '20000'", {Kind::kMemory, 1, 0, 20000, ""}}),
    [](const auto& suite) { return suite.param.name; });

struct BadDemandCase {
  const char* name;
  const char* limits;
  const char* annotations;
  const char* want;
};
class BadDemandTest : public ::testing::TestWithParam<BadDemandCase> {};

TEST_P(BadDemandTest, Says) {
  const std::string errors = pod_errors(limits(GetParam().limits), notes(GetParam().annotations));
  EXPECT_NE(errors.find(GetParam().want), std::string::npos) << errors;
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadDemandTest,
    ::testing::Values(
        BadDemandCase{"half", "nvidia.com/gpu: 0.5", "", "use the annotation gpu-fraction"},
        BadDemandCase{"half_milli", "nvidia.com/gpu: 500m", "",
                      "spec.containers[0].resources.limits[\"nvidia.com/gpu\"]: found string"},
        BadDemandCase{"negative", "nvidia.com/gpu: -1", "", "at least 0"},
        BadDemandCase{"absurd", "nvidia.com/gpu: 2000000", "", "at most 1000000"},
        BadDemandCase{"two_ways", "nvidia.com/gpu: 1", "gpu-fraction: '0.5'",
                      "found nvidia.com/gpu and annotation gpu-fraction, want one way"},
        BadDemandCase{"two_profiles", "nvidia.com/mig-1g.10gb: 1, nvidia.com/mig-2g.20gb: 1", "",
                      "one way of asking"},
        BadDemandCase{"fraction_and_memory", "cpu: 1", "gpu-fraction: '0.5', gpu-memory: '1'",
                      "one way of asking"},
        BadDemandCase{"fraction_zero", "cpu: 1", "gpu-fraction: '0'",
                      "metadata.annotations.gpu-fraction: found string \"0\""},
        BadDemandCase{"fraction_above", "cpu: 1", "gpu-fraction: '1.001'", "at most 1"},
        BadDemandCase{"fraction_text", "cpu: 1", "gpu-fraction: half", "gpu-fraction"},
        BadDemandCase{"fraction_sign", "cpu: 1", "gpu-fraction: '-0.5'", "gpu-fraction"},
        BadDemandCase{"fraction_number", "cpu: 1", "gpu-fraction: 0.5", "want a string"},
        BadDemandCase{"memory_suffix", "cpu: 1", "gpu-memory: 20Gi", "whole number of MiB"},
        BadDemandCase{"devices_alone", "nvidia.com/gpu: 1", "gpu-fraction-num-devices: '2'",
                      "gpu-fraction or gpu-memory beside it"},
        BadDemandCase{"devices_range", "cpu: 1",
                      "gpu-fraction: '0.5', gpu-fraction-num-devices: '17'", "1..16"},
        BadDemandCase{"model", "nvidia.com/gpu: 1", "berth.dev/gpu-model: 'a,,b'", "comma list"},
        BadDemandCase{"min_memory", "nvidia.com/gpu: 1", "berth.dev/gpu-memory-min: big",
                      "a quantity such as 40Gi"},
        BadDemandCase{"indices", "nvidia.com/gpu: 1", "berth.dev/gpus: '0,16'", "0..15"}),
    [](const auto& suite) { return suite.param.name; });

TEST(GpuDemand, ParseFraction) {
  int milli = 0;
  bool exact = false;
  EXPECT_TRUE(parse_fraction("0.3333", milli, exact));
  EXPECT_EQ(milli, 333);
  EXPECT_FALSE(exact);
  EXPECT_TRUE(parse_fraction("0.50000", milli, exact));
  EXPECT_TRUE(exact);
  for (const char* bad : {"", ".", "1.0001", "2", "1e-1", "0.0004", " 0.5", "0,5"}) {
    EXPECT_FALSE(parse_fraction(bad, milli, exact)) << bad;
  }
}

TEST(GpuDemand, ByContainer) {
  const auto pod = clean_pod(
      "  initContainers: [{name: s, restartPolicy: Always, resources: {limits: "
      "{nvidia.com/gpu: 1}}}, {name: i, resources: {limits: {nvidia.com/gpu: 2}}}]\n"
      "  containers: [{name: a, resources: {limits: {nvidia.com/gpu: 2}}}, {name: b}, "
      "{name: c, resources: {limits: {nvidia.com/gpu: 3}}}]\n");
  EXPECT_EQ(pod.gpu.count, 6);
  EXPECT_EQ(pod.gpus_by_container, (std::vector<int>{1, 2, 3}));
  const auto init = clean_pod(
      "  initContainers: [{name: i, resources: {limits: {nvidia.com/gpu: 4}}}]\n"
      "  containers: [{name: a, resources: {limits: {nvidia.com/gpu: 2}}}]\n");
  EXPECT_EQ(init.gpu.count, 4);
  EXPECT_EQ(init.gpus_by_container, std::vector<int>{4});
}

TEST(GpuDemand, ModelsAndMemory) {
  const auto pod = clean_pod(limits("nvidia.com/gpu: 1"),
                             notes("berth.dev/gpu-model: 'NVIDIA-H200, NVIDIA-B200,NVIDIA-H200', "
                                   "berth.dev/gpu-memory-min: 40Gi"));
  EXPECT_EQ(pod.gpu_models, (std::vector<std::string>{"NVIDIA-H200", "NVIDIA-B200"}));
  EXPECT_EQ(pod.gpu_min_memory_mib, 40960);
  EXPECT_EQ(clean_pod("", notes("berth.dev/gpu-memory-min: 20000M")).gpu_min_memory_mib, 19074);
  const Inputs bytes = read(pod_yaml("", notes("berth.dev/gpu-memory-min: '40960'")));
  EXPECT_EQ(bytes.warnings.size(), 1u);
}

}  // namespace
}  // namespace berth::kinds
