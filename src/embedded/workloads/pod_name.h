// Names of the pods and ReplicaSets that controllers make.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace berth::sim {

// Eight characters of the alphabet that Kubernetes uses for generated names, from a text.
std::string name_hash(std::string_view seed);

// "base-xxxxx": the base is cut so that the name has at most 63 characters.
std::string pod_name(std::string_view base, std::string_view seed);

}  // namespace berth::sim
