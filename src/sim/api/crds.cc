// CustomResourceDefinitions: their kinds are served as soon as they are stored, and leave with
// their objects.
#include "sim/api/server.h"
#include "text/json.h"

namespace berth::sim::api {

namespace {

constexpr std::string_view kCleanup = "customresourcecleanup.apiextensions.k8s.io";

Value crd_condition(Tree& tree, std::string_view type, std::string_view reason,
                    std::string_view message, const std::string& now) {
  return tree.object({{"type", tree.str(type)},
                      {"status", tree.str("True")},
                      {"lastTransitionTime", tree.str(now)},
                      {"reason", tree.str(reason)},
                      {"message", tree.str(message)}});
}

bool established(const Value& crd) {
  const Value* conditions = at(crd, {"status", "conditions"});
  if (conditions == nullptr) return false;
  for (const Value& condition : conditions->items()) {
    if (string_at(condition, {"type"}) == "Established" &&
        string_at(condition, {"status"}) == "True") {
      return true;
    }
  }
  return false;
}

Value stored_versions(Tree& tree, const Value& crd) {
  const Value* known = at(crd, {"status", "storedVersions"});
  Value list = known ? *known : tree.array({});
  const Value* versions = at(crd, {"spec", "versions"});
  if (versions == nullptr) return list;
  for (const Value& version : versions->items()) {
    if (!true_at(version, {"storage"})) continue;
    bool there = false;
    for (const Value& item : list.items()) {
      there = there || item.string() == string_at(version, {"name"});
    }
    if (!there) list = tree.append(list, tree.str(string_at(version, {"name"})));
  }
  return list;
}

}  // namespace

Status Server::install_crd(std::string_view json, std::string_view name) {
  BERTH_TRY(const text::Document crd, text::parse_json(json));
  BERTH_TRY(const std::vector<KindPtr> kinds, read_crd(crd.root()));
  registry.set_custom(std::string(name), kinds);
  return {};
}

void Server::crd_changed(const Change& change) {
  const std::string name = change.now->name;
  if (change.type == Change::Type::kDeleted) {
    registry.set_custom(name, {});
    return;
  }
  const Status installed = install_crd(change.now->json, name);
  if (!installed.ok()) return;  // validation has let it through; it is stored and not served
  if (change.now->terminating) {
    later([this, name] { finish_crd(name); });
    return;
  }
  Shelf* shelf = cabinet.find_shelf("customresourcedefinitions.apiextensions.k8s.io");
  const std::string now = now_text();
  rewrite(*shelf, name, [&](Tree& tree, const Value& crd) -> std::optional<Value> {
    const Value versions = stored_versions(tree, crd);
    const Value* accepted = at(crd, {"status", "acceptedNames"});
    const Value* names = at(crd, {"spec", "names"});
    const Value* old = at(crd, {"status", "storedVersions"});
    const bool same = accepted && names && text::equal(*accepted, *names) && old &&
                      old->size() == versions.size() && established(crd);
    if (same || names == nullptr) return std::nullopt;
    Value made = tree.with_path(crd, {"status", "acceptedNames"}, *names);
    made = tree.with_path(made, {"status", "storedVersions"}, versions);
    if (!established(crd)) {
      const Value conditions[] = {
          crd_condition(tree, "NamesAccepted", "NoConflicts", "no conflicts found", now),
          crd_condition(tree, "Established", "InitialNamesAccepted",
                        "the initial names have been accepted", now)};
      made = tree.with_path(made, {"status", "conditions"}, tree.array(conditions));
    }
    const Value* finalizers = at(made, {"metadata", "finalizers"});
    Value list = finalizers ? *finalizers : tree.array({});
    bool guarded = false;
    for (const Value& item : list.items()) guarded = guarded || item.string() == kCleanup;
    if (!guarded) {
      made =
          tree.with_path(made, {"metadata", "finalizers"}, tree.append(list, tree.str(kCleanup)));
    }
    return made;
  });
}

// A definition that goes takes its objects along first.
void Server::finish_crd(const std::string& name) {
  Shelf* crds = cabinet.find_shelf("customresourcedefinitions.apiextensions.k8s.io");
  const ObjectPtr crd = crds ? crds->latest(name) : nullptr;
  if (!crd || !crd->terminating) return;
  Shelf* shelf = cabinet.find_shelf(name);
  const TypePtr type = shelf ? registry.of_shelf(*shelf) : nullptr;
  if (shelf != nullptr && !shelf->entries.empty() && type) {
    std::vector<std::string> keys;
    for (const auto& [key, entry] : shelf->entries) {
      if (entry.latest && !entry.latest->terminating) keys.push_back(key);
    }
    in_slices<std::string>(std::move(keys), [this, type](const std::string& key) {
      delete_object(type, key, {}, [](const MaybeError&, const Deleted&) {});
    });
    return;  // comes back when the last one is gone
  }
  rewrite(*crds, name, [](Tree& tree, const Value& root) -> std::optional<Value> {
    std::vector<Value> kept;
    const Value* list = at(root, {"metadata", "finalizers"});
    if (list == nullptr) return std::nullopt;
    for (const Value& item : list->items()) {
      if (item.string() != kCleanup) kept.push_back(item);
    }
    if (kept.size() == list->size()) return std::nullopt;
    return kept.empty() ? tree.without_path(root, {"metadata", "finalizers"})
                        : tree.with_path(root, {"metadata", "finalizers"}, tree.array(kept));
  });
}

}  // namespace berth::sim::api
