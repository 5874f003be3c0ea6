#include "people/view/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "text/columns.h"
#include "text/escape.h"
#include "text/quantity.h"

namespace berth::people {

using model::GpuDemandSpec;

std::string show_milli(std::int64_t milli) {
  // Shares of a third of a GPU add up to 999: rounded to hundredths, as people count.
  const std::int64_t hundredths = (milli + 5) / 10;
  std::string out = std::to_string(hundredths / 100);
  const std::int64_t rest = hundredths % 100;
  if (rest == 0) return out;
  return out + (rest % 10 == 0 ? fmt::format(".{}", rest / 10) : fmt::format(".{:02}", rest));
}

std::string show_ranges(const std::vector<int>& sorted) {
  std::string out;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t j = i;
    while (j + 1 < sorted.size() && sorted[j + 1] <= sorted[j] + 1) ++j;
    if (!out.empty()) out += ',';
    out += std::to_string(sorted[i]);
    if (sorted[j] != sorted[i]) out += '-' + std::to_string(sorted[j]);
    i = j + 1;
  }
  return out;
}

std::string show_count(std::int64_t n, std::string_view noun) {
  return std::to_string(n) + ' ' + std::string(noun) + (n == 1 ? "" : "s");
}

namespace {

std::string mig_profile(const GpuDemandSpec& demand) {
  constexpr std::string_view kVendor = "nvidia.com/";
  std::string_view name = demand.mig;
  if (name.starts_with(kVendor)) name.remove_prefix(kVendor.size());
  return std::string(name);
}
}  // namespace

std::string show_demand(const GpuDemandSpec& demand) {
  const std::string each = demand.count > 1 ? fmt::format("{} x ", demand.count) : "";
  switch (demand.kind) {
    case GpuDemandSpec::Kind::kNone:
      return "no GPU";
    case GpuDemandSpec::Kind::kWhole:
      return show_count(demand.count, "GPU");
    case GpuDemandSpec::Kind::kFraction:
      return each + show_milli(demand.milli) + " of a GPU";
    case GpuDemandSpec::Kind::kMemory:
      return each + std::to_string(demand.memory_mib) + " MiB of a GPU";
    case GpuDemandSpec::Kind::kShared:
      return show_count(demand.count, "GPU share");
    case GpuDemandSpec::Kind::kMig:
      return std::to_string(demand.count) + ' ' + mig_profile(demand);
  }
  return "";
}

std::string show_gpus_column(const GpuDemandSpec& demand, int pods) {
  switch (demand.kind) {
    case GpuDemandSpec::Kind::kNone:
      return "0";
    case GpuDemandSpec::Kind::kWhole:
      return std::to_string(std::int64_t{demand.count} * pods);
    case GpuDemandSpec::Kind::kFraction:
      return show_milli(std::int64_t{demand.milli} * demand.count * pods);
    case GpuDemandSpec::Kind::kMemory:
      return std::to_string((demand.memory_mib * demand.count * pods + 512) / 1024) + "Gi";
    case GpuDemandSpec::Kind::kShared:
      return std::to_string(demand.count * pods) + "sh";
    case GpuDemandSpec::Kind::kMig:
      return std::to_string(demand.count * pods) + "mig";
  }
  return "";
}

std::string short_model(std::string_view product) {
  for (const std::string_view vendor : {"NVIDIA-", "Tesla-"}) {
    if (product.starts_with(vendor)) product.remove_prefix(vendor.size());
  }
  if (product.empty()) return "unknown model";
  if (product.starts_with("RTX")) return std::string(product);
  return std::string(product.substr(0, product.find('-')));
}

std::string short_key(std::string_view label) {
  const std::size_t slash = label.rfind('/');
  return std::string(slash == std::string_view::npos ? label : label.substr(slash + 1));
}

std::string constraint_key(model::Constraint constraint) {
  std::string out;
  bool upper = false;
  for (const char c : model::name(constraint)) {
    if (c == ' ' || c == '-') {
      upper = true;
      continue;
    }
    const auto letter = static_cast<unsigned char>(c);
    out += static_cast<char>(upper ? std::toupper(letter) : std::tolower(letter));
    upper = false;
  }
  return out;
}

std::size_t width_of(std::string_view text) { return text::columns_of(text); }

std::string padded(std::string text, std::size_t width) {
  const std::size_t now = width_of(text);
  if (now < width) text.append(width - now, ' ');
  return text;
}

std::string padded_left(std::string_view text, std::size_t width) {
  const std::size_t now = width_of(text);
  return std::string(now < width ? width - now : 0, ' ').append(text);
}

std::string fit(std::string_view text, std::size_t width) {
  return padded(text::elide_middle(text::terminal_safe(text), width), width);
}

}  // namespace berth::people
