// The watches that are open, and who is told of which change.
//
// An event is printed once for all plain watchers of a type and its bytes are shared. Watchers that
// ask for one value of a field (the kubelet's spec.nodeName) are found by that value, so a change
// costs the watchers it concerns and not all there are. On the loop's thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/loop.h"
#include "base/random.h"
#include "sim/api/cabinet.h"
#include "sim/api/request.h"

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
  WatchHub(Loop& loop, Cabinet& cabinet, std::int64_t bookmark_ns);
  ~WatchHub();

  void open(const RequestPtr& request, WatchStart start);
  void tell(Shelf& shelf, const Change& change);
  void end_all();
  std::size_t size() const { return open_; }

 private:
  struct Watcher;
  struct Cached;
  using WatcherPtr = std::shared_ptr<Watcher>;
  struct Group {  // of one shelf
    std::vector<WatcherPtr> all;
    std::unordered_map<std::string, std::vector<WatcherPtr>> by_value;  // "path=value"
    std::map<std::string, std::size_t> paths;                           // in by_value
  };

  void deliver(Watcher& watcher, const Change& change, std::vector<Cached>& cache);
  void deliver_by_value(Group& group, const Shelf& shelf, const Change& change,
                        std::vector<Cached>& cache);
  void send_initial(Watcher& watcher);
  void send_bookmark(Watcher& watcher, bool initial_end);
  void close(const WatcherPtr& watcher);
  void arm_bookmarks();

  Loop& loop_;
  Cabinet& cabinet_;
  std::int64_t bookmark_ns_;
  std::map<const Shelf*, Group> groups_;
  std::vector<WatcherPtr> in_order_;
  std::size_t open_ = 0;
  Loop::Timer bookmark_timer_ = 0;
  std::shared_ptr<WatchHub*> self_;
};

}  // namespace berth::sim::api
