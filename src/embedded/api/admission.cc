// What the server itself does to objects on their way in, beyond schema defaults.
#include "embedded/api/server.h"
#include "rules/pod_classes.h"
#include "text/path.h"

namespace berth::sim::api {

namespace {

void admit_namespace(Draft& draft) {
  if (!draft.create()) return;
  text::Editor& edit = draft.edit;
  draft.object = edit.with_at(draft.object, "metadata.labels[kubernetes.io/metadata.name]",
                              edit.string(draft.name));
  const Value* given = find(draft.object, "spec.finalizers");
  Value finalizers = given ? *given : edit.array({});
  bool held = false;
  for (const Value& item : finalizers.items()) held = held || item.string() == "kubernetes";
  if (!held) finalizers = edit.append(finalizers, edit.string("kubernetes"));
  draft.object = edit.with_at(draft.object, "spec.finalizers", finalizers);
  draft.object = edit.with_at(draft.object, "status.phase", edit.string("Active"));
}

// The class marked as default, for claims that name none.
void admit_claim(Server& server, Draft& draft) {
  if (!draft.create()) return;
  const Value* given = find(draft.object, "metadata.finalizers");
  draft.object =
      draft.edit.with_at(draft.object, "metadata.finalizers",
                         draft.edit.append(given ? *given : draft.edit.array({}),
                                           draft.edit.string("kubernetes.io/pvc-protection")));
  if (find(draft.object, "spec.storageClassName") != nullptr) return;
  const TypePtr classes = server.registry.find("storage.k8s.io", "v1", "storageclasses");
  if (!classes) return;
  for (const auto& [key, entry] : classes->shelf->entries) {
    if (!entry.latest || entry.latest->json.find("storageclass.kubernetes.io/is-default-class") ==
                             std::string::npos) {
      continue;
    }
    text::Editor& edit = draft.edit;
    const auto parsed = edit.parse(entry.latest->json);
    if (parsed.ok() &&
        text_at(parsed.value(),
                "metadata.annotations[storageclass.kubernetes.io/is-default-class]") == "true") {
      draft.object =
          edit.with_at(draft.object, "spec.storageClassName", edit.string(entry.latest->name));
      return;
    }
  }
}

// An address for services that need one, made up.
void admit_service(Server& server, Draft& draft) {
  if (!draft.create() || find(draft.object, "spec") == nullptr) return;
  const std::string_view kind = text_at(draft.object, "spec.type");
  if (kind == "ExternalName" || !text_at(draft.object, "spec.clusterIP").empty()) return;
  text::Editor& edit = draft.edit;
  const std::string address = "10." + std::to_string(97 + server.random.below(14)) + "." +
                              std::to_string(server.random.below(256)) + "." +
                              std::to_string(1 + server.random.below(254));
  const Value one = edit.string(address);
  draft.object = edit.with_at(draft.object, "spec.clusterIP", one);
  draft.object = edit.with_at(draft.object, "spec.clusterIPs", edit.array({&one, 1}));
}

MaybeError admit_priority_class(const Draft& draft) {
  if (!true_at(draft.object, "globalDefault")) return std::nullopt;
  for (const auto& [key, entry] : draft.type->shelf->entries) {
    if (!entry.latest || entry.latest->name == draft.name) continue;
    if (entry.latest->json.find("\"globalDefault\":true") != std::string::npos) {
      return forbidden(draft.type->resource(), draft.name,
                       rules::second_default(entry.latest->name));
    }
  }
  return std::nullopt;
}

// Who asks stands in the request, whatever it says; a condition has its times.
void admit_signing_request(Server& server, Draft& draft) {
  text::Editor& edit = draft.edit;
  if (draft.create()) {
    Value spec = at(draft.object, "spec");
    for (const std::string_view field : {"uid", "extra"}) spec = edit.without(spec, field);
    const Value group = edit.string("system:masters");
    spec = edit.with(spec, "username", edit.string(draft.request->user));
    spec = edit.with(spec, "groups", edit.array({&group, 1}));
    draft.object = edit.with(draft.object, "spec", spec);
    return;
  }
  const Value now = edit.string(server.now_text());
  std::vector<Value> conditions;
  for (Value condition : at(draft.object, "status.conditions").items()) {
    if (time_at(condition, "lastUpdateTime") == 0) {
      condition = edit.with(condition, "lastUpdateTime", now);
    }
    if (time_at(condition, "lastTransitionTime") == 0) {
      Value since = now;
      for (const Value& old : at(draft.live_value, "status.conditions").items()) {
        const bool same = text_at(old, "type") == text_at(condition, "type") &&
                          text_at(old, "status") == text_at(condition, "status");
        if (same && time_at(old, "lastTransitionTime") != 0) since = old["lastTransitionTime"];
      }
      condition = edit.with(condition, "lastTransitionTime", since);
    }
    conditions.push_back(condition);
  }
  if (!conditions.empty()) {
    draft.object = edit.with_at(draft.object, "status.conditions", edit.array(conditions));
  }
}

}  // namespace

MaybeError Server::admit_builtin(Draft& draft) {
  switch (draft.type->role) {
    case Role::kPod:
      return admit_pod(draft);
    case Role::kNamespace:
      admit_namespace(draft);
      return std::nullopt;
    case Role::kClaim:
      admit_claim(*this, draft);
      return std::nullopt;
    case Role::kService:
      admit_service(*this, draft);
      return std::nullopt;
    case Role::kSigningRequest:
      admit_signing_request(*this, draft);
      return std::nullopt;
    case Role::kPriorityClass:
      return admit_priority_class(draft);
    default:
      return std::nullopt;
  }
}

}  // namespace berth::sim::api
