// What every namespace has, and how one ends. Inside this folder.
#pragma once

#include <map>
#include <string>

#include "embedded/api/storage.h"

namespace berth::sim::api {

class Server;

class Namespaces {
 public:
  explicit Namespaces(Server& server) : server_(server) {}

  void changed(Shelf& shelf, const Change& change);

  // namespace_basics.cc: what it has that nobody asked for.
  void furnish(const std::string& name);
  void furnish_all();

  // namespace_end.cc: deletes what is in one that goes, then lets it go.
  void settle(const std::string& name);

 private:
  void right_root_ca(const std::string& ns);
  void release(const std::string& name);

  Server& server_;
  // Those that are being emptied; true: something came meanwhile, look again.
  std::map<std::string, bool, std::less<>> settling_;
};

}  // namespace berth::sim::api
