// The watches that are open, and who is told of which change.
//
// An event is printed once for all plain watchers of a type and its bytes are shared. Watchers that
// ask for one value of a field (the kubelet's spec.nodeName) are found by that value, so a change
// costs the watchers it concerns and not all there are.
//
// A watcher is live, or it catches up: at first with the objects that are there, then with history,
// a little at a time and at its reader's pace. A live one whose reader does not keep up catches up
// too. So a slow reader holds a bounded number of bytes, and none of the world: what it has not
// seen is read when its turn comes. One that falls behind history is told 410 and ends. On the
// loop's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/random.h"
#include "embedded/api/request.h"
#include "embedded/api/storage.h"

namespace berth::sim::api {

struct WatchStart {
  Selection selection;
  bool initial = false;      // the objects that are there come first, as ADDED
  bool initial_end = false;  // and a bookmark after them
  bool bookmarks = false;
  std::uint64_t version = 0;  // of what the client has seen, unless initial
  std::int64_t timeout_ns = 0;
};

class WatchHub {
 public:
  WatchHub(Loop& loop, Storage& storage, std::int64_t bookmark_ns);
  ~WatchHub();

  void open(const RequestPtr& request, WatchStart start);
  void tell(Shelf& shelf, const Change& change);
  void end_all();
  std::size_t size() const { return in_order_.size(); }

 private:
  struct Watcher;
  struct Cached;
  using WatcherPtr = std::shared_ptr<Watcher>;
  using Watchers = std::map<std::uint64_t, WatcherPtr>;  // in the order they came
  struct Group {                                         // of one shelf
    Watchers all;
    std::map<std::string, Watchers> by_value;  // "path=value"
    std::map<std::string, std::size_t> paths;  // in by_value
  };
  struct Budget;  // of one piece of work

  void deliver(Watcher& watcher, const Change& change, std::vector<Cached>& cache);
  void deliver_live(const WatcherPtr& watcher, const Change& change, std::vector<Cached>& cache);
  void deliver_by_value(Group& group, const Shelf& shelf, const Change& change,
                        std::vector<Cached>& cache);
  void catch_up(const WatcherPtr& watcher, Budget& budget);
  bool send_objects(Watcher& watcher, Budget& budget);
  bool send_history(Watcher& watcher, Budget& budget);
  void pump();
  void arm_pump(bool at_once);
  void send_bookmark(Watcher& watcher, bool initial_end);
  void close(const WatcherPtr& watcher);
  void arm_bookmarks();

  Loop& loop_;
  Storage& storage_;
  std::int64_t bookmark_ns_;
  std::map<const Shelf*, Group> groups_;
  Watchers in_order_;
  std::deque<WatcherPtr> behind_;  // those that catch up, whose turn comes round
  std::uint64_t last_id_ = 0;
  Loop::Timer bookmark_timer_ = 0, pump_timer_ = 0;
  bool pump_posted_ = false;
  std::shared_ptr<WatchHub*> self_;
};

}  // namespace berth::sim::api
