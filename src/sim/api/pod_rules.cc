// What is done to pods beyond their schema: admission, binding, eviction.
#include <utility>

#include "sim/api/server.h"
#include "text/decode.h"
#include "text/json_writer.h"
#include "text/path.h"
#include "text/selector.h"

namespace berth::sim::api {

namespace {

constexpr std::int64_t kTolerationSeconds = 300;

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

struct PriorityFacts {
  std::string name;
  std::int64_t value = 0;
  std::string preemption = "PreemptLowerPriority";
};

std::optional<PriorityFacts> read_priority_class(const Object& object) {
  text::Editor edit;
  const auto parsed = edit.parse(object.json);
  if (!parsed.ok()) return std::nullopt;
  PriorityFacts facts;
  facts.name = object.name;
  facts.value = int_at(parsed.value(), "value");
  const std::string_view preemption = text_at(parsed.value(), "preemptionPolicy");
  if (!preemption.empty()) facts.preemption = preemption;
  return facts;
}

// The class of pods that name none: the global default with the lowest value.
std::optional<PriorityFacts> default_priority(const Shelf& classes) {
  std::optional<PriorityFacts> found;
  for (const auto& [key, entry] : classes.entries) {
    if (!entry.latest || entry.latest->json.find("\"globalDefault\":true") == std::string::npos) {
      continue;
    }
    const auto facts = read_priority_class(*entry.latest);
    if (facts && (!found || facts->value < found->value)) found = facts;
  }
  return found;
}

MaybeError admit_priority(Server& server, Draft& draft, Value& spec) {
  text::Editor& edit = draft.edit;
  const TypePtr classes = server.registry.find("scheduling.k8s.io", "v1", "priorityclasses");
  if (!classes) return std::nullopt;
  std::optional<PriorityFacts> facts;
  const std::string_view name = text_at(spec, "priorityClassName");
  if (!name.empty()) {
    const ObjectPtr found = classes->shelf->latest(name);
    if (!found) {
      return forbidden({"", "pods"}, draft.name,
                       "no PriorityClass with name " + std::string(name) + " was found");
    }
    facts = read_priority_class(*found);
  } else {
    facts = default_priority(*classes->shelf);
    if (facts) spec = edit.with(spec, "priorityClassName", edit.string(facts->name));
  }
  if (!facts) facts.emplace();
  const Value* given = find(spec, "priority");
  if (given != nullptr && given->as_int64() != facts->value) {
    return forbidden({"", "pods"}, draft.name,
                     "the integer value of priority (" + std::string(given->number_text()) +
                         ") must not be provided in pod spec; priority admission controller "
                         "computed " +
                         std::to_string(facts->value) + " from the given PriorityClass name");
  }
  const std::string_view preemption = text_at(spec, "preemptionPolicy");
  if (!preemption.empty() && preemption != facts->preemption) {
    return forbidden({"", "pods"}, draft.name,
                     "the string value of PreemptionPolicy (" + std::string(preemption) +
                         ") must not be provided in pod spec; priority admission controller "
                         "computed " +
                         facts->preemption + " from the given PriorityClass name");
  }
  spec = edit.with(spec, "priority", edit.number(facts->value));
  spec = edit.with(spec, "preemptionPolicy", edit.string(facts->preemption));
  return std::nullopt;
}

std::string created_status() {
  return R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201})";
}

// The annotations of a Binding over those of the pod.
Value merged_annotations(text::Editor& edit, const Value* old, const Value& added) {
  Value merged = old ? *old : Value();
  for (const Member& member : added.members()) {
    merged = edit.with(merged, member.key, member.value);
  }
  return merged;
}

Value scheduled_condition(text::Editor& edit, const Value& pod, const std::string& now) {
  const Value made = edit.object({{"type", edit.string("PodScheduled")},
                                  {"status", edit.string("True")},
                                  {"lastProbeTime", Value()},
                                  {"lastTransitionTime", edit.string(now)}});
  std::vector<Value> conditions;
  if (const Value* list = find(pod, "status.conditions")) {
    for (const Value& condition : list->items()) {
      if (text_at(condition, "type") != "PodScheduled") conditions.push_back(condition);
    }
  }
  const Value* generation = find(pod, "metadata.generation");
  conditions.push_back(generation ? edit.with(made, "observedGeneration", *generation) : made);
  return edit.array(conditions);
}

