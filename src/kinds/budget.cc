#include "kinds/budget.h"

#include <algorithm>

#include "text/path.h"

namespace berth::kinds {

namespace {

using text::Decoder;
using text::IntOrString;
using text::Value;

// "30%" to 30; -1 when it is not a percentage.
int percent_of(const IntOrString& value) {
  std::string_view text = value.text;
  std::int64_t number = 0;
  if (!text.ends_with('%')) return -1;
  text.remove_suffix(1);
  return parse_int(text, number) && number <= 100 ? static_cast<int>(number) : -1;
}

void read_budget_number(const Value& v, std::optional<IntOrString>& out, Decoder& d) {
  IntOrString value;
  const std::size_t before = d.errors();
  decode(v, value, d);
  if (d.errors() != before) return;
  if (value.is_string ? percent_of(value) < 0 : value.number < 0) {
    return d.mismatch(v, "a number of at least 0 or a percentage 0%..100%");
  }
  out = std::move(value);
}

using B = BudgetObject;
constexpr text::Field<B> kBudgetSpecFields[] = {
    text::field<&B::max_unavailable, read_budget_number>("maxUnavailable"),
    text::field<&B::min_available, read_budget_number>("minAvailable"),
    text::field<&B::selector>("selector"),
    text::skip<B>("unhealthyPodEvictionPolicy"),
};
constexpr text::Field<B> kBudgetStatusFields[] = {
    text::field<&B::status_allowed>("disruptionsAllowed"),
};
constexpr text::Field<B> kBudgetFields[] = {
    text::skip<B>("apiVersion"),
    text::skip<B>("kind"),
    text::skip<B>("metadata"),
    text::inlined<kBudgetSpecFields>("spec"),
    text::custom<B>("status", [](const Value& v, B& out,
                                 Decoder& d) { decode_lenient(v, kBudgetStatusFields, out, d); }),
};

// A share of total, rounded up as Kubernetes does for both fields.
std::int64_t scaled(const IntOrString& value, std::int64_t total) {
  if (!value.is_string) return value.number;
  return (total * percent_of(value) + 99) / 100;
}

}  // namespace

void decode(const Value& v, BudgetObject& out, Decoder& d) {
  read_meta(v, Scope::kNamespaced, out.meta, d);
  decode_object(v, kBudgetFields, out, d);
  const Value* spec = v.find("spec");
  Decoder::Step step(d, "spec");
  if (out.min_available && out.max_unavailable) {
    d.error(*spec, "minAvailable and maxUnavailable", "one of them");
  } else if (!out.status_allowed && find(v, "spec.minAvailable") == nullptr &&
             find(v, "spec.maxUnavailable") == nullptr) {
    d.warning(spec == nullptr ? v : *spec, "neither minAvailable nor maxUnavailable",
              "one of them: no disruption is allowed");
  }
}

bool matches_labels(const text::Selector& selector, const model::Labels& labels) {
  return text::matches(selector, [&labels](std::string_view key) {
    const auto it = labels.find(key);
    return it == labels.end() ? std::optional<std::string_view>() : it->second;
  });
}

model::BudgetSpec resolve_budget(const BudgetObject& budget, std::span<const model::PodSpec> pods) {
  model::BudgetSpec out;
  out.ns = budget.meta.ns;
  out.name = budget.meta.name;
  out.selector = budget.selector.requirements;
  out.match_nothing = !budget.selector.present;
  if (budget.status_allowed) {
    out.disruptions_allowed = std::max(0, *budget.status_allowed);
    return out;
  }
  std::int64_t expected = 0, healthy = 0;
  for (const model::PodSpec& pod : pods) {
    if (out.match_nothing || pod.ns != out.ns || !matches_labels(out.selector, pod.labels)) {
      continue;
    }
    ++expected;
    if (!pod.node_name.empty() && !pod.terminating) ++healthy;
  }
  std::int64_t needed = healthy;
  if (budget.min_available) needed = scaled(*budget.min_available, expected);
  if (budget.max_unavailable) {
    needed = std::max<std::int64_t>(0, expected - scaled(*budget.max_unavailable, expected));
  }
  out.disruptions_allowed =
      static_cast<int>(std::clamp<std::int64_t>(healthy - needed, 0, 1'000'000'000));
  return out;
}

}  // namespace berth::kinds
