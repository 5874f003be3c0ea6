// Why a workload stands where it stands, and what would let it start.
//
// An Examiner is built once from the objects of a cluster (that costs as much as a plan) and then
// answers for any number of workloads. Every fix in an answer was tried: the decision ran on a copy
// of the cluster with it, and the workload started. Pure: the same inputs, options and subject give
// the same Answer. Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "people/view/plan.h"
#include "people/why/answer.h"
#include "people/why/unit.h"

namespace berth::people {

struct PartialReading;  // partial_reading.h

inline constexpr std::size_t kMostHoldersTold = 4096;  // where all are wanted

struct WhyOptions {
  PlanOptions plan;
  const ObjectSource* objects = nullptr;  // without it fixes name no objects
  std::vector<std::string> unseen;        // what the caller may not see
  std::string digest, replay;
  Decided decided;
  bool live = false;  // the objects are of a cluster that runs
  std::size_t most_fixes = 5;
  std::size_t most_holders = 16;
  int most_steps = 2;  // causes that hide one another which a fix may mend one after the other
  // Reads the objects anew with these changes: fixes get a second look by the way a plan takes, and
  // what is not in the model (an object that was refused) can be mended. Empty: the model's word is
  // enough, and fixes that only objects can tell are not offered.
  std::function<Result<kinds::Inputs>(const std::vector<ObjectChange>&)> reread;
  // The same without nodes and the pods on them, but for those named; serves where reading all of
  // them is dear (model_first).
  std::function<Result<kinds::Inputs>(const std::vector<ObjectChange>&, const kinds::Bound&)>
      reread_part;
  // The same where the API server would not take the objects with these changes, or holds them:
  // what is behind that. Empty: reread.
  std::function<Result<kinds::Inputs>(const std::vector<ObjectChange>&)> reread_as_written;
  // What the changes say of the subject, read in part; nullopt: all is to be read. The first by the
  // rules of the API server, the other as written. Set by the Examiner.
  std::function<std::optional<Result<PartialReading>>(const std::vector<ObjectChange>&)> partial,
      partial_as_written;
  // Reading anew is dear, or not all objects are at hand: it serves the rules of the API server and
  // what the model lacks. Fixes of what waits by the model go by its word.
  bool model_first = false;
};

class Examiner {
 public:
  Examiner(const kinds::Inputs& inputs, WhyOptions options);
  ~Examiner();
  Examiner(Examiner&&) noexcept;

  // An error when nothing, or more than one thing, has the name.
  Result<Answer> why(const Subject& subject);
  // The same with objects of its own: of these options all counts but the plan.
  Result<Answer> why(const Subject& subject, WhyOptions options);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The same question of what changes leave, read in part as written; options.objects has them.
Result<Answer> why_after(const PartialReading& read, const WhyOptions& options,
                         const Subject& subject);

// Whether a plan of the inputs places all of the subject.
bool starts_in(const kinds::Inputs& inputs, const PlanOptions& options, const Subject& subject);

}  // namespace berth::people
