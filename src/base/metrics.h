// Counters, gauges and histograms, and the text that a scraper reads.
//
// A component declares its metrics once, beside its code, binds the label values it needs, and
// keeps the handles:
//
//   CounterFamily& binds = registry.counter({.name = "berth_binds_total", .help = "Pods bound.",
//                                            .labels = {"queue"}});
//   Counter team_a = binds.with({"team-a"});   // once: takes a lock, looks the series up
//   team_a.add();                              // often: one relaxed atomic add, no lock
//
// Bound: a metric holds at most max_series label sets, because label values come from strangers.
// Beyond it with() returns a shared handle (for counters and histograms the exported series whose
// values are all "_other", so that sums stay right; for gauges nothing is exported) and counts it
// in berth_metrics_overflow_total{metric}.
//
// remove() ends a series; handles to it stay safe to use and count for nobody. Families are never
// removed and their addresses are stable. Wrong names, a second declaration that differs, and a
// wrong number of label values are programmer errors and abort.
//
// Thread-safe. Output is sorted by metric name and label values, so equal states print equally.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace berth {

enum class MetricKind : std::uint8_t { kCounter, kGauge, kHistogram };

struct MetricSpec {
  std::string name;                      // [a-zA-Z_:][a-zA-Z0-9_:]*; counters of ours end in _total
  std::string help = {};                 // one sentence
  std::vector<std::string> labels = {};  // names, in the order in which with() takes values
  std::vector<double> buckets = {};      // histograms: upper bounds, ascending, without +Inf
  std::size_t max_series = 1'000;

  friend bool operator==(const MetricSpec&, const MetricSpec&) = default;
};

using LabelValues = std::vector<std::string>;

class Counter {
 public:
  void add(std::uint64_t n = 1) const { cell_->fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return cell_->load(std::memory_order_relaxed); }

  using Cell = std::atomic<std::uint64_t>;
  explicit Counter(std::shared_ptr<Cell> cell) : cell_(std::move(cell)) {}

 private:
  std::shared_ptr<Cell> cell_;
};

class Gauge {
 public:
  void set(double value) const { cell_->store(value, std::memory_order_relaxed); }
  void add(double by) const { cell_->fetch_add(by, std::memory_order_relaxed); }
  double value() const { return cell_->load(std::memory_order_relaxed); }

  using Cell = std::atomic<double>;
  explicit Gauge(std::shared_ptr<Cell> cell) : cell_(std::move(cell)) {}

 private:
  std::shared_ptr<Cell> cell_;
};

class Histogram {
 public:
  void observe(double value) const;  // O(log buckets); NaN goes to +Inf
  std::uint64_t count() const;

  struct Cell {
    explicit Cell(const std::vector<double>& upper_bounds)
        : bounds(upper_bounds), counts(upper_bounds.size() + 1) {}
    const std::vector<double> bounds;
    std::vector<std::atomic<std::uint64_t>> counts;  // per bucket, not cumulative; the last is +Inf
    std::atomic<double> sum{0};
  };
  explicit Histogram(std::shared_ptr<Cell> cell) : cell_(std::move(cell)) {}

 private:
  std::shared_ptr<Cell> cell_;
};

// All series of one metric. Handle is Counter, Gauge or Histogram.
template <class Handle>
class MetricFamily {
 public:
  using Cell = typename Handle::Cell;
  using Series = std::map<LabelValues, std::shared_ptr<Cell>>;

  MetricFamily(MetricSpec spec, Counter overflow);

  Handle with(const LabelValues& values) BERTH_EXCLUDES(mutex_);
  Handle get() { return with({}); }  // of a metric without labels
  void remove(const LabelValues& values) BERTH_EXCLUDES(mutex_);

  const MetricSpec& spec() const { return spec_; }
  Series series() const BERTH_EXCLUDES(mutex_);  // a copy of the index, the cells are shared

 private:
  const MetricSpec spec_;
  const Counter overflow_;
  mutable Mutex mutex_;
  Series series_ BERTH_GUARDED_BY(mutex_);
  std::shared_ptr<Cell> other_ BERTH_GUARDED_BY(mutex_);  // made at the first overflow
};

using CounterFamily = MetricFamily<Counter>;
using GaugeFamily = MetricFamily<Gauge>;
using HistogramFamily = MetricFamily<Histogram>;

enum class MetricFormat : std::uint8_t {
  kPrometheusText,  // text/plain; version=0.0.4
  kOpenMetrics,     // application/openmetrics-text; version=1.0.0
};

std::string_view content_type(MetricFormat format);

class MetricsRegistry {
 public:
  MetricsRegistry();
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;

  // Declaring the same metric again returns the same family.
  CounterFamily& counter(MetricSpec spec) BERTH_EXCLUDES(mutex_);
  GaugeFamily& gauge(MetricSpec spec) BERTH_EXCLUDES(mutex_);
  HistogramFamily& histogram(MetricSpec spec) BERTH_EXCLUDES(mutex_);

  // Everything, as a scraper reads it. O(series); holds no lock while it formats.
  std::string render(MetricFormat format) const BERTH_EXCLUDES(mutex_);

 private:
  struct Entry {  // exactly one is set
    std::unique_ptr<CounterFamily> counter;
    std::unique_ptr<GaugeFamily> gauge;
    std::unique_ptr<HistogramFamily> histogram;
  };
  Entry& declare(const MetricSpec& spec, MetricKind kind) BERTH_REQUIRES(mutex_);
  Counter overflow_of(const std::string& metric);

  mutable Mutex mutex_;
  CounterFamily* overflow_;  // one of entries_; constant after construction
  std::map<std::string, Entry> entries_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth
