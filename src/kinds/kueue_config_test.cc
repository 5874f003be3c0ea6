#include "kinds/kueue_config.h"

#include "kinds/read_for_test.h"

namespace berth::kinds::kueue_config_test {
namespace {

using model::QueueConfig;

QueueConfig config(const std::string& version, const std::string& body) {
  return read_clean("apiVersion: config.kueue.x-k8s.io/" + version + "\nkind: Configuration\n" +
                    body)
      .queues.config;
}
void says(const std::string& body, const std::string& part, const char* version = "v1beta2") {
  const Inputs in = read("apiVersion: config.kueue.x-k8s.io/" + std::string(version) +
                         "\nkind: Configuration\n" + body);
  const std::string told = all(in.invalid) + all(in.warnings);
  EXPECT_NE(told.find("Configuration: " + part), std::string::npos) << part << " in:\n" << told;
}

TEST(KueueConfig, Defaults) {
  EXPECT_EQ(config("v1beta2", ""), QueueConfig());
  EXPECT_EQ(config("v1beta1", ""), QueueConfig());
  const QueueConfig none;
  EXPECT_TRUE(none.wait_for_pods_ready && !none.fair_sharing && !none.half_life_s);
}

TEST(KueueConfig, AllThatDecides) {
  const QueueConfig c = config("v1beta2", R"(
namespace: kueue-system
health: {healthProbeBindAddress: ":8081"}
metrics: {bindAddress: ":8443"}
webhook: {port: 9443}
leaderElection: {leaderElect: true}
controller: {groupKindConcurrency: {Job.batch: 5}}
clientConnection: {qps: 50}
internalCertManagement: {enable: true}
integrations: {frameworks: [batch/job]}
multiKueue: {origin: x}
objectRetentionPolicies: {workloads: {afterFinished: 1h}}
visibilityServer: {bindPort: 8082}
tls: {minVersion: VersionTLS12}
manageJobsWithoutQueueName: true
managedJobsNamespaceSelector: {matchLabels: {team: ml}}
waitForPodsReady:
  timeout: 5m
  blockAdmission: true
  requeuingStrategy:
    {timestamp: Creation, backoffLimitCount: 3, backoffBaseSeconds: 10, backoffMaxSeconds: 100}
fairSharing: {preemptionStrategies: [LessThanInitialShare]}
admissionFairSharing:
  usageHalfLifeTime: 1h30m
  usageSamplingInterval: 10s
  resourceWeights: {nvidia.com/gpu: 2.5}
resources:
  quotaCheckStrategy: IgnoreUndeclared
  excludeResourcePrefixes: [x.io/]
  transformations:
  - input: nvidia.com/mig-1g.5gb
    strategy: Replace
    multiplyBy: pods
    outputs: {x.io/mem: 5Gi, credits: 500m}
featureGates: {PriorityBoost: true, PartialAdmission: false}
)");
  EXPECT_TRUE(c.manage_without_queue && c.wait_for_pods_ready && c.block_admission);
  EXPECT_EQ(c.pods_ready_timeout_s, 300);
  EXPECT_EQ(c.recovery_timeout_s, 300) << "follows the timeout";
  EXPECT_TRUE(c.requeue_by_creation);
  EXPECT_EQ(c.backoff_limit, 3);
  EXPECT_EQ(c.backoff_base_s + c.backoff_max_s, 110);
  EXPECT_TRUE(c.fair_sharing);
  EXPECT_EQ(c.strategies, (std::vector{QueueConfig::Strategy::kLessThanInitialShare}));
  EXPECT_EQ(c.half_life_s, 5400.0);
  EXPECT_EQ(c.sampling_s, 10.0);
  EXPECT_EQ(c.resource_weights.at("nvidia.com/gpu"), 2.5);
  EXPECT_TRUE(c.ignore_undeclared);
  EXPECT_EQ(c.excluded_prefixes, (std::vector<std::string>{"x.io/"}));
  ASSERT_EQ(c.transformations.size(), 1u);
  EXPECT_FALSE(c.transformations[0].keep_input);
  EXPECT_EQ(c.transformations[0].multiply_by, "pods");
  EXPECT_EQ(c.transformations[0].outputs,
            (std::map<std::string, double>{{"credits", 0.5}, {"x.io/mem", 5368709120.0}}));
  EXPECT_TRUE(c.gate("PriorityBoost", false) && !c.gate("PartialAdmission", true));
}

TEST(KueueConfig, TheFirstVersionAsksToEnable) {
  QueueConfig c = config("v1beta1", "waitForPodsReady: {timeout: 1m}\nfairSharing: {}\n");
  EXPECT_FALSE(c.wait_for_pods_ready || c.block_admission || c.fair_sharing);
  c = config("v1beta1",
             "waitForPodsReady: {enable: true, recoveryTimeout: 0s}\nfairSharing: {enable: true}\n"
             "queueVisibility: {updateIntervalSeconds: 5}\n");
  EXPECT_TRUE(c.wait_for_pods_ready && c.block_admission && c.fair_sharing);
  EXPECT_EQ(c.recovery_timeout_s, 0);
  EXPECT_EQ(c.pods_ready_timeout_s, 1800);
  EXPECT_FALSE(
      config("v1beta2", "featureGates: {DisableWaitForPodsReady: true}\n").wait_for_pods_ready);
}

TEST(KueueConfig, Wrong) {
  says("waitForPodsReady: {timeout: 5}", "waitForPodsReady.timeout: found number 5, want a dur");
  says("waitForPodsReady: {timeout: 5 m}", "waitForPodsReady.timeout: found string \"5 m\"");
  says("waitForPodsReady: {timeout: -5m}",
       "waitForPodsReady.timeout: found string \"-5m\", want a "
       "duration of at least 0s");
  says("waitForPodsReady: {enable: true}", "waitForPodsReady.enable: found an unknown field");
  says("waitForPodsReady: {requeuingStrategy: {timestamp: Now}}",
       "waitForPodsReady.requeuingStrategy.timestamp: found string \"Now\", want one of Eviction, "
       "Creation");
  says("waitForPodsReady: {requeuingStrategy: {backoffLimitCount: -1}}",
       "waitForPodsReady.requeuingStrategy.backoffLimitCount: found number -1");
  says("fairSharing: {preemptionStrategies: [LessThanInitialShare, LessThanOrEqualToFinalShare]}",
       "fairSharing.preemptionStrategies: found strategies twice or in another order");
  says("fairSharing: {preemptionStrategies: [Fair]}", "fairSharing.preemptionStrategies[0]: found");
  says("admissionFairSharing: {}", "admissionFairSharing.usageHalfLifeTime: found nothing");
  says("admissionFairSharing: {usageHalfLifeTime: 1h, resourceWeights: {cpu: -1}}",
       "admissionFairSharing.resourceWeights.cpu: found number -1, want at least 0");
  says("resources: {transformations: [{input: a}, {input: a}]}",
       "resources.transformations[1]: found input \"a\" twice");
  says("resources: {transformations: [{strategy: Keep, input: a}]}",
       "resources.transformations[0].strategy: found string \"Keep\", want one of Retain, Replace");
  says("resources: {deviceClassMappings: [{name: x}]}",
       "resources.deviceClassMappings: found a setting that is not read");
  says("featureGates: {A: maybe}", "featureGates.A: found");
  says("fairsharing: {}", "fairsharing: found an unknown field, want fairSharing");
}

TEST(KueueConfig, OneOnly) {
  ManifestReader reader;
  add_yaml(reader,
           "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, fairSharing: {}}",
           "b.yaml");
  add_yaml(reader,
           "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, "
           "manageJobsWithoutQueueName: true}",
           "a.yaml");
  const Inputs in = reader.finish();
  ASSERT_EQ(in.invalid.size(), 1u);
  EXPECT_EQ(in.invalid[0].source, "b.yaml");
  EXPECT_TRUE(in.queues.config.manage_without_queue && !in.queues.config.fair_sharing);
}

}  // namespace
}  // namespace berth::kinds::kueue_config_test
