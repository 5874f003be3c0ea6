#include "lp_bound.h"

#include <algorithm>

#ifdef BERTH_HAVE_CLP
#include <Clp_C_Interface.h>
#endif

namespace berth::openb {

#ifndef BERTH_HAVE_CLP

bool lp_available() { return false; }

std::optional<double> lp_bound_pct(const Inventory&, const PodList&, const Arrivals&, int) {
  return std::nullopt;
}

#else

namespace {

constexpr int kMostSteps = 12;

// Sizes a device is divided into by `steps` of the function family u^(k); exact multiples stay.
double stepped(int32_t milli, int steps) {
  const int32_t scaled = (steps + 1) * milli;
  if (scaled % kWholeGpu == 0) return static_cast<double>(milli) / kWholeGpu;
  return static_cast<double>(scaled / kWholeGpu) / steps;
}

// Small items vanish, what leaves room only for small items counts as a whole device.
double thresholded(int32_t milli, int32_t small_milli) {
  if (milli > kWholeGpu - small_milli) return 1.0;
  if (milli < small_milli) return 0.0;
  return static_cast<double>(milli) / kWholeGpu;
}

struct Demand {
  Shape shape;
  double count = 0;
};

std::vector<Demand> arrived_demands(const Inventory& inventory, const PodList& list,
                                    const Arrivals& arrivals, int arrived_pct) {
  std::vector<Demand> demands(list.shapes.size());
  const int64_t limit = inventory.gpu_milli * arrived_pct / 100;
  int64_t arrived = 0;
  for (const uint32_t at : arrivals.pods) {
    const uint32_t shape = list.pods[at].shape;
    arrived += list.shapes[shape].total_gpu_milli();
    if (arrived > limit) break;
    demands[shape].shape = list.shapes[shape];
    demands[shape].count += 1;
  }
  std::erase_if(demands, [](const Demand& d) { return d.count == 0 || d.shape.num_gpu == 0; });
  return demands;
}

// The functions as tables: value of a device share under each, by demand.
std::vector<std::vector<double> > device_functions(const std::vector<Demand>& demands) {
  std::vector<int32_t> sizes;
  for (const Demand& demand : demands) {
    if (demand.shape.gpu_milli <= kWholeGpu / 2) sizes.push_back(demand.shape.gpu_milli);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::vector<std::vector<double> > functions;
  const auto add = [&](auto&& value_of) {
    std::vector<double> values;
    for (const Demand& demand : demands) values.push_back(value_of(demand.shape.gpu_milli));
    functions.push_back(std::move(values));
  };
  add([](int32_t milli) { return static_cast<double>(milli) / kWholeGpu; });
  for (int steps = 1; steps <= kMostSteps; ++steps) {
    add([steps](int32_t milli) { return stepped(milli, steps); });
  }
  for (const int32_t small : sizes) {
    // Just above the size itself, so that it vanishes too; its complement then fills a device.
    add([small](int32_t milli) { return thresholded(milli, small); });
    add([small](int32_t milli) { return thresholded(milli, std::min(small + 1, kWholeGpu / 2)); });
  }
  return functions;
}

bool can_host(const NodeClass& known, const Shape& shape) {
  return ((shape.model_mask >> known.model) & 1U) != 0 && shape.num_gpu <= known.gpus &&
         shape.cpu_milli <= known.cpu_milli;
}

// Rows: per class CPU then every device function; then one row per demand.
struct Program {
  std::vector<CoinBigIndex> starts{0};
  std::vector<int> rows;
  std::vector<double> values;
  std::vector<double> costs;
  std::vector<double> limits;

  void put(size_t row, double value) {
    if (value == 0) return;
    rows.push_back(static_cast<int>(row));
    values.push_back(value);
  }
  void end_column(double cost) {
    starts.push_back(static_cast<CoinBigIndex>(rows.size()));
    costs.push_back(cost);
  }
};

Program build(const Inventory& inventory, const std::vector<Demand>& demands) {
  const auto functions = device_functions(demands);
  const size_t rows_per_class = functions.size() + 1;
  const size_t first_demand_row = rows_per_class * inventory.classes.size();
  Program program;
  for (const NodeClass& known : inventory.classes) {
    program.limits.push_back(static_cast<double>(known.cpu_milli) * known.nodes / kWholeGpu);
    program.limits.insert(program.limits.end(), functions.size(),
                          static_cast<double>(known.gpus) * known.nodes);
  }
  for (const Demand& demand : demands) program.limits.push_back(demand.count);
  for (size_t at = 0; at < demands.size(); ++at) {
    const Shape& shape = demands[at].shape;
    for (size_t known = 0; known < inventory.classes.size(); ++known) {
      if (!can_host(inventory.classes[known], shape)) continue;
      const size_t row = known * rows_per_class;
      program.put(row, static_cast<double>(shape.cpu_milli) / kWholeGpu);
      for (size_t function = 0; function < functions.size(); ++function) {
        program.put(row + 1 + function, shape.num_gpu * functions[function][at]);
      }
      program.put(first_demand_row + at, 1.0);
      program.end_column(-static_cast<double>(shape.total_gpu_milli()) / kWholeGpu);
    }
  }
  return program;
}

}  // namespace

bool lp_available() { return true; }

std::optional<double> lp_bound_pct(const Inventory& inventory, const PodList& list,
                                   const Arrivals& arrivals, int arrived_pct) {
  const auto demands = arrived_demands(inventory, list, arrivals, arrived_pct);
  const Program program = build(inventory, demands);
  const auto columns = static_cast<int>(program.costs.size());
  const auto rows = static_cast<int>(program.limits.size());
  const std::vector<double> zeros(static_cast<size_t>(std::max(columns, rows)), 0.0);
  Clp_Simplex* model = Clp_newModel();
  Clp_setLogLevel(model, 0);
  Clp_loadProblem(model, columns, rows, program.starts.data(), program.rows.data(),
                  program.values.data(), zeros.data(), nullptr, program.costs.data(), zeros.data(),
                  program.limits.data());
  Clp_dual(model, 0);
  const bool solved = Clp_status(model) == 0;
  const double gpus = -Clp_objectiveValue(model);
  Clp_deleteModel(model);
  if (!solved) return std::nullopt;
  return 100.0 - 100.0 * gpus * kWholeGpu / static_cast<double>(inventory.gpu_milli);
}

#endif

}  // namespace berth::openb
