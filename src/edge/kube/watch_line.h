// One line of a watch: {"type":"ADDED","object":{...}}. Pure.
//
// Cost: one pass; the object is read straight into its own Document where the line has the form
// that every Kubernetes server writes, and copied once otherwise.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "edge/kube/reflector.h"
#include "text/value.h"

namespace berth::kube {

struct WatchLine {
  WatchType type = WatchType::kUnknown;
  text::Document object;
};
Result<WatchLine> read_watch_line(std::string_view line);

// A copy of its own without the fields at these paths ("status", "metadata.managedFields"). Where
// the object does not name its kind (items of a list do not), it is given these.
text::Document copy_object(const text::Value& object, const std::vector<std::string>& without,
                           std::string_view api_version, std::string_view kind);

// Whether any of the paths leads to something.
bool has_any_path(const text::Value& object, const std::vector<std::string>& paths);

}  // namespace berth::kube
