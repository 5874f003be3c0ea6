#include "rules/amounts.h"

#include "kinds/resources.h"
#include "text/path.h"

namespace berth::rules {

using text::Quantity;
using text::Value;

Sums read_sums(const Value& list) {
  Sums out;
  for (const text::Member& member : list.members()) {
    const Value& v = member.value;
    const auto parsed = text::parse_quantity(v.is_number() ? v.number_text() : v.string());
    if (parsed.ok()) out.insert_or_assign(std::string(member.key), *parsed);
  }
  return out;
}

void add(Sums& to, const Sums& more) {
  for (const auto& [resource, amount] : more) {
    const auto [it, fresh] = to.try_emplace(resource, amount);
    if (!fresh) it->second += amount;
  }
}

void keep_most(Sums& of, const Sums& other) {
  for (const auto& [resource, amount] : other) {
    const auto [it, fresh] = of.try_emplace(resource, amount);
    if (!fresh && it->second < amount) it->second = amount;
  }
}

std::string listed(const Sums& sums) {
  std::string out;
  for (const auto& [resource, amount] : sums) {
    if (!out.empty()) out += ',';
    out += resource + '=' + amount.to_string();
  }
  return out;
}

namespace {

// Of {"requests": ..., "limits": ...}.
Sums stated_requests(const Value& resources) {
  Sums out = read_sums(resources["requests"]);
  for (auto& [resource, amount] : read_sums(resources["limits"])) out.try_emplace(resource, amount);
  return out;
}

// What the status says of a container by that name; null: nothing.
const Value& status_of(const Value& status, std::string_view name) {
  static const Value kNone;
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const Value& each : status[list].items()) {
      if (text_at(each, "name") == name) return each;
    }
  }
  return kNone;
}

// A resize that the kubelet cannot do: the pod does not have what its spec asks for.
bool is_infeasible(const Value& status) {
  const Value* pending = text::find_type(status["conditions"], "PodResizePending");
  return pending != nullptr && text_at(*pending, "reason") == "Infeasible";
}

// From whom the amounts of a container are taken.
enum class Word { kSpec, kAllocated, kGiven };

Sums container_sums(const Value& container, const Value& pod_status, Word word, bool limits,
                    bool infeasible) {
  const Value& status =
      word == Word::kSpec ? Value() : status_of(pod_status, text_at(container, "name"));
  const char* list = limits ? "limits" : "requests";
  if (word == Word::kGiven && text::find(status, "resources") != nullptr) {
    const Value* given = status["resources"].find(list);
    if (given != nullptr) return read_sums(*given);
  }
  if (!limits && word != Word::kSpec && status.find("allocatedResources") != nullptr) {
    return read_sums(status["allocatedResources"]);
  }
  if (word != Word::kSpec && infeasible) return {};
  return limits ? read_sums(text::at(container, "resources.limits")) : requests_of(container);
}

Sums sums_by(const Value& spec, const Value& status, Word word, bool limits, bool infeasible) {
  Sums out, sidecars, most;
  for (const Value& container : spec["containers"].items()) {
    add(out, container_sums(container, status, word, limits, infeasible));
  }
  for (const Value& container : spec["initContainers"].items()) {
    Sums own = container_sums(container, status, word, limits, infeasible);
    if (text_at(container, "restartPolicy") == "Always") {
      add(out, own);
      add(sidecars, own);
      keep_most(most, sidecars);
    } else {
      add(own, sidecars);
      keep_most(most, own);
    }
  }
  keep_most(out, most);
  return out;
}

Sums sums_over(const Value& spec, const Value& status, bool limits) {
  const bool infeasible = is_infeasible(status);
  Sums asked = sums_by(spec, status, Word::kSpec, limits, infeasible);
  if (status["containerStatuses"].size() == 0 && status["initContainerStatuses"].size() == 0 &&
      !infeasible) {
    return asked;
  }
  Sums out = sums_by(spec, status, Word::kGiven, limits, infeasible);
  if (!limits) keep_most(out, sums_by(spec, status, Word::kAllocated, limits, infeasible));
  if (!infeasible) keep_most(out, asked);
  return out;
}

}  // namespace

Sums requests_of(const Value& container) { return stated_requests(container["resources"]); }

PodSums sums_of_pod(const Value& spec, const Value& status, Overhead overhead) {
  PodSums out{sums_over(spec, status, false), sums_over(spec, status, true)};
  const Value& whole = spec["resources"];
  for (const auto& [resource, amount] : stated_requests(whole)) {
    if (kinds::is_pod_level_resource(resource)) out.requests[resource] = amount;
  }
  for (const auto& [resource, amount] : read_sums(whole["limits"])) {
    if (kinds::is_pod_level_resource(resource)) out.limits[resource] = amount;
  }
  if (overhead == Overhead::kOut) return out;
  const Sums on_top = read_sums(spec["overhead"]);
  add(out.requests, on_top);
  for (const auto& [resource, amount] : on_top) {
    const auto limit = out.limits.find(resource);
    if (limit != out.limits.end() && !limit->second.is_zero()) limit->second += amount;
  }
  return out;
}

}  // namespace berth::rules
