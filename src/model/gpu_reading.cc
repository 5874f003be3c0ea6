#include "model/gpu_reading.h"

namespace berth::model {

std::string_view name(RecoveryAction action) {
  switch (action) {
    case RecoveryAction::kNone:
      return "none";
    case RecoveryAction::kGpuReset:
      return "reset-gpu";
    case RecoveryAction::kNodeReboot:
      return "reboot-node";
    case RecoveryAction::kDrainP2p:
      return "drain-peers";
    case RecoveryAction::kDrainAndReset:
      return "drain-and-reset";
    case RecoveryAction::kRecoverImex:
      return "recover-imex-domain";
    case RecoveryAction::kUnknown:
      break;
  }
  return "unknown";
}

std::string_view name(GpuEvent::Kind kind) {
  switch (kind) {
    case GpuEvent::Kind::kXid:
      return "xid";
    case GpuEvent::Kind::kRecoveryAction:
      return "recovery-action";
    case GpuEvent::Kind::kUnavailable:
      return "unavailable";
    case GpuEvent::Kind::kEccDouble:
      return "ecc-double";
    case GpuEvent::Kind::kEccStorm:
      return "ecc-storm";
    case GpuEvent::Kind::kRemapped:
      return "remapped";
    case GpuEvent::Kind::kRemapFailed:
      return "remap-failed";
    case GpuEvent::Kind::kPoison:
      return "poison";
    case GpuEvent::Kind::kFatalPoison:
      return "fatal-poison";
    case GpuEvent::Kind::kMigChanged:
      return "mig-changed";
    case GpuEvent::Kind::kInventory:
      return "inventory";
  }
  return "";
}

}  // namespace berth::model
