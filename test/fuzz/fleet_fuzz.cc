// Fleet files, faults as annotations spell them, and the completed indexes of Jobs.
#include <set>
#include <string>

#include "embedded/nodes/fleet.h"
#include "embedded/workloads/index_set.h"
#include "fuzz.h"

namespace {

using namespace berth;

void check_fault(const sim::Fault& fault) {
  fuzz::check(fault.at_ns >= 0 && fault.for_ns >= 0 && fault.delay_ns >= 0 && fault.agent_ns >= 0,
              "times are not negative");
  fuzz::check(!sim::name(fault.kind).empty(), "a kind has a name");
}

void check_fleet(std::string_view input) {
  const auto fleet = sim::parse_fleet(input);
  if (!fleet.ok()) return fuzz::check(!fleet.error().to_string().empty(), "refused with a reason");
  fuzz::check(fleet->nodes() <= sim::kMaxFleetNodes, "nodes are bounded");
  fuzz::check(fleet->faults.size() <= sim::kMaxFleetFaults, "faults are bounded");
  std::set<std::string> pools;
  for (const sim::Pool& pool : fleet->pools) {
    fuzz::check(pools.insert(pool.name).second, "pools have names of their own");
    fuzz::check(pool.count >= 0 && pool.racks >= 1 && pool.shares >= 1 && pool.pods >= 0,
                "counts are in range");
    fuzz::check(pool.cpu_milli >= 0 && pool.memory_bytes >= 0 && pool.gpu_memory_mib >= 0 &&
                    pool.storage_bytes >= 0,
                "amounts are in range");
    if (pool.count == 0) continue;
    fuzz::check(!pool.rack_of(pool.count - 1).empty() && !pool.node_name(0).empty(),
                "a node has a name and a rack");
  }
  std::int64_t last = 0;
  for (const sim::Fault& fault : fleet->faults) {
    check_fault(fault);
    fuzz::check(fault.at_ns >= last, "faults come in order");
    last = fault.at_ns;
  }
}

void check_indexes(std::string_view input) {
  constexpr int kLimit = 100'000;
  const sim::IndexSet set = sim::IndexSet::parse(input, kLimit);
  int size = 0, before = -2;
  for (const auto& [first, last] : set.intervals()) {
    fuzz::check(first > before + 1 && first <= last && last < kLimit, "in order, never touching");
    before = last;
    size += last - first + 1;
  }
  fuzz::check(size == set.size(), "counted");
  fuzz::check(sim::IndexSet::parse(set.to_string(), kLimit) == set, "a set reads back");
}

}  // namespace

BERTH_FUZZ_TARGET(fleet) {
  const std::string_view input = fuzz::text_of(data, size);
  check_fleet(input);
  if (const auto fault = sim::parse_fault(input, 8); fault.ok()) {
    check_fault(*fault);
    fuzz::check(fault->gpu >= -1 && fault->gpu < 8, "a GPU that is there");
  }
  check_indexes(input);
  return 0;
}
