// What BerthPolicies say of themselves: which is in force, what of it cannot be read, and which
// flags go before it.
//
// Compared when one changed. On the loop's thread. Memory: an entry for each that is to be
// compared.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/part.h"
#include "edge/kube/informer.h"

namespace berth::control {

class PolicyStatus final : public Part {
 public:
  PolicyStatus(const Common& common, kube::Informer& policies, std::vector<std::string> flags)
      : common_(common), policies_(policies), flags_(std::move(flags)) {}

  bool changed(const Change& change) override;
  bool tick(std::int64_t now) override;

 private:
  bool keep(const std::string& name);  // false: later

  const Common& common_;
  kube::Informer& policies_;
  const std::vector<std::string> flags_;  // of this controller, as they were given
  std::set<std::string> dirty_;           // names
};

}  // namespace berth::control
