// From what GPUs are cut into to what they are to be cut into, in as few steps as keep everything
// that is right already. docs/mig.md is the definition. Pure and deterministic.
//
// What somebody holds is never touched: where a wish cannot be met around it, the answer is a
// refusal that names the holders. A wish is met on all GPUs or nothing is changed. Steps follow GPU
// by GPU (by index): destroy, mode, fill, create; each GPU's places are chosen so that all its
// instances fit, large ones first, each at the highest slot that works, which leaves the low ones
// for large instances to come.
//
// Cost for a GPU: the subsets of what is idle (at most 2^8) times a search over a grid of 8.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "node/partition/mig_config.h"
#include "node/partition/mig_gpu.h"

namespace berth::partition {

// UUID of a MIG instance, or of a GPU that is held as a whole -> who holds it: "team/train-0",
// "process 4711".
using MigUse = std::map<std::string, std::vector<std::string>, std::less<>>;

enum class MigReason : std::uint8_t {
  kNone,
  kInUse,           // "MigInUse": the holders must go first
  kNotSupported,    // "MigNotSupported": the GPU has no MIG
  kProfileUnknown,  // "MigProfileUnknown"
  kDoesNotFit,      // "MigDoesNotFit": not even on an empty GPU
  kNeedsReset,      // "MigNeedsReset": a mode that was set waits for a reset
  kBadLayout,       // "MigBadLayout": the declaration itself
};
std::string_view name(MigReason reason);

struct MigPlan {
  MigReason reason = MigReason::kNone;
  std::string refusal;                // a sentence; empty: the steps lead there
  std::vector<MigStep> steps;         // empty: it is so already
  std::vector<std::string> changing;  // UUIDs of GPUs with steps
  std::vector<std::string> kept;      // UUIDs of instances on those that stay
  bool refused() const { return reason != MigReason::kNone; }
};

// wishes: by UUID of the GPU; those without one are left alone.
MigPlan plan_mig(const std::vector<MigGpu>& gpus, const std::map<std::string, MigWish>& wishes,
                 const MigUse& use);

// What a GPU is cut into, as a wish that would be met already.
MigWish wish_of(const MigGpu& gpu);
MigWish wish_of(const model::GpuDevice& gpu);

}  // namespace berth::partition
