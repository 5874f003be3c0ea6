// The catalogue of Xid errors: what each means for the GPU and for the job (docs/health.md).
//
// Facts from NVIDIA's published catalogue, held as a table in xid_table.cc. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/gpu_reading.h"

namespace berth::monitor {

enum class XidAction : std::uint8_t {
  kIgnore,
  kRestartApp,  // the job is to blame or can simply start again: the GPU stays
  kResetGpu,
  kDrainAndReset,
  kRebootNode,
  kRestartVm,
  kCheckLink,     // NVLink: decided by the registers in the message, else by what the driver
                  // recommends
  kFollowDriver,  // 154: the text names the action
  kContactSupport,
};
std::string_view name(XidAction action);  // "reset-gpu"

struct XidFact {
  int code = 0;
  std::string_view mnemonic, text;  // "ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS", for people
  XidAction action = XidAction::kContactSupport;
  bool takes_gpu_away = false;  // by itself, without further evidence
};

// nullptr: not in the catalogue.
const XidFact* find_xid(int code);

// A line of the kernel log: "NVRM: Xid (PCI:0000:18:00): 79, pid=1234, name=python, GPU has fallen
// off the bus."
struct XidLine {
  std::string pci_bus_id;  // "0000:18:00.0"
  int code = 0, pid = 0;
  int gpu_instance = -1, compute_instance = -1;  // of MIG, where the line names them
  std::string process, detail;                   // safe to show; detail is cut to 1,024 bytes
};
// With or without time stamps before it, "PCI:", a function, MIG instances, process id and name.
// Lines that are no Xid, or that do not name a GPU and a code, give nothing.
std::optional<XidLine> parse_xid_line(std::string_view line);

// What the registers in an NVLink error's message say: 74 up to Hopper, 144 to 150 from Blackwell
// on.
struct LinkFault {
  // kIgnore, kResetGpu, kCheckLink (harmless when rare), or kFollowDriver: the registers do not
  // decide, or there are none.
  XidAction action = XidAction::kFollowDriver;
  std::string_view text;  // "signal quality", "link down"; empty: nothing to add
};
LinkFault decode_link_fault(int code, std::string_view detail);

// The action that the text of a 154 ends with; kUnknown: it names none that we know.
model::RecoveryAction decode_recovery(std::string_view detail);

}  // namespace berth::monitor
