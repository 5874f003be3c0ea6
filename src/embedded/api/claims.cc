// PersistentVolumeClaims are bound at once: to the volume they name, or to one made for them,
// unless the class that they name does not exist.
#include "embedded/api/claims.h"

#include "embedded/api/server.h"
#include "text/json_writer.h"
#include "text/path.h"

namespace berth::sim::api {

namespace {

std::string volume_json(const Object& claim, const Value& root, const std::string& name) {
  text::JsonWriter out;
  out.object([&] {
    out.object("metadata", [&] { out.field("name", name); });
    out.object("spec", [&] {
      const Value* storage = find(root, "spec.resources.requests.storage");
      out.object("capacity", [&] {
        if (storage != nullptr) out.field("storage", *storage);
      });
      if (const Value* modes = find(root, "spec.accessModes")) out.field("accessModes", *modes);
      out.field("persistentVolumeReclaimPolicy", "Delete");
      if (const Value* named = find(root, "spec.storageClassName")) {
        out.field("storageClassName", *named);
      }
      out.object("hostPath", [&] { out.field("path", "/var/lib/berth/volumes/" + name); });
      out.object("claimRef", [&] {
        out.field("kind", "PersistentVolumeClaim");
        out.field("apiVersion", "v1");
        out.field("namespace", claim.ns);
        out.field("name", claim.name);
        out.field("uid", claim.uid);
      });
    });
  });
  return std::move(out).take();
}

// In the words of the controller that would have somebody make the volume.
std::string unprovisioned_json(const Object& claim, const std::string& storage,
                               const std::string& now) {
  text::JsonWriter out;
  out.object([&] {
    out.object("metadata", [&] { out.field("name", claim.name + ".unprovisioned." + claim.uid); });
    out.object("involvedObject", [&] {
      out.field("kind", "PersistentVolumeClaim");
      out.field("apiVersion", "v1");
      out.field("namespace", claim.ns);
      out.field("name", claim.name);
      out.field("uid", claim.uid);
    });
    out.field("type", "Warning");
    out.field("reason", "ProvisioningFailed");
    out.field("message", "storageclass.storage.k8s.io " + quoted(storage) + " not found");
    out.object("source", [&] { out.field("component", "persistentvolume-controller"); });
    out.field("firstTimestamp", now);
    out.field("lastTimestamp", now);
    out.field("count", 1);
  });
  return std::move(out).take();
}

}  // namespace

// A claim waits for a class by that name.
void Claims::class_came(const std::string& name) {
  const Shelf* claims = server_.storage.find_shelf("persistentvolumeclaims");
  if (claims == nullptr) return;
  const std::string word = "\"storageClassName\":" + quoted(name);
  std::vector<ObjectPtr> waiting;
  for (const auto& [key, entry] : claims->entries) {
    if (!entry.latest || entry.latest->json.find(word) == std::string::npos) continue;
    if (entry.latest->json.find("\"phase\":\"Pending\"") != std::string::npos) {
      waiting.push_back(entry.latest);
    }
  }
  server_.in_slices<ObjectPtr>(std::move(waiting), [this](const ObjectPtr& claim) {
    Change change;
    change.now = claim;
    changed(change);
  });
}

// A claim that goes waits for the pods that use it.
void Claims::release(const std::string& key) {
  Shelf* claims = server_.storage.find_shelf("persistentvolumeclaims");
  const ObjectPtr claim = claims ? claims->latest(key) : nullptr;
  if (!claim || !claim->terminating || !claim->finalizers) return;
  const Shelf* pods = server_.storage.find_shelf("pods");
  const std::string prefix = claim->ns + "/";
  const std::string word = "\"claimName\":" + quoted(claim->name);
  for (auto pod = pods->entries.lower_bound(prefix);
       pod != pods->entries.end() && pod->first.starts_with(prefix); ++pod) {
    if (!pod->second.latest) continue;
    const std::string& json = pod->second.latest->json;
    const bool over = json.find("\"phase\":\"Succeeded\"") != std::string::npos ||
                      json.find("\"phase\":\"Failed\"") != std::string::npos;
    if (!over && json.find(word) != std::string::npos) return;
  }
  server_.rewrite(*claims, key, [](text::Editor& edit, const Value& root) -> std::optional<Value> {
    std::vector<Value> kept;
    const Value* list = find(root, "metadata.finalizers");
    if (list == nullptr) return std::nullopt;
    for (const Value& item : list->items()) {
      if (item.string() != "kubernetes.io/pvc-protection") kept.push_back(item);
    }
    if (kept.size() == list->size()) return std::nullopt;
    return kept.empty() ? edit.without_at(root, "metadata.finalizers")
                        : edit.with_at(root, "metadata.finalizers", edit.array(kept));
  });
}

// Claims that wait for a pod which is gone or over now.
void Claims::release_of(const Object& pod) {
  if (pod.json.find("\"claimName\":") == std::string::npos) return;
  const Shelf* claims = server_.storage.find_shelf("persistentvolumeclaims");
  if (claims == nullptr) return;
  const std::string prefix = pod.ns + "/";
  std::vector<std::string> keys;
  for (auto claim = claims->entries.lower_bound(prefix);
       claim != claims->entries.end() && claim->first.starts_with(prefix); ++claim) {
    if (claim->second.latest && claim->second.latest->terminating) keys.push_back(claim->first);
  }
  for (const std::string& key : keys) release(key);
}

void Claims::changed(const Change& change) {
  if (change.type != Change::Type::kDeleted && change.now->terminating) {
    return release(object_key(change.now->ns, change.now->name));
  }
  if (change.type == Change::Type::kDeleted) {
    const std::string volume = "pvc-" + change.now->uid;
    const TypePtr volumes = server_.registry.find("", "v1", "persistentvolumes");
    if (volumes && volumes->shelf->latest(volume)) {
      server_.delete_object(volumes, volume, {}, [](const MaybeError&, const Server::Deleted&) {});
    }
    return;
  }
  Shelf* claims = server_.storage.find_shelf("persistentvolumeclaims");
  if (claims == nullptr) return;
  const std::string key = object_key(change.now->ns, change.now->name);
  if (change.now->json.find("\"phase\":\"Bound\"") != std::string::npos) return;
  const ObjectPtr claim = claims->latest(key);
  if (!claim || claim->uid != change.now->uid) return;
  text::Editor read;
  const auto parsed = read.parse(claim->json);
  if (!parsed.ok() || text_at(parsed.value(), "status.phase") == "Bound") return;
  std::string volume(text_at(parsed.value(), "spec.volumeName"));
  const bool made = volume.empty();
  const std::string wanted(text_at(parsed.value(), "spec.storageClassName"));
  if (made && !wanted.empty()) {
    const Shelf* classes = server_.storage.find_shelf("storageclasses.storage.k8s.io");
    if (classes == nullptr || !classes->latest(wanted)) {
      return server_.create_basic("", "events", claim->ns,
                                  unprovisioned_json(*claim, wanted, server_.now_text()));
    }
  }
  if (made) {
    volume = "pvc-" + claim->uid;
    server_.create_basic("", "persistentvolumes", "", volume_json(*claim, parsed.value(), volume));
  }
  Shelf* volumes = server_.storage.find_shelf("persistentvolumes");
  if (volumes == nullptr || !volumes->latest(volume)) return;  // the one it names may still come
  server_.rewrite(*volumes, volume, [&](text::Editor& edit, const Value& root) {
    Value bound = edit.with_at(root, "status.phase", edit.string("Bound"));
    if (find(bound, "spec.claimRef") == nullptr) {
      bound = edit.with_at(bound, "spec.claimRef",
                           edit.object({{"kind", edit.string("PersistentVolumeClaim")},
                                        {"apiVersion", edit.string("v1")},
                                        {"namespace", edit.string(claim->ns)},
                                        {"name", edit.string(claim->name)},
                                        {"uid", edit.string(claim->uid)}}));
    }
    return bound;
  });
  server_.rewrite(*claims, key, [&](text::Editor& edit, const Value& root) {
    Value bound = edit.with_at(root, "spec.volumeName", edit.string(volume));
    bound = edit.with_at(bound, "status.phase", edit.string("Bound"));
    if (const Value* modes = find(root, "spec.accessModes")) {
      bound = edit.with_at(bound, "status.accessModes", *modes);
    }
    if (const Value* requests = find(root, "spec.resources.requests")) {
      bound = edit.with_at(bound, "status.capacity", *requests);
    }
    return bound;
  });
}

}  // namespace berth::sim::api
