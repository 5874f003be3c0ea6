// Admission webhooks: asked one after the other, those that change first. Inside this folder.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "embedded/api/api_error.h"

namespace berth::sim::api {

class Server;
struct Draft;
struct Hook;  // webhooks.cc

class Webhooks {
 public:
  using Then = std::function<void(std::optional<ApiError> refused)>;

  explicit Webhooks(Server& server) : server_(server) {}

  void mutate(const std::shared_ptr<Draft>& draft, const Then& then);
  void validate(const std::shared_ptr<Draft>& draft, const Then& then);
  void mutating_changed() { mutating_.fresh = false; }
  void validating_changed() { validating_.fresh = false; }

 private:
  struct Cache {
    bool fresh = false;
    std::vector<std::shared_ptr<const Hook>> hooks;
  };
  const std::vector<std::shared_ptr<const Hook>>& hooks_of(bool mutating);

  Server& server_;
  Cache mutating_, validating_;
};

}  // namespace berth::sim::api
