// The CustomResourceDefinitions of deploy/crds, as one YAML stream inside the program.
#pragma once

#include <string_view>

namespace berth::app {

std::string_view user_crds();

}  // namespace berth::app
