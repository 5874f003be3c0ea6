// policy/v1 PodDisruptionBudget.
//
// Disruptions allowed: what status says. Without status, from spec and the pods in the input: a
// pod that is bound and not going away counts as healthy, and the number of matching pods stands
// for the number that the owner wants.
#pragma once

#include <optional>
#include <span>

#include "kinds/affinity.h"
#include "kinds/meta.h"

namespace berth::kinds {

struct BudgetObject {
  Meta meta;
  LabelSelector selector;
  std::optional<text::IntOrString> min_available, max_unavailable;
  std::optional<int> status_allowed;
};
void decode(const text::Value& v, BudgetObject& out, text::Decoder& d);

model::BudgetSpec resolve_budget(const BudgetObject& budget, std::span<const model::PodSpec> pods);

bool matches_labels(const text::Selector& selector, const model::Labels& labels);

}  // namespace berth::kinds
