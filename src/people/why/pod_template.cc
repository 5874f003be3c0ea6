#include "people/why/pod_template.h"

#include "text/path.h"
#include "text/quantity.h"

namespace berth::people {

using model::Amounts;
using text::Value;

namespace {

std::optional<std::int64_t> amount_in(std::string_view resource, const Value& v) {
  const auto parsed = text::parse_quantity(v.is_number() ? v.number_text() : v.string());
  if (!parsed.ok()) return std::nullopt;
  return amount_of(resource, *parsed);
}

}  // namespace

std::string show_amount(std::string_view resource, std::int64_t amount) {
  if (resource.ends_with("cpu")) return text::Quantity::from_milli(amount).to_string();
  const bool bytes = resource.ends_with("memory") || resource.ends_with("storage") ||
                     resource.find("hugepages-") != std::string_view::npos;
  return text::Quantity::from_units(amount,
                                    bytes ? text::Format::kBinarySI : text::Format::kDecimalSI)
      .to_string();
}

std::int64_t amount_of(std::string_view resource, const text::Quantity& amount) {
  return resource.ends_with("cpu") ? amount.milli_value() : amount.value();
}

Amounts amounts_of(const Value& object) {
  Amounts out;
  for (const text::Member& member : object.members()) {
    if (const auto amount = amount_in(member.key, member.value)) {
      out.emplace(std::string(member.key), *amount);
    }
  }
  return out;
}

bool read_spec(const Value& spec, PodTemplate& out) {
  text::Decoder decoder;
  decode(spec, out.pod, decoder);
  if (!decoder.ok()) return false;
  const kinds::Resources* level = out.pod.pod_level ? &*out.pod.pod_level : nullptr;
  kinds::Containers limited = out.pod.containers;
  for (auto* list : {&limited.init, &limited.app}) {
    for (kinds::Container& each : *list) each.resources.requests = each.resources.limits;
  }
  return kinds::effective_requests(out.pod.containers, level, out.pod.overhead, out.requests) &&
         kinds::effective_requests(limited, nullptr, out.pod.overhead, out.limits);
}

const PodTemplate* PodReadings::get(const RawObject& pod) {
  const bool keep = pod.lasts && (known_.size() < kMost || known_.contains(pod.value));
  std::optional<PodTemplate>* at = &last_;
  if (keep) {
    const auto [it, fresh] = known_.try_emplace(pod.value);
    if (!fresh) return it->second ? &*it->second : nullptr;
    at = &it->second;
  }
  at->emplace();
  const text::Value* spec = pod.value->find("spec");
  if (spec != nullptr) {
    (*at)->whole = pod.value;
    (*at)->spec = spec;
    (*at)->ended = has_ended(*pod.value);
    (*at)->usage = rules::pod_usage(*spec, (*pod.value)["status"], (*at)->ended);
  }
  if (spec == nullptr || !read_spec(*spec, **at)) at->reset();
  return *at ? &**at : nullptr;
}

bool has_ended(const Value& pod) {
  const std::string phase(text_at(pod, "status.phase"));
  return phase == "Succeeded" || phase == "Failed";
}

bool was_admitted(const RawObject& object) {
  return !object.uid.empty() || find(object.value, "status.phase") != nullptr;
}

std::vector<Range> ranges_of(const ObjectSource& objects, const std::string& ns) {
  std::vector<Range> out;
  for (const RawObject& raw : objects.of_kind("LimitRange")) {
    if (raw.ns != ns) continue;
    out.push_back({raw.name, rules::read_range(*raw.value)});
  }
  return out;
}

}  // namespace berth::people
