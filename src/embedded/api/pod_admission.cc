// What is done to a new pod on its way in, in the order of kube-apiserver's plugins: the
// LimitRanges of its namespace, its ServiceAccount, its PriorityClass, tolerations, its
// RuntimeClass. The words of refusals are those of rules/.
//
// No volume with a token of the ServiceAccount is added: simulated pods run nothing that would read
// it, and it would be a third of a pod's size.
#include <algorithm>
#include <utility>

#include "embedded/api/server.h"
#include "rules/limit_range.h"
#include "rules/pod_classes.h"
#include "text/path.h"

namespace berth::sim::api {

namespace {

constexpr std::int64_t kTolerationSeconds = 300;
constexpr GroupResource kPods{"", "pods"};

// Nothing was refused where there are no words. name: while an object is being changed, it goes by
// what the request called it.
MaybeError refused_pod(const Draft& draft, const std::string& words) {
  if (words.empty()) return std::nullopt;
  return forbidden(kPods, draft.asked_name.empty() ? draft.name : draft.asked_name, words);
}

// ---- LimitRange --------------------------------------------------------------------------------

Value with_filled(text::Editor& edit, const Value& spec, const std::vector<rules::Filled>& filled) {
  Value out = spec;
  for (const std::string_view list : {"containers", "initContainers"}) {
    std::vector<Value> containers(spec[list].items().begin(), spec[list].items().end());
    bool changed = false;
    for (const rules::Filled& one : filled) {
      if (one.list != list) continue;
      changed = true;
      Value& container = containers[one.container];
      const Value amount = edit.string(one.amount);
      container = one.limit ? edit.with_at(container, "resources.limits", one.resource, amount)
                            : edit.with_at(container, "resources.requests", one.resource, amount);
    }
    if (changed) out = edit.with(out, list, edit.array(containers));
  }
  return out;
}

void fill_ranges(Server& server, Draft& draft, Value& spec) {
  text::Editor& edit = draft.edit;
  for (const ObjectPtr& range : server.in_namespace_of("limitranges", draft.ns)) {
    text::Editor read;
    const auto parsed = read.parse(range->json);
    if (!parsed.ok()) continue;
    const auto filled = rules::filled_by(rules::read_range(parsed.value()), spec);
    if (filled.empty()) continue;
    draft.object = edit.with_at(draft.object, "metadata.annotations", rules::kFilledAnnotation,
                                edit.string(rules::filled_note(filled, spec)));
    spec = with_filled(edit, spec, filled);
  }
}

// ---- ServiceAccount
// ------------------------------------------------------------------------------

MaybeError admit_account(Server& server, Draft& draft, Value& spec) {
  text::Editor& edit = draft.edit;
  const Value* mirror = find(draft.object, "metadata.annotations[kubernetes.io/config.mirror]");
  if (mirror != nullptr) return std::nullopt;
  std::string_view name = rules::account_of(spec);
  if (name.empty()) name = rules::kDefaultAccount;
  for (const char* field : {"serviceAccountName", "serviceAccount"}) {
    if (text_at(spec, "serviceAccountName") == name && text_at(spec, "serviceAccount") == name)
      break;
    spec = edit.with(spec, field, edit.string(name));
  }
  const Shelf* accounts = server.storage.find_shelf("serviceaccounts");
  const auto look_up = [&] {
    return accounts == nullptr ? nullptr : accounts->latest(object_key(draft.ns, name));
  };
  ObjectPtr account = look_up();
  if (!account && name == rules::kDefaultAccount) {  // its turn has not come yet
    server.namespaces.furnish(std::string(draft.ns));
    account = look_up();
  }
  if (!account) return refused_pod(draft, rules::no_account(draft.ns, name));
  if (spec["imagePullSecrets"].size() > 0) return std::nullopt;
  const auto parsed = edit.parse(account->json);
  const Value* secrets = parsed.ok() ? find(parsed.value(), "imagePullSecrets") : nullptr;
  if (secrets != nullptr && secrets->size() > 0) {
    spec = edit.with(spec, "imagePullSecrets", *secrets);
  }
  return std::nullopt;
}

// ---- PriorityClass
// -------------------------------------------------------------------------------

std::optional<rules::Priority> read_priority(const Object& object) {
  text::Editor edit;
  const auto parsed = edit.parse(object.json);
  return parsed.ok() ? std::optional(rules::read_priority_class(parsed.value())) : std::nullopt;
}

// The class of pods that name none: the global default with the lowest value.
std::optional<rules::Priority> default_priority(const Shelf& classes) {
  std::optional<rules::Priority> found;
  for (const auto& [key, entry] : classes.entries) {
    if (!entry.latest || entry.latest->json.find("\"globalDefault\":true") == std::string::npos) {
      continue;
    }
    auto priority = read_priority(*entry.latest);
    if (priority && (!found || priority->value < found->value)) found = std::move(priority);
  }
  return found;
}

MaybeError admit_priority(Server& server, Draft& draft, Value& spec) {
  text::Editor& edit = draft.edit;
  const TypePtr classes = server.registry.find("scheduling.k8s.io", "v1", "priorityclasses");
  if (!classes) return std::nullopt;
  std::optional<rules::Priority> priority;
  const std::string_view name = text_at(spec, "priorityClassName");
  if (!name.empty()) {
    const ObjectPtr found = classes->shelf->latest(name);
    if (!found) return refused_pod(draft, rules::no_priority_class(name));
    priority = read_priority(*found);
  } else {
    priority = default_priority(*classes->shelf);
    if (priority) spec = edit.with(spec, "priorityClassName", edit.string(priority->name));
  }
  if (!priority) priority.emplace();
  if (auto error = refused_pod(draft, rules::wrong_priority(*priority, spec))) return error;
  spec = edit.with(spec, "priority", edit.number(priority->value));
  spec = edit.with(spec, "preemptionPolicy", edit.string(priority->preemption));
  return std::nullopt;
}

// ---- tolerations
// ---------------------------------------------------------------------------------

Value with_default_toleration(text::Editor& edit, const Value& spec, std::string_view key) {
  const Value* list = find(spec, "tolerations");
  const Value none = edit.array({});
  const Value& from = list ? *list : none;
  for (const Value& toleration : from.items()) {
    const std::string_view tolerated = text_at(toleration, "key");
    const std::string_view effect = text_at(toleration, "effect");
    if ((tolerated.empty() || tolerated == key) && (effect.empty() || effect == "NoExecute")) {
      return spec;
    }
  }
  const Value made = edit.object({{"key", edit.string(key)},
                                  {"operator", edit.string("Exists")},
                                  {"effect", edit.string("NoExecute")},
                                  {"tolerationSeconds", edit.number(kTolerationSeconds)}});
  return edit.with(spec, "tolerations", edit.append(from, made));
}

// ---- RuntimeClass
// --------------------------------------------------------------------------------

MaybeError admit_runtime_class(Server& server, Draft& draft, Value& spec) {
  text::Editor& edit = draft.edit;
  const std::string_view name = text_at(spec, "runtimeClassName");
  if (name.empty()) return std::nullopt;
  const Shelf* classes = server.storage.find_shelf("runtimeclasses.node.k8s.io");
  const ObjectPtr found = classes == nullptr ? nullptr : classes->latest(name);
  if (!found) return refused_pod(draft, rules::no_runtime_class(name));
  const auto parsed = edit.parse(found->json);
  if (!parsed.ok()) return internal_error(parsed.error().to_string());
  const rules::RuntimeAdds adds = rules::added_by(parsed.value(), spec);
  if (adds.other_overhead) {
    return refused_pod(draft, rules::wrong_overhead(parsed.value(), spec));
  }
  if (adds.overhead != nullptr) spec = edit.with(spec, "overhead", *adds.overhead);
  if (adds.clash) return refused_pod(draft, rules::words_of(*adds.clash));
  for (const auto& [key, value] : adds.labels) {
    spec = edit.with_at(spec, "nodeSelector", key, edit.string(value));
  }
  Value tolerations = spec["tolerations"].is_array() ? spec["tolerations"] : edit.array({});
  for (const Value* each : adds.tolerations) tolerations = edit.append(tolerations, *each);
  if (!adds.tolerations.empty()) spec = edit.with(spec, "tolerations", tolerations);
  return std::nullopt;
}

}  // namespace

std::vector<ObjectPtr> Server::in_namespace_of(std::string_view shelf_name,
                                               std::string_view ns) const {
  std::vector<ObjectPtr> out;
  const Shelf* shelf = storage.find_shelf(shelf_name);
  if (shelf == nullptr || shelf->entries.empty()) return out;
  const std::string prefix = std::string(ns) + "/";
  for (auto at_object = shelf->entries.lower_bound(prefix);
       at_object != shelf->entries.end() && at_object->first.starts_with(prefix); ++at_object) {
    if (at_object->second.latest) out.push_back(at_object->second.latest);
  }
  return out;
}

MaybeError Server::admit_pod(Draft& draft) {
  text::Editor& edit = draft.edit;
  const Value* found = find(draft.object, "spec");
  if (found == nullptr || !draft.create()) return std::nullopt;
  Value spec = *found;
  fill_ranges(*this, draft, spec);
  if (auto error = admit_account(*this, draft, spec)) return error;
  if (auto error = admit_priority(*this, draft, spec)) return error;
  spec = with_default_toleration(edit, spec, "node.kubernetes.io/not-ready");
  spec = with_default_toleration(edit, spec, "node.kubernetes.io/unreachable");
  if (auto error = admit_runtime_class(*this, draft, spec)) return error;
  draft.object = edit.with(draft.object, "spec", spec);
  const Value* gates = find(spec, "schedulingGates");
  if (gates != nullptr && gates->size() > 0) {
    const Value gated = edit.object(
        {{"type", edit.string("PodScheduled")},
         {"status", edit.string("False")},
         {"lastProbeTime", Value()},
         {"lastTransitionTime", Value()},
         {"reason", edit.string("SchedulingGated")},
         {"message", edit.string("Scheduling is blocked due to non-empty scheduling gates")}});
    draft.object = edit.with_at(draft.object, "status.conditions", edit.array({&gated, 1}));
  }
  return std::nullopt;
}

}  // namespace berth::sim::api
