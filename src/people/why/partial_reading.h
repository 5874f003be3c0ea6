// What objects with changes say, where reading and planning the whole cluster again is dear.
//
// In a large cluster nearly all objects are nodes and pods that run, and what is tried leaves them
// alone: but for those that the subject or the changes name they are not read, and what the others
// say otherwise than the inputs did becomes a Draft on the snapshot that is there. Only changes
// that cannot concern what is left out are read so: of pods and what makes, ranks, limits or
// refuses them, never of nodes, groups and queues.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kinds/manifest.h"
#include "people/why/draft.h"
#include "people/why/trial.h"
#include "people/why/unit.h"

namespace berth::people {

struct PartialReading {
  const Trials* on = nullptr;                 // the cluster without the changes
  std::unique_ptr<const kinds::Inputs> part;  // what was read; unit points into it
  Unit unit;
  Draft draft;  // of the model alone
};

// Whether these changes can be read in part.
bool concern_few(const std::vector<ObjectChange>& changes, const kinds::Inputs& inputs);
// The bound pods to be read too: the unit's, and those of the changes.
kinds::Bound beside(const Unit& unit, const std::vector<ObjectChange>& changes,
                    const kinds::Inputs& inputs);
// part: what was read so with the changes. An error when the subject is not in it.
Result<PartialReading> compare(const Trials& trials, kinds::Inputs part, const kinds::Bound& read,
                               const std::vector<ObjectChange>& changes, const ObjectSource* source,
                               const Subject& subject);
// Whether the decision places all of it.
bool starts(const PartialReading& read);

}  // namespace berth::people
