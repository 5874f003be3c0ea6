// The end of namespaces: contents are deleted, pods first and everything else when there are none
// any more; then the namespace is let go. What holds it stands in its conditions, as the controller
// of a cluster of Kubernetes writes them.
//
// Objects are looked for when the namespace begins to go, when one comes that was on its way, when
// the last pod is gone, and when the last object is; the conditions say what was found then.
#include <map>
#include <utility>

#include "embedded/api/namespaces.h"
#include "embedded/api/server.h"
#include "text/path.h"

namespace berth::sim::api {

namespace {

// What is left of a namespace: objects by resource ("pods."), and by their finalizers.
struct Leftover {
  std::map<std::string, std::size_t> resources, finalizers;
};

std::string counted(const std::map<std::string, std::size_t>& counts, std::string_view verb) {
  std::string out;
  for (const auto& [name, count] : counts) {
    out += (out.empty() ? "" : ", ") + name + std::string(verb) + std::to_string(count) +
           " resource instances";
  }
  return out;
}

struct EndCondition {
  std::string_view type;
  bool holds;
  std::string_view reason;
  std::string message;
};

std::vector<EndCondition> conditions_of(const Leftover& left) {
  const bool some = !left.resources.empty(), held = !left.finalizers.empty();
  return {
      {"NamespaceDeletionDiscoveryFailure", false, "ResourcesDiscovered",
       "All resources successfully discovered"},
      {"NamespaceDeletionGroupVersionParsingFailure", false, "ParsedGroupVersions",
       "All legacy kube types successfully parsed"},
      {"NamespaceDeletionContentFailure", false, "ContentDeleted",
       "All content successfully deleted, may be waiting on finalization"},
      {"NamespaceContentRemaining", some, some ? "SomeResourcesRemain" : "ContentRemoved",
       some ? "Some resources are remaining: " + counted(left.resources, " has ")
            : "All content successfully removed"},
      {"NamespaceFinalizersRemaining", held,
       held ? "SomeFinalizersRemain" : "ContentHasNoFinalizers",
       held ? "Some content in the namespace has finalizers remaining: " +
                  counted(left.finalizers, " in ")
            : "All content-preserving finalizers finished"},
  };
}

// Those of others stay; a condition that says what it said keeps its time. Nothing: all say that.
std::optional<Value> with_conditions(text::Editor& edit, const Value& root,
                                     const std::vector<EndCondition>& wanted,
                                     std::string_view now) {
  const Value& before = at(root, "status.conditions");
  std::vector<Value> out(before.items().begin(), before.items().end());
  bool changed = false;
  for (const EndCondition& one : wanted) {
    const std::string_view status = one.holds ? "True" : "False";
    auto old = out.begin();
    while (old != out.end() && text_at(*old, "type") != one.type) ++old;
    const bool same = old != out.end() && text_at(*old, "status") == status;
    if (same && text_at(*old, "reason") == one.reason && text_at(*old, "message") == one.message) {
      continue;
    }
    changed = true;
    const Value said = edit.object(
        {{"type", edit.string(one.type)},
         {"status", edit.string(status)},
         {"lastTransitionTime", edit.string(same ? text_at(*old, "lastTransitionTime") : now)},
         {"reason", edit.string(one.reason)},
         {"message", edit.string(one.message)}});
    if (old == out.end()) {
      out.push_back(said);
    } else {
      *old = said;
    }
  }
  if (!changed) return std::nullopt;
  return edit.with_at(root, "status.conditions", edit.array(out));
}

}  // namespace

void Namespaces::settle(const std::string& name) {
  if (const auto [at, fresh] = settling_.emplace(name, false); !fresh) {
    at->second = true;
    return;
  }
  server_.later([this, name] {
    struct Found {
      TypePtr type;
      std::string key;
    };
    std::vector<Found> all;
    Shelf* namespaces = server_.storage.find_shelf("namespaces");
    const ObjectPtr home = namespaces ? namespaces->latest(name) : nullptr;
    if (!home || !home->terminating) {
      settling_.erase(name);
      return;
    }
    const std::string prefix = name + "/";
    const Shelf* pods = server_.storage.find_shelf("pods");
    const bool pods_alone = pods != nullptr && pods->has_any(name);
    for (const auto& [shelf_name, shelf] : server_.storage.shelves()) {
      if (!shelf->kind || !shelf->kind->namespaced) continue;
      if (pods_alone && shelf.get() != pods) continue;
      const TypePtr type = server_.registry.of_shelf(*shelf);
      for (auto entry = shelf->entries.lower_bound(prefix);
           entry != shelf->entries.end() && entry->first.starts_with(prefix); ++entry) {
        if (type && entry->second.latest && !entry->second.latest->terminating) {
          all.push_back({type, entry->first});
        }
      }
    }
    server_.in_slices<Found>(
        std::move(all),
        [this](const Found& one) {
          DeleteWish wish;
          wish.propagation = "Background";
          server_.delete_object(one.type, one.key, wish,
                                [](const MaybeError&, const Server::Deleted&) {});
        },
        [this, name] {
          const bool again = settling_[name];
          settling_.erase(name);
          if (again) return settle(name);
          release(name);
        });
  });
}

void Namespaces::release(const std::string& name) {
  const std::string prefix = name + "/";
  std::vector<ObjectPtr> held;
  auto left = std::make_shared<Leftover>();
  bool empty = true;
  for (const auto& [shelf_name, shelf] : server_.storage.shelves()) {
    if (!shelf->kind || !shelf->kind->namespaced) continue;
    for (auto entry = shelf->entries.lower_bound(prefix);
         entry != shelf->entries.end() && entry->first.starts_with(prefix); ++entry) {
      empty = false;
      const ObjectPtr& latest = entry->second.latest;
      if (!latest) continue;
      ++left->resources[shelf->kind->plural + "." + shelf->kind->group];
      if (latest->finalizers) held.push_back(latest);
    }
  }
  if (!empty && left->resources.empty()) return;  // gone with the next commit
  if (!empty) {
    return server_.in_slices<ObjectPtr>(
        std::move(held),
        [left](const ObjectPtr& object) {
          text::Editor read;
          const auto parsed = read.parse(object->json);
          if (!parsed.ok()) return;
          for (const Value& finalizer : at(parsed.value(), "metadata.finalizers").items()) {
            ++left->finalizers[std::string(finalizer.string())];
          }
        },
        [this, name, left] {
          server_.rewrite(
              *server_.storage.find_shelf("namespaces"), name,
              [this, left](text::Editor& edit, const Value& root) -> std::optional<Value> {
                if (find(root, "metadata.deletionTimestamp") == nullptr) return std::nullopt;
                return with_conditions(edit, root, conditions_of(*left), server_.now_text());
              });
        });
  }
  Shelf* namespaces = server_.storage.find_shelf("namespaces");
  server_.rewrite(*namespaces, name,
                  [](text::Editor& edit, const Value& root) -> std::optional<Value> {
                    std::vector<Value> kept;
                    const Value* list = find(root, "spec.finalizers");
                    if (list == nullptr || list->size() == 0) return std::nullopt;
                    for (const Value& item : list->items()) {
                      if (item.string() != "kubernetes") kept.push_back(item);
                    }
                    if (kept.size() == list->size()) return std::nullopt;
                    return kept.empty() ? edit.with(root, "spec", edit.object({}))
                                        : edit.with_at(root, "spec.finalizers", edit.array(kept));
                  });
}

}  // namespace berth::sim::api
