#include "edge/nvml/mig_control.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "edge/nvml/fake_driver/fake_driver.h"
#include "node/partition/mig_layout.h"

namespace berth::nvml {
namespace {

using partition::MigGpu;
using partition::MigPlan;
using partition::MigStep;

class MigControlTest : public testing::Test {
 protected:
  MigControlTest() {
    void* library = dlopen(BERTH_FAKE_DRIVER, RTLD_LAZY | RTLD_LOCAL);
    driver_ = reinterpret_cast<FakeDriver* (*)()>(dlsym(library, "fake_driver"))();
    driver_->reset();
    std::vector<FakeGpu> gpus(2);
    gpus[0].uuid = "GPU-0";
    gpus[1].uuid = "GPU-1";
    driver_->set_gpus(gpus);
  }
  std::vector<MigGpu> look() {
    auto control = MigControl::open(BERTH_FAKE_DRIVER, "");
    EXPECT_TRUE(control.ok());
    auto seen = control->look();
    EXPECT_TRUE(seen.ok()) << seen.error().to_string();
    return seen.ok() ? *seen : std::vector<MigGpu>();
  }
  Status carry_out(const MigStep& step) {
    return MigControl::open(BERTH_FAKE_DRIVER, "", 150'000'000)->carry_out(step);
  }
  Status reach(const partition::MigWish& wish) {
    const MigPlan plan = partition::plan_mig(look(), {{"GPU-0", wish}}, {});
    EXPECT_FALSE(plan.refused()) << plan.refusal;
    for (const MigStep& step : plan.steps) {
      if (Status done = carry_out(step); !done.ok())
        return Error(done.error()).context(describe(step));
    }
    return {};
  }

