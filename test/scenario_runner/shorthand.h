// The one-line forms of nodes, pods, gangs and budgets, and the manifests they stand for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenario.h"

namespace berth::scenario {

// head: "4 nodes n", "node m1", "pod team/a on n0", "3 pods web/w", "gang ml/train",
// "budget web/b"; body: what follows the colon. running: the pod must say on which node.
Result<std::vector<Object>> read_shorthand(std::string_view head, std::string_view body, int line);

// node_shorthand.cc and pod_shorthand.cc
Result<std::vector<Object>> read_nodes(const std::vector<std::string>& head, std::string_view body);
Result<std::vector<Object>> read_pods(const std::vector<std::string>& head, std::string_view body);
Result<std::vector<Object>> read_gang(const std::vector<std::string>& head, std::string_view body);
Result<std::vector<Object>> read_budget(const std::vector<std::string>& head,
                                        std::string_view body);

// "H100": "NVIDIA-H100-80GB-HBM3".
std::string product_of(std::string_view model);

}  // namespace berth::scenario
