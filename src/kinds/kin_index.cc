#include "kinds/kin_index.h"

#include <algorithm>

namespace berth::kinds {

namespace {

constexpr char kTie = '~';  // before what only ties names

}  // namespace

void KinIndex::touch_names(const Object& object) {
  for (const NameRef name : object.names) {
    if (name->second.kin != 0) touched_.insert(name->second.kin);
  }
}

void KinIndex::leave_names(ObjectRef object) {
  touch_names(object->second);
  for (const NameRef name : object->second.names) std::erase(name->second.objects, object);
  object->second.names.clear();
}

void KinIndex::put(std::string_view object, const std::vector<std::string>& names) {
  const ObjectRef entry = &*objects_.try_emplace(std::string(object)).first;
  std::vector<NameRef> now;
  for (const std::string& name : names) {
    const auto [it, is_new] = names_.try_emplace(name);
    if (is_new) fresh_.push_back(&*it);
    if (std::find(now.begin(), now.end(), &*it) == now.end()) now.push_back(&*it);
  }
  if (now != entry->second.names) {
    leave_names(entry);
    for (const NameRef name : now) name->second.objects.push_back(entry);
    entry->second.names = std::move(now);
  }
  touch_names(entry->second);
}

void KinIndex::remove(std::string_view object) {
  const auto it = objects_.find(std::string(object));
  if (it == objects_.end()) return;
  leave_names(&*it);
  objects_.erase(it);
}

void KinIndex::tie(const std::string& name, const std::string& other) {
  put(kTie + name + ' ' + other, {name, other});
}

void KinIndex::touch(std::string_view object) {
  const auto it = objects_.find(std::string(object));
  if (it != objects_.end()) touch_names(it->second);
}

void KinIndex::touch_namespace(std::string_view ns) {
  const std::string prefix = std::string(ns) + '/';
  for (const auto& [id, names] : kins_) {
    if (names.front()->first.starts_with(prefix)) touched_.insert(id);
  }
}

void KinIndex::touch_all() {
  for (const auto& [id, names] : kins_) touched_.insert(id);
}

KinIndex::Changes KinIndex::take_changes() {
  Changes out;
  std::vector<NameRef> open = std::move(fresh_);
  fresh_.clear();
  for (const std::uint64_t id : touched_) {
    const auto kin = kins_.find(id);
    for (const NameRef name : kin->second) {
      name->second.kin = 0;
      open.push_back(name);
    }
    kins_.erase(kin);
    out.gone.push_back(id);
  }
  touched_.clear();
  std::vector<NameRef> unsaid;
  for (const NameRef first : open) {
    if (first->second.kin != 0) continue;
    if (first->second.objects.empty()) {
      unsaid.push_back(first);
      continue;
    }
    Kin kin{.id = ++last_, .objects = {}};
    std::vector<NameRef>& names = kins_[kin.id];
    const auto reach = [&](NameRef name) {
      if (name->second.kin != 0) return;
      name->second.kin = kin.id;
      names.push_back(name);
    };
    reach(first);
    for (std::size_t i = 0; i < names.size(); ++i) {
      for (const ObjectRef object : names[i]->second.objects) {
        if (object->second.kin == kin.id) continue;
        object->second.kin = kin.id;
        if (object->first.front() != kTie) kin.objects.emplace_back(object->first);
        for (const NameRef name : object->second.names) reach(name);
      }
    }
    if (kin.objects.empty()) {  // only ties are left
      std::set<std::string> ties;
      for (const NameRef name : names) {
        for (const ObjectRef tie : name->second.objects) ties.insert(tie->first);
      }
      for (const std::string& tie : ties) objects_.erase(tie);
      unsaid.insert(unsaid.end(), names.begin(), names.end());
      kins_.erase(kin.id);
      continue;
    }
    std::sort(kin.objects.begin(), kin.objects.end());
    out.fresh.push_back(std::move(kin));
  }
  for (const NameRef name : unsaid) names_.erase(std::string(name->first));
  return out;
}

}  // namespace berth::kinds
