// MIG layouts kept by the agent, in virtual time, on machines without a driver: cut off at every
// step, before and after its effect, with the driver's news coming before and after its answer.
#include "agent/mig_keeper.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "agent/mig_intent.h"
#include "node/partition/mig_board.h"

namespace berth::agent {
namespace {

using partition::MigBoard;
using partition::MigGpu;
using partition::MigStep;
using partition::MigUse;
using partition::MigWish;

constexpr std::int64_t kMigSecond = 1'000'000'000;

class MigFolder {
 public:
  MigFolder() {
    char path[] = "/tmp/mig-XXXXXX";
    if (mkdtemp(path) != nullptr) path_ = path;
  }
  ~MigFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class MigQuiet final : public LogSink {
 public:
  void write(LogLevel, std::string_view) override {}
};

model::GpuInventory two_h200() {
  model::GpuInventory inventory;
  for (int i = 0; i < 2; ++i) {
    model::GpuDevice& gpu = inventory.gpus.emplace_back();
    gpu.index = i;
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.name = "NVIDIA H200";
    gpu.pci_device = 0x233510de;
    gpu.memory_mib = 143'771;
    gpu.mig_capable = true;
  }
  return inventory;
}

// The machine: it outlives agents.
struct Machine {
  model::GpuInventory inventory = two_h200();
  MigBoard board{inventory};
  int looks = 0, steps = 0;
  std::set<std::string> busy;  // instances that the driver does not let go
  std::string broken;          // steps of this verb fail
  std::vector<std::string> done;

  std::string layout(int gpu) const {
    return describe(partition::wish_of(board.gpus()[static_cast<std::size_t>(gpu)]));
  }
  Status carry_out(const MigStep& step, bool half = false) {
    for (const std::string& uuid : step.compute) {
      if (busy.contains(uuid)) return Error(Code::kConflict, "in use by another client");
    }
    if (name(step.kind) == broken) return Error(Code::kUnavailable, "unknown error (code 999)");
    const Status carried = board.carry_out(step, inventory, half);
    if (carried.ok()) done.push_back(describe(step));
    return carried;
  }
};

// Where an agent dies: at the so manyth step.
struct Death {
  int at = -1;  // never
  enum Moment { kBefore, kHalf, kAfter } moment = kBefore;
};

class TestDriver final : public partition::MigDriver {
 public:
  TestDriver(Loop& loop, Machine& machine) : loop_(loop), machine_(machine) {}

  void look(std::function<void(Result<std::vector<MigGpu>>)> done) override {
    ++machine_.looks;
    loop_.after(10, [this, alive = std::weak_ptr<int>(alive_), done = std::move(done)] {
      if (!alive.expired()) done(machine_.board.gpus());
    });
  }
  void carry_out(const MigStep& step, std::function<void(Status)> done) override {
    const int number = machine_.steps++;
    if (number == death.at) {
      if (death.moment == Death::kHalf) (void)machine_.carry_out(step, true);
      if (death.moment == Death::kAfter) (void)machine_.carry_out(step);
      dead = true;
      return;  // nobody hears of it
    }
    loop_.after(10, [this, alive = std::weak_ptr<int>(alive_), step, done = std::move(done)] {
      if (alive.expired()) return;
      const Status carried = machine_.carry_out(step);
      if (news_first && news) news();
      done(carried);
      if (!alive.expired() && !news_first && news) news();
    });
  }

  Death death;
  bool dead = false;
  bool news_first = true;
  std::function<void()> news;

