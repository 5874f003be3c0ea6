// Why not: certificates, reasons and verdicts of workloads that were not placed.
#pragma once

#include "judge/gang.h"
#include "model/decision.h"

namespace berth::judging {

struct Explained {
  model::Verdict verdict = model::Verdict::kWait;
  model::Reason reason = model::Reason::kNone;
  model::Certificate certificate;
};

// before: the state that the workload was decided on; empty: the same nodes without pods; after:
// what a partial placement left, else null. The gang's part of the certificate only when `full`.
Explained explain(const Workload& workload, const State& before, const State& empty,
                  const State* after, const JudgePolicy& policy, bool full);

}  // namespace berth::judging
