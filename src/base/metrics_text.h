// Metric families as Prometheus text 0.0.4 or OpenMetrics 1.0; used by MetricsRegistry::render().
//
// The formats differ in four places: OpenMetrics names a counter family without _total and its
// sample always with it, escapes quotes in HELP, writes bucket bounds as floats ("1.0"), and ends
// in "# EOF". Not thread-safe; one writer renders one answer.
#pragma once

#include <string>
#include <string_view>

#include "base/metrics.h"

namespace berth {

// The family name of a metric in OpenMetrics.
std::string_view openmetrics_family(std::string_view name, MetricKind kind);

class MetricsText {
 public:
  explicit MetricsText(MetricFormat format) : open_(format == MetricFormat::kOpenMetrics) {}

  void add(const CounterFamily& family);
  void add(const GaugeFamily& family);
  void add(const HistogramFamily& family);
  std::string finish() &&;

 private:
  // Declared labels and, for buckets, le.
  void sample(std::string_view name, std::string_view suffix, const MetricSpec& spec,
              const LabelValues& values, std::string_view le, std::string_view number);
  void header(const MetricSpec& spec, MetricKind kind);
  void histogram(const MetricSpec& spec, const LabelValues& values, const Histogram::Cell& cell);
  std::string bound(double value) const;

  const bool open_;
  std::string out_;
};

}  // namespace berth
