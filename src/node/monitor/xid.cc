#include "node/monitor/xid.h"

#include <array>
#include <charconv>
#include <utility>

#include "text/escape.h"

namespace berth::monitor {
namespace {

constexpr std::size_t kMaxLine = 4096, kMaxDetail = 1024, kMaxProcess = 64;

// Reads text from the left.
class XidReader {
 public:
  explicit XidReader(std::string_view text) : left_(text) {}

  bool skip(std::string_view word) {
    if (!left_.starts_with(word)) return false;
    left_.remove_prefix(word.size());
    return true;
  }
  void blanks() {
    while (!left_.empty() && (left_.front() == ' ' || left_.front() == '\t')) {
      left_.remove_prefix(1);
    }
  }
  // Up to one of these characters, which stays.
  std::string_view until(std::string_view ends) {
    std::string_view found = left_.substr(0, left_.find_first_of(ends));
    left_.remove_prefix(found.size());
    return found;
  }
  std::optional<std::uint32_t> number(int base, std::size_t max_digits) {
    std::uint32_t value = 0;
    const char* end = left_.data() + std::min(left_.size(), max_digits);
    auto [stop, error] = std::from_chars(left_.data(), end, value, base);
    if (error != std::errc() || stop == left_.data()) return std::nullopt;
    left_.remove_prefix(static_cast<std::size_t>(stop - left_.data()));
    return value;
  }
  std::string_view left() const { return left_; }

 private:
  std::string_view left_;
};

void append_hex(std::string& out, std::uint32_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out += "0123456789abcdef"[(value >> shift) & 0xf];
  }
}

// "0000:18:00", "00000000:18:00.0", "18:00.0"
std::optional<std::string> read_bus_id(XidReader& in) {
  std::array<std::uint32_t, 3> parts{};
  std::size_t count = 0;
  while (count < parts.size()) {
    auto part = in.number(16, 8);
    if (!part) return std::nullopt;
    parts[count++] = *part;
    if (!in.skip(":")) break;
  }
  std::uint32_t function = 0;
  if (in.skip(".")) {
    auto read = in.number(16, 1);
    if (!read) return std::nullopt;
    function = *read;
  }
  if (count < 2) return std::nullopt;
  if (count == 2) parts = {0, parts[0], parts[1]};
  if (parts[1] > 0xff || parts[2] > 0x1f || function > 7) return std::nullopt;
  std::string id;
  append_hex(id, parts[0], parts[0] > 0xffff ? 8 : 4);
  id += ':';
  append_hex(id, parts[1], 2);
  id += ':';
  append_hex(id, parts[2], 2);
  id += '.';
  append_hex(id, function, 1);
  return id;
}

std::string_view trimmed_detail(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == ',')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text.substr(0, kMaxDetail);
}

// ", pid=1234, name=python, " and what drivers write when they do not know: pid='<unknown>'.
void read_process(XidReader& in, XidLine& line) {
  for (int i = 0; i < 2; ++i) {
    XidReader ahead = in;
    ahead.skip(",");
    ahead.blanks();
    bool pid = ahead.skip("pid=");
    if (!pid && !ahead.skip("name=")) return;
    std::string_view value = ahead.until(",");
    if (pid) {
      XidReader digits(value);
      auto number = digits.number(10, 9);
      if (number && digits.left().empty()) line.pid = static_cast<int>(*number);
    } else if (value.find('<') == std::string_view::npos) {
      line.process = text::terminal_safe(value.substr(0, kMaxProcess));
    }
    in = ahead;
  }
}

}  // namespace

std::string_view name(XidAction action) {
  switch (action) {
    case XidAction::kIgnore:
      return "ignore";
    case XidAction::kRestartApp:
      return "restart-app";
    case XidAction::kResetGpu:
      return "reset-gpu";
    case XidAction::kDrainAndReset:
      return "drain-and-reset";
    case XidAction::kRebootNode:
      return "reboot-node";
    case XidAction::kRestartVm:
      return "restart-vm";
    case XidAction::kCheckLink:
      return "check-link";
    case XidAction::kFollowDriver:
      return "follow-driver";
    case XidAction::kContactSupport:
      return "contact-support";
  }
  return "";
}

std::optional<XidLine> parse_xid_line(std::string_view line) {
  line = line.substr(0, kMaxLine);
  constexpr std::string_view kStart = "NVRM: Xid ";
  std::size_t at = line.find(kStart);
  if (at == std::string_view::npos) return std::nullopt;
  XidReader in(line.substr(at + kStart.size()));
  in.blanks();
  if (!in.skip("(")) return std::nullopt;
  in.skip("PCI:");
  auto bus_id = read_bus_id(in);
  if (!bus_id) return std::nullopt;
  XidLine found;
  found.pci_bus_id = std::move(*bus_id);
  for (auto [word, member] : {std::pair{" GPU-I:", &XidLine::gpu_instance},
                              std::pair{" GPU-CI:", &XidLine::compute_instance}}) {
    if (!in.skip(word)) continue;
    auto number = in.number(10, 4);
    if (!number) return std::nullopt;
    found.*member = static_cast<int>(*number);
  }
  if (!in.skip(")")) return std::nullopt;
  in.skip(":");
  in.blanks();
  auto code = in.number(10, 5);
  if (!code || *code == 0) return std::nullopt;
  if (!in.left().empty() && in.left().find_first_of(", \r\n") != 0) return std::nullopt;
  found.code = static_cast<int>(*code);
  read_process(in, found);
  found.detail = text::terminal_safe(trimmed_detail(in.left()));
  return found;
}

model::RecoveryAction decode_recovery(std::string_view detail) {
  using model::RecoveryAction;
  // "changed from 0x0 (None) to 0x1 (GPU Reset Required)": newer drivers word it differently but
  // keep the numbers.
  constexpr std::string_view kTo = " to 0x";
  constexpr RecoveryAction kByNumber[] = {
      RecoveryAction::kNone,     RecoveryAction::kGpuReset,      RecoveryAction::kNodeReboot,
      RecoveryAction::kDrainP2p, RecoveryAction::kDrainAndReset, RecoveryAction::kRecoverImex};
  if (std::size_t at = detail.rfind(kTo); at != std::string_view::npos) {
    auto number = XidReader(detail.substr(at + kTo.size())).number(16, 8);
    if (number) return *number < 6 ? kByNumber[*number] : RecoveryAction::kUnknown;
  }
  constexpr std::pair<std::string_view, RecoveryAction> kWords[] = {
      {"None", RecoveryAction::kNone},
      {"GPU Reset Required", RecoveryAction::kGpuReset},
      {"Node Reboot Required", RecoveryAction::kNodeReboot},
      {"Drain P2P", RecoveryAction::kDrainP2p},
      {"Drain and Reset", RecoveryAction::kDrainAndReset},
  };
  RecoveryAction found = RecoveryAction::kUnknown;
  std::size_t last = 0;
  for (const auto& [word, action] : kWords) {
    std::size_t at = detail.rfind(word);
    if (at == std::string_view::npos || (found != RecoveryAction::kUnknown && at < last)) continue;
    found = action;
    last = at;
  }
  return found;
}

}  // namespace berth::monitor
