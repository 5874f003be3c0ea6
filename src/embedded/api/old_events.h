// Events go when nothing was written to them for a while. Inside this folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/loop.h"

namespace berth::sim::api {

class Server;

class OldEvents {
 public:
  explicit OldEvents(Server& server) : server_(server) {}
  ~OldEvents();
  OldEvents(const OldEvents&) = delete;
  OldEvents& operator=(const OldEvents&) = delete;

  void expire();  // now, and every minute from then on

 private:
  Server& server_;
  Loop::Timer timer_ = 0;
  // When one was first seen in its present version, by uid.
  std::map<std::string, std::pair<std::uint64_t, std::int64_t>> times_;
};

}  // namespace berth::sim::api
