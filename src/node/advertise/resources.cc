#include "node/advertise/resources.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "kinds/readers.h"

namespace berth::advertise {
namespace {

using kinds::quoted;
using model::GpuDevice;
using model::GpuInventory;
using model::MigInstance;
using model::OfferedDevice;
using model::OfferedResource;

constexpr std::size_t kMaxIdBytes = 63;
constexpr std::string_view kWholeName = "nvidia.com/gpu";

// * stands for any text, also none. O(pattern x text) at worst.
bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

// "1c.3g.71gb": one of several compute instances of a GPU instance.
bool is_part_of_instance(const MigInstance& mig) {
  const std::size_t letter = mig.profile.find_first_not_of("0123456789");
  return letter != std::string::npos && letter > 0 && mig.profile[letter] == 'c';
}

std::string mig_resource(std::string profile) {
  std::replace(profile.begin(), profile.end(), '+', '.');
  return "nvidia.com/mig-" + profile;
}

// What containers see of an instance; where it lies does not matter.
bool alike(const MigInstance& a, const MigInstance& b) {
  return a.profile == b.profile && a.memory_mib == b.memory_mib &&
         a.multiprocessors == b.multiprocessors && a.gpu_slices == b.gpu_slices &&
         a.compute_slices == b.compute_slices && a.engines == b.engines;
}

std::string gpu_text(const GpuDevice& gpu) { return "GPU " + std::to_string(gpu.index); }

// Names from the first rule that matches. Which rules matched is remembered, for the warnings.
class Names {
 public:
  explicit Names(const std::vector<NamedResource>& rules)
      : rules_(rules), used_(rules.size(), false) {}
  // Empty when no rule matches.
  std::string find(std::string_view text) {
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      if (!matches_pattern(rules_[i].pattern, text)) continue;
      used_[i] = true;
      return rules_[i].name;
    }
    return {};
  }
  void warn_unused(std::string_view path, std::vector<std::string>& warnings) const {
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      if (used_[i]) continue;
      warnings.push_back(std::string(path) + "[" + std::to_string(i) + "]: the pattern " +
                         quoted(rules_[i].pattern) + " names nothing that is not named before it");
    }
  }

 private:
  const std::vector<NamedResource>& rules_;
  std::vector<bool> used_;
};

class Maker {
 public:
  Maker(const GpuInventory& inventory, const PluginConfig& config)
      : inventory_(inventory), config_(config), gpu_names_(config.gpus), mig_names_(config.migs) {}

  Result<Offer> make() {
    if (config_.mig == MigStrategy::kSingle) BERTH_CHECK(check_single());
    for (const GpuDevice& gpu : inventory_.gpus) {
      if (config_.mig == MigStrategy::kNone || !gpu.mig_enabled) {
        add_gpu(gpu);
      } else {
        add_instances(gpu);
      }
    }
    gpu_names_.warn_unused("resources.gpus", out_.warnings);
    if (config_.mig != MigStrategy::kNone) mig_names_.warn_unused("resources.mig", out_.warnings);
    BERTH_CHECK(check_kinds());
    BERTH_CHECK(share());
    return finish();
  }

 private:
  struct Plain {
    OfferedDevice device;
    std::string profile;
  };

  Status check_single() const {
    const GpuDevice* enabled = nullptr;
    const GpuDevice* whole = nullptr;
    const MigInstance* first = nullptr;
    for (const GpuDevice& gpu : inventory_.gpus) {
      (gpu.mig_enabled ? enabled : whole) = &gpu;
      if (!gpu.mig_enabled) continue;
      if (gpu.mig.empty()) {
        return invalid("MIG strategy single: " + gpu_text(gpu) +
                       " has MIG enabled and no instances; make some or disable MIG");
      }
      for (const MigInstance& mig : gpu.mig) {
        if (first == nullptr) first = &mig;
        if (alike(*first, mig)) continue;
        return invalid("MIG strategy single: instances differ, " + first->profile + " and " +
                       mig.profile + " on " + gpu_text(gpu) +
                       "; make them equal or use the strategy mixed");
      }
    }
    if (enabled == nullptr || whole == nullptr) return {};
    return invalid("MIG strategy single: " + gpu_text(*enabled) + " has MIG enabled and " +
                   gpu_text(*whole) + " has not; make them equal or use the strategy mixed");
  }

  void add_gpu(const GpuDevice& gpu) {
    // People know the driver's spelling and that of the label nvidia.com/gpu.product.
    std::string label = gpu.name;
    std::replace(label.begin(), label.end(), ' ', '-');
    std::string name = gpu_names_.find(gpu.name);
    if (name.empty()) name = gpu_names_.find(label);
    if (name.empty()) name = kWholeName;
    plain_[name].push_back(
        {{.id = gpu.uuid, .uuid = gpu.uuid, .gpu = gpu.index, .numa = gpu.numa}, {}});
  }

  void add_instances(const GpuDevice& gpu) {
    if (gpu.mig.empty()) {
      out_.warnings.push_back(gpu_text(gpu) +
                              " has MIG enabled and no instances: nothing of it is offered");
    }
    for (std::size_t i = 0; i < gpu.mig.size(); ++i) {
      const MigInstance& mig = gpu.mig[i];
      std::string name = mig_names_.find(mig.profile);
      if (name.empty() && config_.mig == MigStrategy::kSingle) name = kWholeName;
      if (name.empty() && is_part_of_instance(mig)) {
        out_.warnings.push_back("MIG instance " + mig.uuid + " (" + mig.profile +
                                ") shares a GPU instance with others and is not offered; a rule "
                                "in resources.mig can name it");
        continue;
      }
      if (name.empty()) name = mig_resource(mig.profile);
      plain_[name].push_back({{.id = mig.uuid,
                               .uuid = mig.uuid,
                               .gpu = gpu.index,
                               .mig = static_cast<int>(i),
                               .numa = gpu.numa},
                              mig.profile});
    }
  }

