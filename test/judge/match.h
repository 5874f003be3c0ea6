// Label selectors, tolerations and pod sets as Kubernetes defines them, straight off the specs.
#pragma once

#include <string>
#include <string_view>

#include "model/spec.h"

namespace berth::judging {

bool matches(const text::Selector& selector, const model::Labels& labels);
bool matches(const model::NodeSelectorTerm& term, const model::NodeSpec& node);
bool matches(const model::PodSet& set, const model::PodSpec& pod);

// nodeSelector and the required node affinity; a pod without terms has no affinity to meet.
bool selected(const model::PodSpec& pod, const model::NodeSpec& node);
bool affine(const model::PodSpec& pod, const model::NodeSpec& node);

bool tolerated(const model::PodSpec& pod, const model::Taint& taint);
// Every NoSchedule and NoExecute taint but those whose key begins with `but`.
bool taints_tolerated(const model::PodSpec& pod, const model::NodeSpec& node,
                      std::string_view but = {});

const std::string* find_label(const model::Labels& labels, std::string_view key);
std::string full_name(const model::PodSpec& pod);  // "ns/name"

}  // namespace berth::judging
