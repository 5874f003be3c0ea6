#include "node/monitor/health.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "node/monitor/xid.h"

namespace berth::monitor {
namespace {

using model::GpuAnswer;
using model::GpuEvent;
using model::GpuReading;
using model::RecoveryAction;
using Names = std::vector<std::string>;

constexpr std::int64_t kSecond = 1'000'000'000;

model::GpuInventory two_gpus() {
  model::GpuInventory inventory;
  inventory.driver_version = "580.1";
  for (int i = 0; i < 2; ++i) {
    model::GpuDevice gpu;
    gpu.index = i;
    gpu.uuid = i == 0 ? "GPU-b" : "GPU-a";  // the order is by index, not by name
    gpu.pci_bus_id = i == 0 ? "0000:18:00.0" : "0000:2a:00.0";
    inventory.gpus.push_back(gpu);
  }
  return inventory;
}

// A book with two GPUs and a clock of its own.
class Clinic {
 public:
  explicit Clinic(HealthOptions options = {}) : book(std::move(options)) {
    book.set_inventory(two_gpus(), now);
  }
  Names xid(int code, std::string detail = "", int pid = 0, std::string uuid = "GPU-b") {
    GpuEvent event;
    event.uuid = std::move(uuid);
    event.code = code;
    event.pid = pid;
    event.detail = std::move(detail);
    return book.event(event, tick());
  }
  Names happens(GpuEvent::Kind kind) {
    GpuEvent event;
    event.kind = kind;
    event.uuid = "GPU-b";
    return book.event(event, tick());
  }
  // One reading of GPU-b, after change() of a fine one.
  Names reads(const std::function<void(GpuReading&)>& change = nullptr) {
    GpuReading reading;
    reading.uuid = "GPU-b";
    reading.condition.nvlinks_up = 18;
    if (change) change(reading);
    return book.readings({reading}, tick());
  }
  Names recommends(RecoveryAction action) {
    return reads([&](GpuReading& r) { r.condition.recovery = action; });
  }
  Names answers(GpuAnswer answer) {
    return reads([&](GpuReading& r) { r.answer = answer; });
  }
  const Verdict& verdict() const { return book.verdict("GPU-b"); }
  std::int64_t tick() { return now += kSecond; }

