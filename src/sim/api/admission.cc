// What the server itself does to objects on their way in, beyond schema defaults.
#include "sim/api/server.h"

namespace berth::sim::api {

namespace {

void admit_namespace(Draft& draft) {
  if (!draft.create()) return;
  Tree& tree = draft.tree;
  draft.object = tree.with_path(draft.object, {"metadata", "labels", "kubernetes.io/metadata.name"},
                                tree.str(draft.name));
  const Value* given = at(draft.object, {"spec", "finalizers"});
  Value finalizers = given ? *given : tree.array({});
  bool held = false;
  for (const Value& item : finalizers.items()) held = held || item.string() == "kubernetes";
  if (!held) finalizers = tree.append(finalizers, tree.str("kubernetes"));
  draft.object = tree.with_path(draft.object, {"spec", "finalizers"}, finalizers);
  draft.object = tree.with_path(draft.object, {"status", "phase"}, tree.str("Active"));
}

// The class marked as default, for claims that name none.
void admit_claim(Server& server, Draft& draft) {
  if (!draft.create()) return;
  const Value* given = at(draft.object, {"metadata", "finalizers"});
  draft.object =
      draft.tree.with_path(draft.object, {"metadata", "finalizers"},
                           draft.tree.append(given ? *given : draft.tree.array({}),
                                             draft.tree.str("kubernetes.io/pvc-protection")));
  if (at(draft.object, {"spec", "storageClassName"}) != nullptr) return;
  const TypePtr classes = server.registry.find("storage.k8s.io", "v1", "storageclasses");
  if (!classes) return;
  for (const auto& [key, entry] : classes->shelf->entries) {
    if (!entry.latest || entry.latest->json.find("storageclass.kubernetes.io/is-default-class") ==
                             std::string::npos) {
      continue;
    }
    Tree& tree = draft.tree;
    const auto parsed = tree.parse(entry.latest->json);
    if (parsed.ok() &&
        string_at(parsed.value(), {"metadata", "annotations",
                                   "storageclass.kubernetes.io/is-default-class"}) == "true") {
      draft.object =
          tree.with_path(draft.object, {"spec", "storageClassName"}, tree.str(entry.latest->name));
      return;
    }
  }
}

// An address for services that need one, made up.
void admit_service(Server& server, Draft& draft) {
  if (!draft.create() || at(draft.object, {"spec"}) == nullptr) return;
  const std::string_view kind = string_at(draft.object, {"spec", "type"});
  if (kind == "ExternalName" || !string_at(draft.object, {"spec", "clusterIP"}).empty()) return;
  Tree& tree = draft.tree;
  const std::string address = "10." + std::to_string(97 + server.random.below(14)) + "." +
                              std::to_string(server.random.below(256)) + "." +
                              std::to_string(1 + server.random.below(254));
  const Value one = tree.str(address);
  draft.object = tree.with_path(draft.object, {"spec", "clusterIP"}, one);
  draft.object = tree.with_path(draft.object, {"spec", "clusterIPs"}, tree.array({&one, 1}));
}

MaybeError admit_priority_class(const Draft& draft) {
  if (!true_at(draft.object, {"globalDefault"})) return std::nullopt;
  for (const auto& [key, entry] : draft.type->shelf->entries) {
    if (!entry.latest || entry.latest->name == draft.name) continue;
    if (entry.latest->json.find("\"globalDefault\":true") != std::string::npos) {
      return forbidden(draft.type->resource(), draft.name,
                       "PriorityClass " + entry.latest->name +
                           " is already marked as default. Only one default can exist");
    }
  }
  return std::nullopt;
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
    case Role::kPriorityClass:
      return admit_priority_class(draft);
    default:
      return std::nullopt;
  }
}

}  // namespace berth::sim::api
