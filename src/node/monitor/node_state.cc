#include "node/monitor/node_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/utf8.h"
#include "text/escape.h"
#include "text/json_writer.h"

namespace berth::monitor {
namespace {

constexpr std::size_t kMaxMessage = 1024, kNamedGpus = 8, kColumns = 80;

ReadyStep step_is(std::string_view step, StepState state, std::string_view reason,
                  std::string text) {
  return {step, state, reason, std::move(text)};
}

ReadyStep judge_driver(const NodeSights& s) {
  if (s.driver_answers) {
    return step_is("driver", StepState::kOk, "DriverAnswers", "driver " + s.driver_version);
  }
  if (s.driver_error.empty()) {
    return step_is("driver", StepState::kWaiting, "DriverUnavailable",
                   "the driver was not asked yet");
  }
  return step_is("driver", StepState::kFailed, "DriverUnavailable", s.driver_error);
}

ReadyStep judge_devices(const NodeSights& s) {
  if (s.gpus.empty()) {
    return step_is("devices", StepState::kFailed, "NoDevices",
                   s.gpus_on_bus > 0
                       ? fmt::format("the driver shows no GPU, the PCI bus {}", s.gpus_on_bus)
                       : "the driver shows no GPU");
  }
  std::string text = fmt::format("{} GPU{}", s.gpus.size(), s.gpus.size() == 1 ? "" : "s");
  if (s.gpus_on_bus > static_cast<int>(s.gpus.size())) {
    text += fmt::format(" of {} on the PCI bus", s.gpus_on_bus);
  }
  if (!s.offer_error.empty()) {
    return step_is("devices", StepState::kFailed, "BadConfiguration", s.offer_error);
  }
  return step_is("devices", StepState::kOk, "DevicesFound", std::move(text));
}

ReadyStep judge_cdi(const NodeSights& s) {
  if (!s.cdi_wanted) return step_is("cdi", StepState::kOk, "CdiNotUsed", "no CDI spec is needed");
  if (s.cdi_written) return step_is("cdi", StepState::kOk, "CdiWritten", "the CDI spec is written");
  if (s.cdi_error.empty()) {
    return step_is("cdi", StepState::kWaiting, "CdiNotWritten", "the CDI spec is not written yet");
  }
  return step_is("cdi", StepState::kFailed, "CdiNotWritten", s.cdi_error);
}

ReadyStep judge_registration(const NodeSights& s) {
  if (s.resources.empty()) {
    return step_is("registration", StepState::kFailed, "NotRegistered",
                   "the configuration offers no resource");
  }
  for (const auto& resource : s.resources) {
    if (resource.registered) continue;
    if (resource.error.empty()) {
      return step_is("registration", StepState::kWaiting, "NotRegistered",
                     resource.name + " is not registered with the kubelet yet");
    }
    return step_is("registration", StepState::kFailed, "NotRegistered",
                   resource.name + ": " + resource.error);
  }
  return step_is(
      "registration", StepState::kOk, "Registered",
      fmt::format("{} resource{}", s.resources.size(), s.resources.size() == 1 ? "" : "s"));
}

// Healthy devices must be on the Node. More than that is the kubelet being late.
ReadyStep judge_allocatable(const NodeSights& s) {
  if (!s.node_watched) {
    return step_is("allocatable", StepState::kOk, "NotWatched", "there is no Node to look at");
  }
  for (const auto& resource : s.resources) {
    if (resource.allocatable < 0) {
      return step_is("allocatable", StepState::kWaiting, "NotAllocatable",
                     resource.name + " is not on the Node yet");
    }
    if (resource.allocatable < resource.healthy) {
      return step_is("allocatable", StepState::kWaiting, "NotAllocatable",
                     fmt::format("{}: {} on the Node, {} healthy", resource.name,
                                 resource.allocatable, resource.healthy));
    }
  }
  return step_is("allocatable", StepState::kOk, "Allocatable",
                 "the Node shows all that is healthy");
}

// A node that has none, and never had any since the agent started: there is nothing to wait for.
bool without_gpus(const NodeSights& s) {
  return s.gpus_on_bus == 0 && s.gpus.empty() && !s.driver_answers && !s.driver_error.empty();
}

NodeState nothing_to_do() {
  NodeState out;
  out.ready = true;
  for (const std::string_view step : {"driver", "devices", "cdi", "registration", "allocatable"}) {
    out.steps.push_back(step_is(step, StepState::kOk, "NoGpus",
                                step == "driver" ? "no GPU on the PCI bus, and no driver" : ""));
  }
  return out;
}

std::string bounded_message(std::string text) {
  if (text.size() <= kMaxMessage) return text;
  std::size_t size = kMaxMessage - 3;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  text.resize(size);
  return text + "...";
}

NodeCondition health_condition(const NodeSights& s) {
  if (!s.driver_answers) {
    return {
        "GpuHealthy", "Unknown", "DriverUnavailable",
        bounded_message(s.driver_error.empty() ? "the driver was not asked yet" : s.driver_error)};
  }
  std::size_t sick = 0;
  std::string list;
  for (const auto& gpu : s.gpus) {
    if (gpu.verdict.healthy) continue;
    if (++sick > kNamedGpus) continue;
    list += fmt::format("; GPU {} ({}) {}: {}", gpu.index, gpu.uuid, gpu.verdict.code,
                        gpu.verdict.text);
  }
  const int missing = s.gpus_on_bus - static_cast<int>(s.gpus.size());
  if (missing > 0) {
    list += fmt::format("; the driver does not show {} of {} GPUs", missing, s.gpus_on_bus);
  }
  if (list.empty()) {
    return {"GpuHealthy", "True", "AllHealthy", fmt::format("{} healthy", s.gpus.size())};
  }
  return {"GpuHealthy", "False", sick > 0 ? "GpuUnhealthy" : "GpuMissing",
          bounded_message(fmt::format("{} of {} not healthy{}", sick, s.gpus.size(), list))};
}

// A cell of at most width columns, padded unless it is the last.
void append_cell(std::string& out, std::string_view text, std::size_t width, bool last) {
  std::string cell = text::elide_middle(text::terminal_safe(text), width);
  std::size_t columns = 0;
  for (std::string_view left = cell; !left.empty(); ++columns) {
    left.remove_prefix(decode_utf8(left).size);
  }
  out += cell;
  if (!last) out.append(width + 1 - std::min(columns, width), ' ');
}

void append_row(std::string& out, std::initializer_list<std::string_view> cells,
                std::initializer_list<std::size_t> widths) {
  std::size_t used = 0;
  const auto* width = widths.begin();
  for (const auto* cell = cells.begin(); cell != cells.end(); ++cell) {
    const bool last = cell + 1 == cells.end();
    append_cell(out, *cell, last ? kColumns - used : *width, last);
    if (!last) used += *width++ + 1;
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  out += '\n';
}

// All of it, broken between words: who is in the way must be readable.
void append_lines(std::string& out, std::string_view text) {
  const std::string safe = text::terminal_safe(text);
  std::string line;
  for (std::size_t at = 0; at < safe.size();) {
    const std::size_t end = std::min(safe.find(' ', at), safe.size());
    const std::string word = safe.substr(at, end - at);
    if (!line.empty() && line.size() + 1 + word.size() > kColumns - 2) {
      append_row(out, {"", line}, {1});
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    at = end + 1;
  }
  if (!line.empty()) append_row(out, {"", line}, {1});
}

}  // namespace

std::string_view name(StepState state) {
  switch (state) {
    case StepState::kOk:
      return "ok";
    case StepState::kWaiting:
      return "waiting";
    case StepState::kFailed:
      return "failed";
  }
  return "";
}

NodeState node_state(const NodeSights& sights) {
  if (without_gpus(sights)) return nothing_to_do();
  NodeState out;
  const ReadyStep* stuck = nullptr;
  out.steps = {judge_driver(sights), judge_devices(sights), judge_cdi(sights),
               judge_registration(sights), judge_allocatable(sights)};
  for (ReadyStep& step : out.steps) {
    if (stuck != nullptr) {
      step.state = StepState::kWaiting;
      step.reason = "Waiting";
      step.text = "waits for " + std::string(stuck->step);
    } else if (step.state != StepState::kOk) {
      stuck = &step;
    }
  }
  out.ready = stuck == nullptr;
  out.conditions.push_back(
      stuck == nullptr
          ? NodeCondition{"GpuReady", "True", "GpusReady", "pods can use the node's GPUs"}
          : NodeCondition{"GpuReady", "False", stuck->reason,
                          bounded_message(std::string(stuck->step) + ": " + stuck->text)});
  out.conditions.push_back(health_condition(sights));
  return out;
}

std::string status_table(const NodeSights& sights, const NodeState& state) {
  std::string out = state.ready ? "ready\n\n" : "not ready\n\n";
  append_row(out, {"STEP", "STATE", "REASON", "DETAIL"}, {12, 7, 18});
  for (const ReadyStep& step : state.steps) {
    append_row(out, {step.step, name(step.state), step.reason, step.text}, {12, 7, 18});
  }
  if (!sights.mig.state.empty()) {
    out += '\n';
    append_row(out, {"MIG LAYOUT", "STATE", "REASON"}, {40, 8});
    append_row(out, {sights.mig.layout, sights.mig.state, sights.mig.reason}, {40, 8});
    if (sights.mig.state != "success") append_lines(out, sights.mig.text);
  }
  if (sights.gpus.empty()) return out;
  out += '\n';
  append_row(out, {"GPU", "UUID", "HEALTH", "CODE"}, {3, 40, 9});
  for (const auto& gpu : sights.gpus) {
    const Verdict& v = gpu.verdict;
    const std::string_view health = !v.known                        ? "unknown"
                                    : !v.healthy                    ? "unhealthy"
                                    : v.severity == Severity::kFine ? "healthy"
                                                                    : "degraded";
    append_row(out,
               {std::to_string(gpu.index), gpu.uuid, health,
                v.code.empty() ? "-" : std::string_view(v.code)},
               {3, 40, 9});
    if (v.code.empty()) continue;
    append_row(out, {"", v.action.empty() ? v.text : v.text + "; " + v.action}, {3});
    append_row(out, {"", "healed by " + std::string(name(v.heals))}, {3});
  }
  return out;
}

std::string status_json(const NodeSights& sights, const NodeState& state) {
  text::JsonWriter out({.indent = 2});
  out.object([&] {
    out.field("ready", state.ready);
    out.array("steps", [&] {
      for (const ReadyStep& step : state.steps) {
        out.object([&] {
          out.field("step", step.step);
          out.field("state", name(step.state));
          out.field("reason", step.reason);
          out.field("text", step.text);
        });
      }
    });
    out.array("conditions", [&] {
      for (const NodeCondition& condition : state.conditions) {
        out.object([&] {
          out.field("type", condition.type);
          out.field("status", condition.status);
          out.field("reason", condition.reason);
          out.field("message", condition.message);
        });
      }
    });
    out.array("resources", [&] {
      for (const NodeSights::Resource& resource : sights.resources) {
        out.object([&] {
          out.field("name", resource.name);
          out.field("devices", resource.devices);
          out.field("healthy", resource.healthy);
          out.field("registered", resource.registered);
          if (resource.allocatable >= 0) out.field("allocatable", resource.allocatable);
        });
      }
    });
    if (!sights.mig.state.empty()) {
      out.object("mig", [&] {
        out.field("layout", sights.mig.layout);
        out.field("state", sights.mig.state);
        out.field("reason", sights.mig.reason);
        out.field("text", sights.mig.text);
      });
    }
    out.array("gpus", [&] {
      for (const auto& gpu : sights.gpus) {
        const Verdict& v = gpu.verdict;
        out.object([&] {
          out.field("index", gpu.index);
          out.field("uuid", gpu.uuid);
          out.field("healthy", v.healthy);
          out.field("known", v.known);
          out.field("severity", name(v.severity));
          out.field("code", v.code);
          out.field("action", v.action);
          out.field("text", v.text);
          out.field("healedBy", name(v.heals));
          out.field("sinceNs", v.since_ns);
        });
      }
    });
  });
  return std::move(out).take() + "\n";
}

}  // namespace berth::monitor
