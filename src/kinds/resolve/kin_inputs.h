// One kin of a namespace's objects (kin_index.h) resolved by itself.
//
// What it has in common with all others is made once, and given in: nodes, queues and what pods
// refer to by name. What of the quota that is left its pods may have beside what they were let in
// with depends on every kin: it is not taken here but listed, and settled over all of them.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kinds/resolve/known_nodes.h"
#include "kinds/resolve/known_queues.h"
#include "kinds/resolve/pod_references.h"
#include "kinds/resolve/quota_asks.h"
#include "kinds/resolve/resolution.h"

namespace berth::kinds {

// Priority classes, volumes, and queues with what governs them.
struct CommonFacts {
  CommonFacts(Gathered objects, const ManifestOptions& options_in)
      : in(std::move(objects)),
        options(options_in),
        all{.in = in, .options = options},
        references(all),
        queues(all) {}

  const model::QueueRules& rules() const { return all.out.queues; }

  Gathered in;
  ManifestOptions options;
  Resolution all;
  PodReferences references;
  KnownQueues queues;
};

struct KinInputs {
  std::vector<model::WorkloadSpec> workloads;               // by name
  std::vector<model::PodSpec> pods;                         // by name
  std::vector<std::pair<std::string, std::string>> beyond;  // as of Inputs
  QuotaAsks asks;
};
// granted: asks (QuotaAsks::More::key) whose pods have what they ask for.
KinInputs resolve_kin(Gathered&& objects, const KnownNodes& nodes, CommonFacts& facts,
                      const std::set<std::string, std::less<>>& granted);

}  // namespace berth::kinds
