#include "kinds/priority.h"

#include "kinds/affinity.h"

namespace berth::kinds {

namespace {

constexpr int kHighestUser = 1'000'000'000;
constexpr int kSystem = 2'000'000'000;

constexpr std::pair<std::string_view, bool> kClassPreemption[] = {{"PreemptLowerPriority", true},
                                                                  {"Never", false}};

using P = PriorityClassObject;
constexpr text::Field<P> kPriorityClassFields[] = {
    text::skip<P>("apiVersion"),
    text::skip<P>("kind"),
    text::skip<P>("metadata"),
    text::skip<P>("description"),
    text::field<&P::global_default>("globalDefault"),
    text::field<&P::preempts, text::one_of<kClassPreemption>>("preemptionPolicy"),
    text::required(text::field<&P::value>("value")),
};

}  // namespace

void decode(const text::Value& v, PriorityClassObject& out, text::Decoder& d) {
  read_meta(v, Scope::kCluster, out.meta, d);
  decode_object(v, kPriorityClassFields, out, d);
  if (out.value > kHighestUser && !out.meta.name.starts_with("system-")) {
    text::Decoder::Step step(d, "value");
    const text::Value* value = v.find("value");
    d.mismatch(value == nullptr ? v : *value, "at most 1000000000");
  }
}

PriorityIndex::PriorityIndex() {
  classes_["system-cluster-critical"] = {kSystem, "system-cluster-critical", true};
  classes_["system-node-critical"] = {kSystem + 1000, "system-node-critical", true};
}

void PriorityIndex::add(const PriorityClassObject& object) {
  const ResolvedPriority resolved{object.value, object.meta.name, object.preempts};
  classes_.insert_or_assign(object.meta.name, resolved);
  if (object.global_default && (!default_ || resolved.value < default_->value)) {
    default_ = resolved;
  }
}

std::optional<ResolvedPriority> PriorityIndex::find(std::string_view name) const {
  if (name.empty()) return default_.value_or(ResolvedPriority{});
  const auto it = classes_.find(name);
  if (it == classes_.end()) return std::nullopt;
  return it->second;
}

}  // namespace berth::kinds
