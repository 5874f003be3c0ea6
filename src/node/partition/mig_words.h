// What the agent and its helper say to one another about MIG, as JSON. Pure.
//
//   {"verb":"mig-list"}
//   {"verb":"mig-create","gpu":"GPU-...","profile":"1g.18gb","start":6}
//   {"verb":"mig-destroy","gpu":"GPU-...","profile":"1g.18gb","start":6,"instance":9,
//    "compute":["MIG-..."]}
//
//   {"ok":true,"gpus":[...]}
//   {"ok":false,"code":"conflict","error":"in use by another client"}
//
// The list of verbs is closed: a request with another verb, with a field that its verb does not
// have, or with a value out of bounds is refused as a whole, with the field's path.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/partition/mig_gpu.h"

namespace berth::partition {

inline constexpr std::size_t kMaxHelperRequest = 16 * 1024;
inline constexpr std::size_t kMaxHelperAnswer = 1024 * 1024;

// nullopt: mig-list.
struct HelperRequest {
  std::optional<MigStep> step;
  friend bool operator==(const HelperRequest&, const HelperRequest&) = default;
};
std::string write_request(const HelperRequest& request);
Result<HelperRequest> read_request(std::string_view text);

std::string write_answer(const Result<std::vector<MigGpu>>& answer);
std::string write_answer(const Status& answer);
// The error that the helper tells, or one that says what is wrong with the answer. A step's answer
// has no GPUs.
Result<std::vector<MigGpu>> read_answer(std::string_view text);

}  // namespace berth::partition