  FakeDriver* driver_;
};

TEST_F(MigControlTest, TheGeometryIsTheDriversOwn) {
  const std::vector<MigGpu> seen = look();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_TRUE(seen[0].capable);
  EXPECT_FALSE(seen[0].enabled);
  EXPECT_EQ(seen[0].pci_device, 0x233510deu);
  const partition::MigGeometry usual = partition::usual_geometry(7, 143'771);
  EXPECT_EQ(seen[0].geometry.slices, usual.slices);
  EXPECT_EQ(seen[0].geometry.slots, usual.slots);
  for (const partition::MigProfile& profile : usual.profiles) {
    const partition::MigProfile* found = partition::find_profile(seen[0].geometry, profile.name);
    ASSERT_NE(found, nullptr) << profile.name;
    EXPECT_EQ(found->starts, profile.starts) << profile.name;
    EXPECT_EQ(found->slots, profile.slots) << profile.name;
    EXPECT_EQ(found->most, profile.most) << profile.name;
  }
}

TEST_F(MigControlTest, LayoutsAreReachedStepByStepAndGoneAgain) {
  const partition::MigWish mixed{true, {{"1g.18gb", 2}, {"2g.35gb", 1}, {"3g.71gb", 1}}};
  Status done = reach(mixed);
  ASSERT_TRUE(done.ok()) << done.error().to_string();
  EXPECT_EQ(partition::wish_of(look()[0]), mixed);
  EXPECT_FALSE(look()[1].enabled);
  const partition::MigWish small{true, {{"1g.18gb", 7}}};
  done = reach(small);
  ASSERT_TRUE(done.ok()) << done.error().to_string();
  EXPECT_EQ(partition::wish_of(look()[0]), small);
  EXPECT_EQ(driver_->gpu(0).mig.size(), 7u);
  done = reach({});
  ASSERT_TRUE(done.ok()) << done.error().to_string();
  EXPECT_FALSE(driver_->gpu(0).mig_enabled);
}

TEST_F(MigControlTest, WhatIsNotAsNamedOrInUseIsRefusedAndUntouched) {
  ASSERT_TRUE(reach({true, {{"3g.71gb", 2}}}).ok());
  const partition::MigCut cut = look()[0].cuts[0];
  MigStep step;
  step.kind = MigStep::Kind::kDestroy;
  step.gpu = "GPU-0";
  step.profile = cut.profile;
  step.start = cut.start;
  step.instance = cut.id;
  step.compute = {cut.compute[0].uuid};
  const auto refuse = [&](const std::function<void(MigStep&)>& change, Code code) {
    MigStep other = step;
    change(other);
    const Status done = carry_out(other);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code(), code) << done.error().to_string();
    EXPECT_EQ(driver_->gpu(0).mig.size(), 2u);
  };
  refuse([](MigStep& one) { one.compute.clear(); }, Code::kConflict);
  refuse([](MigStep& one) { one.compute = {"MIG-other"}; }, Code::kConflict);
  refuse([](MigStep& one) { one.start = 4; }, Code::kConflict);
  refuse([](MigStep& one) { one.instance = 99; }, Code::kConflict);
  refuse([](MigStep& one) { one.profile = "1g.18gb"; }, Code::kConflict);
  refuse([](MigStep& one) { one.gpu = "GPU-9"; }, Code::kInvalid);
  refuse([](MigStep& one) { one.kind = MigStep::Kind::kModeOff; }, Code::kConflict);
  refuse([](MigStep& one) { one = {MigStep::Kind::kCreate, "GPU-0", "3g.71gb", 2, 0, {}}; },
         Code::kInvalid);
  refuse([](MigStep& one) { one = {MigStep::Kind::kCreate, "GPU-0", "9g.1gb", 0, 0, {}}; },
         Code::kInvalid);
  driver_->change(0, [&](FakeGpu& gpu) { gpu.busy.insert(cut.compute[0].uuid); });
  refuse([](MigStep&) {}, Code::kConflict);
  EXPECT_NE(carry_out(step).error().to_string().find("in use by another client"),
            std::string::npos);
  driver_->change(0, [&](FakeGpu& gpu) { gpu.busy.clear(); });
  EXPECT_TRUE(carry_out(step).ok());
  EXPECT_EQ(driver_->gpu(0).mig.size(), 1u);
}

TEST_F(MigControlTest, ReadersOfCountersAreWaitedFor) {
  ASSERT_TRUE(reach({true, {{"3g.71gb", 1}}}).ok());
  driver_->change(0, [](FakeGpu& gpu) { gpu.readers = 2; });
  const Status done = reach({});
  EXPECT_TRUE(done.ok()) << done.error().to_string();
  EXPECT_EQ(driver_->gpu(0).readers, 0);
}

TEST_F(MigControlTest, AModeThatWaitsForAResetIsSaid) {
  driver_->change(0, [](FakeGpu& gpu) { gpu.mode_needs_reset = true; });
  const Status done = carry_out({MigStep::Kind::kModeOn, "GPU-0", {}, 0, 0, {}});
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().to_string().find("after a reset"), std::string::npos);
  EXPECT_TRUE(look()[0].mode_pending);
}

TEST_F(MigControlTest, PiecesAreListedAndFilled) {
  driver_->change(0, [](FakeGpu& gpu) {
    gpu.mig_enabled = true;
    gpu.cuts.push_back({5, 2, {4, 4}});
    gpu.next_instance = 6;
  });
  const std::vector<MigGpu> seen = look();
  ASSERT_EQ(seen[0].cuts.size(), 1u);
  EXPECT_EQ(seen[0].cuts[0].profile, "3g.71gb");
  EXPECT_TRUE(seen[0].cuts[0].compute.empty());
  ASSERT_TRUE(reach({true, {{"3g.71gb", 1}}}).ok());
  EXPECT_EQ(driver_->gpu(0).mig.size(), 1u);
  EXPECT_EQ(driver_->gpu(0).mig[0].gpu_instance, 5u);
}

TEST_F(MigControlTest, ADriverWithoutTheFunctionsSaysSo) {
  auto control = MigControl::open(BERTH_FAKE_OLD_DRIVER, "");
  ASSERT_TRUE(control.ok());
  void* library = dlopen(BERTH_FAKE_OLD_DRIVER, RTLD_LAZY | RTLD_LOCAL);
  FakeDriver* old = reinterpret_cast<FakeDriver* (*)()>(dlsym(library, "fake_driver"))();
  old->reset();
  std::vector<FakeGpu> gpus(1);
  gpus[0].uuid = "GPU-0";
  old->set_gpus(gpus);
  auto seen = control->look();
  ASSERT_TRUE(seen.ok());
  EXPECT_FALSE(seen->at(0).capable);
  EXPECT_FALSE(control->carry_out({MigStep::Kind::kModeOn, "GPU-0", {}, 0, 0, {}}).ok());
}

}  // namespace
}  // namespace berth::nvml
