// Nodes that have as many volumes of a CSI driver attached as they can (CSINode). A decision does
// not know of them: the volumes of what is asked about are kept off such nodes, and the decision
// then says that they cannot be reached there. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "people/why/draft.h"
#include "people/why/unit.h"

namespace berth::people {

struct FullNode {
  std::string node, driver;
  int most = 0;
  std::set<std::string> attached;    // PersistentVolumes that pods there use
  std::set<std::string> volumes;     // that would come to it
  std::vector<std::string> holders;  // "ns/name" of those pods
};

// spec: of a pod of the namespace. Costs a pass over the pods where it has bound CSI volumes and a
// CSINode is in the input.
std::vector<FullNode> full_nodes(const ObjectSource& objects, const std::string& ns,
                                 const text::Value* spec);
void keep_off_full_nodes(const ObjectSource& objects, const std::string& ns,
                         const text::Value* spec, Draft& draft);
std::string told_of(const FullNode& full);  // for people
// What is wrong with a claim that has no volume, where its object says so; else empty.
std::string told_of_claim(const ObjectSource& objects, const std::string& ns,
                          const std::string& claim);
// Of the pods that are described there.
std::vector<FullNode> full_nodes(const ObjectSource& objects,
                                 const std::vector<TemplatePlace>& places);

}  // namespace berth::people
