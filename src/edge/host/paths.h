// Folders and links below a root that is not ours. Blocking and short; errors are empty answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace berth::host {

// The names in a folder, sorted, without "." and ".."; at most 65,536.
std::vector<std::string> names_in(const std::string& folder);

// Where path ("/usr/lib64/libcuda.so.1") ends when the links on the way are followed as if root
// were
// "/": the path below root, nothing where it does not exist. Links cannot lead out of root.
std::optional<std::string> resolve_below(const std::string& root, const std::string& path);

// "/" + "/dev" = "/dev"; "/run/driver/" + "/dev" = "/run/driver/dev".
std::string below(const std::string& root, const std::string& path);

}  // namespace berth::host