  // Whole GPUs and instances behind one name could not be told apart by a pod.
  Status check_kinds() {
    for (const auto& [name, devices] : plain_) {
      const std::string& profile = devices.front().profile;
      for (const Plain& plain : devices) {
        if (plain.profile.empty() != profile.empty()) {
          return invalid("the resource " + name +
                         " would hold whole GPUs and MIG instances; give them different names");
        }
        if (plain.profile == profile) continue;
        out_.warnings.push_back("the resource " + name + " holds MIG instances of " + profile +
                                " and " + plain.profile);
        break;
      }
    }
    return {};
  }

  bool names(const std::string& ref, const OfferedDevice& device) const {
    if (ref == device.uuid) return true;
    const std::string index = std::to_string(device.gpu);
    return ref == (device.mig < 0 ? index : index + ':' + std::to_string(device.mig));
  }

  // The rule that shares the device at this place of its resource, or nullptr.
  const SharedResource* rule_for(const std::string& resource, std::size_t place,
                                 const OfferedDevice& device, std::vector<bool>& used) const {
    for (std::size_t i = 0; i < config_.shared.size(); ++i) {
      const SharedResource& rule = config_.shared[i];
      if (rule.name != resource) continue;
      if (rule.first > 0 && place >= static_cast<std::size_t>(rule.first)) continue;
      if (!rule.devices.empty() &&
          std::none_of(rule.devices.begin(), rule.devices.end(),
                       [&](const std::string& ref) { return names(ref, device); })) {
        continue;
      }
      used[i] = true;
      return &rule;
    }
    return nullptr;
  }

  Status share() {
    std::vector<bool> used(config_.shared.size(), false);
    for (const auto& [name, devices] : plain_) {
      for (std::size_t place = 0; place < devices.size(); ++place) {
        const Plain& plain = devices[place];
        const SharedResource* rule =
            config_.sharing == Sharing::kNone ? nullptr : rule_for(name, place, plain.device, used);
        if (rule == nullptr) {
          add(name, plain, plain.device, 1);
        } else {
          share_one(name, plain, *rule);
        }
        if (total_ > kMaxOffered) {
          return Error(Code::kExhausted,
                       "more than " + std::to_string(kMaxOffered) + " devices would be offered");
        }
      }
    }
    if (config_.sharing == Sharing::kNone) return {};
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (used[i]) continue;
      out_.warnings.push_back("sharing.timeSlicing.resources[" + std::to_string(i) +
                              "]: no device of " + config_.shared[i].name + " is shared by it");
    }
    return {};
  }

  void share_one(const std::string& name, const Plain& plain, const SharedResource& rule) {
    std::string shared = rule.rename;
    if (shared.empty()) shared = config_.rename_by_default ? name + ".shared" : name;
    for (int n = 0; n < rule.replicas && total_ <= kMaxOffered; ++n) {
      OfferedDevice device = plain.device;
      device.id += "::" + std::to_string(n);
      device.replica = n;
      add(shared, plain, std::move(device), rule.replicas);
    }
    by_name_[shared].at_most_one = config_.fail_requests_over_one;
  }

  void add(const std::string& name, const Plain& plain, OfferedDevice device, int replicas) {
    OfferedResource& resource = by_name_[name];
    resource.name = name;
    if (resource.devices.empty()) resource.profile = plain.profile;
    resource.replicas = std::max(resource.replicas, replicas);
    resource.devices.push_back(std::move(device));
    ++total_;
  }

  Result<Offer> finish() {
    std::set<std::string_view> seen;
    for (auto& [name, resource] : by_name_) {
      std::sort(resource.devices.begin(), resource.devices.end(),
                [](const OfferedDevice& a, const OfferedDevice& b) {
                  return std::tie(a.gpu, a.mig, a.replica) < std::tie(b.gpu, b.mig, b.replica);
                });
      for (const OfferedDevice& device : resource.devices) {
        if (device.uuid.empty() || device.id.size() > kMaxIdBytes) {
          return invalid("GPU " + std::to_string(device.gpu) + ": found the id " +
                         quoted(device.id) + ", want one of 1 to 63 bytes");
        }
        if (!seen.insert(device.id).second) {
          return invalid("GPU " + std::to_string(device.gpu) + ": the id " + quoted(device.id) +
                         " is there twice");
        }
      }
      out_.resources.push_back(std::move(resource));
    }
    return std::move(out_);
  }

  const GpuInventory& inventory_;
  const PluginConfig& config_;
  Names gpu_names_, mig_names_;
  std::map<std::string, std::vector<Plain>> plain_;  // by resource, before sharing
  std::map<std::string, OfferedResource> by_name_;
  std::size_t total_ = 0;
  Offer out_;
};

}  // namespace

Result<Offer> offer(const GpuInventory& inventory, const PluginConfig& config) {
  return Maker(inventory, config).make();
}

}  // namespace berth::advertise
