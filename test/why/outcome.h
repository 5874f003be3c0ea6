// The commands, run in this process, and what `berth plan` says of one workload.
#pragma once

#include <string>
#include <vector>

#include "objects.h"

namespace berth::why_corpus {

struct Ran {
  int code = 0;
  std::string out, err;
};
Ran run_berth(const std::vector<std::string>& arguments, const std::string& standard_input);

struct Subject {
  std::string kind, ns, name;  // pod, job, workload, podgroup
};

// Whether the workload runs or would be started by the plan; else its reason there ("" when the
// plan does not list it). A gang of which the minimum starts, starts.
struct Outcome {
  bool starts = false;
  std::string reason, retry;
};
Result<Outcome> plan_of(const Objects& objects, const Subject& subject, const std::string& now);

}  // namespace berth::why_corpus
