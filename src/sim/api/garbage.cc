// What follows when objects go: dependents of owners, contents of namespaces, old events.
//
// Nothing is kept beyond the indices: after a restart the same checks find the same work.
#include <utility>

#include "sim/api/server.h"
#include "text/rfc3339.h"

namespace berth::sim::api {

namespace {

constexpr std::string_view kOrphanFinalizer = "orphan";
constexpr std::string_view kForegroundFinalizer = "foregroundDeletion";

bool has_finalizer(const Value& root, std::string_view name) {
  const Value* list = at(root, {"metadata", "finalizers"});
  if (list == nullptr) return false;
  for (const Value& item : list->items()) {
    if (item.string() == name) return true;
  }
  return false;
}

Value without_finalizer(Tree& tree, const Value& root, std::string_view name) {
  std::vector<Value> kept;
  if (const Value* list = at(root, {"metadata", "finalizers"})) {
    for (const Value& item : list->items()) {
      if (item.string() != name) kept.push_back(item);
    }
  }
  return kept.empty() ? tree.without_path(root, {"metadata", "finalizers"})
                      : tree.with_path(root, {"metadata", "finalizers"}, tree.array(kept));
}

Value without_owner(Tree& tree, const Value& root, const std::function<bool(const Value&)>& drop) {
  std::vector<Value> kept;
  if (const Value* list = at(root, {"metadata", "ownerReferences"})) {
    for (const Value& owner : list->items()) {
      if (!drop(owner)) kept.push_back(owner);
    }
  }
  return kept.empty() ? tree.without_path(root, {"metadata", "ownerReferences"})
                      : tree.with_path(root, {"metadata", "ownerReferences"}, tree.array(kept));
}

bool text_has(const Object& object, std::string_view word) {
  return object.finalizers && object.json.find(word) != std::string::npos;
}

}  // namespace

void Server::index_owners(Shelf& shelf, const Change& change) {
  const std::pair<std::string, std::string> place{shelf.name,
                                                  object_key(change.now->ns, change.now->name)};
  if (change.prev) {
    for (const Owner& owner : change.prev->owners) {
      const auto found = dependents.find(owner.uid);
      if (found == dependents.end()) continue;
      found->second.erase(place);
      if (found->second.empty()) dependents.erase(found);
    }
  }
  if (change.type == Change::Type::kDeleted) {
    by_uid.erase(change.now->uid);
    return;
  }
  by_uid[change.now->uid] = {&shelf, place.second};
  for (const Owner& owner : change.now->owners) dependents[owner.uid].insert(place);
}

void Server::collect(Shelf& shelf, const Change& change) {
  const Object& now = *change.now;
  const std::string key = object_key(now.ns, now.name);
  if (change.type == Change::Type::kDeleted) {
    if (dependents.count(now.uid) > 0) {
      later([this, uid = now.uid] { collect_dependents(uid); });
    }
    // An owner that goes in the foreground waits for those it owns.
    for (const Owner& owner : now.owners) {
      const auto found = by_uid.find(owner.uid);
      if (found == by_uid.end()) continue;
      later([this, place = found->second] { settle_owner(*place.first, place.second); });
    }
    if (!now.ns.empty()) {
      const Shelf* namespaces = cabinet.find_shelf("namespaces");
      const ObjectPtr home = namespaces ? namespaces->latest(now.ns) : nullptr;
      if (home && home->terminating) settle_namespace(now.ns);
    }
    // The last object of a definition that waits for it.
    const TypePtr type = registry.of_shelf(shelf);
    if (type && !type->crd.empty() && shelf.entries.empty()) {
      later([this, name = type->crd] { finish_crd(name); });
    }
    return;
  }
  if (now.terminating && now.finalizers) {
    later([this, at_shelf = &shelf, key] { settle_owner(*at_shelf, key); });
  }
  if (!now.owners.empty() && (!change.prev || change.prev->owners.size() != now.owners.size())) {
    later([this, at_shelf = &shelf, key] { check_owners(*at_shelf, key); });
  }
  if (shelf.name == "namespaces" && now.terminating) settle_namespace(now.name);
}

// An owner that is terminating and waits for us: orphans let go, or dependents go first.
void Server::settle_owner(Shelf& shelf, const std::string& key) {
  const ObjectPtr owner = shelf.latest(key);
  if (!owner) return;
  if (!owner->terminating) return check_owners(shelf, key);
  if (text_has(*owner, "\"orphan\"")) {
    orphan_dependents(owner->uid);
    rewrite(shelf, key, [](Tree& tree, const Value& root) -> std::optional<Value> {
      if (!has_finalizer(root, kOrphanFinalizer)) return std::nullopt;
      return without_finalizer(tree, root, kOrphanFinalizer);
    });
    return;
  }
  if (!text_has(*owner, "\"foregroundDeletion\"")) return;
  bool blocked = false;
  const auto found = dependents.find(owner->uid);
  if (found != dependents.end()) {
    const auto places = found->second;
    for (const auto& [name, dependent] : places) {
      Shelf* place = cabinet.find_shelf(name);
      const ObjectPtr object = place ? place->latest(dependent) : nullptr;
      if (!object) continue;
      for (const Owner& reference : object->owners) {
        if (reference.uid == owner->uid && reference.blocks) blocked = true;
      }
      if (object->terminating) continue;
      DeleteWish wish;
      wish.propagation = "Foreground";
      wish.uid = object->uid;
      if (const TypePtr type = registry.of_shelf(*place)) {
        delete_object(type, dependent, wish, [](const MaybeError&, const Deleted&) {});
      }
    }
  }
  if (blocked) return;  // comes back when the last of them goes
  rewrite(shelf, key, [](Tree& tree, const Value& root) -> std::optional<Value> {
    if (!has_finalizer(root, kForegroundFinalizer)) return std::nullopt;
    return without_finalizer(tree, root, kForegroundFinalizer);
  });
}

void Server::orphan_dependents(const std::string& owner_uid) {
  const auto found = dependents.find(owner_uid);
  if (found == dependents.end()) return;
  const auto places = found->second;
  for (const auto& [name, key] : places) {
    Shelf* shelf = cabinet.find_shelf(name);
    if (shelf == nullptr) continue;
    rewrite(*shelf, key, [&](Tree& tree, const Value& root) -> std::optional<Value> {
      return without_owner(
          tree, root, [&](const Value& owner) { return string_at(owner, {"uid"}) == owner_uid; });
    });
  }
}

void Server::collect_dependents(const std::string& owner_uid) {
  const auto found = dependents.find(owner_uid);
  if (found == dependents.end()) return;
  const auto places = found->second;
  for (const auto& [name, key] : places) {
    if (Shelf* shelf = cabinet.find_shelf(name)) check_owners(*shelf, key);
  }
}

// An object all of whose owners are gone goes too; owners that are gone among others are forgotten.
void Server::check_owners(Shelf& shelf, const std::string& key) {
  const ObjectPtr object = shelf.latest(key);
  if (!object || object->owners.empty() || object->terminating) return;
  std::size_t missing = 0;
  for (const Owner& owner : object->owners) {
    if (by_uid.count(owner.uid) == 0) ++missing;
  }
  if (missing == 0) return;
  if (missing == object->owners.size()) {
    DeleteWish wish;
    wish.propagation = "Background";
    wish.uid = object->uid;
    if (const TypePtr type = registry.of_shelf(shelf)) {
      delete_object(type, key, wish, [](const MaybeError&, const Deleted&) {});
    }
    return;
  }
  rewrite(shelf, key, [this](Tree& tree, const Value& root) -> std::optional<Value> {
    return without_owner(tree, root, [this](const Value& owner) {
      return by_uid.find(string_at(owner, {"uid"})) == by_uid.end();
    });
  });
}

// Empties a terminating namespace, and lets it go when it is empty. Checked once per turn, however
// many of its objects go in that turn.
void Server::settle_namespace(const std::string& name) {
  if (!settling.insert(name).second) return;
  later([this, name] {
    settling.erase(name);
    Shelf* namespaces = cabinet.find_shelf("namespaces");
    const ObjectPtr home = namespaces ? namespaces->latest(name) : nullptr;
    if (!home || !home->terminating) return;
    bool empty = true;
    const std::string prefix = name + "/";
    for (const auto& [shelf_name, shelf] : cabinet.shelves()) {
      if (!shelf->kind || !shelf->kind->namespaced) continue;
      std::vector<std::string> keys;
      for (auto entry = shelf->entries.lower_bound(prefix);
           entry != shelf->entries.end() && entry->first.starts_with(prefix); ++entry) {
        empty = false;
        if (entry->second.latest && !entry->second.latest->terminating) {
          keys.push_back(entry->first);
        }
      }
      const TypePtr type = registry.of_shelf(*shelf);
      if (!type) continue;
      DeleteWish wish;
      wish.propagation = "Background";
      for (const std::string& key : keys) {
        delete_object(type, key, wish, [](const MaybeError&, const Deleted&) {});
      }
    }
    if (!empty) return;
    rewrite(*namespaces, name, [](Tree& tree, const Value& root) -> std::optional<Value> {
      std::vector<Value> kept;
      const Value* list = at(root, {"spec", "finalizers"});
      if (list == nullptr || list->size() == 0) return std::nullopt;
      for (const Value& item : list->items()) {
        if (item.string() != "kubernetes") kept.push_back(item);
      }
      if (kept.size() == list->size()) return std::nullopt;
      return kept.empty() ? tree.with(root, "spec", tree.object({}))
                          : tree.with_path(root, {"spec", "finalizers"}, tree.array(kept));
    });
  });
}

void Server::expire_events() {
  const TypePtr events = registry.find("", "v1", "events");
  if (!events || options.event_ttl_ns <= 0) return;
  const std::int64_t now_ns = loop.wall().now_ns();
  std::vector<std::string> old;
  for (const auto& [key, entry] : events->shelf->entries) {
    if (!entry.latest) continue;
    const auto written = event_times.find(entry.latest->uid);
    if (written == event_times.end()) {
      event_times[entry.latest->uid] = {entry.latest->version, now_ns};
    } else if (written->second.first != entry.latest->version) {
      written->second = {entry.latest->version, now_ns};
    } else if (now_ns - written->second.second >= options.event_ttl_ns) {
      old.push_back(key);
    }
  }
  for (const std::string& key : old) {
    if (const ObjectPtr live = events->shelf->latest(key)) event_times.erase(live->uid);
    delete_object(events, key, {}, [](const MaybeError&, const Deleted&) {});
  }
  if (event_times.size() > 2 * events->shelf->entries.size() + 1'000) event_times.clear();
  event_timer = loop.after(60'000'000'000, [this] { expire_events(); });
}

}  // namespace berth::sim::api