MaybeError check_binding(const Draft& draft, const Value& binding) {
  const Value& pod = draft.live_value;
  const GroupResource pods{"", "pods/binding"};
  const std::string_view kind = text_at(binding, "target.kind");
  const std::string_view node = text_at(binding, "target.name");
  std::vector<Cause> causes;
  if (!kind.empty() && kind != "Node") {
    causes.push_back(not_supported("target.kind", kind, {"Node", "<empty>"}));
  }
  if (node.empty()) causes.push_back(required("target.name"));
  if (!causes.empty()) {  // not wrapped by kube-apiserver either
    ApiError error;
    error.message = causes[0].field + ": " + causes[0].message;
    return error;
  }
  const std::string_view uid = text_at(binding, "metadata.uid");
  if (!uid.empty() && uid != draft.live->uid) {
    return conflict(pods, draft.name,
                    "Precondition failed: UID in precondition: " + std::string(uid) +
                        ", UID in object meta: " + draft.live->uid);
  }
  const std::string_view version = text_at(binding, "metadata.resourceVersion");
  if (!version.empty() && version != std::to_string(draft.live->version)) {
    return conflict(
        pods, draft.name,
        "Precondition failed: ResourceVersion in precondition: " + std::string(version) +
            ", ResourceVersion in object meta: " + std::to_string(draft.live->version));
  }
  if (draft.live->terminating) {
    return conflict(pods, draft.name,
                    "pod " + draft.name + " is being deleted, cannot be assigned to a host");
  }
  const std::string_view bound = text_at(pod, "spec.nodeName");
  if (!bound.empty()) {
    return conflict(pods, draft.name,
                    "pod " + draft.name + " is already assigned to node " + quoted(bound));
  }
  const Value* gates = find(pod, "spec.schedulingGates");
  if (gates != nullptr && gates->size() > 0) {
    return conflict(pods, draft.name, "pod " + draft.name + " has non-empty .spec.schedulingGates");
  }
  return std::nullopt;
}

}  // namespace

