#include "embedded/api/garbage.h"

#include <utility>

#include "embedded/api/server.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::sim::api {

namespace {

constexpr std::string_view kOrphanFinalizer = "orphan";
constexpr std::string_view kForegroundFinalizer = "foregroundDeletion";

bool has_finalizer(const Value& root, std::string_view name) {
  const Value* list = find(root, "metadata.finalizers");
  if (list == nullptr) return false;
  for (const Value& item : list->items()) {
    if (item.string() == name) return true;
  }
  return false;
}

Value without_finalizer(text::Editor& edit, const Value& root, std::string_view name) {
  std::vector<Value> kept;
  if (const Value* list = find(root, "metadata.finalizers")) {
    for (const Value& item : list->items()) {
      if (item.string() != name) kept.push_back(item);
    }
  }
  return kept.empty() ? edit.without_at(root, "metadata.finalizers")
                      : edit.with_at(root, "metadata.finalizers", edit.array(kept));
}

Value without_owner(text::Editor& edit, const Value& root,
                    const std::function<bool(const Value&)>& drop) {
  std::vector<Value> kept;
  if (const Value* list = find(root, "metadata.ownerReferences")) {
    for (const Value& owner : list->items()) {
      if (!drop(owner)) kept.push_back(owner);
    }
  }
  return kept.empty() ? edit.without_at(root, "metadata.ownerReferences")
                      : edit.with_at(root, "metadata.ownerReferences", edit.array(kept));
}

// Owners stand in the namespace of what they own, or in none: whoever names another namespace's
// object owns nothing by it, and holds it up in nothing.
bool may_own(const std::string& owner_ns, const Object& object) {
  return owner_ns.empty() || owner_ns == object.ns;
}

bool text_has(const Object& object, std::string_view word) {
  return object.finalizers && object.json.find(word) != std::string::npos;
}

}  // namespace

void Garbage::index(Shelf& shelf, const Change& change) {
  const Object& now = *change.now;
  const std::pair<std::string, std::string> place{shelf.name, object_key(now.ns, now.name)};
  if (change.prev) {
    for (const Owner& owner : change.prev->owners) {
      const auto found = dependents_.find(owner.uid);
      if (found == dependents_.end()) continue;
      found->second.places.erase(place);
      if (owner.blocks) --found->second.blocking[now.ns];
      if (found->second.places.empty()) dependents_.erase(found);
    }
  }
  if (change.type == Change::Type::kDeleted) {
    by_uid_.erase(now.uid);
    const auto home = in_namespace_.find(now.ns);
    if (change.prev && home != in_namespace_.end() && --home->second == 0)
      in_namespace_.erase(home);
    return;
  }
  by_uid_[now.uid] = {&shelf, place.second};
  for (const Owner& owner : now.owners) {
    Dependents& owned = dependents_[owner.uid];
    owned.places.insert(place);
    if (owner.blocks) ++owned.blocking[now.ns];
  }
  if (!change.prev && !now.ns.empty()) ++in_namespace_[now.ns];
}

void Garbage::changed(Shelf& shelf, const Change& change) {
  const Object& now = *change.now;
  const std::string key = object_key(now.ns, now.name);
  const Shelf* namespaces = server_.storage.find_shelf("namespaces");
  const ObjectPtr home =
      now.ns.empty() || namespaces == nullptr ? nullptr : namespaces->latest(now.ns);
  const bool home_goes = home && home->terminating;
  if (change.type == Change::Type::kDeleted) {
    const auto owned = dependents_.find(now.uid);
    if (owned != dependents_.end()) {
      using Place = std::pair<std::string, std::string>;
      std::vector<Place> places(owned->second.places.begin(), owned->second.places.end());
      server_.later([this, places = std::move(places)]() mutable {
        server_.in_slices<Place>(std::move(places), [this](const Place& place) {
          if (Shelf* at = server_.storage.find_shelf(place.first)) check_owners(*at, place.second);
        });
      });
    }
    // An owner that goes in the foreground waits for the last of those that hold it back.
    for (const Owner& owner : now.owners) {
      const auto found = by_uid_.find(owner.uid);
      if (found == by_uid_.end()) continue;
      const auto others = dependents_.find(owner.uid);
      const ObjectPtr waits = found->second.first->latest(found->second.second);
      if (!waits || (others != dependents_.end() && others->second.held_back(waits->ns))) continue;
      server_.later([this, place = found->second] { release_owner(*place.first, place.second); });
    }
    const bool last_pod = shelf.name == "pods" && !shelf.has_any(now.ns);
    if (home_goes && (last_pod || in_namespace_.count(now.ns) == 0))
      server_.namespaces.settle(now.ns);
    // The last object of a definition that waits for it.
    const TypePtr type = server_.registry.of_shelf(shelf);
    if (type && !type->crd.empty() && shelf.entries.empty()) {
      server_.later([this, name = type->crd] { server_.definitions.finish(name); });
    }
    return;
  }
  if (now.terminating && now.finalizers) {
    server_.later([this, at_shelf = &shelf, key] { settle_owner(*at_shelf, key); });
  }
  if (!now.owners.empty() && (!change.prev || change.prev->owners.size() != now.owners.size())) {
    server_.later([this, at_shelf = &shelf, key] { check_owners(*at_shelf, key); });
  }
  if (shelf.name == "namespaces" && now.terminating) server_.namespaces.settle(now.name);
  if (home_goes && !change.prev) server_.namespaces.settle(now.ns);  // it was on its way before
}