  std::int64_t now = 1'700'000'000 * kSecond;
  HealthBook book;
};

const Names kOne = {"GPU-b"}, kNobody = {};

TEST(Health, NewGpusAreFineAndStrangersAreNot) {
  Clinic clinic;
  EXPECT_EQ(clinic.verdict(), Verdict());
  const Verdict& stranger = clinic.book.verdict("GPU-x");
  EXPECT_FALSE(stranger.healthy);
  EXPECT_FALSE(stranger.known);
}

TEST(Health, FatalXidTakesOneGpuAwayUntilItWasResetAndReadClean) {
  Clinic clinic;
  EXPECT_EQ(clinic.xid(79), kOne);
  EXPECT_FALSE(clinic.verdict().healthy);
  EXPECT_TRUE(clinic.verdict().known);
  EXPECT_EQ(clinic.verdict().code, "Xid79");
  EXPECT_EQ(clinic.verdict().severity, Severity::kFatal);
  EXPECT_EQ(clinic.verdict().action, "reboot the node");
  EXPECT_EQ(clinic.verdict().text, "Xid 79: the GPU has fallen off the bus");
  EXPECT_EQ(name(clinic.verdict().heals), "gpu-reset");
  EXPECT_EQ(clinic.verdict().since_ns, clinic.now);
  EXPECT_TRUE(clinic.book.verdict("GPU-a").healthy);
  EXPECT_EQ(clinic.xid(79), kNobody);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(clinic.reads(), kNobody);  // it was not reset
  clinic.answers(GpuAnswer::kLost);
  EXPECT_EQ(clinic.verdict().code, "Xid79");
  EXPECT_EQ(clinic.reads(), kNobody);
  EXPECT_EQ(clinic.reads(), kNobody);
  EXPECT_EQ(clinic.reads(), kOne);
  EXPECT_EQ(clinic.verdict(), Verdict());
}

TEST(Health, ResetIsAlsoSeenByTheDriversRecommendation) {
  Clinic clinic;
  clinic.xid(95);
  clinic.recommends(RecoveryAction::kGpuReset);
  clinic.reads();
  clinic.recommends(RecoveryAction::kGpuReset);  // again: the clean readings start over
  clinic.reads();
  clinic.reads();
  EXPECT_FALSE(clinic.verdict().healthy);
  EXPECT_EQ(clinic.reads(), kOne);
  EXPECT_TRUE(clinic.verdict().healthy);
}

TEST(Health, AnotherErrorAfterTheResetCountsAgain) {
  Clinic clinic;
  clinic.xid(95);
  clinic.answers(GpuAnswer::kLost);
  clinic.reads();
  clinic.reads();
  clinic.xid(95);
  for (int i = 0; i < 5; ++i) clinic.reads();
  EXPECT_EQ(clinic.verdict().code, "Xid95");
}

TEST(Health, ApplicationErrorsBlameTheJob) {
  Clinic clinic;
  for (int code : {13, 31, 43, 45, 68, 109, 94, 69, 32}) {
    EXPECT_EQ(clinic.xid(code, "", 4711), kNobody) << code;
    auto noted = clinic.book.take_noted();
    ASSERT_EQ(noted.size(), 1u) << code;
    EXPECT_EQ(noted[0].xid, code);
    EXPECT_EQ(noted[0].pid, 4711);
    EXPECT_EQ(noted[0].uuid, "GPU-b");
    EXPECT_TRUE(noted[0].blames_job) << code;
  }
  EXPECT_EQ(clinic.verdict(), Verdict());
  EXPECT_EQ(clinic.book.last_xid("GPU-b"), 32);
  EXPECT_EQ(clinic.book.last_xid("GPU-a"), 0);
  EXPECT_EQ(clinic.book.xid_counts().at({"GPU-b", 13}), 1u);
}

TEST(Health, RepeatedFaultsOfSeveralProcessesAreNoted) {
  auto repeated = [](Clinic& clinic) {
    int found = 0;
    for (const Noted& noted : clinic.book.take_noted()) found += noted.code == "RepeatedXid13";
    return found;
  };
  const std::string here = "Graphics SM Warp Exception on (GPC 5, TPC 4, SM 1)";
  Clinic same_process;
  for (int i = 0; i < 10; ++i) same_process.xid(13, here, 7);
  EXPECT_EQ(repeated(same_process), 0);
  Clinic same_place;
  for (int pid : {7, 8, 9, 10}) same_place.xid(13, here, pid);
  EXPECT_EQ(repeated(same_place), 1);
  EXPECT_EQ(same_place.verdict(), Verdict());
  Clinic other_places;
  for (int pid : {7, 8, 9, 10}) {
    other_places.xid(13, "(GPC " + std::to_string(pid) + ", TPC 4, SM 1)", pid);
  }
  EXPECT_EQ(repeated(other_places), 0);
  Clinic rare;
  for (int pid : {7, 8, 9, 10}) {
    rare.now += 3000 * kSecond;
    rare.xid(13, here, pid);
  }
  EXPECT_EQ(repeated(rare), 0);
}

TEST(Health, DoubleBitErrorWithARemapIsDrainedFirst) {
  Clinic alone;
  alone.xid(48);
  EXPECT_EQ(alone.verdict().action, "reset the GPU");
  Clinic remap_after;
  remap_after.xid(48);
  EXPECT_EQ(remap_after.xid(63), kOne);
  EXPECT_EQ(remap_after.verdict().action, "end the jobs on the GPU, then reset it");
  Clinic remap_before;
  remap_before.xid(63);
  EXPECT_TRUE(remap_before.verdict().healthy);
  remap_before.xid(48);
  EXPECT_EQ(remap_before.verdict().action, "end the jobs on the GPU, then reset it");
  Clinic long_ago;
  long_ago.xid(63);
  long_ago.now += 3600 * kSecond;
  long_ago.xid(48);
  EXPECT_EQ(long_ago.verdict().action, "reset the GPU");
}

TEST(Health, FollowsTheTextOf154) {
  Clinic clinic;
  EXPECT_EQ(clinic.xid(154), kNobody);  // without text the next reading says it
  EXPECT_EQ(clinic.xid(154, "GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)"),
            kOne);
  EXPECT_EQ(clinic.verdict().code, "RecoveryRebootNode");
  EXPECT_EQ(name(clinic.verdict().heals), "no-recovery-action");
  for (int i = 0; i < 3; ++i) clinic.recommends(RecoveryAction::kNodeReboot);
  EXPECT_FALSE(clinic.verdict().healthy);
  for (int i = 0; i < 3; ++i) clinic.reads();
  EXPECT_EQ(clinic.verdict(), Verdict());

  Clinic old_driver;  // which has no recommendation to read
  old_driver.xid(154, "Drain and Reset");
  for (int i = 0; i < 5; ++i) old_driver.recommends(RecoveryAction::kUnknown);
  EXPECT_EQ(old_driver.verdict().code, "RecoveryDrainAndReset");
  EXPECT_EQ(old_driver.xid(154, "None"), kNobody);
  for (int i = 0; i < 3; ++i) old_driver.recommends(RecoveryAction::kUnknown);
  EXPECT_TRUE(old_driver.verdict().healthy);
}

TEST(Health, NvLinkErrorsAreDecidedByTheirRegisters) {
  const std::string mechanical = "link 6(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)";
  const std::string parity = "link 6(0x10, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)";
  Clinic clinic;
  EXPECT_EQ(clinic.xid(74), kNobody);
  EXPECT_EQ(clinic.xid(74, mechanical), kOne);
  EXPECT_EQ(clinic.verdict().text, "Xid 74: an NVLink error (check connectors and seating)");
  Clinic rare;
  EXPECT_EQ(rare.xid(74, parity), kNobody);
  EXPECT_EQ(rare.xid(74, parity), kNobody);
  EXPECT_EQ(rare.xid(74, parity), kOne);
  Clinic blackwell;
  EXPECT_EQ(blackwell.xid(149, "NETIR_BER_EVENT Nonfatal XC0 i0 Link 09 (0x00000013 0x2)"),
            kNobody);
  EXPECT_EQ(blackwell.xid(149, "NETIR_LINK_EVT Fatal XC0 i0 Link 01 (0x021425c6 0x0)"), kOne);
}

struct ConditionCase {
  std::string code;
  std::function<void(GpuReading&)> sick;
  int needed;  // readings until the verdict falls
  bool away;
  std::string probe;
};

TEST(Health, ConditionsOfReadings) {
  const ConditionCase cases[] = {
      {"RecoveryResetGpu", [](auto& r) { r.condition.recovery = RecoveryAction::kGpuReset; }, 1,
       true, "no-recovery-action"},
      {"RecoveryDrainPeers", [](auto& r) { r.condition.recovery = RecoveryAction::kDrainP2p; }, 1,
       true, "no-recovery-action"},
      {"RecoverImexDomain", [](auto& r) { r.condition.recovery = RecoveryAction::kRecoverImex; }, 1,
       false, "no-recovery-action"},
      {"RowRemapPending", [](auto& r) { r.condition.remap_pending = true; }, 1, true,
       "no-pending-remap"},
      {"ThermalSlowdown", [](auto& r) { r.condition.thermal_slowdown = true; }, 1, false,
       "no-thermal-slowdown"},
      {"FabricTrouble", [](auto& r) { r.condition.fabric_trouble = true; }, 2, true, "links-up"},
      {"NvLinkDown", [](auto& r) { r.condition.nvlinks_up = 17; }, 2, true, "links-up"},
      {"DriverError",
       [](auto& r) {
         r.answer = GpuAnswer::kError;
         r.error = "odd\x1b";
       },
       2, true, "driver-answers"},
      {"GpuLost", [](auto& r) { r.answer = GpuAnswer::kLost; }, 1, true, "driver-answers"},
      {"DriverSilent", [](auto& r) { r.answer = GpuAnswer::kSilent; }, 1, true, "driver-answers"},
  };
  for (const ConditionCase& c : cases) {
    SCOPED_TRACE(c.code);
    Clinic clinic;
    clinic.reads();
    for (int i = 1; i < c.needed; ++i) EXPECT_EQ(clinic.reads(c.sick), kNobody);
    EXPECT_EQ(clinic.reads(c.sick), kOne);
    EXPECT_EQ(clinic.verdict().code, c.code);
    EXPECT_EQ(clinic.verdict().healthy, !c.away);
    EXPECT_EQ(clinic.verdict().known, c.code != "DriverSilent");
    EXPECT_EQ(name(clinic.verdict().heals), c.probe);
    EXPECT_EQ(clinic.verdict().text.find('\x1b'), std::string::npos);
    auto noted = clinic.book.take_noted();
    ASSERT_EQ(noted.size(), 1u);
    EXPECT_EQ(noted[0].code, c.code);
    clinic.reads(c.sick);
    EXPECT_TRUE(clinic.book.take_noted().empty());
    clinic.reads();
    clinic.reads();
    clinic.reads(c.sick);
    clinic.reads();
    EXPECT_EQ(clinic.reads(), kNobody);
    EXPECT_EQ(clinic.reads(), kOne);
    EXPECT_EQ(clinic.verdict(), Verdict());
  }
}

TEST(Health, FailedRemapNeedsAResetThatHelps) {
  auto failed = [](GpuReading& r) { r.condition.remap_failed = true; };
  Clinic clinic;
  clinic.reads(failed);
  EXPECT_EQ(clinic.verdict().code, "RowRemapFailed");
  for (int i = 0; i < 5; ++i) clinic.reads();
  EXPECT_FALSE(clinic.verdict().healthy);
  clinic.answers(GpuAnswer::kLost);
  for (int i = 0; i < 5; ++i) clinic.reads(failed);
  EXPECT_FALSE(clinic.verdict().healthy);
  clinic.answers(GpuAnswer::kLost);
  for (int i = 0; i < 3; ++i) clinic.reads();
  EXPECT_TRUE(clinic.verdict().healthy);
}

TEST(Health, LinksThatWereNeverUpDoNotMatterAndMigSwitchesThemOff) {
  Clinic clinic;
  for (int i = 0; i < 3; ++i) {
    clinic.reads([](GpuReading& r) {
      r.condition.nvlinks_up = 4;
      r.condition.nvlinks_down = 14;
    });
  }
  EXPECT_TRUE(clinic.verdict().healthy);
  auto inventory = two_gpus();
  inventory.gpus[0].mig_enabled = true;
  clinic.book.set_inventory(inventory, clinic.tick());
  for (int i = 0; i < 3; ++i) clinic.reads([](GpuReading& r) { r.condition.nvlinks_up = 0; });
  EXPECT_TRUE(clinic.verdict().healthy);
}

TEST(Health, OtherEvents) {
  using Kind = GpuEvent::Kind;
  for (auto [kind, code] :
       {std::pair{Kind::kUnavailable, "GpuUnavailable"},
        std::pair{Kind::kEccDouble, "EccDoubleBit"}, std::pair{Kind::kFatalPoison, "FatalPoison"},
        std::pair{Kind::kRemapFailed, "RowRemapFailed"}}) {
    Clinic clinic;
    EXPECT_EQ(clinic.happens(kind), kOne) << code;
    EXPECT_EQ(clinic.verdict().code, code);
    EXPECT_FALSE(clinic.verdict().healthy) << code;
    EXPECT_EQ(clinic.happens(kind), kNobody) << code;
    EXPECT_EQ(clinic.book.take_noted().size(), 1u) << code;
  }
  for (Kind kind : {Kind::kPoison, Kind::kEccStorm, Kind::kRemapped, Kind::kRecoveryAction}) {
    Clinic clinic;
    EXPECT_EQ(clinic.happens(kind), kNobody);
    EXPECT_EQ(clinic.book.take_noted().size(), 1u);
  }
  for (Kind kind : {Kind::kMigChanged, Kind::kInventory}) {
    Clinic clinic;
    EXPECT_EQ(clinic.happens(kind), kNobody);
    EXPECT_TRUE(clinic.book.take_noted().empty());
  }
}

TEST(Health, EventsFindTheirGpuByBusIdOrMeanAll) {
  Clinic clinic;
  GpuEvent event;
  event.code = 79;
  event.pci_bus_id = "0000:2a:00.0";
  EXPECT_EQ(clinic.book.event(event, clinic.tick()), Names{"GPU-a"});
  event.pci_bus_id = "0000:99:00.0";
  EXPECT_EQ(clinic.book.event(event, clinic.tick()), kNobody);
  event.uuid = "GPU-x";
  event.pci_bus_id = "";
  EXPECT_EQ(clinic.book.event(event, clinic.tick()), kNobody);
  Clinic all;
  event.uuid = "";
  EXPECT_EQ(all.book.event(event, all.tick()), (Names{"GPU-b", "GPU-a"}));
}

TEST(Health, OneErrorToldTwiceCountsOnce) {
  Clinic clinic;
  GpuEvent event;
  event.uuid = "GPU-b";
  event.code = 31;
  clinic.book.event(event, clinic.tick());
  event.from_kernel_log = true;
  clinic.book.event(event, clinic.tick());
  EXPECT_EQ(clinic.book.xid_counts().at({"GPU-b", 31}), 1u);
  EXPECT_EQ(clinic.book.take_noted().size(), 1u);
  clinic.book.event(event, clinic.tick());  // the log tells of another
  clinic.now += 60 * kSecond;
  event.from_kernel_log = false;
  clinic.book.event(event, clinic.tick());
  EXPECT_EQ(clinic.book.xid_counts().at({"GPU-b", 31}), 3u);
}

TEST(Health, CountsAndNotesAreBounded) {
  Clinic clinic;
  for (int code = 1; code < 3000; ++code) clinic.xid(200 + code);
  EXPECT_EQ(clinic.book.xid_counts().size(), 64u);
  EXPECT_EQ(clinic.book.take_noted().size(), 1000u);
  EXPECT_TRUE(clinic.book.take_noted().empty());
  EXPECT_TRUE(clinic.verdict().healthy);
}

TEST(Health, OptionsOfThePlugin) {
  auto options = health_options("13, 31,,48", "");
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->ignored_xids, (std::set<int>{13, 31, 48}));
  EXPECT_FALSE(options->xids_off);
  for (std::string_view word : {"all", "xids", "48,xids"}) {
    options = health_options(word, "79");
    ASSERT_TRUE(options.ok());
    EXPECT_TRUE(options->xids_off) << word;
    EXPECT_EQ(options->fatal_xids, std::set<int>{79});
  }
  for (auto [disable, enable] : {std::pair{"none", ""},
                                 {"1x", ""},
                                 {"-1", ""},
                                 {"", "all"},
                                 {"", "0"},
                                 {"99999999999", ""}}) {
    EXPECT_FALSE(health_options(disable, enable).ok()) << disable << "|" << enable;
  }
  EXPECT_EQ(health_options("x", "").error().to_string(),
            "DP_DISABLE_HEALTHCHECKS: found \"x\", want Xid numbers 1..99999 with commas between, "
            "\"all\" or \"xids\"");

