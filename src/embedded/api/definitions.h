// CustomResourceDefinitions: their kinds are served as soon as they are stored, and leave with
// their objects. Inside this folder.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "embedded/api/storage.h"

namespace berth::sim::api {

class Server;

class Definitions {
 public:
  explicit Definitions(Server& server) : server_(server) {}

  Status install(std::string_view json, std::string_view name);
  void changed(const Change& change);
  void finish(const std::string& name);  // of one that goes, when its last object may be gone

 private:
  Server& server_;
};

}  // namespace berth::sim::api
