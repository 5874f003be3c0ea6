// What an explanation is held to. Every broken promise is one line of text.
//
//   G1  verdict, reason, stage, also, exit code; nothing else is blamed
//   G2  every fix, applied to the objects, lets the plan start the workload, and changes no amount
//       that it does not name
//   G3  each cause that is named holds it: without its cure the workload does not start, and once
//       it is cured nothing names it any more
//   G4  the same bytes twice, and for the documents in reverse order
// and: the table fits 80 columns and holds no control characters, the JSON has the keys of
// docs/why.md in their order.
#pragma once

#include <string>
#include <vector>

#include "case_file.h"

namespace berth::why_corpus {

struct Tally {
  int cases = 0, primary_right = 0, fixes = 0, fixes_work = 0, without_fix = 0;
};

// Adds to tally; empty: everything holds.
std::vector<std::string> check_case(const Case& one, Tally& tally);

// Of the case itself, by `berth plan` alone: it does not start, it starts when everything is cured,
// and not when any one cause is left.
std::vector<std::string> check_truth(const Case& one);

std::string summary(const Tally& tally);

}  // namespace berth::why_corpus
