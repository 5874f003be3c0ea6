// Names of a Python file that nothing in it binds: modules that are not imported, functions that
// are not there.
//
// Reads tokens, not a tree, and keeps one scope for the whole file: a name that is bound anywhere
// counts as known everywhere, so it says too little rather than too much. Only check_python.cc
// uses it. Cost: one pass.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace berth::lint {

struct PythonName {
  std::string name;
  std::size_t at = 0;  // where it is used first
};

// code: without comments and the insides of strings. In the order of use; nothing when the file
// imports names by *.
std::vector<PythonName> unbound_names(std::string_view code);

}  // namespace berth::lint
