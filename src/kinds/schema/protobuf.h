// Bodies in Kubernetes' protobuf form, as the JSON that the same client would have sent: kubectl
// and other Go clients write built-in kinds this way and do not fall back.
//
// Pure and thread-safe. What Go leaves out of JSON is left out here; unknown field numbers are
// skipped, as Go skips them. Refused with the place: bodies cut short, text that is not UTF-8,
// nesting over 64, kinds that are not built in (custom resources have no protobuf form). Cost: one
// pass over the bytes.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::sim {

inline constexpr std::string_view kProtobufMediaType = "application/vnd.kubernetes.protobuf";

// An object with apiVersion and kind first.
Result<std::string> protobuf_to_json(std::string_view body);

}  // namespace berth::sim
