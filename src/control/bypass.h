// Ways by which a pod reaches GPUs that nobody gave it: what the webhook warns of, and refuses on
// wish. Where containers get devices by CDI alone, the variable and the mounts below have no
// effect; the others have, everywhere.
//
// Pure. What is not as it should be is passed over: the API server judges it. Bounded:
// kMostBypasses of a pod are told of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/value.h"

namespace berth::control {

inline constexpr std::size_t kMostBypasses = 8;

// pod: a Pod or a template; at: where it stands in its object, "" for the object itself. fresh:
// only its ephemeral containers, the rest was judged before. Each as a sentence without a stop:
// "spec.containers[0].env[2]: ...".
std::vector<std::string> find_bypasses(const text::Value& pod, std::string_view at, bool fresh);

}  // namespace berth::control
