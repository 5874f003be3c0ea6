// What is done to pods beyond writing them: binding, eviction.
#include <utility>

#include "embedded/api/server.h"
#include "text/decode.h"
#include "text/json_writer.h"
#include "text/path.h"
#include "text/selector.h"

namespace berth::sim::api {

namespace {

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
