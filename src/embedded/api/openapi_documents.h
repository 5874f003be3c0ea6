// The OpenAPI documents of what is served, each made when somebody asks for it and kept until a
// kind comes or goes. Inside this folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "embedded/api/registry.h"

namespace berth::sim::api {

class OpenApiDocuments {
 public:
  OpenApiDocuments(const Registry& registry, std::string version)
      : registry_(registry), version_(std::move(version)) {}

  // "": the index of v3; "v2"; otherwise the path of a group version, "api/v1", "apis/batch/v1".
  // Empty: there is none.
  const std::string& at(const std::string& path);

 private:
  const Registry& registry_;
  std::string version_;
  std::uint64_t generation_ = 0;
  std::map<std::string, std::string> documents_;
};

}  // namespace berth::sim::api
