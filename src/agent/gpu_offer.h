// What this node offers of its GPUs: the resources, which devices a pod should get of one, and what
// a container that got them is given.
//
// Where an inventory cannot be offered with a configuration, the offer before it holds, and
// problem() says why.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "node/advertise/cdi.h"
#include "node/advertise/plugin_config.h"
#include "node/advertise/resources.h"
#include "node/allocate/grant.h"
#include "node/allocate/ledger.h"
#include "node/allocate/preferred.h"

namespace berth::agent {

// Where this process sees the host.
struct HostView {
  std::string root = "/";
  bool simulated = false;  // device nodes are stand-ins
};

class GpuOffer {
 public:
  GpuOffer(HostView host, const Logger& log) : host_(std::move(host)), log_(log) {}

  // False: as before.
  bool make(const model::GpuInventory& gpus, const advertise::PluginConfig& config);

  const std::vector<model::OfferedResource>& resources() const { return offer_.resources; }
  const model::OfferedResource* find(const std::string& resource) const;  // null: it is not offered
  int shares_of(int gpu) const;  // how many pods may share it
  const advertise::DriverFiles& files() const { return files_; }
  const advertise::Extras& extras() const { return extras_; }
  const std::string& problem() const { return problem_; }  // empty: none

  Result<std::vector<std::string>> prefer(const std::string& resource, const allocate::Ask& ask,
                                          const std::vector<allocate::Hint>& hints) const;
  allocate::GrantRules grant_rules(const advertise::PluginConfig& config) const;

 private:
  advertise::DriverFiles find_files(const model::GpuInventory& gpus,
                                    const advertise::PluginConfig& config) const;

  HostView host_;
  const Logger& log_;
  advertise::Offer offer_;
  advertise::DriverFiles files_;
  advertise::Extras extras_;
  std::map<std::string, std::unique_ptr<allocate::Chooser>> choosers_;  // by resource
  std::string problem_;
};

}  // namespace berth::agent
