#include "plans/account/history.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace berth::account {

void WaitLog::note(const std::string& queue, std::string_view workload, std::int64_t since_ns,
                   std::int64_t admitted_ns, std::int64_t now_ns) {
  if (since_ns <= 0 || admitted_ns <= 0 || admitted_ns < now_ns - kDayNs) return;
  if (!waits_.contains(queue) && waits_.size() >= kMostQueues) return;
  auto& waits = waits_[queue];
  while (!waits.empty() && waits.begin()->first.first < now_ns - kDayNs) {
    waits.erase(waits.begin());
  }
  Admission who{admitted_ns, std::string(workload)};
  // What a full queue forgot must not come back with the next sample.
  if (waits.size() >= kMostWaits && who < waits.begin()->first) return;
  waits.emplace(std::move(who), std::max<std::int64_t>(0, admitted_ns - since_ns));
  if (waits.size() > kMostWaits) waits.erase(waits.begin());
}

std::map<std::string, WaitLog::Summary> WaitLog::summaries(std::int64_t now_ns) const {
  std::map<std::string, Summary> out;
  for (const auto& [queue, waits] : waits_) {
    std::vector<std::int64_t> sorted;
    for (const auto& [who, wait] : waits) {
      if (who.first >= now_ns - kDayNs) sorted.push_back(wait);
    }
    if (sorted.empty()) continue;
    std::sort(sorted.begin(), sorted.end());
    const auto rank = [&](std::size_t per_cent) {
      return sorted[(sorted.size() * per_cent + 99) / 100 - 1];
    };
    out[queue] = {sorted.size(), rank(50), rank(95)};
  }
  return out;
}

void HealthLog::note(std::int64_t now_ns, const std::vector<Standing>& all) {
  std::map<std::pair<std::string, int>, bool> now;
  for (const Standing& one : all) {
    std::pair<std::string, int> key{one.node, one.gpu};
    const auto before = known_.find(key);
    if (before != known_.end() && before->second != one.in_service) {
      events_.push_back({now_ns, one});
    }
    now.emplace(std::move(key), one.in_service);
  }
  known_ = std::move(now);
  while (events_.size() > kMostEvents) events_.pop_front();
  while (!events_.empty() && events_.front().at_ns < now_ns - kDayNs) events_.pop_front();
}

std::vector<HealthLog::Event> HealthLog::events(std::int64_t now_ns) const {
  std::vector<Event> out;
  for (auto one = events_.rbegin(); one != events_.rend(); ++one) {
    if (one->at_ns >= now_ns - kDayNs) out.push_back(*one);
  }
  return out;
}

void FleetTrend::note(std::int64_t now_ns, const Sample& sample) {
  const std::int64_t step = now_ns - now_ns % kStepNs;
  if (!sums_.empty() && sums_.back().at_ns > step) return;
  if (sums_.empty() || sums_.back().at_ns < step) sums_.push_back({step, 0, {}});
  Sum& last = sums_.back();
  ++last.samples;
  last.sum.used_milli += sample.used_milli;
  last.sum.free_milli += sample.free_milli;
  last.sum.out_milli += sample.out_milli;
  last.sum.busy_sum += sample.busy_sum;
  last.sum.busy_count += sample.busy_count;
  while (sums_.size() > kMostSteps) sums_.pop_front();
}

std::vector<FleetTrend::Step> FleetTrend::steps(std::int64_t now_ns) const {
  std::vector<Step> out;
  for (const Sum& one : sums_) {
    if (one.at_ns < now_ns - kDayNs) continue;
    const auto mean = [&](std::int64_t milli) {
      const auto tenths =
          std::llround(static_cast<double>(milli) / static_cast<double>(one.samples) / 100.0);
      return static_cast<double>(tenths) / 10.0;
    };
    const std::int64_t count = one.sum.busy_count;
    out.push_back({one.at_ns, mean(one.sum.used_milli), mean(one.sum.free_milli),
                   mean(one.sum.out_milli),
                   count == 0 ? -1 : static_cast<int>(one.sum.busy_sum / count)});
  }
  return out;
}

namespace {

// The value of a label in "gpu=\"0\",UUID=...": none of DCGM's values holds a quote.
std::optional<std::string_view> label(std::string_view labels, std::string_view name) {
  for (std::size_t at = labels.find(name); at != std::string_view::npos;
       at = labels.find(name, at + 1)) {
    const bool begins = at == 0 || labels[at - 1] == ',' || labels[at - 1] == ' ';
    std::string_view rest = labels.substr(at + name.size());
    if (!begins || !rest.starts_with("=\"")) continue;
    rest.remove_prefix(2);
    const std::size_t end = rest.find('"');
    if (end == std::string_view::npos) return std::nullopt;
    return rest.substr(0, end);
  }
  return std::nullopt;
}

}  // namespace

std::vector<int> busy_of_metrics(std::string_view page) {
  return gauge_of_metrics(page, "DCGM_FI_DEV_GPU_UTIL", 100);
}

std::vector<int> gauge_of_metrics(std::string_view page, std::string_view name, int most) {
  std::vector<int> out;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    std::string_view line = page.substr(0, end);
    page.remove_prefix(std::min(end + 1, page.size()));
    if (!line.starts_with(name) || line.substr(name.size(), 1) != "{") continue;
    line.remove_prefix(name.size() + 1);
    const std::size_t close = line.rfind('}');
    if (close == std::string_view::npos) continue;
    const std::string_view labels = line.substr(0, close);
    const auto gpu = label(labels, "gpu");
    if (!gpu || label(labels, "GPU_I_ID")) continue;
    std::size_t index = 0;
    const auto [stop, code] = std::from_chars(gpu->data(), gpu->data() + gpu->size(), index);
    if (code != std::errc() || stop != gpu->data() + gpu->size() || index >= kMostGpus) continue;
    std::string_view number = line.substr(close + 1);
    number.remove_prefix(std::min(number.find_first_not_of(' '), number.size()));
    double value = -1;
    const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
    if (read.ec != std::errc() || !(value >= 0) || value > most) continue;
    if (out.size() <= index) out.resize(index + 1, -1);
    out[index] = std::max(out[index], static_cast<int>(std::lround(value)));
  }
  return out;
}

}  // namespace berth::account
