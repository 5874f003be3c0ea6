#include "node/monitor/xid.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/utf8.h"

namespace berth::monitor {
namespace {

using model::RecoveryAction;

std::map<XidAction, std::set<int>> codes_by_action() {
  std::map<XidAction, std::set<int>> out;
  for (int code = -1; code < 1000; ++code) {
    if (const XidFact* fact = find_xid(code)) {
      EXPECT_EQ(fact->code, code);
      EXPECT_FALSE(fact->mnemonic.empty()) << code;
      EXPECT_FALSE(fact->text.empty()) << code;
      out[fact->action].insert(code);
    }
  }
  return out;
}

TEST(XidCatalogue, HoldsThePublishedActions) {
  auto codes = codes_by_action();
  EXPECT_EQ(codes[XidAction::kResetGpu],
            (std::set<int>{46, 48, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158}));
  EXPECT_EQ(codes[XidAction::kRebootNode], std::set<int>{79});
  EXPECT_EQ(codes[XidAction::kRestartVm], std::set<int>{151});
  EXPECT_EQ(codes[XidAction::kFollowDriver], (std::set<int>{154, 159}));
  EXPECT_EQ(codes[XidAction::kCheckLink], (std::set<int>{74, 144, 145, 146, 147, 148, 149, 150}));
  EXPECT_EQ(codes[XidAction::kRestartApp].size(), 48u);
  EXPECT_EQ(codes[XidAction::kIgnore].size(), 22u);                     // 21 and 45
  EXPECT_EQ(codes[XidAction::kContactSupport].size(), 62u + 11u + 2u);  // 54 and 78
  std::size_t all = 0;
  for (const auto& [action, some] : codes) all += some.size();
  EXPECT_EQ(all, 172u);
  for (int code : {8, 11, 13, 25, 31, 32, 39, 60, 68, 72, 75, 77, 80, 82, 86, 94, 105, 126, 139}) {
    EXPECT_TRUE(codes[XidAction::kRestartApp].contains(code)) << code;
  }
  for (int code : {14, 37, 38, 43, 44, 45, 63, 66, 67, 92, 93, 106, 121, 137, 141, 152, 161}) {
    EXPECT_TRUE(codes[XidAction::kIgnore].contains(code)) << code;
  }
}

TEST(XidCatalogue, OnlyHardwareTakesTheGpuAway) {
  std::set<int> away;
  for (int code = 0; code < 1000; ++code) {
    const XidFact* fact = find_xid(code);
    if (fact != nullptr && fact->takes_gpu_away) away.insert(code);
  }
  EXPECT_EQ(away, (std::set<int>{46, 48, 54, 62, 64, 79, 95, 110, 119, 120, 136, 140, 143, 151, 155,
                                 156, 158}));
  EXPECT_EQ(find_xid(79)->mnemonic, "ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS");
  EXPECT_EQ(find_xid(0), nullptr);
  EXPECT_EQ(find_xid(173), nullptr);
}

struct LineCase {
  std::string_view line;
  std::string_view bus_id;
  int code, pid;
  std::string_view process, detail;
  int gpu_instance = -1, compute_instance = -1;
};

TEST(XidLine, ReadsEverySpelling) {
  const LineCase cases[] = {
      {"NVRM: Xid (PCI:0000:18:00): 79, pid=1234, name=python, GPU has fallen off the bus.",
       "0000:18:00.0", 79, 1234, "python", "GPU has fallen off the bus."},
      {"[  12.5] NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.\n", "0000:18:00.0", 79,
       0, "", "GPU has fallen off the bus."},
      {"kernel: NVRM: Xid (PCI:0000:B5:00.0): 13, Graphics Exception", "0000:b5:00.0", 13, 0, "",
       "Graphics Exception"},
      {"NVRM: Xid (0000:18:00): 31, Ch 00000008", "0000:18:00.0", 31, 0, "", "Ch 00000008"},
      {"NVRM: Xid (PCI:00000000:18:00.0): 48", "0000:18:00.0", 48, 0, "", ""},
      {"NVRM: Xid (PCI:00010002:18:00.0): 48", "00010002:18:00.0", 48, 0, "", ""},
      {"NVRM: Xid (18:00.1): 48,", "0000:18:00.1", 48, 0, "", ""},
      {"NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel (0x9).",
       "0000:01:00.0", 94, 7194, "", "Contained: CE User Channel (0x9).", 5, -1},
      {"NVRM: Xid (PCI:0000:3b:00 GPU-I:01 GPU-CI:02): 13, pid=9, name=a, Graphics Exception",
       "0000:3b:00.0", 13, 9, "a", "Graphics Exception", 1, 2},
      {"NVRM: Xid (PCI:0003:00:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error "
       "detected on link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)",
       "0003:00:00.0", 74, 0, "",
       "NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)"},
      {"NVRM: Xid (PCI:0000:c1:00): 149 NETIR_LINK_EVT", "0000:c1:00.0", 149, 0, "",
       "NETIR_LINK_EVT"},
      {"NVRM: Xid (PCI:0000:18:00) 43, pid=99999999999, name=x", "0000:18:00.0", 43, 0, "x", ""},
      {"NVRM: Xid (PCI:0000:18:00): 13, pid=5, name=\x1b[31mred, text\x07", "0000:18:00.0", 13, 5,
       "\\x1b[31mred", "text\\x07"},
  };
  for (const LineCase& c : cases) {
    auto line = parse_xid_line(c.line);
    ASSERT_TRUE(line.has_value()) << c.line;
    EXPECT_EQ(line->pci_bus_id, c.bus_id) << c.line;
    EXPECT_EQ(line->code, c.code) << c.line;
    EXPECT_EQ(line->pid, c.pid) << c.line;
    EXPECT_EQ(line->process, c.process) << c.line;
    EXPECT_EQ(line->detail, c.detail) << c.line;
    EXPECT_EQ(line->gpu_instance, c.gpu_instance) << c.line;
    EXPECT_EQ(line->compute_instance, c.compute_instance) << c.line;
  }
}

TEST(XidLine, OtherLinesGiveNothing) {
  for (std::string_view line :
       {"", "NVRM: Xid", "NVRM: Xid (PCI:0000:18:00", "NVRM: Xid (PCI:0000:18:00): abc, pid=2",
        "NVRM: Xid (PCI:0000:18:00): 0, x", "NVRM: Xid (PCI:0000:18:00): 123456, x",
        "NVRM: Xid (PCI:0000:18:00): 79x", "NVRM: Xid (PCI:zz:18:00): 79", "NVRM: Xid (PCI:18): 79",
        "NVRM: Xid (PCI:0000:118:00): 79", "NVRM: Xid (PCI:0000:18:20): 79",
        "NVRM: Xid (PCI:0000:18:00.8): 79", "NVRM: Xid (PCI:0000:18:00 GPU-I:x): 79",
        "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 12028, Non-fatal",
        "NVRM: GPU at PCI:0000:18:00: GPU-123", "NVRM: Xid error: 79"}) {
    EXPECT_FALSE(parse_xid_line(line).has_value()) << line;
  }
}

TEST(XidLine, AnyBytesAreBoundedAndSafeToShow) {
  Random random(7);
  const std::string seed =
      "NVRM: Xid (PCI:0000:18:00 GPU-I:05): 74, pid=12, name=python, link 1(0x10000, 0x0, 0x0)";
  int found = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string line = seed;
    for (std::uint64_t n = random.below(4); n > 0; --n) {
      auto at = random.below(line.size());
      line[at] = static_cast<char>(random.below(256));
    }
    if (random.chance(1, 20)) line += std::string(random.below(10000), '\x1b');
    auto parsed = parse_xid_line(line);
    if (!parsed) continue;
    ++found;
    EXPECT_TRUE(is_utf8(parsed->detail));
    EXPECT_LE(parsed->detail.size(), 8u * 1024);
    EXPECT_LE(parsed->process.size(), 8u * 64);
    EXPECT_EQ(parsed->detail.find('\x1b'), std::string::npos);
    decode_link_fault(parsed->code, parsed->detail);
    decode_recovery(parsed->detail);
  }
  EXPECT_GT(found, 1000);
}

struct LinkCase {
  int code;
  std::string_view detail;
  XidAction action;
};

TEST(LinkFault, RegistersDecide) {
  using enum XidAction;
  const LinkCase cases[] = {
      {74, "link 6(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", kResetGpu},       // bit 16
      {74, "link 6(0x1, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", kIgnore},             // bit 0
      {74, "link 6(0x40800001, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", kIgnore},      // 0, 23, 30
      {74, "link 6(0x1, 0x1, 0x0, 0x0, 0x0, 0x0, 0x0)", kFollowDriver},       // more than that
      {74, "link 6(0x200000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", kResetGpu},      // 21
      {74, "link 6(0x10, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", kCheckLink},         // 4
      {74, "link 6(0x0, 0x0, 0x0, 0x40000, 0x0, 0x0, 0x0)", kResetGpu},       // fabric
      {74, "link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)", kFollowDriver},  // not listed
      {74, "link 6(0x10000, 0x0)", kFollowDriver},                            // too few
      {74, "NVLink: fatal error detected on link 2", kFollowDriver},
      {79, "(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", kFollowDriver},
      {144, "SAW_MVB Fatal XC0 i0 Link 00 (0x00000021 0x00000002)", kResetGpu},
      {144, "SAW_MVB Nonfatal XC0 i0 Link 00 (0x00000001 0x00000004)", kIgnore},
      {144, "SAW_MVB Nonfatal XC0 i0 Link 00 (0x00000001 0x00000100)", kFollowDriver},
      {145, "RLW_REMAP Nonfatal XC1 i0 Link 00 (0x00000004 0x80000000 0x00000000)", kIgnore},
      {145, "RLW_REMAP Nonfatal XC1 i0 Link 00 (0x00000082 0x00000010 0x00000000)", kFollowDriver},
      {145, "RLW_REMAP Fatal XC1 i0 Link 00 (0x00000004 0x00000040 0x00000000)", kResetGpu},
      {145, "RLW_RXPIPE Nonfatal XC1 i0 Link 00 (0x00000006 0x00000001)", kIgnore},
      {145, "RLW_RXPIPE Nonfatal XC1 i0 Link 00 (0x00000086 0x00000001)", kResetGpu},
      {145, "RLW_RXPIPE Nonfatal XC1 i0 Link 00 (0x000000c2 0x00000002)", kIgnore},
      {145, "RLW_RXPIPE Nonfatal XC1 i0 Link 00 (0x000004c2 0x00000002)", kResetGpu},
      {146, "TLW_TX_PIPE1 Fatal XC0 i0 Link 03 (0x0000000d 0x00000004)", kResetGpu},
      {147, "TREX Nonfatal XC0 i0 Link 03 (0x0000000e 0x80000000)", kIgnore},
      {148, "NVLPW Nonfatal XC0 i0 Link 03 (0x0000000f 0x80000000)", kIgnore},
      {149, "NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000 0x00000000)", kResetGpu},
      {149, "NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x025525c6 0x00000000)", kResetGpu},
      {149, "NETIR_LINK_DOWN Fatal XC0 i0 Link 09 (0x02600011 0x00000000)", kIgnore},  // 38
      {149, "NETIR_LINK_DOWN Fatal XC0 i0 Link 09 (0x03f00011 0x00000000)", kFollowDriver},
      {149, "NETIR_BER_EVENT Nonfatal XC0 i0 Link 09 (0x00000013 0x00000002)", kIgnore},
      {149, "NETIR_MFDE_EVENT Fatal XC0 i0 Link 09 (0x00000014 0x00000004)", kResetGpu},
      {149, "NETIR_MFDE_EVENT Nonfatal XC0 i0 Link 09 (0x00000014 0x00000003)", kIgnore},
      {149, "NETIR_INT Fatal XC0 i0 Link 09 (0x00000018 0x00000000)", kResetGpu},
      {150, "MSE_WATCHDOG Fatal XC0 i0 Link -1 (0x00000000 0x00000000)", kResetGpu},
      {150, "MSE Fatal (0x00000000 0x00000001)", kFollowDriver},
      {149, "NETIR_LINK_EVT (0xfffffffffffff 0x0)", kFollowDriver},
      {149, "NETIR_LINK_EVT", kFollowDriver},
  };
  for (const LinkCase& c : cases) {
    EXPECT_EQ(name(decode_link_fault(c.code, c.detail).action), name(c.action))
        << c.code << " " << c.detail;
  }
}

TEST(Recovery, TheLastActionOfTheTextCounts) {
  const std::pair<std::string_view, RecoveryAction> cases[] = {
      {"GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
       RecoveryAction::kGpuReset},
      {"GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)",
       RecoveryAction::kNodeReboot},
      {"GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
       RecoveryAction::kNone},
      {"GPU Reset Required", RecoveryAction::kGpuReset},
      {"Node Reboot Required", RecoveryAction::kNodeReboot},
      {"from Node Reboot Required to Drain and Reset", RecoveryAction::kDrainAndReset},
      {"Drain P2P", RecoveryAction::kDrainP2p},
      {"None", RecoveryAction::kNone},
      {"changed from 0x0 (None) to 0x77 (something new)", RecoveryAction::kUnknown},
      {"", RecoveryAction::kUnknown},
      {"something new", RecoveryAction::kUnknown},
  };
  for (const auto& [text, action] : cases) {
    EXPECT_EQ(name(decode_recovery(text)), name(action)) << text;
  }
}

}  // namespace
}  // namespace berth::monitor
