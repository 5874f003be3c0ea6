// The CDI specs of this node, in its folder: written where they differ, taken away where nothing
// names them any more, also those of an agent before this one.
#pragma once

#include <map>
#include <string>

#include "base/log.h"
#include "node/advertise/cdi.h"
#include "node/advertise/resources.h"

namespace berth::agent {

class CdiSpecs {
 public:
  CdiSpecs(std::string folder, const Logger& log) : folder_(std::move(folder)), log_(log) {}

  void write(const model::GpuInventory& gpus, const advertise::DriverFiles& files,
             const advertise::Extras& extras);
  bool wanted() const { return !folder_.empty(); }
  bool written() const { return !written_.empty() && problem_.empty(); }
  const std::string& problem() const { return problem_; }  // empty: none

 private:
  bool write_one(const std::string& path, const std::string& spec);

  std::string folder_;  // empty: none are written
  const Logger& log_;
  std::map<std::string, std::string> written_;  // by path
  std::string problem_;
};

}  // namespace berth::agent
