// Registers of NVLink errors: facts of NVIDIA's decode sheets.
#include <array>
#include <charconv>
#include <vector>

#include "node/monitor/xid.h"

namespace berth::monitor {
namespace {

constexpr std::size_t kMaxRegisters = 8;
constexpr std::uint32_t bit(int n) { return std::uint32_t{1} << n; }

// The hexadecimal numbers between the last brackets of a message.
std::vector<std::uint32_t> read_registers(std::string_view detail) {
  std::size_t open = detail.find_last_of("([");
  if (open == std::string_view::npos) return {};
  std::string_view inside = detail.substr(open + 1);
  inside = inside.substr(0, inside.find_first_of(")]"));
  std::vector<std::uint32_t> out;
  while (out.size() < kMaxRegisters) {
    std::size_t at = inside.find("0x");
    if (at == std::string_view::npos) break;
    inside.remove_prefix(at + 2);
    std::uint32_t value = 0;
    auto [end, error] = std::from_chars(inside.data(), inside.data() + inside.size(), value, 16);
    if (error != std::errc()) return {};
    out.push_back(value);
    inside.remove_prefix(static_cast<std::size_t>(end - inside.data()));
  }
  return out;
}

// 74: seven registers. What is not listed is left to the driver.
struct OldLinkBits {
  std::size_t index;  // of the register
  std::uint32_t mask;
  LinkFault fault;
};
constexpr OldLinkBits kOldLinkBits[] = {
    {3, bit(18), {XidAction::kResetGpu, "the NVLink fabric must be reset"}},
    {0,
     bit(8) | bit(9) | bit(12) | bit(16) | bit(17) | bit(24) | bit(28),
     {XidAction::kResetGpu, "check connectors and seating"}},
    {0, bit(21) | bit(22), {XidAction::kResetGpu, "signal quality"}},
    {0, bit(4) | bit(5), {XidAction::kCheckLink, "ECC or parity in the link"}},
    {0, bit(0) | bit(23) | bit(30), {XidAction::kIgnore, "side effect of another error"}},
};

LinkFault decode_old_link(const std::vector<std::uint32_t>& registers) {
  if (registers.size() != 7) return {};
  for (const auto& bits : kOldLinkBits) {
    if ((registers[bits.index] & bits.mask) == 0) continue;
    if (bits.fault.action != XidAction::kIgnore) return bits.fault;
    for (std::size_t i = 0; i < registers.size(); ++i) {
      std::uint32_t ignored = i == bits.index ? bits.mask : 0;
      if ((registers[i] & ~ignored) != 0) return {};
    }
    return bits.fault;
  }
  return {};
}

// 144 to 150: the first register says which unit (drivers before 575 in bits 9:5 and the Xid in
// bits 4:0, later ones in bits 6:0) and, for a link that went down, why (bits 25:20). The second is
// the error's status, a bit for each error.
struct NewLinkUnit {
  int code;
  std::string_view unit;
  std::uint32_t v1, v2;
  std::uint32_t ignored, reset, driver;  // bits of the status
};
constexpr std::uint32_t kSoftware = bit(31);  // an error that the driver raised itself
constexpr NewLinkUnit kNewLinkUnits[] = {
    {144, "SAW_MVB", 1, 1, 0x2d, 0x12, 0},
    {145, "RLW_CTRL", 3, 3, kSoftware, 0, 0},
    {145, "RLW_REMAP", 4, 4, 0x300 | kSoftware, 0xc0, 0x3f},
    {145, "RLW_RSPCOL", 5, 5, 0x1 | kSoftware, 0x2, 0},
    {145, "RLW_RXPIPE", 6, 6, 0xf | kSoftware, 0, 0},
    {145, "RLW_SRC_TRACK", 7, 7, 0x2 | kSoftware, 0x31, 0xc},
    {145, "RLW_TAGSTATE", 8, 8, 0x10001 | kSoftware, 0x120002, 0},
    {146, "TLW_CTRL", 9, 9, 0x3 | kSoftware, 0x4, 0},
    {146, "TLW_RX_PIPE0", 10, 10, 0x3 | kSoftware, 0x4, 0},
    {146, "TLW_RX_PIPE1", 10, 11, 0x3 | kSoftware, 0x4, 0},
    {146, "TLW_TX_PIPE0", 11, 12, 0x3 | kSoftware, 0x4, 0},
    {146, "TLW_TX_PIPE1", 11, 13, 0x3 | kSoftware, 0x4, 0},
    {147, "TREX", 12, 14, 0x1 | kSoftware, 0, 0},
    {148, "NVLPW_CTRL", 0, 15, kSoftware, 0, 0},
};

// Reasons of a link that went down which ask for a reset; 38 and 40 do not.
constexpr std::uint32_t kDownReasons[] = {0,  1,  2,  4,  10, 15, 16, 17, 18, 21,
                                          22, 32, 33, 34, 35, 36, 37, 42, 43};

LinkFault decode_port(std::uint32_t unit, bool v2, std::uint32_t reason, std::uint32_t status) {
  const LinkFault reset{XidAction::kResetGpu, "link down"};
  const bool interrupt = unit == (v2 ? 24U : 0U), down = unit == (v2 ? 17U : 14U);
  const bool error_rate = unit == (v2 ? 19U : 17U), firmware = unit == (v2 ? 20U : 18U);
  if (down) {
    for (std::uint32_t known : kDownReasons) {
      if (known == reason) return reset;
    }
    if (reason == 38 || reason == 40) return {XidAction::kIgnore, "link down"};
    return {};
  }
  if (reason != 0) return {};
  if (interrupt) return {XidAction::kResetGpu, "port interrupt"};
  if (error_rate && status <= 3) return {XidAction::kIgnore, "bit error rate"};
  if (firmware && status == 3) return {XidAction::kIgnore, "port firmware"};
  if (firmware && (status == 1 || status == 4 || status == 5 || status == 7)) {
    return {XidAction::kResetGpu, "port firmware"};
  }
  return {};
}

LinkFault decode_unit(int code, std::uint32_t unit, bool v2, bool severe, std::uint32_t status) {
  for (const auto& row : kNewLinkUnits) {
    if (row.code != code || (v2 ? row.v2 : row.v1) != unit) continue;
    if ((status & ~(row.ignored | row.reset | row.driver)) != 0 || status == 0) return {};
    // The receive pipe's errors need a reset when the bit above the unit is set.
    const bool pipe = row.unit == "RLW_RXPIPE" && severe && (status & 0x7) != 0;
    if (pipe || (status & row.reset) != 0) return {XidAction::kResetGpu, row.unit};
    if ((status & row.driver) != 0) return {XidAction::kFollowDriver, row.unit};
    return {XidAction::kIgnore, row.unit};
  }
  return {};
}

// One of the two ways that drivers write the first register.
LinkFault decode_new_link(int code, std::uint32_t info, std::uint32_t status, bool v2) {
  const std::uint32_t reason = (info >> 20) & 0x3f;
  const std::uint32_t unit = v2 ? info & 0x7f : (info >> 5) & 0x1f;
  if (!v2 && (info & 0x1f) != (code == 150 ? 0U : static_cast<std::uint32_t>(code - 143))) {
    return {};
  }
  if (code == 149) return decode_port(unit, v2, reason, status);
  if (reason != 0) return {};
  if (code == 150) {
    if (unit != 0 || (status != 0 && status != 0xffffffff)) return {};
    return {XidAction::kResetGpu, "management engine"};
  }
  return decode_unit(code, unit, v2, (info & bit(v2 ? 7 : 10)) != 0, status);
}

}  // namespace

LinkFault decode_link_fault(int code, std::string_view detail) {
  const auto registers = read_registers(detail);
  if (code == 74) return decode_old_link(registers);
  if (code < 144 || code > 150 || registers.size() < 2) return {};
  // No value is valid in both forms with different meanings, so the driver's version is not needed.
  LinkFault fault = decode_new_link(code, registers[0], registers[1], true);
  if (!fault.text.empty()) return fault;
  return decode_new_link(code, registers[0], registers[1], false);
}

}  // namespace berth::monitor
