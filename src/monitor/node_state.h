// Whether a node can take GPU pods, step by step: driver, devices, CDI, registration, allocatable.
//
// A pure function: what the agent knows in, a report out. The report is what `berth agent status`
// prints, what the Node's conditions say, and what takes the startup taint away.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/health.h"

namespace berth::monitor {

struct ResourceInput {
  std::string name;
  int devices = 0, healthy = 0;
  bool registered = false;
  std::string problem;             // why it is not registered; empty: under way
  std::optional<int> allocatable;  // on the Node; absent: the Node was not seen
};

struct GpuInput {
  int index = 0;
  std::string uuid, name;
  Verdict verdict;
};

struct NodeInputs {
  std::string node;
  bool driver_answers = false;
  std::string driver_problem;  // empty: it was not asked yet, or it answers
  std::string offer_problem;   // the configuration does not fit the machine, or cannot be read
  bool cdi_wanted = true, cdi_written = false;
  std::string cdi_problem;
  bool has_api = true;  // without it allocatable is not looked at
  std::vector<ResourceInput> resources;
  std::vector<GpuInput> gpus;
};

enum class StepState : std::uint8_t { kOk, kWaiting, kFailed };

struct NodeStep {
  std::string name;  // "driver", "devices", "cdi", "registered", "allocatable"
  StepState state = StepState::kWaiting;
  std::string reason;  // "DriverUnavailable"; empty when ok
  std::string text;    // one sentence for people
};

struct NodeCondition {
  std::string type, status, reason, message;  // "GpuReady", "False", "NotRegistered", ...
};

struct NodeReport {
  std::string node;
  bool ready = false;
  std::vector<NodeStep> steps;
  std::vector<NodeCondition> conditions;  // GpuReady and GpuHealthy
  std::vector<ResourceInput> resources;
  std::vector<GpuInput> gpus;
};

NodeReport node_report(const NodeInputs& inputs);

std::string report_json(const NodeReport& report);
Result<NodeReport> read_report(std::string_view json);  // what report_json() wrote
std::string report_text(const NodeReport& report);      // for a terminal, 80 columns

}  // namespace berth::monitor
