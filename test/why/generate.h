// Random clusters with one or two causes put into them, so that the truth is known.
//
// Every node that could take the workload (the targets) is blocked by each cause in the same way;
// every other node is blocked by two rules that nobody touches. So the workload starts when all
// causes are cured, and not when one is left; check_truth() holds the generator to that.
#pragma once

#include <cstdint>

#include "case_file.h"

namespace berth::why_corpus {

// The same seed gives the same case; name tells what was put in.
Case random_case(std::uint64_t seed);

}  // namespace berth::why_corpus
