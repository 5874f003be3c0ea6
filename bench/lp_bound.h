// A lower bound on unallocated GPU that no placement policy can beat.
//
// A linear program: pods of a shape may be split over node classes at will, node borders, memory
// and CPU-only pods are ignored. Per class the GPU, the CPU and, for a family of dual feasible
// functions f, the devices must suffice: sum num_gpu * f(gpu_milli) <= devices. Each f maps sizes
// so that whatever fits one device still sums to at most one; together they know, for example, that
// two halves and a bit need two devices.
#pragma once

#include <optional>

#include "openb_trace.h"

namespace berth::openb {

// Whether the program was built with the LP solver.
bool lp_available();

// Unallocated GPU in % when the pods that make up `arrived_pct` of the GPUs have arrived; nothing
// without a solver or when the solver fails.
std::optional<double> lp_bound_pct(const Inventory& inventory, const PodList& list,
                                   const Arrivals& arrivals, int arrived_pct);

}  // namespace berth::openb
