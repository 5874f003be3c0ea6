#include "explain/pod_template.h"

#include "text/path.h"
#include "text/quantity.h"

namespace berth::explain {

using model::Amounts;
using text::Value;

namespace {

// cpu in thousandths, everything else in pieces or bytes, as the model counts.
std::optional<std::int64_t> amount_in(std::string_view resource, const Value& v) {
  const auto parsed = text::parse_quantity(v.is_number() ? v.number_text() : v.string());
  if (!parsed.ok()) return std::nullopt;
  return resource.ends_with("cpu") ? parsed->milli_value() : parsed->value();
}

Amounts ratios_below(const Value& item) {
  Amounts out;
  const Value* found = item.find("maxLimitRequestRatio");
  for (const text::Member& member :
       found == nullptr ? std::span<const text::Member>() : found->members()) {
    const Value& v = member.value;
    const auto parsed = text::parse_quantity(v.is_number() ? v.number_text() : v.string());
    if (parsed.ok() && parsed->milli_value() > 0) out.emplace(member.key, parsed->milli_value());
  }
  return out;
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
  const objects::Resources* level = out.pod.pod_level ? &*out.pod.pod_level : nullptr;
  objects::Containers limited = out.pod.containers;
  for (auto* list : {&limited.init, &limited.app}) {
    for (objects::Container& each : *list) each.resources.requests = each.resources.limits;
  }
  return objects::effective_requests(out.pod.containers, level, out.pod.overhead, out.requests) &&
         objects::effective_requests(limited, nullptr, out.pod.overhead, out.limits);
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
    (*at)->spec = spec;
    (*at)->ended = has_ended(*pod.value);
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
    for (const Value& item : at(raw.value, "spec.limits").items()) {
      const std::string type(text_at(item, "type"));
      if (type != "Container" && type != "Pod") continue;
      Range range{.name = raw.name,
                  .of_pod = type == "Pod",
                  .most = amounts_of(at(item, "max")),
                  .least = amounts_of(at(item, "min")),
                  .limit = amounts_of(at(item, "default")),
                  .request = amounts_of(at(item, "defaultRequest")),
                  .ratio = ratios_below(item)};
      if (range.of_pod) {
        range.limit.clear();
        range.request.clear();
        out.push_back(std::move(range));
        continue;
      }
      range.limit.insert(range.most.begin(), range.most.end());
      range.request.insert(range.limit.begin(), range.limit.end());
      range.request.insert(range.least.begin(), range.least.end());
      out.push_back(std::move(range));
    }
  }
  return out;
}

}  // namespace berth::explain
