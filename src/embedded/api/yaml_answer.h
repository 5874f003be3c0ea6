// JSON text as YAML, for clients that accept nothing else. Pure.
#pragma once

#include <string>
#include <string_view>

namespace berth::sim::api {

// Block style, keys sorted, as sigs.k8s.io/yaml prints; every string that YAML could read as
// something else is quoted. Text that is no JSON stays as it is.
std::string yaml_of(std::string_view json);
// One item of a list at the left edge, "- " included.
void append_yaml_item(std::string_view json, std::string& out);

}  // namespace berth::sim::api
