// Fields of kinds that berth does not serve: Karpenter, KEDA, Argo, Tekton, KServe, Prometheus.
//
// A table of what may stand where, as far as lint needs it. A path that the table does not name is
// not looked at.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace berth::lint {

struct Shape {
  std::string_view api, kind;
  std::string_view path;  // "spec.template.spec"; "[]" for every item, "*" for every key
  std::string_view
      fields;  // "name! values:l"; ! is required, s i b l m: string, int, bool, list, map
};

std::span<const Shape> shapes();
std::vector<std::string> shape_groups(std::string_view kind);
std::vector<std::string> shape_versions(std::string_view group, std::string_view kind);

}  // namespace berth::lint
