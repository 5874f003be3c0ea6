#include "base/metrics_text.h"

#include <fmt/format.h>

#include <cmath>

#include "base/utf8.h"

namespace berth {
namespace {

constexpr std::string_view kTotalSuffix = "_total";

std::string metric_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

void append_metric_text(std::string& out, std::string_view text, bool escape_quotes) {
  std::string valid;
  append_valid_utf8(valid, text);
  for (char c : valid) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && escape_quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

std::string_view kind_name(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return "counter";
    case MetricKind::kGauge:
      return "gauge";
    case MetricKind::kHistogram:
      return "histogram";
  }
  return "unknown";
}

}  // namespace

std::string_view openmetrics_family(std::string_view name, MetricKind kind) {
  if (kind == MetricKind::kCounter && name.ends_with(kTotalSuffix)) {
    name.remove_suffix(kTotalSuffix.size());
  }
  return name;
}

void MetricsText::header(const MetricSpec& spec, MetricKind kind) {
  std::string_view name = open_ ? openmetrics_family(spec.name, kind) : spec.name;
  out_ += fmt::format("# HELP {} ", name);
  append_metric_text(out_, spec.help, open_);
  out_ += fmt::format("\n# TYPE {} {}\n", name, kind_name(kind));
}

void MetricsText::sample(std::string_view name, std::string_view suffix, const MetricSpec& spec,
                         const LabelValues& values, std::string_view le, std::string_view number) {
  out_ += name;
  out_ += suffix;
  char before = '{';
  for (std::size_t i = 0; i < values.size(); ++i) {
    out_ += before;
    out_ += spec.labels[i];
    out_ += "=\"";
    append_metric_text(out_, values[i], true);
    out_ += '"';
    before = ',';
  }
  if (!le.empty()) {
    out_ += fmt::format("{}le=\"{}\"", before, le);
    before = ',';
  }
  out_ += before == '{' ? " " : "} ";
  out_ += number;
  out_ += '\n';
}

std::string MetricsText::bound(double value) const {
  std::string text = metric_number(value);
  if (open_ && text.find_first_of(".eI") == std::string::npos) text += ".0";
  return text;
}

void MetricsText::add(const CounterFamily& family) {
  auto all = family.series();
  if (all.empty()) return;
  const MetricSpec& spec = family.spec();
  header(spec, MetricKind::kCounter);
  std::string_view name = open_ ? openmetrics_family(spec.name, MetricKind::kCounter) : spec.name;
  for (const auto& [values, cell] : all) {
    sample(name, open_ ? kTotalSuffix : "", spec, values, "", fmt::format("{}", cell->load()));
  }
}

void MetricsText::add(const GaugeFamily& family) {
  auto all = family.series();
  if (all.empty()) return;
  header(family.spec(), MetricKind::kGauge);
  for (const auto& [values, cell] : all) {
    sample(family.spec().name, "", family.spec(), values, "", metric_number(cell->load()));
  }
}

void MetricsText::add(const HistogramFamily& family) {
  auto all = family.series();
  if (all.empty()) return;
  header(family.spec(), MetricKind::kHistogram);
  for (const auto& [values, cell] : all) histogram(family.spec(), values, *cell);
}

// _count is what the buckets summed to, so that the two agree while others observe.
void MetricsText::histogram(const MetricSpec& spec, const LabelValues& values,
                            const Histogram::Cell& cell) {
  double sum = cell.sum.load(std::memory_order_relaxed);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < cell.counts.size(); ++i) {
    below += cell.counts[i].load(std::memory_order_relaxed);
    std::string le = i < cell.bounds.size() ? bound(cell.bounds[i]) : "+Inf";
    sample(spec.name, "_bucket", spec, values, le, fmt::format("{}", below));
  }
  sample(spec.name, "_sum", spec, values, "", metric_number(sum));
  sample(spec.name, "_count", spec, values, "", fmt::format("{}", below));
}

std::string MetricsText::finish() && {
  if (open_) out_ += "# EOF\n";
  return std::move(out_);
}

}  // namespace berth
