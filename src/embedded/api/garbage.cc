// What follows when objects go: dependents of owners, old events; contents of namespaces are
// emptied in namespace_end.cc.
//
// Nothing is kept beyond the indices: after a restart the same checks find the same work.
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

void Server::index_owners(Shelf& shelf, const Change& change) {
  const Object& now = *change.now;
  const std::pair<std::string, std::string> place{shelf.name, object_key(now.ns, now.name)};
  if (change.prev) {
    for (const Owner& owner : change.prev->owners) {
      const auto found = dependents.find(owner.uid);
      if (found == dependents.end()) continue;
      found->second.places.erase(place);
      if (owner.blocks) --found->second.blocking[now.ns];
      if (found->second.places.empty()) dependents.erase(found);
    }
  }
  if (change.type == Change::Type::kDeleted) {
    by_uid.erase(now.uid);
    const auto home = in_namespace.find(now.ns);
    if (change.prev && home != in_namespace.end() && --home->second == 0) in_namespace.erase(home);
    return;
  }
  by_uid[now.uid] = {&shelf, place.second};
  for (const Owner& owner : now.owners) {
    Dependents& owned = dependents[owner.uid];
    owned.places.insert(place);
    if (owner.blocks) ++owned.blocking[now.ns];
  }
  if (!change.prev && !now.ns.empty()) ++in_namespace[now.ns];
}

void Server::collect(Shelf& shelf, const Change& change) {
  const Object& now = *change.now;
  const std::string key = object_key(now.ns, now.name);
  const Shelf* namespaces = storage.find_shelf("namespaces");
  const ObjectPtr home =
      now.ns.empty() || namespaces == nullptr ? nullptr : namespaces->latest(now.ns);
  const bool home_goes = home && home->terminating;
  if (change.type == Change::Type::kDeleted) {
    const auto owned = dependents.find(now.uid);
    if (owned != dependents.end()) {
      using Place = std::pair<std::string, std::string>;
      std::vector<Place> places(owned->second.places.begin(), owned->second.places.end());
      later([this, places = std::move(places)]() mutable {
        in_slices<Place>(std::move(places), [this](const Place& place) {
          if (Shelf* at = storage.find_shelf(place.first)) check_owners(*at, place.second);
        });
      });
    }
    // An owner that goes in the foreground waits for the last of those that hold it back.
    for (const Owner& owner : now.owners) {
      const auto found = by_uid.find(owner.uid);
      if (found == by_uid.end()) continue;
      const auto others = dependents.find(owner.uid);
      const ObjectPtr waits = found->second.first->latest(found->second.second);
      if (!waits || (others != dependents.end() && others->second.held_back(waits->ns))) continue;
      later([this, place = found->second] { release_owner(*place.first, place.second); });
    }
    const bool last_pod = shelf.name == "pods" && !shelf.has_any(now.ns);
    if (home_goes && (last_pod || in_namespace.count(now.ns) == 0)) settle_namespace(now.ns);
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
  if (home_goes && !change.prev) settle_namespace(now.ns);  // it was on its way before
}

void Server::settle_all() {
  struct Left {
    Shelf* shelf;
    std::string key;
  };
  std::vector<Left> left;
  for (const auto& [name, shelf] : storage.shelves()) {
    for (const auto& [key, entry] : shelf->entries) {
      if (!entry.latest) continue;
      if (name == "namespaces" && entry.latest->terminating) settle_namespace(key);
      if (entry.latest->terminating || !entry.latest->owners.empty()) {
        left.push_back({shelf.get(), key});
      }
    }
  }
  in_slices<Left>(std::move(left), [this](const Left& one) { settle_owner(*one.shelf, one.key); });
}

// An owner that is terminating and waits for us: orphans let go, or dependents go first.
void Server::settle_owner(Shelf& shelf, const std::string& key) {
  const ObjectPtr owner = shelf.latest(key);
  if (!owner) return;
  if (!owner->terminating) return check_owners(shelf, key);
  const bool orphan = text_has(*owner, "\"orphan\"");
  if (!orphan && !text_has(*owner, "\"foregroundDeletion\"")) return;
  using Place = std::pair<std::string, std::string>;
  std::vector<Place> places;
  if (const auto found = dependents.find(owner->uid); found != dependents.end()) {
    places.assign(found->second.places.begin(), found->second.places.end());
  }
  in_slices<Place>(
      std::move(places),
      [this, orphan, uid = owner->uid, ns = owner->ns](const Place& place) {
        Shelf* at_shelf = storage.find_shelf(place.first);
        const ObjectPtr object = at_shelf ? at_shelf->latest(place.second) : nullptr;
        if (!object || !may_own(ns, *object)) return;
        if (orphan) {
          rewrite(*at_shelf, place.second, [&](text::Editor& edit, const Value& root) {
            return std::optional<Value>(without_owner(
                edit, root, [&](const Value& one) { return text_at(one, "uid") == uid; }));
          });
        } else if (!object->terminating) {
          DeleteWish wish;
          wish.propagation = "Foreground";
          wish.uid = object->uid;
          if (const TypePtr type = registry.of_shelf(*at_shelf)) {
            delete_object(type, place.second, wish, [](const MaybeError&, const Deleted&) {});
          }
        }
      },
      [this, at_shelf = &shelf, key] { release_owner(*at_shelf, key); });
}

// Lets an owner go that nothing holds back any more.
void Server::release_owner(Shelf& shelf, const std::string& key) {
  const ObjectPtr owner = shelf.latest(key);
  if (!owner || !owner->terminating) return;
  const bool orphan = text_has(*owner, "\"orphan\"");
  const auto owned = dependents.find(owner->uid);
  if (!orphan && owned != dependents.end() && owned->second.held_back(owner->ns)) return;
  const std::string_view finalizer = orphan ? kOrphanFinalizer : kForegroundFinalizer;
  rewrite(shelf, key, [finalizer](text::Editor& edit, const Value& root) -> std::optional<Value> {
    if (!has_finalizer(root, finalizer)) return std::nullopt;
    return without_finalizer(edit, root, finalizer);
  });
}

ObjectPtr Server::owner_of(const Object& object, const std::string& uid) const {
  const auto found = by_uid.find(uid);
  if (found == by_uid.end()) return nullptr;
  const ObjectPtr owner = found->second.first->latest(found->second.second);
  return owner && may_own(owner->ns, object) ? owner : nullptr;
}

// An object all of whose owners are gone goes too; owners that are gone among others are forgotten.
// One whose owner waits in the foreground goes before it.
void Server::check_owners(Shelf& shelf, const std::string& key) {
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
    if (const TypePtr type = registry.of_shelf(shelf)) {
      delete_object(type, key, wish, [](const MaybeError&, const Deleted&) {});
    }
    return;
  }
  rewrite(shelf, key,
          [this, object](text::Editor& edit, const Value& root) -> std::optional<Value> {
            return without_owner(edit, root, [&](const Value& owner) {
              return !owner_of(*object, std::string(text_at(owner, "uid")));
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
  in_slices<std::string>(std::move(old), [this, events](const std::string& key) {
    if (const ObjectPtr live = events->shelf->latest(key)) event_times.erase(live->uid);
    delete_object(events, key, {}, [](const MaybeError&, const Deleted&) {});
  });
  if (event_times.size() > 2 * events->shelf->entries.size() + 1'000) event_times.clear();
  event_timer = loop.after(60'000'000'000, [this] { expire_events(); });
}

}  // namespace berth::sim::api
