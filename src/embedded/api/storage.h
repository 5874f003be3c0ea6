// Every object of the cluster, by kind and key, with the history that watches and continued lists
// read, in front of a Store.
//
// Two states at once: what is committed, which readers see, and what was written last, on which the
// next write builds while its predecessor is still on its way to the disk. Commits are answered in
// order, so a change becomes visible, is told to the listener and answered in that order too.
//
// A write that the disk has no room for is taken back, with all that were made after it and were
// not answered yet: what was written last is then again what is committed, and writing goes on.
//
// History is bounded by count and by bytes; what falls off raises the shelf's floor, and whoever
// asks for something older is told that it is gone. On the loop's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edge/store/store.h"
#include "embedded/api/object.h"

namespace berth::sim::api {

struct Change {
  enum class Type : std::uint8_t { kAdded, kModified, kDeleted };
  Type type = Type::kAdded;
  std::uint64_t version = 0;
  ObjectPtr now;   // of a deletion: the last state with the version of the deletion
  ObjectPtr prev;  // null when added
};

struct Entry {
  ObjectPtr committed;  // null: not there yet
  ObjectPtr latest;     // null: removed
};

// All objects of one group and resource, whatever the version they are asked for in.
struct Shelf {
  std::string name;  // "deployments.apps": the first part of the store's keys
  KindPtr kind;      // the stored version
  std::map<std::string, Entry, std::less<>> entries;
  std::deque<Change> history;
  std::uint64_t floor = 0;         // versions below it are forgotten
  std::size_t committed_size = 0;  // entries that are committed

  ObjectPtr latest(std::string_view key) const;
  ObjectPtr committed(std::string_view key) const;
  bool has_any(const std::string& ns) const;  // entries, whatever is on its way
};

class Storage {
 public:
  using Done = std::function<void(const Status&)>;
  using Listener = std::function<void(Shelf&, const Change&)>;
  using Watcher =
      std::function<void(const Shelf&, const std::string& key, const ObjectPtr& latest)>;

  Storage(store::Store& store, std::size_t history, std::size_t history_bytes);

  Shelf& add_shelf(const std::string& name, const KindPtr& kind);  // or the one that is there
  Shelf* find_shelf(std::string_view name);
  const Shelf* find_shelf(std::string_view name) const;
  const std::map<std::string, std::unique_ptr<Shelf>, std::less<>>& shelves() const {
    return shelves_;
  }

  // What is on the disk, at the start.
  Result<std::uint64_t> load(const store::Store::Visit& visit) { return store_.load(visit); }
  void restore(Shelf& shelf, const ObjectPtr& object);
  void set_start(std::uint64_t version);  // after the last restore()

  std::uint64_t committed() const { return committed_; }
  std::uint64_t reserve() { return ++latest_; }  // for the write that follows at once
  std::size_t objects() const { return objects_; }
  bool broken() const { return broken_; }
  bool full() const { return full_; }  // the last write was refused for want of room

  // The version in the object must be the one reserved last.
  void put(Shelf& shelf, ObjectPtr object, Done done);
  void remove(Shelf& shelf, ObjectPtr tombstone, Done done);

  // The first objects, at most so many, with keys in [first, last) as they were at that version,
  // which is not below the floor. last "" is the end. O(objects given + history after it).
  std::vector<ObjectPtr> range(const Shelf& shelf, std::string_view first, std::string_view last,
                               std::uint64_t version,
                               std::size_t most = static_cast<std::size_t>(-1)) const;
  void forget_history();

  void set_listener(Listener listener) { listener_ = std::move(listener); }
  // Told what was written last at a key, before it is committed, and when it is taken back; null:
  // nothing is there. Not of what is restored.
  void set_watcher(Watcher watcher) { watcher_ = std::move(watcher); }
  void on_broken(std::function<void(const Error&)> broken) { told_broken_ = std::move(broken); }
  // There is no room for writes; nullptr: there is again. Told when it changes.
  void on_full(std::function<void(const Error*)> full) { told_full_ = std::move(full); }

 private:
  void write(Shelf& shelf, ObjectPtr object, bool gone, Done done);
  void arrived(Shelf& shelf, const ObjectPtr& object, bool gone);
  void answered(Shelf& shelf, const ObjectPtr& object, bool gone, const Status& status);
  void take_back(const Error& error);
  void trim();

  store::Store& store_;
  std::size_t max_history_, max_bytes_;
  std::map<std::string, std::unique_ptr<Shelf>, std::less<>> shelves_;
  std::deque<Shelf*> order_;  // of the changes in all histories
  std::size_t bytes_ = 0;
  std::uint64_t latest_ = 0, committed_ = 0;
  std::size_t objects_ = 0;
  // Writes on their way to the disk, in order; of the first doomed_ it is known that they fail.
  std::deque<std::pair<Shelf*, std::string>> under_way_;
  std::size_t doomed_ = 0;
  bool broken_ = false, full_ = false;
  Listener listener_;
  Watcher watcher_;
  std::function<void(const Error&)> told_broken_;
  std::function<void(const Error*)> told_full_;
  std::shared_ptr<Storage*> self_;  // what answers that come late look at
};

}  // namespace berth::sim::api
