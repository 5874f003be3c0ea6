#include "kinds/quota_requests.h"

#include "kinds/read_for_test.h"

namespace berth::kinds::quota_requests_test {
namespace {

using model::Amounts;

Amounts quota(const std::string& pod, const std::string& annotations = "",
              const model::QueueConfig& config = {}) {
  return quota_requests(clean_pod("  containers: [{name: c, resources: {requests: {" + pod +
                                      "}, limits: {" + pod + "}}}]\n",
                                  "  annotations: {" + annotations + "}\n"),
                        config);
}

TEST(QuotaRequests, GpusByName) {
  EXPECT_EQ(quota("cpu: 1500m, memory: 1Gi, nvidia.com/gpu: 4"),
            (Amounts{{"cpu", 1500}, {"memory", 1 << 30}, {"nvidia.com/gpu", 4}}));
  EXPECT_EQ(quota("nvidia.com/gpu.shared: 3"), (Amounts{{"nvidia.com/gpu.shared", 3}}));
  EXPECT_EQ(quota("nvidia.com/mig-1g.10gb: 2"), (Amounts{{"nvidia.com/mig-1g.10gb", 2}}));
  EXPECT_EQ(quota("", "gpu-fraction: '0.5'"), (Amounts{{"nvidia.com/gpu", 1}}));
  EXPECT_EQ(quota("", "gpu-fraction: '0.4', gpu-fraction-num-devices: '4'"),
            (Amounts{{"nvidia.com/gpu", 4}}))
      << "of each a part: nobody else has the whole of it";
  EXPECT_EQ(quota("", "gpu-memory: '2000', gpu-fraction-num-devices: '3'"),
            (Amounts{{"nvidia.com/gpu", 3}}));
  EXPECT_EQ(quota(""), Amounts{});
}

TEST(QuotaRequests, ExcludedAndTransformed) {
  model::QueueConfig config;
  config.excluded_prefixes = {"x.io/"};
  EXPECT_EQ(quota("cpu: 1, x.io/nic: 2", "", config), (Amounts{{"cpu", 1000}}));

  config.transformations = {
      {.input = "nvidia.com/mig-1g.5gb",
       .keep_input = false,
       .multiply_by = "",
       .outputs = {{"mem", 5.0}, {"credits", 0.1}}},
      {.input = "cpu", .keep_input = true, .multiply_by = "", .outputs = {{"credits", 2.0}}}};
  EXPECT_EQ(quota("cpu: 1500m, nvidia.com/mig-1g.5gb: 3", "", config),
            (Amounts{{"cpu", 1500}, {"credits", 5}, {"mem", 15}}))
      << "2 cpus x 2 + 3 x 0.1, rounded up";

  config.transformations = {{.input = "nvidia.com/gpu",
                             .keep_input = true,
                             .multiply_by = "cpu",
                             .outputs = {{"cpu", 0.1}, {"debt", -1.0}}}};
  EXPECT_EQ(quota("cpu: 3, nvidia.com/gpu: 2", "", config),
            (Amounts{{"cpu", 3600}, {"nvidia.com/gpu", 2}}))
      << "2 x 3 x 0.1 more cpus; what is below 0 is 0";
  config.transformations[0].multiply_by = "x.io/none";
  EXPECT_EQ(quota("cpu: 3, nvidia.com/gpu: 2", "", config),
            (Amounts{{"cpu", 3200}, {"nvidia.com/gpu", 2}}));
  config.excluded_prefixes = {"nvidia.com/"};
  EXPECT_EQ(quota("cpu: 3, nvidia.com/gpu: 2", "", config), (Amounts{{"cpu", 3000}}));
}

}  // namespace
}  // namespace berth::kinds::quota_requests_test
