// What follows when owners go, and when the last object of a namespace or of a definition does.
//
// Nothing is kept beyond the indices: after a restart the same checks find the same work. Inside
// this folder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "embedded/api/storage.h"

namespace berth::sim::api {

class Server;

class Garbage {
 public:
  explicit Garbage(Server& server) : server_(server) {}

  void index(Shelf& shelf, const Change& change);  // before changed(), and of what was loaded
  void changed(Shelf& shelf, const Change& change);
  void settle_all();  // what may be left over: after a start, and after the disk was full

 private:
  // Who names an owner, by the owner's uid; committed.
  struct Dependents {
    std::set<std::pair<std::string, std::string>> places;  // shelf and key
    // References that would hold the owner back, by the namespace of who made them.
    std::map<std::string, std::int64_t> blocking;
    bool held_back(const std::string& owner_ns) const {
      return std::any_of(blocking.begin(), blocking.end(), [&](const auto& one) {
        return one.second > 0 && (owner_ns.empty() || one.first == owner_ns);
      });
    }
  };

  void settle_owner(Shelf& shelf, const std::string& key);
  void release_owner(Shelf& shelf, const std::string& key);
  void check_owners(Shelf& shelf, const std::string& key);
  // Null: there is none of that UID that may own it.
  ObjectPtr owner_of(const Object& object, const std::string& uid) const;

  Server& server_;
  std::map<std::string, Dependents, std::less<>> dependents_;
  std::map<std::string, std::pair<Shelf*, std::string>, std::less<>> by_uid_;  // committed
  std::map<std::string, std::size_t, std::less<>> in_namespace_;               // committed objects
};

}  // namespace berth::sim::api
