#include "node/partition/mig_layout.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace berth::partition {
namespace {

using Kind = MigStep::Kind;

constexpr std::int64_t kH200Mib = 143'771;

MigGpu h200(int index = 0) {
  MigGpu gpu;
  gpu.uuid = "GPU-" + std::to_string(index);
  gpu.index = index;
  gpu.name = "NVIDIA H200";
  gpu.pci_device = 0x233510de;
  gpu.capable = true;
  gpu.geometry = usual_geometry(7, kH200Mib);
  return gpu;
}

MigWish cut_into(std::map<std::string, int> devices) { return {true, std::move(devices)}; }

// Carries a plan out on models of the GPUs; the first step that is refused ends it.
Status run(std::vector<MigGpu>& gpus, const MigPlan& plan, std::size_t steps = 1'000) {
  static int made = 0;
  for (const MigStep& step : plan.steps) {
    if (steps-- == 0) return {};
    for (MigGpu& gpu : gpus) {
      if (gpu.uuid != step.gpu) continue;
      const Status done = apply_step(gpu, step, "MIG-" + std::to_string(++made));
      if (!done.ok()) return Error(done.error()).context(describe(step));
    }
  }
  return {};
}

std::string text_of(const MigPlan& plan) {
  std::string out = std::string(name(plan.reason)) + plan.refusal;
  for (const MigStep& step : plan.steps) out += describe(step) + "\n";
  return out;
}

TEST(MigLayout, GeometryHasTheNamesOfRealGpus) {
  std::vector<std::string> names;
  for (const MigProfile& one : usual_geometry(7, kH200Mib).profiles) names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb",
                                             "3g.71gb", "4g.71gb", "7g.141gb"}));
  names.clear();
  for (const MigProfile& one : usual_geometry(4, 24'576).profiles) names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"1g.6gb", "1g.6gb+me", "2g.12gb", "4g.24gb"}));
  EXPECT_TRUE(usual_geometry(0, kH200Mib).profiles.empty());
}

TEST(MigLayout, AnEmptyGpuIsCutAsWanted) {
  std::vector<MigGpu> gpus = {h200()};
  const MigPlan plan =
      plan_mig(gpus, {{"GPU-0", cut_into({{"1g.18gb", 2}, {"2g.35gb", 1}, {"3g.71gb", 1}})}}, {});
  EXPECT_EQ(text_of(plan),
            "mig-mode-on on GPU-0\n"
            "mig-create 3g.71gb at 4 on GPU-0\n"
            "mig-create 2g.35gb at 2 on GPU-0\n"
            "mig-create 1g.18gb at 1 on GPU-0\n"
            "mig-create 1g.18gb at 0 on GPU-0\n");
  ASSERT_TRUE(run(gpus, plan).ok());
  // It is so: nothing is left to do.
  EXPECT_TRUE(plan_mig(gpus, {{"GPU-0", wish_of(gpus[0])}}, {}).steps.empty());
  // And back.
  const MigPlan off = plan_mig(gpus, {{"GPU-0", {}}}, {});
  EXPECT_EQ(off.steps.size(), 5u);
  EXPECT_EQ(off.steps.back().kind, Kind::kModeOff);
  ASSERT_TRUE(run(gpus, off).ok());
  EXPECT_FALSE(gpus[0].enabled);
  EXPECT_TRUE(gpus[0].cuts.empty());
}

TEST(MigLayout, WhatIsRightStays) {
  std::vector<MigGpu> gpus = {h200()};
  ASSERT_TRUE(run(gpus, plan_mig(gpus, {{"GPU-0", cut_into({{"3g.71gb", 2}})}}, {})).ok());
  const std::string stays = gpus[0].cuts[0].compute[0].uuid;
  // The slice at 0 is busy; the one at 4 gives way to three small ones.
  const MigPlan plan = plan_mig(gpus, {{"GPU-0", cut_into({{"3g.71gb", 1}, {"1g.18gb", 3}})}},
                                {{stays, {"team/train-0"}}});
  EXPECT_EQ(text_of(plan),
            "mig-destroy 3g.71gb at 4 on GPU-0\n"
            "mig-create 1g.18gb at 6 on GPU-0\n"
            "mig-create 1g.18gb at 5 on GPU-0\n"
            "mig-create 1g.18gb at 4 on GPU-0\n");
  EXPECT_EQ(plan.kept, std::vector<std::string>{stays});
  ASSERT_TRUE(run(gpus, plan).ok());
  EXPECT_EQ(gpus[0].cuts[0].compute[0].uuid, stays);
}

TEST(MigLayout, HoldersAreNamedAndNothingIsTouched) {
  std::vector<MigGpu> gpus = {h200(0), h200(1)};
  ASSERT_TRUE(run(gpus, plan_mig(gpus, {{"GPU-1", cut_into({{"1g.18gb", 7}})}}, {})).ok());
  const std::string held = gpus[1].cuts[3].compute[0].uuid;
  const MigUse use = {{held, {"team/a", "process 12"}}};
  MigPlan plan = plan_mig(gpus, {{"GPU-0", cut_into({{"7g.141gb", 1}})}, {"GPU-1", {}}}, use);
  EXPECT_EQ(plan.reason, MigReason::kInUse);
  EXPECT_EQ(plan.refusal, "GPU 1 (NVIDIA H200): team/a holds " + held + ", process 12 holds " +
                              held + "; MIG mode can be switched off when nobody holds any");
  EXPECT_TRUE(plan.steps.empty()) << "one GPU that cannot be changed keeps the others as they are";
  plan = plan_mig(gpus, {{"GPU-1", cut_into({{"3g.71gb", 1}, {"4g.71gb", 1}})}}, use);
  EXPECT_EQ(plan.reason, MigReason::kInUse);
  // A whole GPU that is held.
  plan = plan_mig(gpus, {{"GPU-0", cut_into({})}}, {{"GPU-0", {"team/b"}}});
  EXPECT_EQ(plan.reason, MigReason::kInUse);
  EXPECT_NE(plan.refusal.find("team/b holds GPU-0"), std::string::npos) << plan.refusal;
  // Held as a whole though it is cut, as the strategy none offers it: any instance may be in use.
  plan = plan_mig(gpus, {{"GPU-1", cut_into({{"1g.18gb", 6}})}}, {{"GPU-1", {"team/c"}}});
  EXPECT_EQ(plan.reason, MigReason::kInUse);
  plan = plan_mig(gpus, {{"GPU-1", cut_into({{"1g.18gb", 7}})}}, {{"GPU-1", {"team/c"}}});
  EXPECT_EQ(text_of(plan), "");
}

TEST(MigLayout, RefusalsSayWhatIsWanted) {
  const auto refusal = [](std::map<std::string, int> devices, bool capable = true) {
    MigGpu gpu = h200();
    gpu.capable = capable;
    return text_of(plan_mig({gpu}, {{"GPU-0", cut_into(std::move(devices))}}, {}));
  };
  EXPECT_EQ(refusal({{"3g.71gb", 2}, {"1g.18gb", 2}}),
            "MigDoesNotFitGPU 0 (NVIDIA H200): 2 x 1g.18gb, 2 x 3g.71gb take 8 of 7 compute slices "
            "and 10 of 8 memory slots");
  EXPECT_EQ(refusal({{"3g.71gb", 3}}),
            "MigDoesNotFitGPU 0 (NVIDIA H200): 3 x 3g.71gb, and it holds 2 at most");
  // Every slot is taken, and 7 is one where no small one may begin.
  EXPECT_EQ(refusal({{"4g.71gb", 1}, {"1g.18gb", 1}, {"2g.35gb", 1}}).substr(0, 12),
            "mig-mode-on ");
  EXPECT_EQ(refusal({{"1g.18gb", 3}, {"1g.35gb", 2}, {"1g.18gb+me", 1}}).substr(0, 12),
            "mig-mode-on ");
  EXPECT_EQ(
      refusal({{"2g.35gb", 1}, {"1g.18gb", 5}, {"1g.18gb+me", 1}}),
      "MigDoesNotFitGPU 0 (NVIDIA H200): 5 x 1g.18gb, 1 x 1g.18gb+me, 1 x 2g.35gb take 8 of 7 "
      "compute slices and 8 of 8 memory slots");
  EXPECT_EQ(refusal({{"3g.71gb", 1}, {"1g.18gb", 4}}).substr(0, 12), "mig-mode-on ");
  EXPECT_EQ(refusal({{"1g.10gb", 1}}),
            "MigProfileUnknownGPU 0 (NVIDIA H200): found profile \"1g.10gb\", want one of 1g.18gb, "
            "1g.18gb+me, 1g.35gb, 2g.35gb, 3g.71gb, 4g.71gb, 7g.141gb");
  EXPECT_EQ(refusal({{"1g.18gb", 1}}, false),
            "MigNotSupportedGPU 0 (NVIDIA H200) has no MIG; the layout wants 1 x 1g.18gb");
  MigGpu waiting = h200();
  waiting.mode_pending = true;
  EXPECT_EQ(plan_mig({waiting}, {{"GPU-0", {}}}, {}).reason, MigReason::kNeedsReset);
}

TEST(MigLayout, WhatFitsInSumsButNotInPlaces) {
  // 1g.35gb x4 takes every slot: no 1g beside it, though compute is left.
  const MigPlan plan =
      plan_mig({h200()}, {{"GPU-0", cut_into({{"1g.35gb", 3}, {"1g.18gb", 2}})}}, {});
  EXPECT_EQ(plan.reason, MigReason::kNone) << text_of(plan);
  const MigPlan none = plan_mig(
      {h200()}, {{"GPU-0", cut_into({{"4g.71gb", 1}, {"2g.35gb", 1}, {"1g.35gb", 1}})}}, {});
  EXPECT_EQ(none.reason, MigReason::kNone) << text_of(none);
  const MigPlan bad = plan_mig(
      {h200()}, {{"GPU-0", cut_into({{"1g.35gb", 2}, {"1g.18gb", 3}, {"1g.18gb+me", 1}})}}, {});
  EXPECT_EQ(bad.reason, MigReason::kNone) << text_of(bad);
  // 3g at 0, 2g at 4, and 6 and 7 left, where only one 1g may begin.
  MigGpu gpu = h200();
  for (MigProfile& profile : gpu.geometry.profiles) {
    if (profile.slices == 3) profile.starts = {0};
  }
  const MigPlan places =
      plan_mig({gpu}, {{"GPU-0", cut_into({{"3g.71gb", 1}, {"2g.35gb", 1}, {"1g.18gb", 2}})}}, {});
  EXPECT_EQ(places.reason, MigReason::kDoesNotFit);
  EXPECT_EQ(
      places.refusal,
      "GPU 0 (NVIDIA H200): 2 x 1g.18gb, 1 x 2g.35gb, 1 x 3g.71gb take 7 of 7 compute slices "
      "and 8 of 8 memory slots, but there are no places for them: 1g.18gb (1 slots) may begin "
      "at 0/1/2/3/4/5/6, 2g.35gb (2 slots) may begin at 0/2/4, 3g.71gb (4 slots) may begin at 0");
}

TEST(MigLayout, PiecesThatACrashLeftAreUsed) {
  std::vector<MigGpu> gpus = {h200()};
  gpus[0].enabled = true;
  // A GPU instance without a compute instance, of a wanted kind and of another.
  gpus[0].cuts = {{3, "1g.18gb", 0, 1, {}}, {5, "3g.71gb", 4, 4, {}}};
  const MigPlan plan = plan_mig(gpus, {{"GPU-0", cut_into({{"3g.71gb", 1}})}}, {});
  EXPECT_EQ(text_of(plan),
            "mig-destroy 1g.18gb at 0 on GPU-0\n"
            "mig-fill 3g.71gb at 4 on GPU-0\n");
  ASSERT_TRUE(run(gpus, plan).ok());
  ASSERT_EQ(gpus[0].cuts.size(), 1u);
  EXPECT_EQ(gpus[0].cuts[0].compute.size(), 1u);
}

TEST(MigLayout, PartsOfAnInstanceAreNoWholeOne) {
  std::vector<MigGpu> gpus = {h200()};
  gpus[0].enabled = true;
  gpus[0].cuts = {{3, "3g.71gb", 4, 4, {{0, 1, "MIG-a"}, {1, 1, "MIG-b"}}}};
  EXPECT_EQ(text_of(plan_mig(gpus, {{"GPU-0", cut_into({{"3g.71gb", 1}})}}, {})),
            "mig-destroy 3g.71gb at 4 on GPU-0\nmig-create 3g.71gb at 4 on GPU-0\n");
  EXPECT_EQ(plan_mig(gpus, {{"GPU-0", cut_into({{"3g.71gb", 1}})}}, {{"MIG-b", {"team/c"}}}).reason,
            MigReason::kInUse);
}

// A random GPU, a random wish, random holders: what comes out is exactly what was wanted, or a
// refusal; what is held stays; a step that is cut off, at any point, leads to the same end.
class RandomMachine {
 public:
  explicit RandomMachine(std::uint64_t seed) : random_(seed) {
    for (int i = 0; i < 2; ++i) gpus.push_back(h200(i));
    for (MigGpu& gpu : gpus) {
      gpu.enabled = random_.below(4) != 0;
      if (!gpu.enabled) continue;
      for (int tries = static_cast<int>(random_.below(9)); tries > 0; --tries) add_cut(gpu);
    }
    for (MigGpu& gpu : gpus) {
      if (random_.below(4) != 0) wishes[gpu.uuid] = wish();
      if (!gpu.enabled && random_.below(6) == 0) use[gpu.uuid] = {"team/whole"};
      for (const MigCut& cut : gpu.cuts) {
        for (const MigCut::Compute& one : cut.compute) {
          if (random_.below(4) == 0) use[one.uuid] = {"team/" + one.uuid};
        }
      }
    }
  }

  std::vector<MigGpu> gpus;
  std::map<std::string, MigWish> wishes;
  MigUse use;

 private:
  void add_cut(MigGpu& gpu) {
    const auto& profiles = gpu.geometry.profiles;
    const MigProfile& profile = profiles[random_.below(profiles.size())];
    MigStep step;
    step.gpu = gpu.uuid;
    step.profile = profile.name;
    step.start = profile.starts[random_.below(profile.starts.size())];
    // Often there is no room for it.
    const bool half = random_.below(8) == 0;
    (void)apply_step(gpu, step, gpu.uuid + "/" + std::to_string(++made_), half);
  }
  MigWish wish() {
    MigWish out;
    out.enabled = random_.below(5) != 0;
    if (!out.enabled) return out;
    const MigGeometry geometry = usual_geometry(7, kH200Mib);
    for (int kinds = static_cast<int>(random_.below(4)); kinds > 0; --kinds) {
      out.devices[geometry.profiles[random_.below(geometry.profiles.size())].name] =
          1 + static_cast<int>(random_.below(3));
    }
    return out;
  }

  Random random_;
  int made_ = 0;
};

void expect_met(const RandomMachine& machine, const std::vector<MigGpu>& now) {
  std::set<std::string> there;
  for (std::size_t i = 0; i < now.size(); ++i) {
    for (const MigCut& cut : now[i].cuts) {
      for (const MigCut::Compute& one : cut.compute) there.insert(one.uuid);
    }
    const auto wish = machine.wishes.find(now[i].uuid);
    if (wish == machine.wishes.end()) {
      ASSERT_EQ(now[i], machine.gpus[i]);
      continue;
    }
    ASSERT_EQ(wish_of(now[i]), wish->second);
    for (const MigCut& cut : now[i].cuts) ASSERT_EQ(cut.compute.size(), 1u);
  }
  for (const auto& [uuid, holders] : machine.use) {
    if (!uuid.starts_with("GPU-") || uuid.find('/') != std::string::npos) {
      ASSERT_TRUE(there.contains(uuid));
    }
  }
}

constexpr std::uint64_t kMachines = 1'500;

TEST(MigLayoutProperty, ThePlanLeadsToExactlyTheLayoutAndTouchesNothingHeld) {
  std::map<MigReason, int> seen;
  for (std::uint64_t seed = 0; seed < kMachines; ++seed) {
    SCOPED_TRACE(seed);
    const RandomMachine machine(seed);
    const MigPlan plan = plan_mig(machine.gpus, machine.wishes, machine.use);
    ++seen[plan.reason];
    if (plan.refused()) {
      ASSERT_TRUE(plan.steps.empty());
      ASSERT_FALSE(plan.refusal.empty());
      continue;
    }
    for (const MigStep& step : plan.steps) {
      for (const std::string& uuid : step.compute) ASSERT_FALSE(machine.use.contains(uuid));
    }
    std::vector<MigGpu> now = machine.gpus;
    const Status done = run(now, plan);
    ASSERT_TRUE(done.ok()) << done.error().to_string();
    expect_met(machine, now);
    ASSERT_TRUE(plan_mig(now, machine.wishes, machine.use).steps.empty());
    if (HasFatalFailure()) return;
  }
  // The machines are such that all of it was tried.
  EXPECT_GT(seen[MigReason::kNone], 200);
  EXPECT_GT(seen[MigReason::kInUse], 200);
  EXPECT_GT(seen[MigReason::kDoesNotFit], 50);
}

TEST(MigLayoutProperty, AChangeThatIsCutOffAnywhereGoesOnToTheSameEnd) {
  int cuts = 0;
  for (std::uint64_t seed = 0; seed < kMachines; ++seed) {
    SCOPED_TRACE(seed);
    const RandomMachine machine(seed);
    const MigPlan plan = plan_mig(machine.gpus, machine.wishes, machine.use);
    for (std::size_t cut = 0; cut < plan.steps.size(); ++cut) {
      for (const bool half : {false, true}) {
        std::vector<MigGpu> now = machine.gpus;
        ASSERT_TRUE(run(now, plan, cut).ok());
        for (MigGpu& gpu : now) {
          if (!half || gpu.uuid != plan.steps[cut].gpu) continue;
          ASSERT_TRUE(apply_step(gpu, plan.steps[cut], "MIG-half", true).ok());
        }
        const MigPlan rest = plan_mig(now, machine.wishes, machine.use);
        ASSERT_FALSE(rest.refused()) << rest.refusal;
        ASSERT_TRUE(run(now, rest).ok());
        expect_met(machine, now);
        if (HasFatalFailure()) return;
        ++cuts;
      }
    }
  }
  EXPECT_GT(cuts, 2'000);
}

}  // namespace
}  // namespace berth::partition
