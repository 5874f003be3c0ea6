#include "node/monitor/health_rules.h"

#include <utility>

namespace berth::monitor {

using model::GpuAnswer;
using model::GpuEvent;
using model::RecoveryAction;

std::string_view name(Severity severity) {
  switch (severity) {
    case Severity::kFine:
      return "fine";
    case Severity::kInfo:
      return "info";
    case Severity::kDegraded:
      return "degraded";
    case Severity::kFatal:
      return "fatal";
  }
  return "";
}

std::string_view name(Probe probe) {
  switch (probe) {
    case Probe::kNone:
      return "none";
    case Probe::kAnswers:
      return "driver-answers";
    case Probe::kNoRecovery:
      return "no-recovery-action";
    case Probe::kNoPendingRemap:
      return "no-pending-remap";
    case Probe::kLinksUp:
      return "links-up";
    case Probe::kCool:
      return "no-thermal-slowdown";
    case Probe::kReset:
      return "gpu-reset";
    case Probe::kOperator:
      return "operator";
  }
  return "";
}

std::string action_text(XidAction action) {
  switch (action) {
    case XidAction::kIgnore:
      return "";
    case XidAction::kRestartApp:
      return "restart the job";
    case XidAction::kResetGpu:
      return "reset the GPU";
    case XidAction::kDrainAndReset:
      return "end the jobs on the GPU, then reset it";
    case XidAction::kRebootNode:
      return "reboot the node";
    case XidAction::kRestartVm:
      return "restart the virtual machine";
    case XidAction::kCheckLink:
      return "check the NVLink";
    case XidAction::kFollowDriver:
      return "do what the driver recommends";
    case XidAction::kContactSupport:
      return "check the hardware or ask NVIDIA";
  }
  return "";
}

std::string action_text(RecoveryAction action) {
  switch (action) {
    case RecoveryAction::kNone:
    case RecoveryAction::kUnknown:
      return "";
    case RecoveryAction::kGpuReset:
      return "reset the GPU";
    case RecoveryAction::kNodeReboot:
      return "reboot the node";
    case RecoveryAction::kDrainP2p:
      return "end the jobs that use NVLink between GPUs";
    case RecoveryAction::kDrainAndReset:
      return "end the jobs on the GPU, then reset it";
    case RecoveryAction::kRecoverImex:
      return "recover the IMEX domain";
  }
  return "";
}

HealthBook::Cause make_cause(std::string_view code, Severity severity, Probe probe,
                             std::string_view action, std::string text) {
  HealthBook::Cause cause;
  cause.code = code;
  cause.severity = severity;
  cause.probe = probe;
  cause.action = action;
  cause.text = std::move(text);
  return cause;
}

std::optional<HealthBook::Cause> recovery_cause(RecoveryAction action) {
  auto fatal = [&](std::string_view code, std::string text) {
    return make_cause(code, Severity::kFatal, Probe::kNoRecovery, action_text(action),
                      std::move(text));
  };
  switch (action) {
    case RecoveryAction::kNone:
    case RecoveryAction::kUnknown:
      return std::nullopt;
    case RecoveryAction::kGpuReset:
      return fatal("RecoveryResetGpu", "the driver asks for a reset of the GPU");
    case RecoveryAction::kNodeReboot:
      return fatal("RecoveryRebootNode", "the driver asks for a reboot of the node");
    case RecoveryAction::kDrainP2p:
      return fatal("RecoveryDrainPeers", "the driver asks to end traffic between GPUs");
    case RecoveryAction::kDrainAndReset:
      return fatal("RecoveryDrainAndReset", "the driver asks to end all jobs and reset the GPU");
    case RecoveryAction::kRecoverImex:
      return make_cause(kCodeImex, Severity::kDegraded, Probe::kNoRecovery, action_text(action),
                        "the driver asks to recover the IMEX domain");
  }
  return std::nullopt;
}

std::optional<HealthBook::Cause> event_cause(GpuEvent::Kind kind) {
  auto needs_reset = [&](std::string_view code, std::string text) {
    return make_cause(code, Severity::kFatal, Probe::kReset, action_text(XidAction::kResetGpu),
                      std::move(text));
  };
  auto noted = [&](std::string_view code, std::string text) {
    return make_cause(code, Severity::kInfo, Probe::kNone, "", std::move(text));
  };
  switch (kind) {
    case GpuEvent::Kind::kUnavailable:
      return make_cause("GpuUnavailable", Severity::kFatal, Probe::kAnswers,
                        action_text(XidAction::kRebootNode), "the GPU became unavailable");
    case GpuEvent::Kind::kEccDouble:
      return needs_reset("EccDoubleBit", "a double-bit ECC error in GPU memory");
    case GpuEvent::Kind::kFatalPoison:
      return needs_reset("FatalPoison", "corrupt data was used and could not be contained");
    case GpuEvent::Kind::kRemapFailed:
      return needs_reset(kCodeRemapFailed, "a bad memory row could not be remapped");
    case GpuEvent::Kind::kRemapped:
      return noted("RowRemapped", "a bad memory row was set aside for remapping");
    case GpuEvent::Kind::kEccStorm:
      return noted("EccStorm", "single-bit ECC errors come at a high rate");
    case GpuEvent::Kind::kPoison:
      return noted("Poison", "corrupt data was found and contained");
    case GpuEvent::Kind::kRecoveryAction:
      return noted("RecoveryActionChanged", "the driver's recommendation changed");
    case GpuEvent::Kind::kXid:
    case GpuEvent::Kind::kMigChanged:
    case GpuEvent::Kind::kInventory:
      break;
  }
  return std::nullopt;
}

bool probe_passes(const HealthBook::Cause& cause, const model::GpuReading& reading, int links) {
  if (reading.answer != GpuAnswer::kFine) return false;
  const auto& now = reading.condition;
  // Old drivers recommend nothing: there only a reset that was seen counts.
  const bool advice_gone = now.recovery == RecoveryAction::kNone ||
                           (now.recovery == RecoveryAction::kUnknown && cause.reset_seen);
  switch (cause.probe) {
    case Probe::kNone:
    case Probe::kAnswers:
      return true;
    case Probe::kNoRecovery:
      return advice_gone;
    case Probe::kNoPendingRemap:
      return !now.remap_pending;
    case Probe::kLinksUp:
      return now.nvlinks_up >= links && !now.fabric_trouble;
    case Probe::kCool:
      return !now.thermal_slowdown;
    case Probe::kReset:
      return cause.reset_seen && advice_gone && !now.remap_failed && !now.remap_pending;
    case Probe::kOperator:
      return false;
  }
  return false;
}

}  // namespace berth::monitor
