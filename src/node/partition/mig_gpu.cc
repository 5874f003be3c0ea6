#include "node/partition/mig_gpu.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "kinds/readers.h"
#include "node/partition/mig_profile.h"

namespace berth::partition {

namespace {

struct Family {
  int slices, slots;
  std::vector<int> starts;
  int most;
  std::string_view attribute;
  int multiprocessors;
};

// The memory grid has eight slots on GPUs with seven slices, and one for each on those with four.
const std::vector<Family>& families_of(int slices) {
  static const std::vector<Family> kSeven = {
      {1, 1, {0, 1, 2, 3, 4, 5, 6}, 7, "", 16},
      {1, 1, {0, 1, 2, 3, 4, 5, 6}, 1, "+me", 16},
      {1, 2, {0, 2, 4, 6}, 4, "", 26},
      {2, 2, {0, 2, 4}, 3, "", 32},
      {3, 4, {0, 4}, 2, "", 60},
      {4, 4, {0}, 1, "", 64},
      {7, 8, {0}, 1, "", 132},
  };
  static const std::vector<Family> kFour = {
      {1, 1, {0, 1, 2, 3}, 4, "", 14},
      {1, 1, {0, 1, 2, 3}, 1, "+me", 14},
      {2, 2, {0, 2}, 2, "", 28},
      {4, 4, {0}, 1, "", 56},
  };
  static const std::vector<Family> kNone;
  return slices == 7 ? kSeven : slices == 4 ? kFour : kNone;
}

bool overlap(int start_a, int slots_a, int start_b, int slots_b) {
  return start_a < start_b + slots_b && start_b < start_a + slots_a;
}

Error refused(std::string why) { return {Code::kConflict, std::move(why)}; }

Status apply_mode(MigGpu& gpu, bool on) {
  if (!gpu.capable) return invalid("this GPU has no MIG");
  if (!on && !gpu.cuts.empty()) return refused("there are instances on it");
  gpu.enabled = on;
  return {};
}

Status create_cut(MigGpu& gpu, const MigStep& step, const std::string& new_uuid, bool half) {
  if (!gpu.enabled) return refused("MIG mode is off");
  const MigProfile* profile = find_profile(gpu.geometry, step.profile);
  if (profile == nullptr) return invalid("no profile " + kinds::quoted(step.profile));
  if (std::find(profile->starts.begin(), profile->starts.end(), step.start) ==
      profile->starts.end()) {
    return invalid(step.profile + " cannot begin at " + std::to_string(step.start));
  }
  int slices = profile->slices, same = 1, id = 1;
  for (const MigCut& cut : gpu.cuts) {
    if (overlap(cut.start, cut.slots, step.start, profile->slots)) {
      return refused("its place is taken");
    }
    const MigProfile* other = find_profile(gpu.geometry, cut.profile);
    slices += other == nullptr ? 0 : other->slices;
    same += cut.profile == step.profile ? 1 : 0;
    id = std::max(id, cut.id + 1);
  }
  if (slices > gpu.geometry.slices || same > profile->most) {
    return Error(Code::kExhausted, "not enough of the GPU is left");
  }
  MigCut cut{id, step.profile, step.start, profile->slots, {}};
  if (!half) cut.compute.push_back({0, profile->slices, new_uuid});
  gpu.cuts.push_back(std::move(cut));
  std::sort(gpu.cuts.begin(), gpu.cuts.end(),
            [](const MigCut& a, const MigCut& b) { return a.start < b.start; });
  return {};
}

Status change_cut(MigGpu& gpu, const MigStep& step, const std::string& new_uuid, bool half) {
  const auto cut = std::find_if(gpu.cuts.begin(), gpu.cuts.end(),
                                [&](const MigCut& one) { return one.id == step.instance; });
  if (cut == gpu.cuts.end() || cut->profile != step.profile || cut->start != step.start) {
    return refused("the GPU instance is not there");
  }
  std::vector<std::string> have;
  for (const MigCut::Compute& one : cut->compute) have.push_back(one.uuid);
  std::sort(have.begin(), have.end());
  if (have != step.compute) return refused("its compute instances are others");
  if (step.kind == MigStep::Kind::kFill) {
    const MigProfile* profile = find_profile(gpu.geometry, cut->profile);
    cut->compute.push_back({0, profile == nullptr ? 1 : profile->slices, new_uuid});
    return {};
  }
  if (half && !cut->compute.empty()) {
    cut->compute.clear();
  } else {
    gpu.cuts.erase(cut);
  }
  return {};
}

}  // namespace

const MigProfile* find_profile(const MigGeometry& geometry, std::string_view name) {
  const auto found = std::find_if(geometry.profiles.begin(), geometry.profiles.end(),
                                  [&](const MigProfile& one) { return one.name == name; });
  return found == geometry.profiles.end() ? nullptr : &*found;
}

MigGeometry usual_geometry(int slices, std::int64_t gpu_memory_mib) {
  MigGeometry out;
  const std::vector<Family>& families = families_of(slices);
  if (families.empty() || gpu_memory_mib <= 0) return out;
  out.slices = slices;
  out.slots = slices == 7 ? 8 : slices;
  for (const Family& family : families) {
    MigProfile& profile = out.profiles.emplace_back();
    profile.slices = family.slices;
    profile.slots = family.slots;
    profile.starts = family.starts;
    profile.most = family.most;
    profile.memory_mib = gpu_memory_mib * family.slots / out.slots;
    profile.multiprocessors = family.multiprocessors;
    profile.engines = {.copy = family.slices, .decoder = family.slices, .jpeg = 1};
    profile.name = mig_profile_name(family.slices, family.slices, profile.memory_mib,
                                    gpu_memory_mib << 20, family.attribute);
  }
  return out;
}

std::string_view name(MigStep::Kind kind) {
  switch (kind) {
    case MigStep::Kind::kModeOn:
      return "mig-mode-on";
    case MigStep::Kind::kModeOff:
      return "mig-mode-off";
    case MigStep::Kind::kDestroy:
      return "mig-destroy";
    case MigStep::Kind::kCreate:
      return "mig-create";
    case MigStep::Kind::kFill:
      return "mig-fill";
  }
  return "?";
}

std::string describe(const MigStep& step) {
  std::string out(name(step.kind));
  if (step.kind != MigStep::Kind::kModeOn && step.kind != MigStep::Kind::kModeOff) {
    out += " " + step.profile + " at " + std::to_string(step.start);
  }
  return out + " on " + step.gpu;
}

MigGpu mig_gpu_of(const model::GpuDevice& gpu, const MigGeometry& geometry) {
  MigGpu out;
  out.uuid = gpu.uuid;
  out.index = gpu.index;
  out.name = gpu.name;
  out.pci_device = gpu.pci_device;
  out.capable = gpu.mig_capable;
  out.enabled = gpu.mig_enabled;
  out.geometry = geometry;
  for (const model::MigInstance& mig : gpu.mig) {
    auto cut = std::find_if(out.cuts.begin(), out.cuts.end(),
                            [&](const MigCut& one) { return one.id == mig.gpu_instance; });
    if (cut == out.cuts.end()) {
      // "1c.3g.71gb" is a part of a 3g.71gb.
      const std::size_t part = mig.profile.find("c.");
      std::string profile = part == std::string::npos ? mig.profile : mig.profile.substr(part + 2);
      out.cuts.push_back(
          {mig.gpu_instance, std::move(profile), std::max(mig.start, 0), mig.slots, {}});
      cut = out.cuts.end() - 1;
    }
    cut->compute.push_back({mig.compute_instance, mig.compute_slices, mig.uuid});
  }
  std::sort(out.cuts.begin(), out.cuts.end(),
            [](const MigCut& a, const MigCut& b) { return a.start < b.start; });
  return out;
}

Status apply_step(MigGpu& gpu, const MigStep& step, const std::string& new_uuid, bool half) {
  switch (step.kind) {
    case MigStep::Kind::kModeOn:
      return apply_mode(gpu, true);
    case MigStep::Kind::kModeOff:
      return apply_mode(gpu, false);
    case MigStep::Kind::kCreate:
      return create_cut(gpu, step, new_uuid, half);
    case MigStep::Kind::kDestroy:
    case MigStep::Kind::kFill:
      return change_cut(gpu, step, new_uuid, half);
  }
  return invalid("no such step");
}

void write_back(const MigGpu& from, model::GpuDevice& to) {
  std::vector<model::MigInstance> out;
  for (const MigCut& cut : from.cuts) {
    const MigProfile* profile = find_profile(from.geometry, cut.profile);
    for (const MigCut::Compute& compute : cut.compute) {
      const auto before =
          std::find_if(to.mig.begin(), to.mig.end(),
                       [&](const model::MigInstance& mig) { return mig.uuid == compute.uuid; });
      if (before != to.mig.end()) {
        out.push_back(*before);
        continue;
      }
      model::MigInstance& mig = out.emplace_back();
      mig.uuid = compute.uuid;
      mig.profile = cut.profile;
      mig.gpu_instance = cut.id;
      mig.compute_instance = compute.id;
      mig.start = cut.start;
      mig.slots = cut.slots;
      mig.compute_slices = mig.gpu_slices = compute.slices;
      if (profile == nullptr) continue;
      mig.gpu_slices = profile->slices;
      mig.memory_mib = profile->memory_mib;
      mig.multiprocessors = profile->multiprocessors;
      mig.engines = profile->engines;
    }
  }
  std::sort(out.begin(), out.end(), [](const model::MigInstance& a, const model::MigInstance& b) {
    return std::tie(a.gpu_instance, a.compute_instance) <
           std::tie(b.gpu_instance, b.compute_instance);
  });
  to.mig = std::move(out);
  to.mig_enabled = from.enabled;
}

}  // namespace berth::partition