 private:
  Loop& loop_;
  Machine& machine_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

std::shared_ptr<const partition::MigConfig> config_of(const std::string& text) {
  auto read = partition::read_mig_config(text);
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().to_string());
  return std::make_shared<const partition::MigConfig>(read.ok() ? *read : partition::MigConfig());
}

constexpr const char* kLayouts = R"(
version: v1
mig-configs:
  small: [{devices: all, mig-enabled: true, mig-devices: {"1g.18gb": 7}}]
  mixed:
    - devices: [0]
      mig-enabled: true
      mig-devices: {"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1}
    - devices: [1]
      mig-enabled: true
      mig-devices: {"3g.71gb": 2}
  "off": [{devices: all, mig-enabled: false}]
  huge: [{devices: all, mig-enabled: true, mig-devices: {"7g.141gb": 1, "1g.18gb": 1}}]
)";

// An agent's keeper on a machine. Withheld devices are looked at whenever they may have changed.
class Keeping {
 public:
  Keeping(SteppedLoop& loop, Machine& machine, const std::string& folder, const MigUse& use = {},
          Death death = {}, bool news_first = true)
      : loop_(loop), machine_(machine), log_(sink_, loop.wall(), {}), driver(loop, machine) {
    driver.death = death;
    driver.news_first = news_first;
    held = use;
    MigWorld world;
    world.use = [this] { return holders_known ? std::optional(held) : std::nullopt; };
    world.changed = [this] { ++changes; };
    world.look_again = [this] { give_inventory(); };
    world.tell = [this](bool, const std::string& reason, const std::string&) {
      told.push_back(reason);
    };
    driver.news = [this] { give_inventory(); };
    keeper = std::make_unique<MigKeeper>(loop, driver, MigKeeperOptions{.state_dir = folder},
                                         std::move(world), log_, metrics_);
    keeper->set_config(config_of(kLayouts));
    keeper->start();
    give_inventory();
  }
  void give_inventory() {
    loop_.after(inventory_takes, [this, alive = std::weak_ptr<int>(alive_)] {
      if (!alive.expired()) keeper->inventory_came(machine_.inventory);
    });
  }
  // Until it rests or dies.
  void run(std::int64_t ns = 30 * kMigSecond) {
    loop_.run_until([this] { return driver.dead; }, ns);
  }
  std::string state() const { return keeper->shown().state + " " + keeper->shown().reason; }

 private:
  SteppedLoop& loop_;
  Machine& machine_;
  MigQuiet sink_;
  Logger log_;
  MetricsRegistry metrics_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);

 public:
  TestDriver driver;
  MigUse held;
  bool holders_known = true;
  std::int64_t inventory_takes = 0;
  int changes = 0;
  std::vector<std::string> told;
  std::unique_ptr<MigKeeper> keeper;
};

class MigKeeperTest : public ::testing::Test {
 protected:
  std::string intent() const { return folder_ / "mig-intent.json"; }
  bool noted() const { return std::filesystem::exists(intent()); }