  Clinic ignoring(*health_options("95", ""));
  EXPECT_EQ(ignoring.xid(95), kNobody);
  EXPECT_EQ(ignoring.xid(79), kOne);
  Clinic off(*health_options("all", "31"));
  EXPECT_EQ(off.xid(79), kNobody);
  EXPECT_EQ(off.xid(154, "Node Reboot Required"), kNobody);
  EXPECT_EQ(off.answers(GpuAnswer::kLost), kOne);  // not an Xid
  EXPECT_EQ(off.verdict().code, "GpuLost");
  Clinic both(*health_options("31", "31"));
  EXPECT_EQ(both.xid(31), kOne);  // enable beats disable
  EXPECT_EQ(both.verdict().action, "reset the GPU");
}

TEST(Health, FlappingGpusStayOutUntilForgiven) {
  Clinic clinic;
  auto falls_and_heals = [&] {
    clinic.recommends(RecoveryAction::kGpuReset);
    for (int i = 0; i < 3; ++i) clinic.reads();
  };
  falls_and_heals();
  falls_and_heals();
  EXPECT_TRUE(clinic.verdict().healthy);
  falls_and_heals();
  EXPECT_EQ(clinic.verdict().code, "Flapping");
  EXPECT_EQ(clinic.verdict().heals, Probe::kOperator);
  clinic.now += 100 * 3600 * kSecond;
  for (int i = 0; i < 100; ++i) clinic.reads();
  EXPECT_FALSE(clinic.verdict().healthy);
  EXPECT_EQ(clinic.book.forgive("GPU-b"), kOne);
  EXPECT_TRUE(clinic.verdict().healthy);
  EXPECT_TRUE(clinic.reads().empty());  // told once
  falls_and_heals();
  EXPECT_TRUE(clinic.verdict().healthy);
  EXPECT_TRUE(clinic.book.forgive("GPU-x").empty());

  Clinic slow;
  for (int i = 0; i < 10; ++i) {
    slow.now += 3000 * kSecond;
    slow.recommends(RecoveryAction::kGpuReset);
    for (int k = 0; k < 3; ++k) slow.reads();
  }
  EXPECT_TRUE(slow.verdict().healthy);
  Clinic silent;  // a driver that hangs now and then says nothing about the GPU
  for (int i = 0; i < 10; ++i) {
    silent.answers(GpuAnswer::kSilent);
    for (int k = 0; k < 3; ++k) silent.reads();
  }
  EXPECT_TRUE(silent.verdict().healthy);
}

TEST(Health, ForgivingKeepsWhatReadingsShow) {
  Clinic clinic;
  clinic.xid(79);
  clinic.answers(GpuAnswer::kSilent);
  clinic.book.forgive("GPU-b");
  EXPECT_EQ(clinic.verdict().code, "DriverSilent");
  EXPECT_FALSE(clinic.verdict().known);
}

TEST(Health, GpusThatLeaveAreUnknownAndForgottenAfterAnHour) {
  Clinic clinic;
  clinic.xid(95);
  auto inventory = two_gpus();
  inventory.gpus.erase(inventory.gpus.begin());
  clinic.book.set_inventory(inventory, clinic.tick());
  EXPECT_FALSE(clinic.verdict().known);
  EXPECT_FALSE(clinic.verdict().healthy);
  clinic.book.set_inventory(two_gpus(), clinic.tick());
  clinic.reads();
  clinic.reads();
  EXPECT_FALSE(clinic.verdict().healthy);
  clinic.reads();  // it was gone and came back: that was the reset
  EXPECT_TRUE(clinic.verdict().healthy);
  clinic.book.set_inventory(inventory, clinic.tick());
  clinic.now += 3601 * kSecond;
  clinic.book.set_inventory(inventory, clinic.tick());
  EXPECT_EQ(clinic.verdict().code, "UnknownGpu");
  EXPECT_FALSE(clinic.book.xid_counts().contains({"GPU-b", 95}));
}

TEST(Health, RestoresWhatItSaved) {
  Clinic before;
  before.book.set_boot("boot-1");
  before.reads();
  before.xid(79);
  before.recommends(RecoveryAction::kNodeReboot);
  const std::string saved = before.book.save();
  Clinic after;
  ASSERT_TRUE(after.book.restore(saved).ok());
  EXPECT_EQ(after.book.save(), saved);
  EXPECT_EQ(after.verdict(), before.verdict());
  after.book.set_boot("boot-1");
  EXPECT_EQ(after.book.save(), saved);
  // The driver recommended something before the restart and does not after: that was the reset.
  for (int i = 0; i < 3; ++i) after.reads();
  EXPECT_TRUE(after.verdict().healthy);

  Clinic plain;
  plain.book.set_boot("boot-1");
  plain.xid(79);
  Clinic same_boot, next_boot;
  for (Clinic* clinic : {&same_boot, &next_boot}) {
    ASSERT_TRUE(clinic->book.restore(plain.book.save()).ok());
    clinic->book.set_boot(clinic == &same_boot ? "boot-1" : "boot-2");
    for (int i = 0; i < 3; ++i) clinic->recommends(RecoveryAction::kUnknown);
  }
  EXPECT_FALSE(same_boot.verdict().healthy);
  EXPECT_TRUE(next_boot.verdict().healthy);
}

TEST(Health, DamagedTextChangesNothing) {
  Clinic sick;
  sick.xid(79);
  const std::string saved = sick.book.save();
  Clinic clinic;
  clinic.xid(95);
  const std::string own = clinic.book.save();
  auto replaced = [&](std::string_view from, std::string_view to) {
    std::string text = saved;
    std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::string bad[] = {
      "",
      "null",
      "{}",
      saved + "x",
      saved.substr(0, saved.size() / 2),
      replaced("\"version\":1", "\"version\":2"),
      replaced("\"gpu-reset\"", "\"magic\""),
      replaced("\"fatal\"", "\"fine\""),
      replaced("\"clean\":0", "\"clean\":-1"),
      replaced("\"clean\":0", "\"clean\":0,\"extra\":1"),
      replaced("\"silent\":false", "\"silent\":0"),
      replaced("\"uuid\":\"GPU-b\"", "\"uuid\":\"GPU-a\""),
      replaced("\"uuid\":\"GPU-b\"", "\"uuid\":\"\""),
      replaced("\"boot\":\"\"", "\"boot\":\"" + std::string(5000, 'x') + "\""),
  };
  for (const std::string& text : bad) {
    EXPECT_FALSE(clinic.book.restore(text).ok()) << text.substr(0, 200);
    EXPECT_EQ(clinic.book.save(), own);
  }
}

}  // namespace
}  // namespace berth::monitor
