// PersistentVolumeClaims: a volume is made for each and bound to it, and one that goes waits for
// the pods that use it. Inside this folder.
#pragma once

#include <string>

#include "embedded/api/storage.h"

namespace berth::sim::api {

class Server;

class Claims {
 public:
  explicit Claims(Server& server) : server_(server) {}

  void changed(const Change& change);        // a claim
  void class_came(const std::string& name);  // claims wait for a class by that name
  void release_of(const Object& pod);        // one that is gone, or over now

 private:
  void release(const std::string& key);

  Server& server_;
};

}  // namespace berth::sim::api
