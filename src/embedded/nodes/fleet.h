// Fleet YAML: the simulated machines and what happens to them (docs/fleet.md).
//
//   pools:
//   - {name: a100, count: 4, model: A100-SXM4-80GB, gpus: 8, racks: 2, labels: {tier: train}}
//   faults:
//   - {at: 30s, node: a100-0, gpu: 3, kind: xid, code: 79}
//
// A parsed Fleet is complete: what the file leaves out is filled in by the GPU model, and every
// fault names a node and a GPU that exist. Pure; cost: the size of the file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/spec.h"
#include "text/value.h"

namespace berth::sim {

inline constexpr std::size_t kMaxFleetNodes = 20'000;
inline constexpr std::size_t kMaxFleetFaults = 100'000;

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

  std::int64_t storage_bytes = 0;  // ephemeral-storage
  int shares = 1;                  // pods that may share a GPU
  std::string mig;                 // profile that every GPU is cut into, as "1g.10gb"; empty: none
  int mig_slots = 0;               // of it on one GPU
  model::NumaPolicy numa_policy = model::NumaPolicy::kNone;
  model::NumaScope numa_scope = model::NumaScope::kContainer;

  std::string node_name(int i) const;  // "a100-0"
  std::string rack_of(int i) const;    // "a100-rack0": neighbours share a rack
};

enum class FaultKind : std::uint8_t {
  kXid,
  kEcc,
  kGpuLost,
  kGpuSilent,  // its driver does not answer
  kNvlinkDown,
  kRecover,
  kNotReady,
  kReady,
  kReboot,
  kSlowStart,
  kRefusePods,
  kSilent,  // the kubelet stops talking: no heartbeats, no status, no starts
};

std::string_view name(FaultKind kind);  // "xid", "gpu-lost", "not-ready", ...

struct Fault {
  std::int64_t at_ns = 0;
  std::string node;
  int gpu = -1;  // -1: the whole node
  FaultKind kind = FaultKind::kXid;
  int code = 0;                                     // of an Xid
  std::int64_t for_ns = 0;                          // then it recovers by itself; 0: never
  std::int64_t delay_ns = 30'000'000'000;           // of a slow start
  std::string reason = "UnexpectedAdmissionError";  // of refused pods
  std::int64_t agent_ns = 0;                        // after a reboot the agent comes so much later
};

struct Fleet {
  std::vector<Pool> pools;
  std::vector<Fault> faults;  // by time
  std::size_t nodes() const;
  std::size_t gpus() const;
};

// Errors name the field's path, what was found and what is allowed.
Result<Fleet> parse_fleet(std::string_view yaml);
// Nodes of eight H100s, the last with the rest: what `berth up --gpus N` means. 0 gives one node
// without GPUs; beyond 16 * kMaxFleetNodes the number is cut.
Fleet fleet_of_gpus(int gpus);

// A fault as the annotation sim.berth.dev/fault and a command line spell it: the kind, then
// name=value: "xid gpu=3 code=79 for=5m", "refuse-pods reason=TopologyAffinityError". The node is
// not part of it; gpus is how many the node has.
Result<Fault> parse_fault(std::string_view text, int gpus);

}  // namespace berth::sim
