#include "embedded/api/storage.h"

#include <utility>

namespace berth::sim::api {

ObjectPtr Shelf::latest(std::string_view key) const {
  const auto found = entries.find(key);
  return found == entries.end() ? nullptr : found->second.latest;
}

bool Shelf::has_any(const std::string& ns) const {
  const auto entry = entries.lower_bound(ns + "/");
  return entry != entries.end() && entry->first.starts_with(ns + "/");
}

ObjectPtr Shelf::committed(std::string_view key) const {
  const auto found = entries.find(key);
  return found == entries.end() ? nullptr : found->second.committed;
}

Storage::Storage(store::Store& store, std::size_t history, std::size_t history_bytes)
    : store_(store),
      max_history_(history),
      max_bytes_(history_bytes),
      self_(std::make_shared<Storage*>(this)) {}

Shelf& Storage::add_shelf(const std::string& name, const KindPtr& kind) {
  std::unique_ptr<Shelf>& shelf = shelves_[name];
  if (!shelf) {
    shelf = std::make_unique<Shelf>();
    shelf->name = name;
    shelf->floor = committed_;
  }
  if (kind) shelf->kind = kind;
  return *shelf;
}

Shelf* Storage::find_shelf(std::string_view name) {
  const auto found = shelves_.find(name);
  return found == shelves_.end() ? nullptr : found->second.get();
}

const Shelf* Storage::find_shelf(std::string_view name) const {
  const auto found = shelves_.find(name);
  return found == shelves_.end() ? nullptr : found->second.get();
}

void Storage::restore(Shelf& shelf, const ObjectPtr& object) {
  Entry& entry = shelf.entries[object_key(object->ns, object->name)];
  if (!entry.committed) {
    ++objects_;
    ++shelf.committed_size;
  }
  entry.committed = entry.latest = object;
}

void Storage::set_start(std::uint64_t version) {
  latest_ = committed_ = version;
  for (auto& [name, shelf] : shelves_) shelf->floor = version;
}

void Storage::put(Shelf& shelf, ObjectPtr object, Done done) {
  write(shelf, std::move(object), false, std::move(done));
}

void Storage::remove(Shelf& shelf, ObjectPtr tombstone, Done done) {
  write(shelf, std::move(tombstone), true, std::move(done));
}

void Storage::write(Shelf& shelf, ObjectPtr object, bool gone, Done done) {
  const std::string key = object_key(object->ns, object->name);
  shelf.entries[key].latest = gone ? nullptr : object;
  std::vector<store::Write> writes(1);
  writes[0].key = shelf.name + "/" + key;
  writes[0].remove = gone;
  if (!gone) writes[0].value = object->json;
  const std::uint64_t version = object->version;
  under_way_.emplace_back(&shelf, key);
  if (watcher_) watcher_(shelf, key, gone ? nullptr : object);
  store_.commit(std::move(writes), version,
                [weak = std::weak_ptr<Storage*>(self_), at = &shelf, object = std::move(object),
                 gone, done = std::move(done)](const Status& status) {
                  const auto self = weak.lock();
                  if (!self) return;
                  (*self)->answered(*at, object, gone, status);
                  if (done) done(status);
                });
}

void Storage::answered(Shelf& shelf, const ObjectPtr& object, bool gone, const Status& status) {
  under_way_.pop_front();
  if (status.ok()) {
    arrived(shelf, object, gone);
    if (std::exchange(full_, false) && told_full_) told_full_(nullptr);
  } else if (status.error().code() == Code::kExhausted) {
    if (doomed_ > 0) {
      --doomed_;
      return;
    }
    under_way_.emplace_front(&shelf, object_key(object->ns, object->name));
    take_back(status.error());
  } else if (!std::exchange(broken_, true) && told_broken_) {
    told_broken_(status.error());
  }
}

// The store fails all that are under way: they were called before it was told to go on.
void Storage::take_back(const Error& error) {
  for (const auto& [shelf, key] : under_way_) {
    const auto found = shelf->entries.find(key);
    if (found == shelf->entries.end()) continue;
    found->second.latest = found->second.committed;
    if (watcher_) watcher_(*shelf, key, found->second.latest);
    if (!found->second.latest) shelf->entries.erase(found);
  }
  under_way_.pop_front();  // the one that is being answered
  doomed_ = under_way_.size();
  store_.resume();
  if (!std::exchange(full_, true) && told_full_) told_full_(&error);
}

void Storage::arrived(Shelf& shelf, const ObjectPtr& object, bool gone) {
  committed_ = object->version;
  const auto found = shelf.entries.find(object_key(object->ns, object->name));
  if (found == shelf.entries.end()) return;  // cannot be: writes make the entry
  Entry& entry = found->second;
  Change change;
  change.version = object->version;
  change.prev = std::move(entry.committed);
  change.now = object;
  change.type = gone           ? Change::Type::kDeleted
                : !change.prev ? Change::Type::kAdded
                               : Change::Type::kModified;
  if (gone) {
    entry.committed = nullptr;
    if (change.prev) {
      --objects_;
      --shelf.committed_size;
    }
    if (!entry.latest) shelf.entries.erase(found);
  } else {
    entry.committed = object;
    if (!change.prev) {
      ++objects_;
      ++shelf.committed_size;
    }
  }
  bytes_ += object->json.size();
  order_.push_back(&shelf);
  shelf.history.push_back(change);
  trim();
  if (listener_) listener_(shelf, change);
}

void Storage::trim() {
  while (!order_.empty() && (order_.size() > max_history_ || bytes_ > max_bytes_)) {
    Shelf& shelf = *order_.front();
    order_.pop_front();
    shelf.floor = shelf.history.front().version;
    bytes_ -= shelf.history.front().now->json.size();
    shelf.history.pop_front();
  }
}

void Storage::forget_history() {
  order_.clear();
  bytes_ = 0;
  for (auto& [name, shelf] : shelves_) {
    shelf->history.clear();
    shelf->floor = committed_;
  }
}

std::vector<ObjectPtr> Storage::range(const Shelf& shelf, std::string_view first,
                                      std::string_view last, std::uint64_t version,
                                      std::size_t most) const {
  // What later changes did, undone: the first change of a key after the version knows what was
  // there before.
  std::map<std::string, ObjectPtr, std::less<>> undone;
  for (auto change = shelf.history.rbegin();
       change != shelf.history.rend() && change->version > version; ++change) {
    std::string key = object_key(change->now->ns, change->now->name);
    if (key < first || (!last.empty() && key >= last)) continue;
    undone[std::move(key)] = change->prev;
  }
  std::vector<ObjectPtr> found;
  auto old = undone.begin();
  for (auto at = shelf.entries.lower_bound(first); at != shelf.entries.end() && found.size() < most;
       ++at) {
    if (!last.empty() && at->first >= last) break;
    for (; old != undone.end() && old->first < at->first; ++old) {
      if (old->second) found.push_back(old->second);
    }
    if (old != undone.end() && old->first == at->first) {
      if (old->second) found.push_back(old->second);
      ++old;
    } else if (at->second.committed) {
      found.push_back(at->second.committed);
    }
  }
  for (; old != undone.end() && found.size() < most; ++old) {
    if (old->second) found.push_back(old->second);
  }
  if (found.size() > most) found.resize(most);
  return found;
}

}  // namespace berth::sim::api