MaybeError Server::admit_pod(Draft& draft) {
  text::Editor& edit = draft.edit;
  const Value* found = find(draft.object, "spec");
  if (found == nullptr || !draft.create()) return std::nullopt;
  Value spec = *found;
  if (auto error = admit_priority(*this, draft, spec)) return error;
  spec = with_default_toleration(edit, spec, "node.kubernetes.io/not-ready");
  spec = with_default_toleration(edit, spec, "node.kubernetes.io/unreachable");
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

void Server::bind_pod(const RequestPtr& request) {
  if (auto error = read_write_options(*request)) return request->fail(*error);
  auto draft = std::make_shared<Draft>();
  draft->request = request;
  draft->type = request->type;
  draft->ns = request->ns;
  auto body = parse_body(request->http.body);
  if (!body.ok()) return request->fail(bad_request(body.error().to_string()));
  const Value binding = draft->edit.keep(std::move(body.value().object));
  const std::string_view named = text_at(binding, "metadata.name");
  draft->name = request->name.empty() ? std::string(named) : request->name;
  if (!named.empty() && named != draft->name) {
    return request->fail(bad_request("name in URL does not match name in Binding object"));
  }
  if (auto error = load_live(*draft)) return request->fail(*error);
  if (auto error = check_binding(*draft, binding)) return request->fail(*error);
  text::Editor& edit = draft->edit;
  Value pod = edit.with_at(draft->live_value, "spec.nodeName",
                           edit.string(text_at(binding, "target.name")));
  if (const Value* added = find(binding, "metadata.annotations")) {
    pod = edit.with_at(pod, "metadata.annotations",
                       merged_annotations(edit, find(pod, "metadata.annotations"), *added));
  }
  pod = edit.with_at(pod, "status.conditions", scheduled_condition(edit, pod, now_text()));
  draft->object = pod;
  draft->checked = true;  // a targeted edit of a valid pod; not tracked in managedFields
  draft->answer = [request](const ObjectPtr&) { request->answer(201, created_status()); };
  commit(draft);
}

namespace {

// Budgets of a namespace that select the pod.
std::vector<ObjectPtr> budgets_of(const Server& server, const Object& pod) {
  std::vector<ObjectPtr> found;
  const TypePtr budgets = server.registry.find("policy", "v1", "poddisruptionbudgets");
  if (!budgets) return found;
  const std::string prefix = pod.ns + "/";
  const auto& entries = budgets->shelf->entries;
  for (auto at_budget = entries.lower_bound(prefix);
       at_budget != entries.end() && at_budget->first.starts_with(prefix); ++at_budget) {
    const ObjectPtr& budget = at_budget->second.latest;
    if (!budget) continue;
    text::Editor edit;
    const auto parsed = edit.parse(budget->json);
    const Value* selector = parsed.ok() ? find(parsed.value(), "spec.selector") : nullptr;
    if (selector == nullptr) continue;
    text::Decoder decoder;
    text::Selector labels;
    text::decode_label_selector(*selector, labels, decoder);
    if (!decoder.ok()) continue;
    if (text::matches(labels, [&](std::string_view key) { return pod.label(key); })) {
      found.push_back(budget);
    }
  }
  return found;
}

ApiError over_budget(const Object& budget, const Value& root) {
  const std::string needs = std::to_string(int_at(root, "status.desiredHealthy"));
  const std::string has = std::to_string(int_at(root, "status.currentHealthy"));
  ApiError error =
      too_many_requests("Cannot evict pod as it would violate the pod's disruption budget.", 0);
  error.causes.push_back({"DisruptionBudget", "",
                          "The disruption budget " + budget.name + " needs " + needs +
                              " healthy pods and has " + has + " currently"});
  return error;
}

// Takes one disruption from the budget; nullopt: none is left, and why says so.
std::optional<Value> take_disruption(text::Editor& edit, const Value& budget,
                                     const std::string& pod, const std::string& now) {
  const std::int64_t allowed = int_at(budget, "status.disruptionsAllowed");
  if (allowed <= 0) return std::nullopt;
  const Value taken = edit.with_at(budget, "status.disruptionsAllowed", edit.number(allowed - 1));
  const Value* pods = find(taken, "status.disruptedPods");
  return edit.with_at(taken, "status.disruptedPods",
                      edit.with(pods ? *pods : Value(), pod, edit.string(now)));
}

bool pod_counts(const Value& pod) {
  const std::string_view phase = text_at(pod, "status.phase");
  return phase != "Succeeded" && phase != "Failed" && phase != "Pending";
}

}  // namespace

void Server::evict_pod(const RequestPtr& request) {
  if (auto error = read_write_options(*request)) return request->fail(*error);
  auto body = parse_body(request->http.body);
  if (!body.ok()) return request->fail(bad_request(body.error().to_string()));
  const Value& eviction = body.value().object.root();
  const std::string_view named = text_at(eviction, "metadata.name");
  if (!named.empty() && named != request->name) {
    return request->fail(bad_request("name in URL does not match name in Eviction object"));
  }
  evict_now(request, eviction);
}

void Server::evict_now(const RequestPtr& request, const Value& eviction) {
  const TypePtr type = request->type;
  const std::string key = object_key(request->ns, request->name);
  const ObjectPtr live = type->shelf->latest(key);
  if (!live) return request->fail(not_found(type->resource(), request->name));
  DeleteWish wish;
  if (const Value* grace = find(eviction, "deleteOptions.gracePeriodSeconds")) {
    wish.grace_seconds = grace->as_int64();
  }
  wish.uid = text_at(eviction, "deleteOptions.preconditions.uid");
  wish.version = text_at(eviction, "deleteOptions.preconditions.resourceVersion");
  const Value* dry = find(eviction, "deleteOptions.dryRun");
  wish.dry_run = request->dry_run || (dry != nullptr && dry->size() > 0);
  text::Editor edit;
  const auto pod = edit.parse(live->json);
  if (!pod.ok()) return request->fail(internal_error(pod.error().to_string()));
  if (!live->terminating && pod_counts(pod.value())) {
    const std::vector<ObjectPtr> budgets = budgets_of(*this, *live);
    if (budgets.size() > 1) {
      return request->fail(internal_error(
          "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
          "not support."));
    }
    if (budgets.size() == 1) {
      const auto parsed = edit.parse(budgets[0]->json);
      if (!parsed.ok()) return request->fail(internal_error(parsed.error().to_string()));
      if (int_at(parsed.value(), "status.observedGeneration") <
          int_at(parsed.value(), "metadata.generation")) {
        ApiError error = over_budget(*budgets[0], parsed.value());
        error.causes[0].message = "The disruption budget " + budgets[0]->name +
                                  " is still being processed by the server.";
        error.retry_after_seconds = 10;
        return request->fail(error);
      }
      if (int_at(parsed.value(), "status.disruptionsAllowed") <= 0) {
        return request->fail(over_budget(*budgets[0], parsed.value()));
      }
      if (!wish.dry_run) {
        const TypePtr type_of = registry.find("policy", "v1", "poddisruptionbudgets");
        const std::string name = request->name, now = now_text();
        rewrite(*type_of->shelf, object_key(budgets[0]->ns, budgets[0]->name),
                [name, now](text::Editor& editor, const Value& budget) {
                  return take_disruption(editor, budget, name, now);
                });
      }
    }
  }
  delete_object(type, key, wish, [request](const MaybeError& error, const Deleted&) {
    if (error) return request->fail(*error);
    request->answer(201, created_status());
  });
}

}  // namespace berth::sim::api
