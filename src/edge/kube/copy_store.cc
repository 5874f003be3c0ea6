#include "edge/kube/copy_store.h"

#include <algorithm>

#include "base/check.h"
#include "edge/kube/reflector.h"
#include "edge/kube/watch_line.h"
#include "text/path.h"

namespace berth::kube {
namespace {

// So long an object that we wrote is believed against a list that does not know it yet. The stream
// normally confirms within a second; a watch that fell silent is given up after ten minutes. Only a
// store that was put back from a copy makes the bound necessary.
constexpr std::int64_t kGuardNs = 900'000'000'000;

Key key_of(const text::Value& object) {
  const text::Value* metadata = object.find("metadata");
  return {std::string(text_at(metadata, "namespace")), std::string(text_at(metadata, "name"))};
}

}  // namespace

std::shared_ptr<Object> make_object(text::Document document) {
  const text::Value* metadata = document.root().find("metadata");
  Key key = key_of(document.root());
  if (key.name.empty()) return nullptr;
  auto object = std::make_shared<Object>();
  object->key = std::move(key);
  object->uid = text_at(metadata, "uid");
  object->version = text_at(metadata, "resourceVersion");
  object->document = std::move(document);
  return object;
}

int CopyStore::add_index(Informer::IndexOf index_of) {
  BERTH_ASSERT(options_.keep == Keep::kWhole, "an index reads documents, and keys have none");
  BERTH_ASSERT(held_.empty(), "indices are added before start()");
  indices_.push_back({std::move(index_of), {}});
  return static_cast<int>(indices_.size()) - 1;
}

void CopyStore::add_handler(Informer::Handler handler) {
  const int number = static_cast<int>(handlers_.size());
  handlers_.push_back({std::move(handler), told_});
  for (const auto& [key, held] : held_) tell(nullptr, held.object, number);
}

void CopyStore::add_synced(std::function<void()> synced) {
  synced_calls_.push_back(std::move(synced));
}

// ---- the stream ----------------------------------------------------------------------------

void CopyStore::project(Object& object) const {
  if (options_.keep == Keep::kKeys || !has_any_path(object.root(), options_.drop)) return;
  text::Document smaller = copy_object(object.root(), options_.drop, {}, {});
  if (!smaller.root().is_null()) object.document = std::move(smaller);
}

bool CopyStore::known(const Object& object) const {
  auto here = held_.find(object.key);
  return here != held_.end() && here->second.object->uid == object.uid &&
         here->second.object->version == object.version;
}

void CopyStore::begin() {
  collected_.clear();
  ++round_;
}

bool CopyStore::collect(text::Document document, std::int64_t now) {
  auto object = make_object(std::move(document));
  if (!object) return false;
  if (tells_early()) {
    take_early(std::move(object), now);
    return true;
  }
  if (options_.keep == Keep::kKeys && known(*object)) {
    object->document = {};
  } else {
    project(*object);
  }
  Key key = object->key;
  collected_[std::move(key)] = std::move(object);
  return true;
}

bool CopyStore::collect_item(const text::Value& item, std::string_view api_version,
                             std::string_view kind, std::int64_t now) {
  const text::Value* metadata = item.find("metadata");
  auto object = std::make_shared<Object>();
  object->key = key_of(item);
  object->uid = text_at(metadata, "uid");
  object->version = text_at(metadata, "resourceVersion");
  if (object->key.name.empty()) return false;
  if (!known(*object)) {
    object->document = copy_object(item, options_.drop, api_version, kind);
    if (object->root().is_null()) return false;
  }
  if (tells_early()) {
    take_early(std::move(object), now);
    return true;
  }
  Key key = object->key;
  collected_[std::move(key)] = std::move(object);
  return true;
}

void CopyStore::uncollect(const text::Value& object) {
  if (!tells_early()) {
    collected_.erase(key_of(object));
    return;
  }
  auto at = held_.find(key_of(object));
  if (at == held_.end()) return;
  if (at->second.object->uid == text_at(object.find("metadata"), "uid")) at->second.round = 0;
}

// An object of a list that is not complete. A list that was broken off may have shown what the
// present one, from a server that lags behind, does not have yet. The watch will tell of it, so
// what is newer stays, as a write of our own does.
void CopyStore::take_early(std::shared_ptr<Object> object, std::int64_t now) {
  if (buried(*object)) return;
  auto at = held_.find(object->key);
  if (at != held_.end()) {
    const Object& here = *at->second.object;
    at->second.round = round_;
    if (known(*object) || older_version(object->version, here.version)) return;
    if (here.uid != object->uid) {
      erase(at, at->second.object);
      at = held_.end();
    }
  }
  const Key key = object->key;
  const std::int64_t told_at = std::max<std::int64_t>(now, 1);
  if (at == held_.end()) {
    insert(std::move(object), told_at);
  } else {
    set(at, std::move(object), told_at);
  }
  held_[key].round = round_;
}

void CopyStore::finish_early(std::string_view version, std::int64_t now) {
  for (auto it = held_.begin(); it != held_.end();) {
    auto at = it++;
    Held& held = at->second;
    const bool newer = guarded(held, now) && older_version(version, held.object->version);
    if (newer) continue;
    if (held.round == round_) {
      held.absorbed_at = 0;
    } else {
      erase(at, held.object);
    }
  }
}

void CopyStore::swap_in(std::string_view version, std::int64_t now) {
  for (auto it = removed_.begin(); it != removed_.end();) {
    auto listed = collected_.find(it->first);
    if (listed != collected_.end() && listed->second->uid == it->second) {
      collected_.erase(listed);  // a list from before our removal; the watch will tell of it
      ++it;
    } else {
      it = removed_.erase(it);
    }
  }
  for (auto it = held_.begin(); it != held_.end();) {
    auto gone = it++;
    if (collected_.contains(gone->first)) continue;
    const Held& held = gone->second;
    if (guarded(held, now) && older_version(version, held.object->version)) continue;
    erase(gone, held.object);
  }
  for (auto& [key, object] : collected_) {
    auto at = held_.find(key);
    const bool unchanged = object->root().is_null();  // when it was collected
    if (at == held_.end()) {
      if (!unchanged) insert(std::move(object), 0);
      continue;
    }
    const Object& here = *at->second.object;
    const bool newer_here =
        guarded(at->second, now) && older_version(object->version, here.version);
    if (newer_here) continue;
    if (here.uid == object->uid && here.version == object->version) {
      at->second.absorbed_at = 0;
    } else if (unchanged) {
      continue;  // we wrote it since
    } else if (here.uid == object->uid) {
      set(at, std::move(object), 0);
    } else {
      erase(at, at->second.object);
      insert(std::move(object), 0);
    }
  }
  collected_.clear();
}

void CopyStore::replace(std::string_view version, std::int64_t now) {
  if (tells_early()) {
    finish_early(version, now);
  } else {
    swap_in(version, now);
  }
  synced_ = true;
  auto early = std::move(early_);
  early_.clear();
  for (auto& [key, object] : early) {
    if (older_version(version, object->version)) take(std::move(object), now, true);
  }
  tell(nullptr, nullptr);
}

void CopyStore::clear(std::int64_t now) {
  begin();
  for (auto& [key, held] : held_) held.absorbed_at = 0;
  early_.clear();
  replace({}, now);
}

bool CopyStore::put(text::Document document, std::int64_t now) {
  auto object = make_object(std::move(document));
  if (!object) return false;
  take(std::move(object), now, false);
  return true;
}

bool CopyStore::remove(text::Document document) {
  auto object = make_object(std::move(document));
  if (!object) return false;
  auto tomb = removed_.find(object->key);
  if (tomb != removed_.end() && tomb->second == object->uid) removed_.erase(tomb);
  auto at = held_.find(object->key);
  if (at == held_.end()) return true;
  const bool same = at->second.object->uid == object->uid;
  // The end of an earlier object of that name, after we saw the next one.
  if (!same && older_version(object->version, at->second.object->version)) return true;
  erase(at, same && options_.keep == Keep::kKeys ? ObjectPtr(object) : at->second.object);
  return true;
}

// ---- our own writes ------------------------------------------------------------------------

void CopyStore::absorb(text::Document document, std::string_view told, std::int64_t now) {
  const std::string_view kind = text_at(document.root(), "kind");
  if (!kind.empty() && kind != options_.resource.kind) return;
  auto object = make_object(std::move(document));
  if (!object || object->version.empty()) return;
  if (!options_.ns.empty() && object->key.ns != options_.ns) return;
  const bool selective = !options_.label_selector.empty() || !options_.field_selector.empty();
  if (selective && !held_.contains(object->key)) return;
  if (synced_) {
    const bool passed = object->version == told || older_version(object->version, told);
    if (!passed) take(std::move(object), now, true);
    return;
  }
  auto& early = early_[object->key];
  if (!early || !older_version(object->version, early->version)) early = std::move(object);
}

void CopyStore::absorb_removed(const Key& key, std::string_view uid) {
  auto early = early_.find(key);
  if (early != early_.end() && (uid.empty() || early->second->uid == uid)) early_.erase(early);
  auto at = held_.find(key);
  if (at == held_.end() || (!uid.empty() && at->second.object->uid != uid)) return;
  if (!at->second.object->uid.empty()) removed_[key] = at->second.object->uid;
  erase(at, at->second.object);
}

// ---- the copy ------------------------------------------------------------------------------

bool CopyStore::guarded(const Held& held, std::int64_t now) const {
  return held.absorbed_at != 0 && now - held.absorbed_at < kGuardNs;
}

bool CopyStore::buried(const Object& object) const {
  auto tomb = removed_.find(object.key);
  return tomb != removed_.end() && tomb->second == object.uid;
}

void CopyStore::take(std::shared_ptr<Object> object, std::int64_t now, bool absorbed) {
  if (buried(*object)) return;
  project(*object);
  const std::int64_t absorbed_at = absorbed ? std::max<std::int64_t>(now, 1) : 0;
  auto at = held_.find(object->key);
  if (at == held_.end()) {
    insert(std::move(object), absorbed_at);
    return;
  }
  Held& held = at->second;
  const Object& here = *held.object;
  if (here.uid == object->uid) {
    if (here.version == object->version) {
      if (!absorbed) held.absorbed_at = 0;
      return;
    }
    if (older_version(object->version, here.version)) return;
    set(at, std::move(object), absorbed_at);
    return;
  }
  if (older_version(object->version, here.version)) return;
  erase(at, held.object);
  insert(std::move(object), absorbed_at);
}

ObjectPtr CopyStore::kept(const std::shared_ptr<Object>& object) const {
  if (options_.keep == Keep::kWhole) return object;
  auto keys = std::make_shared<Object>();
  keys->key = object->key;
  keys->uid = object->uid;
  keys->version = object->version;
  return keys;
}

void CopyStore::set(HeldMap::iterator at, std::shared_ptr<Object> object,
                    std::int64_t absorbed_at) {
  ObjectPtr before = std::move(at->second.object);
  at->second = {kept(object), absorbed_at};
  index_out(before);
  index_in(at->second.object);
  tell(std::move(before), std::move(object));
}

void CopyStore::insert(std::shared_ptr<Object> object, std::int64_t absorbed_at) {
  Held& held = held_[object->key];
  held = {kept(object), absorbed_at};
  index_in(held.object);
  tell(nullptr, std::move(object));
}

void CopyStore::erase(HeldMap::iterator at, ObjectPtr told) {
  ObjectPtr here = at->second.object;
  index_out(here);
  held_.erase(at);
  tell(std::move(told), nullptr);
}

void CopyStore::index_out(const ObjectPtr& object) {
  for (Index& index : indices_) {
    for (const std::string& name : index.of(*object)) {
      auto at = index.names.find(name);
      if (at == index.names.end()) continue;
      at->second.erase(object->key);
      if (at->second.empty()) index.names.erase(at);
    }
  }
}

void CopyStore::index_in(const ObjectPtr& object) {
  for (Index& index : indices_) {
    for (std::string& name : index.of(*object)) {
      index.names[std::move(name)][object->key] = object;
    }
  }
}

void CopyStore::tell(ObjectPtr before, ObjectPtr after, int only) {
  tells_.push_back({std::move(before), std::move(after), told_++, only});
}

void CopyStore::deliver(const std::function<bool()>& stopped) {
  if (telling_) return;
  telling_ = true;
  while (!tells_.empty() && !stopped()) {
    Tell next = std::move(tells_.front());
    tells_.pop_front();
    if (!next.before && !next.after) {
      for (std::size_t i = 0; i < synced_calls_.size() && !stopped(); ++i) synced_calls_[i]();
      continue;
    }
    for (std::size_t i = 0; i < handlers_.size() && !stopped(); ++i) {
      Slot& slot = handlers_[i];
      const bool concerned =
          next.only >= 0 ? static_cast<std::size_t>(next.only) == i : next.number >= slot.from;
      if (concerned) slot.handler(next.before, next.after);
    }
  }
  telling_ = false;
}

ObjectPtr CopyStore::find(const Key& key) const {
  auto at = held_.find(key);
  return at == held_.end() ? nullptr : at->second.object;
}

std::vector<ObjectPtr> CopyStore::all() const {
  std::vector<ObjectPtr> out;
  out.reserve(held_.size());
  for (const auto& [key, held] : held_) out.push_back(held.object);
  return out;
}

std::vector<ObjectPtr> CopyStore::by_index(int index, std::string_view name) const {
  std::vector<ObjectPtr> out;
  if (index < 0 || static_cast<std::size_t>(index) >= indices_.size()) return out;
  const auto& names = indices_[static_cast<std::size_t>(index)].names;
  auto at = names.find(name);
  if (at == names.end()) return out;
  out.reserve(at->second.size());
  for (const auto& [key, object] : at->second) out.push_back(object);
  return out;
}

}  // namespace berth::kube
