// What each Xid and each event means for a GPU: the table behind HealthBook (docs/health.md).
// Only node/monitor/ includes it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/gpu_reading.h"
#include "node/monitor/health.h"
#include "node/monitor/xid.h"

namespace berth::monitor {

constexpr std::string_view kCodeSilent = "DriverSilent", kCodeError = "DriverError",
                           kCodeLost = "GpuLost", kCodeMissing = "GpuMissing",
                           kCodeFlapping = "Flapping", kCodeLinkDown = "NvLinkDown",
                           kCodeFabric = "FabricTrouble", kCodeHot = "ThermalSlowdown",
                           kCodeRemapPending = "RowRemapPending",
                           kCodeRemapFailed = "RowRemapFailed", kCodeImex = "RecoverImexDomain";

// What an operator does: "reset the GPU". Empty: nothing.
std::string action_text(XidAction action);
std::string action_text(model::RecoveryAction action);

HealthBook::Cause make_cause(std::string_view code, Severity severity, Probe probe,
                             std::string_view action, std::string text);

// The cause that the driver's recommendation is; nothing for none and unknown.
std::optional<HealthBook::Cause> recovery_cause(model::RecoveryAction action);
// The cause that an event other than an Xid is, and its text for people.
std::optional<HealthBook::Cause> event_cause(model::GpuEvent::Kind kind);

// True when the probe passes on this reading. links: how many were up at best.
bool probe_passes(const HealthBook::Cause& cause, const model::GpuReading& reading, int links);

}  // namespace berth::monitor