  MigFolder folder_;
  FakeClock clock_;
  SteppedLoop loop_{clock_};
  Machine machine_;
};

TEST_F(MigKeeperTest, CutsTheGpusAsDeclaredAndAgainAndBack) {
  Keeping keeping(loop_, machine_, folder_.path());
  keeping.keeper->declare("mixed");
  keeping.run();
  EXPECT_EQ(machine_.layout(0), "2 x 1g.18gb, 1 x 2g.35gb, 1 x 3g.71gb");
  EXPECT_EQ(machine_.layout(1), "2 x 3g.71gb");
  EXPECT_EQ(keeping.state(), "success LayoutApplied");
  EXPECT_EQ(keeping.told, (std::vector<std::string>{"MigChanging", "LayoutApplied"}));
  EXPECT_FALSE(noted());
  EXPECT_FALSE(keeping.keeper->changing());
  const int looks = machine_.looks;
  keeping.give_inventory();
  keeping.run();
  EXPECT_EQ(machine_.looks, looks) << "what is so needs no look";
  keeping.keeper->declare("small");
  keeping.run();
  EXPECT_EQ(machine_.layout(1), "7 x 1g.18gb");
  keeping.keeper->declare("off");
  keeping.run();
  EXPECT_EQ(machine_.layout(0) + machine_.layout(1), "offoff");
  EXPECT_EQ(keeping.state(), "success LayoutApplied");
}

TEST_F(MigKeeperTest, WithoutADeclarationNothingHappens) {
  Keeping keeping(loop_, machine_, folder_.path());
  keeping.keeper->declare("");
  keeping.run();
  EXPECT_EQ(machine_.looks, 0);
  EXPECT_EQ(keeping.state(), " ");
}

TEST_F(MigKeeperTest, DevicesAreOutOfTheListsWhileTheyChangeButThoseThatStay) {
  {
    Keeping first(loop_, machine_, folder_.path());
    first.keeper->declare("mixed");
    first.run();
  }
  // The 3g at 4 of GPU 0 stays; all of GPU 1 does.
  const std::string stays = machine_.board.gpus()[0].cuts.back().compute[0].uuid;
  const std::string goes = machine_.board.gpus()[0].cuts.front().compute[0].uuid;
  Keeping keeping(loop_, machine_, folder_.path());
  keeping.keeper->set_config(
      config_of("{version: v1, mig-configs: {x: [{devices: [0], mig-enabled: true, mig-devices: "
                "{\"3g.71gb\": 2}}]}}"));
  bool seen = false;
  keeping.driver.news = [&] {
    seen = true;
    EXPECT_TRUE(noted());
    EXPECT_TRUE(keeping.keeper->withheld("GPU-0", goes));
    EXPECT_TRUE(keeping.keeper->withheld("GPU-0", "MIG-that-is-new"));
    EXPECT_FALSE(keeping.keeper->withheld("GPU-0", stays));
    EXPECT_FALSE(keeping.keeper->withheld("GPU-1", "MIG-of-another"));
    EXPECT_EQ(keeping.state(), "pending MigChanging");
    keeping.give_inventory();
  };
  keeping.keeper->declare("x");
  keeping.run();
  EXPECT_TRUE(seen);
  EXPECT_EQ(machine_.layout(0), "2 x 3g.71gb");
  EXPECT_FALSE(keeping.keeper->withheld("GPU-0", goes));
}

TEST_F(MigKeeperTest, WhatPodsHoldIsRefusedAndDoneWhenTheyAreGone) {
  {
    Keeping first(loop_, machine_, folder_.path());
    first.keeper->declare("small");
    first.run();
  }
  machine_.done.clear();
  const std::string held = machine_.board.gpus()[1].cuts[2].compute[0].uuid;
  Keeping keeping(loop_, machine_, folder_.path(), {{held, {"team/train-0"}}});
  keeping.keeper->declare("mixed");
  keeping.run();
  EXPECT_EQ(keeping.state(), "failed MigInUse");
  EXPECT_NE(keeping.keeper->shown().text.find("team/train-0 holds " + held), std::string::npos);
  EXPECT_TRUE(machine_.done.empty());
  EXPECT_FALSE(noted());
  EXPECT_FALSE(keeping.keeper->changing());
  // Asked again and again, it stays so, and is not looked at without a reason.
  const int looks = machine_.looks;
  for (int i = 0; i < 20; ++i) keeping.keeper->use_changed();
  keeping.run(kMigSecond);
  EXPECT_EQ(machine_.looks, looks);
  keeping.held.clear();
  keeping.keeper->use_changed();
  keeping.run();
  EXPECT_EQ(keeping.state(), "success LayoutApplied");
  EXPECT_EQ(machine_.layout(1), "2 x 3g.71gb");
}

TEST_F(MigKeeperTest, NothingIsTouchedBeforeTheHoldersAreKnown) {
  Keeping keeping(loop_, machine_, folder_.path());
  keeping.holders_known = false;
  keeping.keeper->declare("small");
  keeping.run();
  EXPECT_EQ(keeping.state(), "pending HoldersUnknown");
  EXPECT_TRUE(machine_.done.empty());
  keeping.holders_known = true;
  keeping.keeper->use_changed();
  keeping.run();
  EXPECT_EQ(keeping.state(), "success LayoutApplied");
}

TEST_F(MigKeeperTest, BadDeclarationsAreRefused) {
  Keeping keeping(loop_, machine_, folder_.path());
  keeping.keeper->declare("nosuch");
  keeping.run();
  EXPECT_EQ(keeping.state(), "failed MigBadLayout");
  EXPECT_EQ(keeping.keeper->shown().text,
            "found layout \"nosuch\", want one of huge, mixed, off, small");
  keeping.keeper->declare("huge");
  keeping.run();
  EXPECT_EQ(keeping.state(), "failed MigDoesNotFit");
  keeping.keeper->set_config_problem("layouts.yaml: line 3: ...");
  keeping.run();
  EXPECT_EQ(keeping.state(), "failed MigBadLayout");
  keeping.keeper->set_config(nullptr);
  keeping.keeper->declare("all-3g.71gb");
  keeping.run();
  EXPECT_EQ(keeping.state(), "success LayoutApplied");
  EXPECT_EQ(machine_.layout(0), "2 x 3g.71gb");
}

TEST_F(MigKeeperTest, AStepThatFailsIsTriedAgainAndThenEverythingGoesBack) {
  {
    Keeping first(loop_, machine_, folder_.path());
    first.keeper->declare("mixed");
    first.run();
  }
  // Somebody outside computes on an instance; the driver alone knows.
  machine_.busy = {machine_.board.gpus()[1].cuts[1].compute[0].uuid};
  Keeping keeping(loop_, machine_, folder_.path());
  keeping.keeper->declare("small");
  keeping.run(60 * kMigSecond);
  EXPECT_EQ(keeping.state(), "failed MigFailed");
  EXPECT_NE(keeping.keeper->shown().text.find("in use by another client"), std::string::npos);
  EXPECT_EQ(machine_.layout(0), "2 x 1g.18gb, 1 x 2g.35gb, 1 x 3g.71gb") << "the last good";
  EXPECT_EQ(machine_.layout(1), "2 x 3g.71gb");
  EXPECT_FALSE(noted());
  EXPECT_FALSE(keeping.keeper->changing());
  const int steps = machine_.steps;
  keeping.give_inventory();
  keeping.run(60 * kMigSecond);
  EXPECT_EQ(machine_.steps, steps) << "it is not tried at every news";
  machine_.busy.clear();
  keeping.run(700 * kMigSecond);
  EXPECT_EQ(keeping.state(), "success LayoutApplied");
  EXPECT_EQ(machine_.layout(1), "7 x 1g.18gb");
}

TEST_F(MigKeeperTest, WhenEvenGoingBackFailsTheNoteStays) {
  Keeping keeping(loop_, machine_, folder_.path());
  machine_.broken = "mig-create";
  keeping.keeper->declare("mixed");
  keeping.run(300 * kMigSecond);
  // The mode was switched on and is off again: that much could be done.
  EXPECT_EQ(machine_.layout(0) + machine_.layout(1), "offoff");
  EXPECT_EQ(keeping.state(), "failed MigFailed");
  EXPECT_FALSE(noted());
  machine_.broken = "mig-mode-off";
  keeping.keeper->set_config(config_of(kLayouts));
  keeping.keeper->declare("small");
  keeping.run();
  EXPECT_EQ(keeping.state(), "success LayoutApplied");
  keeping.keeper->declare("off");
  keeping.run(300 * kMigSecond);
  EXPECT_EQ(keeping.state(), "failed MigFailed");
  EXPECT_EQ(machine_.layout(0), "7 x 1g.18gb");
  EXPECT_FALSE(noted());
  machine_.broken.clear();
  keeping.run(700 * kMigSecond);
  EXPECT_EQ(machine_.layout(0), "off");
}

TEST_F(MigKeeperTest, AnotherWishOnTheWayIsFollowed) {
  Keeping keeping(loop_, machine_, folder_.path());
  int news = 0;
  keeping.driver.news = [&] {
    if (++news == 3) keeping.keeper->declare("off");
    keeping.give_inventory();
  };
  keeping.keeper->declare("small");
  keeping.run();
  EXPECT_EQ(machine_.layout(0) + machine_.layout(1), "offoff");
  EXPECT_EQ(keeping.state(), "success LayoutApplied");
  EXPECT_FALSE(noted());
}

TEST_F(MigKeeperTest, DamagedNotesAreSurvived) {
  std::ofstream(intent()) << "{\"version\": 1, \"before\": [";
  Keeping keeping(loop_, machine_, folder_.path());
  keeping.keeper->declare("small");
  keeping.run();
  EXPECT_EQ(keeping.state(), "success LayoutApplied");
  EXPECT_FALSE(noted());
  EXPECT_FALSE(read_intent("{}").ok());
  EXPECT_FALSE(read_intent(R"({"version":2,"layout":"a","before":{}})").ok());
  const MigIntent note{"mixed", {{"GPU-0", {true, {{"1g.18gb", 2}}}}, {"GPU-1", {}}}};
  ASSERT_TRUE(read_intent(write_intent(note)).ok());
  EXPECT_EQ(*read_intent(write_intent(note)), note);
}

// What the second agent is told, after the first died.
struct Afterwards {
  const char* declared;  // what is declared then
  const char* gpu0;      // what comes out
};

// Every step of a change, died before it, half way and after it.
class MigCrash : public MigKeeperTest {
 protected:
  void cut_off_everywhere(const Afterwards& after, const MigUse& use, bool news_first) {
    int deaths = 0;
    for (int at = 0;; ++at) {
      for (const auto moment : {Death::kBefore, Death::kHalf, Death::kAfter}) {
        SCOPED_TRACE(testing::Message() << "step " << at << " moment " << moment);
        machine_ = Machine();
        {
          Keeping start(loop_, machine_, folder_.path());
          start.keeper->declare("mixed");
          start.run();
          ASSERT_EQ(start.state(), "success LayoutApplied");
        }
        machine_.steps = 0;
        {
          Keeping dies(loop_, machine_, folder_.path(), {}, {at, moment}, news_first);
          dies.keeper->declare("small");
          dies.run();
          if (!dies.driver.dead) {
            EXPECT_GT(deaths, 30) << "no change of so few steps";
            return;
          }
          ++deaths;
        }
        EXPECT_TRUE(noted());
        Keeping next(loop_, machine_, folder_.path(), use, {}, news_first);
        // Slower than a look and a step, and out of step with them.
        if (moment == Death::kAfter) next.inventory_takes = 27;
        if (after.declared != nullptr) next.keeper->declare(after.declared);
        EXPECT_TRUE(next.keeper->withheld("GPU-0", "MIG-any")) << "out until it is made good";
        next.run(120 * kMigSecond);
        EXPECT_EQ(machine_.layout(0), after.gpu0);
        EXPECT_FALSE(noted());
        EXPECT_FALSE(next.keeper->changing());
        for (const MigGpu& gpu : machine_.board.gpus()) {
          for (const partition::MigCut& cut : gpu.cuts) EXPECT_EQ(cut.compute.size(), 1u);
        }
        if (HasFailure()) return;
      }
    }
  }
};

constexpr const char* kMixed = "2 x 1g.18gb, 1 x 2g.35gb, 1 x 3g.71gb";

TEST_F(MigCrash, TheNextAgentGoesOnToWhatIsDeclared) {
  for (const bool news_first : {true, false}) {
    cut_off_everywhere({"small", "7 x 1g.18gb"}, {}, news_first);
  }
}

TEST_F(MigCrash, WithoutAnApiServerItGoesOnToWhatWasDeclared) {
  cut_off_everywhere({nullptr, "7 x 1g.18gb"}, {}, true);
}

TEST_F(MigCrash, ARefusedDeclarationLeadsBackToTheLastGood) {
  for (const bool news_first : {true, false}) {
    cut_off_everywhere({"huge", kMixed}, {}, news_first);
  }
}

TEST_F(MigCrash, NothingDeclaredLeadsBackToTheLastGood) {
  cut_off_everywhere({"", kMixed}, {}, true);
}

TEST_F(MigCrash, AnotherDeclarationIsReached) { cut_off_everywhere({"off", "off"}, {}, true); }

}  // namespace
}  // namespace berth::agent
