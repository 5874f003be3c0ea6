#include "embedded/api/definitions.h"

#include "embedded/api/server.h"
#include "text/json.h"
#include "text/path.h"

namespace berth::sim::api {

namespace {

constexpr std::string_view kCleanup = "customresourcecleanup.apiextensions.k8s.io";

Value crd_condition(text::Editor& edit, std::string_view type, std::string_view reason,
                    std::string_view message, const std::string& now) {
  return edit.object({{"type", edit.string(type)},
                      {"status", edit.string("True")},
                      {"lastTransitionTime", edit.string(now)},
                      {"reason", edit.string(reason)},
                      {"message", edit.string(message)}});
}

bool established(const Value& crd) {
  const Value* conditions = find(crd, "status.conditions");
  if (conditions == nullptr) return false;
  for (const Value& condition : conditions->items()) {
    if (text_at(condition, "type") == "Established" && text_at(condition, "status") == "True") {
      return true;
    }
  }
  return false;
}

Value stored_versions(text::Editor& edit, const Value& crd) {
  const Value* known = find(crd, "status.storedVersions");
  Value list = known ? *known : edit.array({});
  const Value* versions = find(crd, "spec.versions");
  if (versions == nullptr) return list;
  for (const Value& version : versions->items()) {
    if (!true_at(version, "storage")) continue;
    bool there = false;
    for (const Value& item : list.items()) {
      there = there || item.string() == text_at(version, "name");
    }
    if (!there) list = edit.append(list, edit.string(text_at(version, "name")));
  }
  return list;
}

}  // namespace

Status Definitions::install(std::string_view json, std::string_view name) {
  BERTH_TRY(const text::Document crd, text::parse_json(json));
  BERTH_TRY(const std::vector<KindPtr> kinds, read_crd(crd.root()));
  server_.registry.set_custom(std::string(name), kinds);
  return {};
}

void Definitions::changed(const Change& change) {
  const std::string name = change.now->name;
  if (change.type == Change::Type::kDeleted) {
    server_.registry.set_custom(name, {});
    return;
  }
  const Status installed = install(change.now->json, name);
  if (!installed.ok()) return;  // validation has let it through; it is stored and not served
  if (change.now->terminating) {
    server_.later([this, name] { finish(name); });
    return;
  }
  Shelf* shelf = server_.storage.find_shelf("customresourcedefinitions.apiextensions.k8s.io");
  const std::string now = server_.now_text();
  server_.rewrite(*shelf, name, [&](text::Editor& edit, const Value& crd) -> std::optional<Value> {
    const Value versions = stored_versions(edit, crd);
    const Value* accepted = find(crd, "status.acceptedNames");
    const Value* names = find(crd, "spec.names");
    const Value* old = find(crd, "status.storedVersions");
    const bool same = accepted && names && text::equal(*accepted, *names) && old &&
                      old->size() == versions.size() && established(crd);
    if (same || names == nullptr) return std::nullopt;
    Value made = edit.with_at(crd, "status.acceptedNames", *names);
    made = edit.with_at(made, "status.storedVersions", versions);
    if (!established(crd)) {
      const Value conditions[] = {
          crd_condition(edit, "NamesAccepted", "NoConflicts", "no conflicts found", now),
          crd_condition(edit, "Established", "InitialNamesAccepted",
                        "the initial names have been accepted", now)};
      made = edit.with_at(made, "status.conditions", edit.array(conditions));
    }
    const Value* finalizers = find(made, "metadata.finalizers");
    Value list = finalizers ? *finalizers : edit.array({});
    bool guarded = false;
    for (const Value& item : list.items()) guarded = guarded || item.string() == kCleanup;
    if (!guarded) {
      made = edit.with_at(made, "metadata.finalizers", edit.append(list, edit.string(kCleanup)));
    }
    return made;
  });
}

// A definition that goes takes its objects along first.
void Definitions::finish(const std::string& name) {
  Shelf* crds = server_.storage.find_shelf("customresourcedefinitions.apiextensions.k8s.io");
  const ObjectPtr crd = crds ? crds->latest(name) : nullptr;
  if (!crd || !crd->terminating) return;
  Shelf* shelf = server_.storage.find_shelf(name);
  const TypePtr type = shelf ? server_.registry.of_shelf(*shelf) : nullptr;
  if (shelf != nullptr && !shelf->entries.empty() && type) {
    std::vector<std::string> keys;
    for (const auto& [key, entry] : shelf->entries) {
      if (entry.latest && !entry.latest->terminating) keys.push_back(key);
    }
    server_.in_slices<std::string>(std::move(keys), [this, type](const std::string& key) {
      server_.delete_object(type, key, {}, [](const MaybeError&, const Server::Deleted&) {});
    });
    return;  // comes back when the last one is gone
  }
  server_.rewrite(*crds, name, [](text::Editor& edit, const Value& root) -> std::optional<Value> {
    std::vector<Value> kept;
    const Value* list = find(root, "metadata.finalizers");
    if (list == nullptr) return std::nullopt;
    for (const Value& item : list->items()) {
      if (item.string() != kCleanup) kept.push_back(item);
    }
    if (kept.size() == list->size()) return std::nullopt;
    return kept.empty() ? edit.without_at(root, "metadata.finalizers")
                        : edit.with_at(root, "metadata.finalizers", edit.array(kept));
  });
}

}  // namespace berth::sim::api