void Garbage::settle_all() {
  struct Left {
    Shelf* shelf;
    std::string key;
  };
  std::vector<Left> left;
  for (const auto& [name, shelf] : server_.storage.shelves()) {
    for (const auto& [key, entry] : shelf->entries) {
      if (!entry.latest) continue;
      if (name == "namespaces" && entry.latest->terminating) server_.namespaces.settle(key);
      if (entry.latest->terminating || !entry.latest->owners.empty()) {
        left.push_back({shelf.get(), key});
      }
    }
  }
  server_.in_slices<Left>(std::move(left),
                          [this](const Left& one) { settle_owner(*one.shelf, one.key); });
}

// An owner that is terminating and waits for us: orphans let go, or dependents go first.
void Garbage::settle_owner(Shelf& shelf, const std::string& key) {
  const ObjectPtr owner = shelf.latest(key);
  if (!owner) return;
  if (!owner->terminating) return check_owners(shelf, key);
  const bool orphan = text_has(*owner, "\"orphan\"");
  if (!orphan && !text_has(*owner, "\"foregroundDeletion\"")) return;
  using Place = std::pair<std::string, std::string>;
  std::vector<Place> places;
  if (const auto found = dependents_.find(owner->uid); found != dependents_.end()) {
    places.assign(found->second.places.begin(), found->second.places.end());
  }
  server_.in_slices<Place>(
      std::move(places),
      [this, orphan, uid = owner->uid, ns = owner->ns](const Place& place) {
        Shelf* at_shelf = server_.storage.find_shelf(place.first);
        const ObjectPtr object = at_shelf ? at_shelf->latest(place.second) : nullptr;
        if (!object || !may_own(ns, *object)) return;
        if (orphan) {
          server_.rewrite(*at_shelf, place.second, [&](text::Editor& edit, const Value& root) {
            return std::optional<Value>(without_owner(
                edit, root, [&](const Value& one) { return text_at(one, "uid") == uid; }));
          });
        } else if (!object->terminating) {
          DeleteWish wish;
          wish.propagation = "Foreground";
          wish.uid = object->uid;
          if (const TypePtr type = server_.registry.of_shelf(*at_shelf)) {
            server_.delete_object(type, place.second, wish,
                                  [](const MaybeError&, const Server::Deleted&) {});
          }
        }
      },
      [this, at_shelf = &shelf, key] { release_owner(*at_shelf, key); });
}

// Lets an owner go that nothing holds back any more.
void Garbage::release_owner(Shelf& shelf, const std::string& key) {
  const ObjectPtr owner = shelf.latest(key);
  if (!owner || !owner->terminating) return;
  const bool orphan = text_has(*owner, "\"orphan\"");
  const auto owned = dependents_.find(owner->uid);
  if (!orphan && owned != dependents_.end() && owned->second.held_back(owner->ns)) return;
  const std::string_view finalizer = orphan ? kOrphanFinalizer : kForegroundFinalizer;
  server_.rewrite(shelf, key,
                  [finalizer](text::Editor& edit, const Value& root) -> std::optional<Value> {
                    if (!has_finalizer(root, finalizer)) return std::nullopt;
                    return without_finalizer(edit, root, finalizer);
                  });
}

ObjectPtr Garbage::owner_of(const Object& object, const std::string& uid) const {
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end()) return nullptr;
  const ObjectPtr owner = found->second.first->latest(found->second.second);
  return owner && may_own(owner->ns, object) ? owner : nullptr;
}

// An object all of whose owners are gone goes too; owners that are gone among others are forgotten.
// One whose owner waits in the foreground goes before it.
void Garbage::check_owners(Shelf& shelf, const std::string& key) {
  const ObjectPtr object = shelf.latest(key);
  if (!object || object->owners.empty() || object->terminating) return;
  std::size_t missing = 0;
  bool awaited = false;
  for (const Owner& owner : object->owners) {
    const ObjectPtr found = owner_of(*object, owner.uid);
    if (!found) {
      ++missing;
      continue;
    }
    awaited = awaited || (found->terminating && text_has(*found, "\"foregroundDeletion\""));
  }
  if (missing == 0 && !awaited) return;
  if (missing == object->owners.size() || awaited) {
    DeleteWish wish;
    wish.propagation = awaited ? "Foreground" : "Background";
    wish.uid = object->uid;
    if (const TypePtr type = server_.registry.of_shelf(shelf)) {
      server_.delete_object(type, key, wish, [](const MaybeError&, const Server::Deleted&) {});
    }
    return;
  }
  server_.rewrite(shelf, key,
                  [this, object](text::Editor& edit, const Value& root) -> std::optional<Value> {
                    return without_owner(edit, root, [&](const Value& owner) {
                      return !owner_of(*object, std::string(text_at(owner, "uid")));
                    });
                  });
}

}  // namespace berth::sim::api
