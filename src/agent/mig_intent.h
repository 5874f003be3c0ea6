// What a change of MIG layouts was about, for whoever comes after a crash. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "node/partition/mig_config.h"

namespace berth::agent {

struct MigIntent {
  std::string layout;                                // what it was to become
  std::map<std::string, partition::MigWish> before;  // by UUID of the GPU: the last good
  friend bool operator==(const MigIntent&, const MigIntent&) = default;
};

std::string write_intent(const MigIntent& intent);
Result<MigIntent> read_intent(std::string_view text);

}  // namespace berth::agent
