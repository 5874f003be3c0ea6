#include "node/partition/mig_layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>

#include "kinds/readers.h"

namespace berth::partition {

namespace {

constexpr std::size_t kMaxCuts = 16;  // more than any GPU has: a bound for the subsets below
constexpr std::size_t kNamedHolders = 8;

struct Cut {
  const MigProfile* profile;
  int start;
};

struct Refused {
  MigReason reason;
  std::string text;
};

std::string gpu_text(const MigGpu& gpu) {
  return "GPU " + std::to_string(gpu.index) + (gpu.name.empty() ? "" : " (" + gpu.name + ")");
}

// One compute instance, of all of it; or none yet.
bool is_whole(const MigCut& cut, const MigGeometry& geometry) {
  if (cut.compute.empty()) return true;
  const MigProfile* profile = find_profile(geometry, cut.profile);
  return cut.compute.size() == 1 && profile != nullptr &&
         cut.compute.front().slices == profile->slices;
}

std::vector<std::string> sorted_uuids(const MigCut& cut) {
  std::vector<std::string> out;
  for (const MigCut::Compute& one : cut.compute) out.push_back(one.uuid);
  std::sort(out.begin(), out.end());
  return out;
}

// Places for the profiles in order, on what of the grid is free. Depth first; the grid has at most
// 64 slots.
bool find_places(const std::vector<const MigProfile*>& profiles, std::size_t next,
                 std::uint64_t taken, std::vector<Cut>& out) {
  if (next == profiles.size()) return true;
  const MigProfile& profile = *profiles[next];
  // Equal ones in one order: the others are the same sets again.
  const bool same_as_before = next > 0 && profiles[next - 1] == &profile;
  for (auto start = profile.starts.rbegin(); start != profile.starts.rend(); ++start) {
    if (same_as_before && *start >= out.back().start) continue;
    if (*start < 0 || *start + profile.slots > 64 || profile.slots <= 0) continue;
    const std::uint64_t mask = (profile.slots == 64 ? ~0ULL : (1ULL << profile.slots) - 1)
                               << *start;
    if ((taken & mask) != 0) continue;
    out.push_back({&profile, *start});
    if (find_places(profiles, next + 1, taken | mask, out)) return true;
    out.pop_back();
  }
  return false;
}

class GpuPlanner {
 public:
  GpuPlanner(const MigGpu& gpu, const MigWish& wish, const MigUse& use)
      : gpu_(gpu), wish_(wish), use_(use) {}

  std::optional<Refused> plan(MigPlan& out) {
    if (gpu_.mode_pending) {
      return Refused{MigReason::kNeedsReset,
                     gpu_text(gpu_) + ": its MIG mode was set and takes effect after a reset"};
    }
    if (!wish_.enabled) return plan_off(out);
    if (!gpu_.capable) {
      return Refused{MigReason::kNotSupported,
                     gpu_text(gpu_) + " has no MIG; the layout wants " + describe(wish_)};
    }
    if (auto refused = find_profiles()) return refused;
    if (auto refused = check_sums()) return refused;
    const std::size_t before = out.steps.size();
    if (auto refused = choose(out)) return refused;
    // Held as a whole: by a pod of a GPU without MIG, or by one that may use any of its instances.
    if (out.steps.size() == before || !use_.contains(gpu_.uuid)) return std::nullopt;
    return in_use({gpu_.uuid}, gpu_.enabled
                                   ? "its instances can be changed when nobody holds the GPU"
                                   : "MIG mode can be switched on when nobody holds the GPU");
  }

 private:
  std::optional<Refused> plan_off(MigPlan& out) {
    if (!gpu_.enabled) return std::nullopt;
    std::vector<std::string> held;
    for (const MigCut& cut : gpu_.cuts) add_held(cut, held);
    if (use_.contains(gpu_.uuid)) held.push_back(gpu_.uuid);
    if (!held.empty()) return in_use(held, "MIG mode can be switched off when nobody holds any");
    out.changing.push_back(gpu_.uuid);
    for (const MigCut& cut : gpu_.cuts) destroy(cut, out);
    out.steps.push_back({MigStep::Kind::kModeOff, gpu_.uuid, {}, 0, 0, {}});
    return std::nullopt;
  }

