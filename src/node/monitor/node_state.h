// Whether a node's GPUs can be used, step by step, and why not yet (docs/health.md).
//
// The steps follow one another: driver, devices, cdi, registration, allocatable. The first one that
// is not ok is the node's reason; those after it wait. The agent fills in what it sees and
// publishes what comes out: conditions on the Node, and `berth agent status`. A node whose PCI bus
// has no GPU, and where no driver answers, is ready: an agent may run on every node. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "node/monitor/health.h"

namespace berth::monitor {

struct NodeSights {
  bool driver_answers = false;
  std::string driver_error;  // why not; empty: it was not asked yet
  std::string driver_version;
  struct Gpu {
    int index = 0;
    std::string uuid;
    Verdict verdict;
  };
  std::vector<Gpu> gpus;    // by index
  int gpus_on_bus = -1;     // that the PCI bus shows; -1: not looked
  std::string offer_error;  // why they cannot be offered as configured; empty: they can

  bool cdi_wanted = true;  // false: the configured ways to hand out devices need no spec
  bool cdi_written = false;
  std::string cdi_error;

  struct Resource {
    std::string name;
    int devices = 0, healthy = 0;  // as offered
    bool registered = false;
    std::string error;     // of the last try to register
    int allocatable = -1;  // on the Node; -1: not seen there
  };
  std::vector<Resource> resources;
  struct Mig {
    std::string layout, state, reason, text;  // state empty: no layout is declared
  };
  Mig mig;
  bool node_watched = true;  // false: there is no API server to see the Node in
};

enum class StepState : std::uint8_t { kOk, kWaiting, kFailed };
std::string_view name(StepState state);  // "ok", "waiting", "failed"

struct ReadyStep {
  std::string_view step;  // "driver", "devices", "cdi", "registration", "allocatable"
  StepState state = StepState::kWaiting;
  std::string_view reason;  // "DriverUnavailable"; of a step that waits: "Waiting"
  std::string text;
  friend bool operator==(const ReadyStep&, const ReadyStep&) = default;
};

struct NodeCondition {
  std::string_view type;    // "GpuReady", "GpuHealthy"
  std::string_view status;  // "True", "False", "Unknown"
  std::string_view reason;
  std::string message;  // at most 1,024 bytes
  friend bool operator==(const NodeCondition&, const NodeCondition&) = default;
};

struct NodeState {
  bool ready = false;
  std::vector<ReadyStep> steps;           // all five
  std::vector<NodeCondition> conditions;  // both; none on a node without GPUs
};

NodeState node_state(const NodeSights& sights);

// For people: at most 80 columns, safe for a terminal.
std::string status_table(const NodeSights& sights, const NodeState& state);
std::string status_json(const NodeSights& sights, const NodeState& state);

}  // namespace berth::monitor
