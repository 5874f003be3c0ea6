// What of an answer its reader may see: names that the cluster would not show him are taken out.
//
// The answer stays the same otherwise: counts, reasons and fixes hold for the whole cluster. Taints
// and labels that a fix names are shown, since it would be of no use without. Pure; O(answer +
// nodes + pods).
#pragma once

#include <set>
#include <string>

#include "kinds/manifest.h"
#include "people/why/answer.h"

namespace berth::people {

struct Visibility {
  bool pods = true;                                    // of all namespaces
  bool nodes = true;                                   // by name
  std::set<std::string, std::less<>> namespaces = {};  // where he may see pods, if not everywhere
  // Whose objects he may not list where the subject is, of those that rules are read from:
  // "ResourceQuota", "ServiceAccount".
  std::set<std::string, std::less<>> unseen = {};

  bool whole() const { return pods && nodes && unseen.empty(); }
};

// Pods elsewhere become "another team", nodes that carry nothing of his "node 1", "node 2" in the
// order in which the answer names them. Of a rule whose object he may not list the reason stays,
// without names and numbers. Fixes that change what he may not see say so and carry no changes;
// evidence.summarised tells what was taken out.
void summarise(const kinds::Inputs& inputs, const Visibility& visibility, Answer& answer);

}  // namespace berth::people