  // The wanted profiles, large ones first.
  std::optional<Refused> find_profiles() {
    for (const auto& [profile_name, count] : wish_.devices) {
      const MigProfile* profile = find_profile(gpu_.geometry, profile_name);
      if (profile == nullptr) {
        std::string known;
        for (const MigProfile& one : gpu_.geometry.profiles) {
          known += (known.empty() ? "" : ", ") + one.name;
        }
        return Refused{MigReason::kProfileUnknown,
                       gpu_text(gpu_) + ": found profile " + kinds::quoted(profile_name) +
                           ", want one of " + (known.empty() ? "none" : known)};
      }
      for (int i = 0; i < count; ++i) wanted_.push_back(profile);
    }
    std::stable_sort(wanted_.begin(), wanted_.end(), [](const MigProfile* a, const MigProfile* b) {
      return std::pair(a->slots, a->slices) > std::pair(b->slots, b->slices);
    });
    return std::nullopt;
  }

  // Whether the wish fits an empty GPU, with the arithmetic where it does not.
  std::optional<Refused> check_sums() const {
    int slices = 0, slots = 0;
    for (const auto& [profile_name, count] : wish_.devices) {
      const MigProfile* profile = find_profile(gpu_.geometry, profile_name);
      slices += count * profile->slices;
      slots += count * profile->slots;
      if (count > profile->most) {
        return Refused{MigReason::kDoesNotFit, gpu_text(gpu_) + ": " + std::to_string(count) +
                                                   " x " + profile_name + ", and it holds " +
                                                   std::to_string(profile->most) + " at most"};
      }
    }
    const std::string sums =
        gpu_text(gpu_) + ": " + describe(wish_) + " take " + std::to_string(slices) + " of " +
        std::to_string(gpu_.geometry.slices) + " compute slices and " + std::to_string(slots) +
        " of " + std::to_string(gpu_.geometry.slots) + " memory slots";
    if (slices > gpu_.geometry.slices || slots > gpu_.geometry.slots) {
      return Refused{MigReason::kDoesNotFit, sums};
    }
    std::vector<Cut> places;
    if (find_places(wanted_, 0, 0, places)) return std::nullopt;
    std::string starts;
    for (const auto& [profile_name, count] : wish_.devices) {
      const MigProfile* profile = find_profile(gpu_.geometry, profile_name);
      starts += (starts.empty() ? " " : ", ") + profile_name + " (" +
                std::to_string(profile->slots) + " slots) may begin at ";
      for (const int start : profile->starts) {
        starts += (start == profile->starts.front() ? "" : "/") + std::to_string(start);
      }
    }
    return Refused{MigReason::kDoesNotFit, sums + ", but there are no places for them:" + starts};
  }

  // The largest set of instances that can stay, then places for the rest.
  std::optional<Refused> choose(MigPlan& out) {
    if (gpu_.cuts.size() > kMaxCuts) {
      return Refused{MigReason::kBadLayout, gpu_text(gpu_) + ": the driver lists " +
                                                std::to_string(gpu_.cuts.size()) + " instances"};
    }
    std::uint32_t must = 0;
    std::vector<std::string> held;
    for (std::size_t i = 0; i < gpu_.cuts.size(); ++i) {
      if (add_held(gpu_.cuts[i], held)) must |= 1U << i;
    }
    std::optional<std::uint32_t> best;
    std::vector<Cut> best_places;
    for (std::uint32_t mask = 0; mask < 1U << gpu_.cuts.size(); ++mask) {
      if ((mask & must) != must) continue;
      if (best && std::popcount(mask) <= std::popcount(*best)) continue;
      std::vector<Cut> places;
      if (!can_stay(mask, places)) continue;
      best = mask;
      best_places = std::move(places);
    }
    if (!best) return in_use(held, "the layout wants " + describe(wish_) + " there");
    write_steps(*best, best_places, out);
    return std::nullopt;
  }

  bool can_stay(std::uint32_t mask, std::vector<Cut>& places) const {
    std::vector<const MigProfile*> left = wanted_;
    std::uint64_t taken = 0;
    for (std::size_t i = 0; i < gpu_.cuts.size(); ++i) {
      if ((mask >> i & 1) == 0) continue;
      const MigCut& cut = gpu_.cuts[i];
      if (!is_whole(cut, gpu_.geometry) || cut.start < 0 || cut.start + cut.slots > 64) {
        return false;
      }
      const auto found = std::find_if(left.begin(), left.end(), [&](const MigProfile* profile) {
        return profile->name == cut.profile;
      });
      if (found == left.end()) return false;
      left.erase(found);
      taken |= (cut.slots >= 64 ? ~0ULL : (1ULL << cut.slots) - 1) << cut.start;
    }
    return find_places(left, 0, taken, places);
  }

