// The catalogue of Xid errors: what each means for the GPU and for the job (docs/health.md).
//
// Facts from NVIDIA's published catalogue, held as a table in xid_table.cc. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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
  std::string process, detail;
};
std::optional<XidLine> parse_xid_line(std::string_view line);

}  // namespace berth::monitor
