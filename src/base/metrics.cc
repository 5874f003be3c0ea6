#include "base/metrics.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/metrics_text.h"

namespace berth {
namespace {

constexpr std::string_view kOverflowMetric = "berth_metrics_overflow_total";

bool is_name(std::string_view text, bool colons) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::all_of(text.begin(), text.end(), [colons](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (colons && c == ':');
  });
}

void assert_well_formed(const MetricSpec& spec, MetricKind kind) {
  BERTH_ASSERT(is_name(spec.name, true), "a metric's name is [a-zA-Z_:][a-zA-Z0-9_:]*");
  BERTH_ASSERT(kind == MetricKind::kCounter || !spec.name.ends_with("_total"),
               "only a counter's name ends in _total");
  for (const auto& label : spec.labels) {
    BERTH_ASSERT(is_name(label, false) && !label.starts_with("__"), "a label's name is a word");
    BERTH_ASSERT(label != "le" || kind != MetricKind::kHistogram, "a histogram owns the label le");
    BERTH_ASSERT(std::count(spec.labels.begin(), spec.labels.end(), label) == 1, "labels differ");
  }
  BERTH_ASSERT(kind == MetricKind::kHistogram || spec.buckets.empty(),
               "only histograms have buckets");
  BERTH_ASSERT(std::is_sorted(spec.buckets.begin(), spec.buckets.end(), std::less_equal<>()) ||
                   spec.buckets.size() < 2,
               "bucket bounds ascend");
  BERTH_ASSERT(std::all_of(spec.buckets.begin(), spec.buckets.end(),
                           [](double bound) { return std::isfinite(bound); }),
               "+Inf is implied");
}

template <class Cell>
std::shared_ptr<Cell> make_cell(const MetricSpec& spec) {
  if constexpr (std::is_same_v<Cell, Histogram::Cell>) {
    return std::make_shared<Cell>(spec.buckets);
  } else {
    (void)spec;
    return std::make_shared<Cell>();
  }
}

}  // namespace

void Histogram::observe(double value) const {
  const auto& bounds = cell_->bounds;
  auto at =
      std::isnan(value) ? bounds.end() : std::lower_bound(bounds.begin(), bounds.end(), value);
  auto bucket = static_cast<std::size_t>(at - bounds.begin());
  cell_->counts[bucket].fetch_add(1, std::memory_order_relaxed);
  cell_->sum.fetch_add(value, std::memory_order_relaxed);
}

std::uint64_t Histogram::count() const {
  std::uint64_t total = 0;
  for (const auto& bucket : cell_->counts) total += bucket.load(std::memory_order_relaxed);
  return total;
}

template <class Handle>
MetricFamily<Handle>::MetricFamily(MetricSpec spec, Counter overflow)
    : spec_(std::move(spec)), overflow_(std::move(overflow)) {}

template <class Handle>
Handle MetricFamily<Handle>::with(const LabelValues& values) {
  BERTH_ASSERT(values.size() == spec_.labels.size(), "one value for each label");
  MutexLock lock(mutex_);
  if (auto found = series_.find(values); found != series_.end()) return Handle(found->second);
  if (series_.size() < spec_.max_series) {
    return Handle(series_.emplace(values, make_cell<Cell>(spec_)).first->second);
  }
  overflow_.add();
  if (other_ == nullptr) other_ = make_cell<Cell>(spec_);
  return Handle(other_);
}

template <class Handle>
void MetricFamily<Handle>::remove(const LabelValues& values) {
  MutexLock lock(mutex_);
  series_.erase(values);
}

template <class Handle>
typename MetricFamily<Handle>::Series MetricFamily<Handle>::series() const {
  MutexLock lock(mutex_);
  Series all = series_;
  if (other_ != nullptr && !std::is_same_v<Handle, Gauge>) {
    all.emplace(LabelValues(spec_.labels.size(), "_other"), other_);
  }
  return all;
}

template class MetricFamily<Counter>;
template class MetricFamily<Gauge>;
template class MetricFamily<Histogram>;

std::string_view content_type(MetricFormat format) {
  return format == MetricFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

MetricsRegistry::MetricsRegistry() {
  MetricSpec spec{.name = std::string(kOverflowMetric),
                  .help = "Label sets beyond a metric's bound, by metric.",
                  .labels = {"metric"},
                  .max_series = 10'000};
  auto family = std::make_unique<CounterFamily>(
      std::move(spec), Counter(std::make_shared<Counter::Cell>(0)));  // nobody counts its overflow
  overflow_ = family.get();
  MutexLock lock(mutex_);
  entries_[std::string(openmetrics_family(kOverflowMetric, MetricKind::kCounter))].counter =
      std::move(family);
}

Counter MetricsRegistry::overflow_of(const std::string& metric) {
  return overflow_->with({metric});
}

// OpenMetrics names a counter family without _total: "a" and "a_total" would be one family there.
MetricsRegistry::Entry& MetricsRegistry::declare(const MetricSpec& spec, MetricKind kind) {
  assert_well_formed(spec, kind);
  BERTH_ASSERT(spec.name != kOverflowMetric, "the registry's own metric");
  auto [at, fresh] = entries_.try_emplace(std::string(openmetrics_family(spec.name, kind)));
  Entry& entry = at->second;
  if (!fresh) {
    const MetricSpec* before = entry.counter     ? &entry.counter->spec()
                               : entry.gauge     ? &entry.gauge->spec()
                               : entry.histogram ? &entry.histogram->spec()
                                                 : nullptr;
    bool same_kind = kind == MetricKind::kCounter ? entry.counter != nullptr
                     : kind == MetricKind::kGauge ? entry.gauge != nullptr
                                                  : entry.histogram != nullptr;
    BERTH_ASSERT(same_kind && *before == spec, "a metric is declared one way");
  }
  return entry;
}

CounterFamily& MetricsRegistry::counter(MetricSpec spec) {
  MutexLock lock(mutex_);
  auto& family = declare(spec, MetricKind::kCounter).counter;
  if (!family) {
    Counter overflow = overflow_of(spec.name);
    family = std::make_unique<CounterFamily>(std::move(spec), std::move(overflow));
  }
  return *family;
}

GaugeFamily& MetricsRegistry::gauge(MetricSpec spec) {
  MutexLock lock(mutex_);
  auto& family = declare(spec, MetricKind::kGauge).gauge;
  if (!family) {
    Counter overflow = overflow_of(spec.name);
    family = std::make_unique<GaugeFamily>(std::move(spec), std::move(overflow));
  }
  return *family;
}

HistogramFamily& MetricsRegistry::histogram(MetricSpec spec) {
  MutexLock lock(mutex_);
  auto& family = declare(spec, MetricKind::kHistogram).histogram;
  if (!family) {
    Counter overflow = overflow_of(spec.name);
    family = std::make_unique<HistogramFamily>(std::move(spec), std::move(overflow));
  }
  return *family;
}

std::string MetricsRegistry::render(MetricFormat format) const {
  std::vector<const Entry*> entries;
  {
    MutexLock lock(mutex_);  // entries are never removed and a map never moves them
    entries.reserve(entries_.size());
    for (const auto& [name, entry] : entries_) entries.push_back(&entry);
  }
  MetricsText text(format);
  for (const Entry* entry : entries) {
    if (entry->counter) text.add(*entry->counter);
    if (entry->gauge) text.add(*entry->gauge);
    if (entry->histogram) text.add(*entry->histogram);
  }
  return std::move(text).finish();
}

}  // namespace berth
