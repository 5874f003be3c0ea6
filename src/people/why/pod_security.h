// What a namespace says of the pods that may be made in it: whether it takes any, whose account
// they may run under, and which of Kubernetes' Pod Security Standards they have to keep.
//
// Part of the API server's rules (server_rules.h). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "people/why/pod_template.h"
#include "people/why/server_rules.h"
#include "text/tree.h"

namespace berth::people {

using text::Tree;

// The namespace is being deleted, or the service account does not exist, or the standard that the
// namespace enforces forbids the pod.
std::optional<Held> by_admission(const ObjectSource& objects, const PodTemplate& mine);

// Takes out of a pod's spec, or adds to it, what keeps it from meeting the standard. Volumes stay:
// without them it may not work.
void meet_standard(Tree& spec, std::string_view standard);

}  // namespace berth::people
