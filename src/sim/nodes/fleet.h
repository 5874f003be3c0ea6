// Fleet YAML: the simulated machines and what happens to them (docs/fleet.md).
//
//   pools:
//   - {name: a100, count: 4, model: A100-SXM4-80GB, gpus: 8, racks: 2, labels: {tier: train}}
//   faults:
//   - {at: 30s, node: a100-0, gpu: 3, kind: xid, code: 79}
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/value.h"

namespace berth::sim {

struct Taint {
  std::string key, value, effect;
};

struct Pool {
  std::string name;
  int count = 1;
  std::string model;  // a product name, as feature discovery writes it; empty: no GPUs
  int gpus = 0;       // of a node
  int nvlink = 0;     // GPUs of one clique; 0: none
  int racks = 1;      // the nodes are spread over so many
  std::string zone, block;
  std::map<std::string, std::string> labels;
  std::vector<Taint> taints;
  std::int64_t cpu_milli = 0, memory_bytes = 0, gpu_memory_mib = 0;
  int pods = 110;
};

enum class FaultKind : std::uint8_t {
  kXid,
  kEcc,
  kGpuLost,
  kNvlinkDown,
  kRecover,
  kNotReady,
  kReady,
  kReboot,
  kSlowStart,
  kRefusePods,
};

struct Fault {
  std::int64_t at_ns = 0;
  std::string node;
  int gpu = -1;  // -1: the whole node
  FaultKind kind = FaultKind::kXid;
  int code = 0;             // of an Xid
  std::int64_t for_ns = 0;  // then it recovers by itself; 0: never
};

struct Fleet {
  std::vector<Pool> pools;
  std::vector<Fault> faults;
  std::size_t nodes() const;
  std::size_t gpus() const;
};

// Errors name the field's path, what was found and what is allowed.
Result<Fleet> parse_fleet(std::string_view yaml);
// Nodes of eight H100s, the last with the rest: what `berth up --gpus N` means.
Fleet fleet_of_gpus(int gpus);

}  // namespace berth::sim
