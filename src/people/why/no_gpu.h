// Why a pod has no GPU though it should: checks along the way of a GPU into a container.
//
// Each looks at one thing, says what it saw and, where that is wrong, what to do; a check that
// lacks its evidence says "unknown" and what would tell. Nothing is guessed: "ok" means that the
// evidence was there. The objects are as the API gives them and may be anything. Pure; O(objects).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/value.h"

namespace berth::people {

enum class CheckState : std::uint8_t {
  kOk,
  kWarning,  // works or may work, and often is not what people want
  kFailed,
  kUnknown,  // no evidence
};
std::string_view name(CheckState state);  // "ok", "warning", "failed", "unknown"

// Who has to act on a check that failed.
enum class CheckOwner : std::uint8_t { kPod, kPlatform, kTime };
std::string_view name(CheckOwner owner);  // "pod", "platform", "nobody"

struct GpuCheck {
  std::string id;  // "asks", "placed", "node", ...: docs/why-no-gpu.md has a section for each
  CheckState state = CheckState::kUnknown;
  CheckOwner owner = CheckOwner::kPod;
  std::string saw, fix;  // fix: empty when there is nothing to do
};

struct NoGpuEvidence {
  const text::Value* pod = nullptr;                        // never null
  const text::Value *node = nullptr, *gpu_node = nullptr;  // of the pod; null: not seen
  bool node_unseen = false, gpu_node_unseen = false;       // null because it may not be read
  std::vector<const text::Value*> runtime_classes = {};
  bool runtime_classes_seen = false;
  const text::Value* agent = nullptr;  // status.json of the node's agent, where we are on the node
  std::string agent_error = {};        // why it could not be read
};

struct NoGpuAnswer {
  std::string ns, name, node;
  std::string line;  // the first that failed, or that nothing is wrong
  std::vector<GpuCheck> checks;
  // 0 nothing is wrong; 10 a warning, or it is a matter of time; 20 the pod must be corrected; 40
  // the node or a GPU is broken.
  int exit_code = 0;
};

NoGpuAnswer why_no_gpu(const NoGpuEvidence& evidence);

std::string no_gpu_json(const NoGpuAnswer& answer);   // keys in a fixed order
std::string no_gpu_table(const NoGpuAnswer& answer);  // at most 80 columns

}  // namespace berth::people
