// What readings open and what they heal.
#include <algorithm>
#include <utility>

#include "node/monitor/health.h"
#include "node/monitor/health_rules.h"
#include "text/escape.h"

namespace berth::monitor {
namespace {

constexpr int kDoubts = 2;  // bad readings in a row: one may be a glitch
constexpr std::size_t kMaxErrorText = 200;

bool recommends(model::RecoveryAction action) {
  return action != model::RecoveryAction::kNone && action != model::RecoveryAction::kUnknown;
}

}  // namespace

std::vector<std::string> HealthBook::readings(const std::vector<model::GpuReading>& readings,
                                              std::int64_t now_ns) {
  for (const auto& one : readings) {
    auto found = gpus_.find(one.uuid);
    if (found == gpus_.end() || found->second.gone_since_ns != 0) continue;
    reading(found->second, one, now_ns);
    settle(found->second);
  }
  return changed();
}

void HealthBook::reading(Gpu& gpu, const model::GpuReading& reading, std::int64_t now_ns) {
  auto fresh = [&](Cause cause) {
    if (!gpu.causes.contains(cause.code)) note({gpu.uuid, 0, cause.code, cause.text, false, 0});
    open(gpu, std::move(cause), now_ns);
  };
  gpu.error_doubts = reading.answer == model::GpuAnswer::kError ? gpu.error_doubts + 1 : 0;
  switch (reading.answer) {
    case model::GpuAnswer::kFine:
      judge_condition(gpu, reading.condition, now_ns);
      break;
    case model::GpuAnswer::kSilent: {
      Cause cause = make_cause(kCodeSilent, Severity::kFatal, Probe::kAnswers,
                               "look at the driver: it hangs", "the driver does not answer for it");
      cause.driver_silent = true;
      fresh(std::move(cause));
      break;
    }
    case model::GpuAnswer::kLost:
      fresh(make_cause(kCodeLost, Severity::kFatal, Probe::kAnswers,
                       action_text(XidAction::kRebootNode), "the driver lost the GPU"));
      for (auto& [code, cause] : gpu.causes) {
        if (cause.probe == Probe::kReset || cause.probe == Probe::kNoRecovery) {
          cause.reset_seen = true;  // it counts once the GPU answers again
        }
      }
      break;
    case model::GpuAnswer::kError:
      if (gpu.error_doubts >= kDoubts) {
        fresh(make_cause(kCodeError, Severity::kFatal, Probe::kAnswers,
                         "look at the driver's error",
                         "the driver cannot read the GPU: " +
                             text::terminal_safe(reading.error.substr(0, kMaxErrorText))));
      }
      break;
  }
  judge_probes(gpu, reading);
}

void HealthBook::judge_condition(Gpu& gpu, const model::GpuCondition& condition,
                                 std::int64_t now_ns) {
  auto fresh = [&](Cause cause) {
    if (!gpu.causes.contains(cause.code)) note({gpu.uuid, 0, cause.code, cause.text, false, 0});
    open(gpu, std::move(cause), now_ns);
  };
  if (auto cause = recovery_cause(condition.recovery)) fresh(std::move(*cause));
  if (condition.remap_failed) {
    fresh(make_cause(kCodeRemapFailed, Severity::kFatal, Probe::kReset,
                     "reset the GPU; if it stays, replace it",
                     "a bad memory row could not be remapped"));
  }
  if (condition.remap_pending) {
    fresh(make_cause(kCodeRemapPending, Severity::kFatal, Probe::kNoPendingRemap,
                     action_text(XidAction::kDrainAndReset),
                     "a bad memory row is remapped at the next reset"));
  }
  if (condition.thermal_slowdown) {
    fresh(make_cause(kCodeHot, Severity::kDegraded, Probe::kCool, "look at the cooling",
                     "the GPU runs slower because it is too hot"));
  }
  judge_links(gpu, condition, now_ns);
  for (auto& [code, cause] : gpu.causes) {
    if (recommends(condition.recovery)) {
      cause.advised = true;
    } else if (condition.recovery == model::RecoveryAction::kNone && cause.advised) {
      cause.reset_seen = true;
    }
  }
}

void HealthBook::judge_links(Gpu& gpu, const model::GpuCondition& condition, std::int64_t now_ns) {
  gpu.fabric_doubts = condition.fabric_trouble ? gpu.fabric_doubts + 1 : 0;
  if (gpu.fabric_doubts >= kDoubts || gpu.causes.contains(std::string(kCodeFabric))) {
    if (condition.fabric_trouble) {
      if (!gpu.causes.contains(std::string(kCodeFabric))) {
        note({gpu.uuid, 0, std::string(kCodeFabric), "the NVLink fabric reports an error", false,
              0});
      }
      open(gpu,
           make_cause(kCodeFabric, Severity::kFatal, Probe::kLinksUp, "restart the Fabric Manager",
                      "the NVLink fabric reports an error"),
           now_ns);
    }
  }
  if (gpu.mig_enabled) return;  // MIG switches links off
  gpu.links = std::max(gpu.links, condition.nvlinks_up);
  const bool down = condition.nvlinks_up < gpu.links;
  gpu.link_doubts = down ? gpu.link_doubts + 1 : 0;
  const bool known = gpu.causes.contains(std::string(kCodeLinkDown));
  if (!down || (!known && gpu.link_doubts < kDoubts)) return;
  std::string text =
      std::to_string(condition.nvlinks_up) + " of " + std::to_string(gpu.links) + " NVLinks are up";
  if (!known) note({gpu.uuid, 0, std::string(kCodeLinkDown), text, false, 0});
  open(gpu,
       make_cause(kCodeLinkDown, Severity::kFatal, Probe::kLinksUp,
                  action_text(XidAction::kResetGpu), std::move(text)),
       now_ns);
}

void HealthBook::judge_probes(Gpu& gpu, const model::GpuReading& reading) {
  const int links = gpu.mig_enabled ? 0 : gpu.links;
  for (auto it = gpu.causes.begin(); it != gpu.causes.end();) {
    Cause& cause = it->second;
    cause.clean = probe_passes(cause, reading, links) ? cause.clean + 1 : 0;
    it = cause.clean >= options_.clean_readings ? gpu.causes.erase(it) : std::next(it);
  }
}

}  // namespace berth::monitor