  void write_steps(std::uint32_t keep, const std::vector<Cut>& places, MigPlan& out) const {
    const std::size_t before = out.steps.size();
    for (std::size_t i = 0; i < gpu_.cuts.size(); ++i) {
      if ((keep >> i & 1) == 0) destroy(gpu_.cuts[i], out);
    }
    if (!gpu_.enabled) out.steps.push_back({MigStep::Kind::kModeOn, gpu_.uuid, {}, 0, 0, {}});
    for (std::size_t i = 0; i < gpu_.cuts.size(); ++i) {
      const MigCut& cut = gpu_.cuts[i];
      if ((keep >> i & 1) == 0 || !cut.compute.empty()) continue;
      out.steps.push_back({MigStep::Kind::kFill, gpu_.uuid, cut.profile, cut.start, cut.id, {}});
    }
    for (const Cut& place : places) {
      out.steps.push_back(
          {MigStep::Kind::kCreate, gpu_.uuid, place.profile->name, place.start, 0, {}});
    }
    if (out.steps.size() == before) return;
    out.changing.push_back(gpu_.uuid);
    for (std::size_t i = 0; i < gpu_.cuts.size(); ++i) {
      if ((keep >> i & 1) == 0) continue;
      for (const MigCut::Compute& one : gpu_.cuts[i].compute) out.kept.push_back(one.uuid);
    }
  }

  void destroy(const MigCut& cut, MigPlan& out) const {
    out.steps.push_back(
        {MigStep::Kind::kDestroy, gpu_.uuid, cut.profile, cut.start, cut.id, sorted_uuids(cut)});
  }

  bool add_held(const MigCut& cut, std::vector<std::string>& held) const {
    bool any = false;
    for (const MigCut::Compute& one : cut.compute) {
      if (!use_.contains(one.uuid)) continue;
      held.push_back(one.uuid);
      any = true;
    }
    return any;
  }

  Refused in_use(const std::vector<std::string>& held, const std::string& what) const {
    std::string text = gpu_text(gpu_) + ": ";
    std::size_t named = 0;
    for (const std::string& uuid : held) {
      const auto found = use_.find(uuid);
      if (found == use_.end()) continue;
      for (const std::string& holder : found->second) {
        if (++named > kNamedHolders) continue;
        text += (named == 1 ? "" : ", ") + holder + " holds " + uuid;
      }
    }
    if (named > kNamedHolders) {
      text += " and " + std::to_string(named - kNamedHolders) + " more";
    }
    return {MigReason::kInUse, text + "; " + what};
  }

  const MigGpu& gpu_;
  const MigWish& wish_;
  const MigUse& use_;
  std::vector<const MigProfile*> wanted_;
};

}  // namespace

std::string_view name(MigReason reason) {
  switch (reason) {
    case MigReason::kNone:
      return "";
    case MigReason::kInUse:
      return "MigInUse";
    case MigReason::kNotSupported:
      return "MigNotSupported";
    case MigReason::kProfileUnknown:
      return "MigProfileUnknown";
    case MigReason::kDoesNotFit:
      return "MigDoesNotFit";
    case MigReason::kNeedsReset:
      return "MigNeedsReset";
    case MigReason::kBadLayout:
      return "MigBadLayout";
  }
  return "?";
}

MigPlan plan_mig(const std::vector<MigGpu>& gpus, const std::map<std::string, MigWish>& wishes,
                 const MigUse& use) {
  MigPlan out;
  for (const MigGpu& gpu : gpus) {
    const auto wish = wishes.find(gpu.uuid);
    if (wish == wishes.end()) continue;
    if (auto refused = GpuPlanner(gpu, wish->second, use).plan(out)) {
      MigPlan none;
      none.reason = refused->reason;
      none.refusal = std::move(refused->text);
      return none;
    }
  }
  return out;
}

MigWish wish_of(const MigGpu& gpu) {
  MigWish out;
  out.enabled = gpu.enabled;
  for (const MigCut& cut : gpu.cuts) ++out.devices[cut.profile];
  return out;
}

MigWish wish_of(const model::GpuDevice& gpu) {
  MigWish out;
  out.enabled = gpu.mig_enabled;
  for (const model::MigInstance& mig : gpu.mig) ++out.devices[mig.profile];
  return out;
}

}  // namespace berth::partition
