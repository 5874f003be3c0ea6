#include "plans/account/history.h"

#include <gtest/gtest.h>

namespace berth::account {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kNow = 40 * kDayNs;

TEST(WaitLog, CountsAnAdmissionOnceAndRanksWaits) {
  WaitLog log;
  for (int round = 0; round < 3; ++round) {
    for (int i = 1; i <= 100; ++i) {
      log.note("q", "ns/" + std::to_string(i), kNow - 1000 * kSecond,
               kNow - 1000 * kSecond + i * kSecond, kNow);
    }
  }
  const auto all = log.summaries(kNow);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all.at("q").count, 100u);
  EXPECT_EQ(all.at("q").p50_ns, 50 * kSecond);
  EXPECT_EQ(all.at("q").p95_ns, 95 * kSecond);
}

TEST(WaitLog, ASecondAdmissionOfTheSameWorkloadIsAnother) {
  WaitLog log;
  log.note("q", "a", kNow - 10 * kSecond, kNow - 5 * kSecond, kNow);
  log.note("q", "a", kNow - 4 * kSecond, kNow - 3 * kSecond, kNow);
  EXPECT_EQ(log.summaries(kNow).at("q").count, 2u);
  EXPECT_EQ(log.summaries(kNow).at("q").p50_ns, kSecond);
}

TEST(WaitLog, ForgetsAfterADayAndKeepsABound) {
  WaitLog log;
  log.note("old", "a", kNow - 2 * kDayNs, kNow - kDayNs - 1, kNow);
  log.note("none", "a", 0, kNow, kNow);
  EXPECT_TRUE(log.summaries(kNow).empty());
  for (int i = 0; i < 3000; ++i) {
    log.note("q", std::to_string(i), kNow, kNow + i, kNow);
  }
  EXPECT_EQ(log.summaries(kNow).at("q").count, WaitLog::kMostWaits);
  // The first ones do not come back when the same sample comes again.
  for (int i = 0; i < 3000; ++i) log.note("q", std::to_string(i), kNow, kNow + i, kNow);
  EXPECT_EQ(log.summaries(kNow).at("q").p50_ns, 2499);
  EXPECT_TRUE(log.summaries(kNow + 2 * kDayNs).empty());
}

TEST(HealthLog, TellsChangesAlone) {
  HealthLog log;
  log.note(kNow, {{"n", 0, true}, {"n", 1, false, "Xid79"}});
  EXPECT_TRUE(log.events(kNow).empty());
  log.note(kNow + 1, {{"n", 0, false, "Xid48"}, {"n", 1, false, "Xid79"}, {"m", 0, false, "x"}});
  ASSERT_EQ(log.events(kNow + 1).size(), 1u);
  EXPECT_EQ(log.events(kNow + 1)[0].standing.reason, "Xid48");
  log.note(kNow + 2, {{"n", 0, true}, {"n", 1, true}});
  ASSERT_EQ(log.events(kNow + 2).size(), 3u);
  EXPECT_EQ(log.events(kNow + 2)[0].standing.gpu, 1);
  EXPECT_TRUE(log.events(kNow + 2)[0].standing.in_service);
  EXPECT_TRUE(log.events(kNow + kDayNs + 3).empty());
  for (int i = 0; i < 2000; ++i) log.note(kNow + 3 + i, {{"n", 0, i % 2 == 0}});
  EXPECT_EQ(log.events(kNow + 3000).size(), HealthLog::kMostEvents);
}

TEST(FleetTrend, StepsAreMeansAndBounded) {
  FleetTrend trend;
  const std::int64_t start = kNow - kNow % FleetTrend::kStepNs;
  trend.note(start, {.used_milli = 1000, .free_milli = 3000});
  trend.note(start + 1, {.used_milli = 3000, .free_milli = 1000, .busy_sum = 100, .busy_count = 2});
  auto steps = trend.steps(start + 2);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_DOUBLE_EQ(steps[0].used, 2);
  EXPECT_DOUBLE_EQ(steps[0].free, 2);
  EXPECT_EQ(steps[0].busy, 50);
  for (int i = 1; i < 1000; ++i) trend.note(start + i * FleetTrend::kStepNs, {.free_milli = 4000});
  steps = trend.steps(start + 999 * FleetTrend::kStepNs);
  EXPECT_EQ(steps.size(), FleetTrend::kMostSteps);
  EXPECT_EQ(steps.back().busy, -1);
}

TEST(BusyOfMetrics, ReadsTheBusiestLineOfEachGpu) {
  const std::vector<int> busy = busy_of_metrics(
      "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n"
      "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",modelName=\"NVIDIA H100 {x}\"} 37\n"
      "DCGM_FI_DEV_GPU_UTIL{gpu=\"2\",pod=\"p\"} 10.6 1700000000000\n"
      "DCGM_FI_DEV_GPU_UTIL{gpu=\"2\",pod=\"q\"} 90\n"
      "DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",GPU_I_ID=\"3\"} 99\n"
      "DCGM_FI_DEV_FB_USED{gpu=\"3\"} 5\n");
  EXPECT_EQ(busy, (std::vector<int>{37, -1, 90}));
}

TEST(BusyOfMetrics, LeavesNonsenseOut) {
  for (const char* page :
       {"", "DCGM_FI_DEV_GPU_UTIL{", "DCGM_FI_DEV_GPU_UTIL{gpu=\"x\"} 1",
        "DCGM_FI_DEV_GPU_UTIL{} 1", "DCGM_FI_DEV_GPU_UTIL{gpu=\"64\"} 1",
        "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} NaN", "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} -1",
        "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 1e9", "DCGM_FI_DEV_GPU_UTIL{gpu=\"0} 1",
        "DCGM_FI_DEV_GPU_UTIL{xgpu=\"0\"} 1"}) {
    EXPECT_TRUE(busy_of_metrics(page).empty()) << page;
  }
}

TEST(Metrics, OtherGaugesAreReadAlike) {
  const std::string page =
      "DCGM_FI_DEV_FB_USED{gpu=\"1\"} 512\nDCGM_FI_DEV_FB_USED_PERCENT{gpu=\"0\"} 3\n"
      "DCGM_FI_DEV_FB_USED{gpu=\"2\"} 99999\n";
  EXPECT_EQ(gauge_of_metrics(page, "DCGM_FI_DEV_FB_USED", 1000), (std::vector<int>{-1, 512}));
  EXPECT_TRUE(gauge_of_metrics(page, "DCGM_FI_DEV_FB_FREE", 1000).empty());
}

}  // namespace
}  // namespace berth::account
