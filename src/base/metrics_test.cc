#include "base/metrics.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

namespace berth {
namespace {

constexpr std::string_view kNoOverflow =
    "# HELP berth_metrics_overflow_total Label sets beyond a metric's bound, by metric.\n"
    "# TYPE berth_metrics_overflow_total counter\n";

std::string prometheus(const MetricsRegistry& registry) {
  return registry.render(MetricFormat::kPrometheusText);
}
std::string openmetrics(const MetricsRegistry& registry) {
  return registry.render(MetricFormat::kOpenMetrics);
}
bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Metrics, CounterInBothFormats) {
  MetricsRegistry registry;
  auto& binds =
      registry.counter({.name = "berth_binds_total", .help = "Pods bound.", .labels = {"queue"}});
  binds.with({"b"}).add(2);
  binds.with({"a"}).add();
  binds.with({"a"}).add();
  EXPECT_EQ(prometheus(registry),
            "# HELP berth_binds_total Pods bound.\n"
            "# TYPE berth_binds_total counter\n"
            "berth_binds_total{queue=\"a\"} 2\n"
            "berth_binds_total{queue=\"b\"} 2\n" +
                std::string(kNoOverflow) +
                "berth_metrics_overflow_total{metric=\"berth_binds_total\"} 0\n");
  EXPECT_TRUE(
      openmetrics(registry).starts_with("# HELP berth_binds Pods bound.\n"
                                        "# TYPE berth_binds counter\n"
                                        "berth_binds_total{queue=\"a\"} 2\n"));
  EXPECT_TRUE(openmetrics(registry).ends_with("\n# EOF\n"));
}

// Dashboards for other exporters know some counters by names without the suffix.
TEST(Metrics, AForeignCounterNameGetsItsSuffixOnlyWhereTheFormatDemandsIt) {
  MetricsRegistry registry;
  registry.counter({.name = "DCGM_FI_ENERGY", .help = "mJ.", .labels = {}}).get().add(5);
  EXPECT_TRUE(holds(prometheus(registry), "# TYPE DCGM_FI_ENERGY counter\nDCGM_FI_ENERGY 5\n"));
  EXPECT_TRUE(
      holds(openmetrics(registry), "# TYPE DCGM_FI_ENERGY counter\nDCGM_FI_ENERGY_total 5\n"));
}

TEST(Metrics, GaugeNumbers) {
  MetricsRegistry registry;
  auto& free = registry.gauge({.name = "g", .help = "h", .labels = {"n"}});
  free.with({"1"}).set(3);
  free.with({"1"}).add(-0.5);
  free.with({"2"}).set(std::numeric_limits<double>::infinity());
  free.with({"3"}).set(-std::numeric_limits<double>::infinity());
  free.with({"4"}).set(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(holds(prometheus(registry),
                    "# TYPE g gauge\ng{n=\"1\"} 2.5\ng{n=\"2\"} +Inf\ng{n=\"3\"} -Inf\n"
                    "g{n=\"4\"} NaN\n"));
}

TEST(Metrics, HistogramBucketsAreCumulativeAndBoundsInclusive) {
  MetricsRegistry registry;
  auto family =
      registry
          .histogram(
              {.name = "wait_seconds", .help = "h", .labels = {"q"}, .buckets = {0.5, 1, 10}})
          .with({"a"});
  for (double seconds : {0.25, 0.5, 1.0, 2.0, 11.0}) family.observe(seconds);
  EXPECT_EQ(family.count(), 5U);
  EXPECT_TRUE(holds(prometheus(registry),
                    "# TYPE wait_seconds histogram\n"
                    "wait_seconds_bucket{q=\"a\",le=\"0.5\"} 2\n"
                    "wait_seconds_bucket{q=\"a\",le=\"1\"} 3\n"
                    "wait_seconds_bucket{q=\"a\",le=\"10\"} 4\n"
                    "wait_seconds_bucket{q=\"a\",le=\"+Inf\"} 5\n"
                    "wait_seconds_sum{q=\"a\"} 14.75\n"
                    "wait_seconds_count{q=\"a\"} 5\n"));
  EXPECT_TRUE(holds(openmetrics(registry), "wait_seconds_bucket{q=\"a\",le=\"1.0\"} 3\n"));
}

TEST(Metrics, NotANumberIsCountedInTheLastBucket) {
  MetricsRegistry registry;
  auto family = registry.histogram({.name = "h", .help = "h", .labels = {}, .buckets = {1}}).get();
  family.observe(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(holds(prometheus(registry), "h_bucket{le=\"1\"} 0\nh_bucket{le=\"+Inf\"} 1\n"));
}

TEST(Metrics, HelpAndLabelValuesAreEscaped) {
  MetricsRegistry registry;
  auto& g = registry.gauge({.name = "g", .help = "a \\ \"b\"\nc", .labels = {"l"}});
  g.with({"q\"\\\n} 1\xFF"}).set(1);
  EXPECT_TRUE(holds(prometheus(registry), "# HELP g a \\\\ \"b\"\\nc\n"));
  EXPECT_TRUE(holds(openmetrics(registry), "# HELP g a \\\\ \\\"b\\\"\\nc\n"));
  EXPECT_TRUE(holds(prometheus(registry), "g{l=\"q\\\"\\\\\\n} 1\xEF\xBF\xBD\"} 1\n"));
}

TEST(Metrics, OrderDoesNotDependOnDeclaration) {
  MetricsRegistry one, two;
  auto gauge = [](MetricsRegistry& registry, const char* name) {
    registry.gauge({.name = name, .help = "h", .labels = {}}).get().set(1);
  };
  gauge(one, "a");
  gauge(one, "b");
  gauge(two, "b");
  gauge(two, "a");
  EXPECT_EQ(prometheus(one), prometheus(two));
}

TEST(Metrics, SeriesAreBoundedAndTheOverflowIsCounted) {
  MetricsRegistry registry;
  auto& pods =
      registry.counter({.name = "pods_total", .help = "h", .labels = {"pod"}, .max_series = 2});
  for (const char* pod : {"a", "b", "c", "d"}) pods.with({pod}).add();
  pods.with({"a"}).add();
  std::string text = prometheus(registry);
  EXPECT_TRUE(holds(text,
                    "pods_total{pod=\"_other\"} 2\npods_total{pod=\"a\"} 2\n"
                    "pods_total{pod=\"b\"} 1\n"));
  EXPECT_TRUE(holds(text, "berth_metrics_overflow_total{metric=\"pods_total\"} 2\n"));
}

TEST(Metrics, GaugesBeyondTheBoundAreNotMixedUp) {
  MetricsRegistry registry;
  auto& g = registry.gauge({.name = "g", .help = "h", .labels = {"l"}, .max_series = 1});
  g.with({"a"}).set(1);
  g.with({"b"}).set(2);
  EXPECT_FALSE(holds(prometheus(registry), "_other"));
}

TEST(Metrics, ARemovedSeriesIsGoneAndItsHandleHarmless) {
  MetricsRegistry registry;
  auto& g = registry.gauge({.name = "g", .help = "h", .labels = {"l"}, .max_series = 1});
  Gauge handle = g.with({"a"});
  g.remove({"a"});
  g.remove({"never there"});
  handle.set(9);
  EXPECT_FALSE(holds(prometheus(registry), "g{"));
  g.with({"b"}).set(4);  // its place is free again
  EXPECT_TRUE(holds(prometheus(registry), "g{l=\"b\"} 4\n"));
}

TEST(Metrics, DeclaringAgainIsTheSameMetric) {
  MetricsRegistry registry;
  MetricSpec spec{.name = "g", .help = "h", .labels = {}};
  EXPECT_EQ(&registry.gauge(spec), &registry.gauge(spec));
}

TEST(Metrics, EmptyFamiliesAreNotPrinted) {
  MetricsRegistry registry;
  EXPECT_EQ(prometheus(registry), "");
  EXPECT_EQ(openmetrics(registry), "# EOF\n");
}

TEST(Metrics, ThreadsLoseNothing) {
  MetricsRegistry registry;
  auto& counts = registry.counter({.name = "c_total", .help = "h", .labels = {"t"}});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&counts] {
      Counter counter = counts.with({"x"});
      for (int i = 0; i < 10'000; ++i) counter.add();
    });
  }
  prometheus(registry);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counts.with({"x"}).value(), 40'000U);
}

TEST(MetricsDeath, MistakesOfTheProgrammerAbort) {
  MetricsRegistry registry;
  auto spec = [](const char* name, std::vector<std::string> labels, std::vector<double> buckets) {
    return MetricSpec{.name = name, .help = "h", .labels = labels, .buckets = buckets};
  };
  registry.counter(spec("a_total", {}, {}));
  EXPECT_DEATH(registry.gauge(spec("a", {}, {})), "declared one way");
  EXPECT_DEATH(registry.counter(spec("a_total", {"x"}, {})), "declared one way");
  EXPECT_DEATH(registry.counter(spec("9a", {}, {})), "name");
  EXPECT_DEATH(registry.gauge(spec("b_total", {}, {})), "only a counter");
  EXPECT_DEATH(registry.gauge(spec("b", {"l-m"}, {})), "label");
  EXPECT_DEATH(registry.gauge(spec("b", {"l", "l"}, {})), "labels differ");
  EXPECT_DEATH(registry.histogram(spec("b", {"le"}, {1})), "owns the label");
  EXPECT_DEATH(registry.histogram(spec("b", {}, {2, 1})), "ascend");
  EXPECT_DEATH(registry.gauge(spec("c", {"l"}, {})).with({}), "one value for each label");
}

}  // namespace
}  // namespace berth
