#include "node/advertise/labels.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "node/advertise/resources.h"

namespace berth::advertise {
namespace {

using model::GpuDevice;
using model::GpuInventory;
using model::MigInstance;

constexpr std::size_t kLongestValue = 63;
constexpr std::size_t kLongestProfile = 42;  // in "mig-PROFILE.sharing-strategy"
constexpr std::size_t kLongestModel = 39;    // in "gpu.model.MODEL.compute.major"
constexpr std::string_view kGpu = "nvidia.com/gpu";
constexpr std::string_view kPciPrefix = "feature.node.kubernetes.io/";
constexpr std::uint16_t kNvidia = 0x10de;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// At most so many bytes, ending in a letter or digit.
std::string cut(std::string text, std::size_t longest) {
  if (text.size() > longest) text.resize(longest);
  while (!text.empty() && !is_alphanumeric(text.back())) text.pop_back();
  return text;
}

// What the API server takes as a value: blanks become dashes and what is left over is dropped.
std::string value_of(std::string_view text, std::size_t longest = kLongestValue) {
  std::string out;
  for (const char c : text) {
    const bool kept = is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
    const char put = c == ' ' ? '-' : c;
    if (!kept && c != ' ') continue;
    if (out.empty() && !is_alphanumeric(put)) continue;
    out += put;
  }
  return cut(std::move(out), longest);
}

std::string digits(std::int64_t n) { return std::to_string(std::max<std::int64_t>(n, 0)); }
std::string truth(bool holds) { return holds ? "true" : "false"; }

// "1g.18gb+me" as names of resources and labels spell it.
std::string profile_of(std::string profile) {
  std::replace(profile.begin(), profile.end(), '+', '.');
  return value_of(profile, kLongestProfile);
}

// The name with its suffixes, which are never cut.
std::string product_of(const std::string& model, const std::string& suffixes) {
  return value_of(model, kLongestValue - std::min(suffixes.size(), kLongestValue)) + suffixes;
}

std::string family_of(const GpuDevice& gpu) {
  switch (gpu.compute_major) {
    case 1:
      return "tesla";
    case 2:
      return "fermi";
    case 3:
      return "kepler";
    case 5:
      return "maxwell";
    case 6:
      return "pascal";
    case 7:
      return gpu.compute_minor < 5 ? "volta" : "turing";
    case 8:
      return gpu.compute_minor < 9 ? "ampere" : "ada-lovelace";
    case 9:
      return "hopper";
    case 10:
    case 12:
      return "blackwell";
    case 13:
      return "rubin";
    default:
      return "undefined";
  }
}

struct Shares {
  int replicas = 1;
  bool renamed = false;
};

// How the devices that the test picks are shared, by what is offered. Where only some are, those.
class SharingOf {
 public:
  SharingOf(const GpuInventory& inventory, const PluginConfig& config) : config_(config) {
    if (config.sharing == Sharing::kNone) return;
    if (auto made = offer(inventory, config); made.ok()) offer_ = *std::move(made);
  }

  Shares find(const std::function<bool(const model::OfferedDevice&)>& picked) const {
    Shares out;
    for (const model::OfferedResource& resource : offer_.resources) {
      for (const model::OfferedDevice& device : resource.devices) {
        if (device.replica < 0 || !picked(device)) continue;
        out.replicas = std::max(out.replicas, resource.replicas);
        out.renamed = out.renamed || is_new_name(resource.name);
      }
    }
    return out;
  }
  std::string_view strategy(const Shares& shares) const {
    return name(shares.replicas > 1 ? config_.sharing : Sharing::kNone);
  }

 private:
  bool is_new_name(const std::string& resource) const {
    return config_.rename_by_default ||
           std::any_of(config_.shared.begin(), config_.shared.end(), [&](const auto& rule) {
             return rule.rename == resource && rule.name != resource;
           });
  }

  const PluginConfig& config_;
  Offer offer_;
};

// GPUs of one name, in the order of the first of each.
struct ModelOf {
  std::string name;
  std::vector<const GpuDevice*> gpus;
};

std::vector<ModelOf> models_of(const GpuInventory& inventory) {
  std::vector<ModelOf> models;
  for (const GpuDevice& gpu : inventory.gpus) {
    auto at = std::find_if(models.begin(), models.end(),
                           [&](const ModelOf& model) { return model.name == gpu.name; });
    if (at == models.end()) at = models.insert(models.end(), {gpu.name, {}});
    at->gpus.push_back(&gpu);
  }
  return models;
}

class GpuLabels {
 public:
  GpuLabels(const GpuInventory& inventory, const model::HostFacts& host, const PluginConfig& config)
      : inventory_(inventory), host_(host), config_(config), sharing_(inventory, config) {}

  Labels make(std::int64_t now_s) && {
    put_versions();
    put_node();
    if (!config_.no_timestamp) out_["nvidia.com/gfd.timestamp"] = digits(now_s);
    const std::vector<ModelOf> models = models_of(inventory_);
    put_model(std::string(kGpu), models.front());
    put("nvidia.com/gpu.sharing-strategy", std::string(sharing_.strategy(shares_of(models[0]))));
    if (models.size() > 1) put_each_model(models);
    if (config_.mig != MigStrategy::kNone) put_mig();
    put_islands();
    return std::move(out_);
  }

 private:
  void put(const std::string& key, std::string value) { out_[key] = std::move(value); }

  void put_versions() {
    const std::string& full = inventory_.driver_version;
    if (!full.empty()) {
      const std::size_t first = std::min(full.find('.'), full.size());
      const std::size_t second = std::min(full.find('.', first + 1), full.size());
      const auto part = [&](std::size_t from, std::size_t to) {
        return from < to ? value_of(std::string_view(full).substr(from, to - from)) : "";
      };
      const std::string revision = part(second + 1, full.size());
      for (const char* prefix : {"nvidia.com/cuda.driver.", "nvidia.com/cuda.driver-version."}) {
        put(std::string(prefix) + "major", part(0, first));
        put(std::string(prefix) + "minor", part(first + 1, second));
      }
      put("nvidia.com/cuda.driver.rev", revision);
      put("nvidia.com/cuda.driver-version.revision", revision);
      put("nvidia.com/cuda.driver-version.full", value_of(full));
    }
    if (inventory_.cuda_major <= 0) return;
    const std::string major = digits(inventory_.cuda_major), minor = digits(inventory_.cuda_minor);
    for (const char* prefix : {"nvidia.com/cuda.runtime.", "nvidia.com/cuda.runtime-version."}) {
      put(std::string(prefix) + "major", major);
      put(std::string(prefix) + "minor", minor);
    }
    put("nvidia.com/cuda.runtime-version.full", major + "." + minor);
  }

  void put_node() {
    const auto& gpus = inventory_.gpus;
    const auto any = [&](auto test) { return std::any_of(gpus.begin(), gpus.end(), test); };
    put("nvidia.com/gpu.present", "true");
    const std::string machine = value_of(host_.machine);
    put("nvidia.com/gpu.machine", machine.empty() ? "unknown" : machine);
    put("nvidia.com/mig.capable", truth(any([](const auto& gpu) { return gpu.mig_capable; })));
    put("nvidia.com/mps.capable", truth(config_.sharing == Sharing::kMps &&
                                        !any([](const auto& gpu) { return gpu.mig_enabled; })));
    if (config_.mig != MigStrategy::kNone) {
      put("nvidia.com/mig.strategy", std::string(name(config_.mig)));
    }
    put("nvidia.com/gpu.mode", mode());
    const GpuDevice& first = gpus.front();
    const bool split = any([&](const auto& gpu) {
      return gpu.fabric_cluster != first.fabric_cluster || gpu.fabric_clique != first.fabric_clique;
    });
    if (first.fabric_cluster.empty() || first.fabric_clique < 0 || split) return;
    const std::string clique = "." + std::to_string(first.fabric_clique);
    const std::string cluster = value_of(first.fabric_cluster, kLongestValue - clique.size());
    if (!cluster.empty()) put("nvidia.com/gpu.clique", cluster + clique);
  }

  std::string mode() const {
    for (const model::PciDevice& device : host_.pci) {
      if (device.bus_id != inventory_.gpus.front().pci_bus_id) continue;
      if (device.class_code >> 8U == 0x0302) return "compute";
      if (device.class_code >> 8U == 0x0300) return "graphics";
    }
    return "unknown";
  }

  Shares shares_of(const ModelOf& model) const {
    const bool cut_up = std::all_of(model.gpus.begin(), model.gpus.end(),
                                    [](const GpuDevice* gpu) { return gpu->mig_enabled; });
    if (cut_up) return {.replicas = 0};  // as GPUs they are not on offer
    return sharing_.find([&](const model::OfferedDevice& device) {
      return device.mig < 0 && std::any_of(
                                   model.gpus.begin(), model.gpus.end(),
                                   [&](const GpuDevice* gpu) { return gpu->index == device.gpu; });
    });
  }

  void put_model(const std::string& key, const ModelOf& model) {
    const GpuDevice& gpu = *model.gpus.front();
    const Shares shares = shares_of(model);
    put_product(key, product_of(model.name, suffix_of(shares)));
    put(key + ".count", digits(static_cast<std::int64_t>(model.gpus.size())));
    put(key + ".replicas", digits(shares.replicas));
    if (gpu.memory_mib > 0) put(key + ".memory", digits(gpu.memory_mib));
    if (gpu.compute_major <= 0) return;
    put(key + ".family", family_of(gpu));
    put(key + ".compute.major", digits(gpu.compute_major));
    put(key + ".compute.minor", digits(gpu.compute_minor));
  }

  static std::string suffix_of(const Shares& shares) {
    return shares.replicas > 1 && !shares.renamed ? "-SHARED" : "";
  }

  void put_product(const std::string& key, const std::string& product) {
    if (std::string value = value_of(product); !value.empty()) put(key + ".product", value);
  }

  // Names that are alike once they are label names get a number.
  void put_each_model(const std::vector<ModelOf>& models) {
    std::map<std::string, int> taken;
    for (const ModelOf& model : models) {
      std::string part = value_of(model.name, kLongestModel);
      if (part.empty()) part = "unknown";
      for (int n = 2; !taken.emplace(part, 0).second; ++n) {
        const std::string end = "-" + std::to_string(n);
        part = value_of(model.name, kLongestModel - end.size());
        part = (part.empty() ? "unknown" : part) + end;
      }
      put_model(std::string(kGpu) + ".model." + part, model);
    }
  }

  void put_mig() {
    struct Kind {
      const GpuDevice* gpu;
      const MigInstance* first;
      int count = 0;
    };
    std::map<std::string, Kind> kinds;  // by profile as labels spell it
    const GpuDevice *cut_up = nullptr, *empty = nullptr, *whole = nullptr;
    for (const GpuDevice& gpu : inventory_.gpus) {
      if (!gpu.mig_enabled) {
        whole = &gpu;
        continue;
      }
      if (cut_up == nullptr) cut_up = &gpu;
      if (gpu.mig.empty()) empty = &gpu;
      for (const MigInstance& instance : gpu.mig) {
        ++kinds.try_emplace(profile_of(instance.profile), Kind{&gpu, &instance})
              .first->second.count;
      }
    }
    if (cut_up == nullptr) return;
    if (config_.mig == MigStrategy::kMixed) {
      for (const auto& [profile, kind] : kinds) {
        if (profile.empty()) continue;
        put_kind("nvidia.com/mig-" + profile, profile, *kind.gpu, *kind.first, kind.count);
      }
    } else if (empty != nullptr || whole != nullptr || kinds.size() != 1) {
      put_product(std::string(kGpu), product_of(cut_up->name, "-MIG-INVALID"));
      for (const char* what : {".count", ".replicas", ".memory"}) {
        put(std::string(kGpu) + what, "0");
      }
    } else {
      const auto& [profile, kind] = *kinds.begin();
      put_kind(std::string(kGpu), profile, *kind.gpu, *kind.first, kind.count);
    }
  }

  void put_kind(const std::string& key, const std::string& profile, const GpuDevice& gpu,
                const MigInstance& instance, int count) {
    const Shares shares = sharing_.find([&](const model::OfferedDevice& device) {
      const MigInstance* found = instance_of(device);
      return found != nullptr && profile_of(found->profile) == profile;
    });
    put_product(key, product_of(gpu.name, "-MIG-" + profile + suffix_of(shares)));
    const std::pair<const char*, std::int64_t> numbers[] = {
        {".count", count},
        {".replicas", shares.replicas},
        {".memory", instance.memory_mib},
        {".multiprocessors", instance.multiprocessors},
        {".slices.gi", instance.gpu_slices},
        {".slices.ci", instance.compute_slices},
        {".engines.copy", instance.engines.copy},
        {".engines.decoder", instance.engines.decoder},
        {".engines.encoder", instance.engines.encoder},
        {".engines.jpeg", instance.engines.jpeg},
        {".engines.ofa", instance.engines.ofa},
    };
    for (const auto& [what, amount] : numbers) put(key + what, digits(amount));
    put(key + ".sharing-strategy", std::string(sharing_.strategy(shares)));
  }

  const MigInstance* instance_of(const model::OfferedDevice& device) const {
    for (const GpuDevice& gpu : inventory_.gpus) {
      if (gpu.index != device.gpu || device.mig < 0) continue;
      const auto place = static_cast<std::size_t>(device.mig);
      return place < gpu.mig.size() ? &gpu.mig[place] : nullptr;
    }
    return nullptr;
  }

  // Islands are GPUs that reach one another over NVLink; one that is cut up by MIG reaches nobody.
  void put_islands() {
    const auto& gpus = inventory_.gpus;
    std::vector<std::size_t> island(gpus.size());
    for (std::size_t i = 0; i < gpus.size(); ++i) island[i] = i;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      for (std::size_t j = 0; j < gpus.size(); ++j) {
        if (i == j || !linked(gpus[i], gpus[j]) || island[i] == island[j]) continue;
        const std::size_t from = island[j], to = island[i];
        std::replace(island.begin(), island.end(), from, to);
      }
    }
    // Where islands differ the smallest counts: nobody is promised more than he may get.
    std::int64_t smallest = 0;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      const auto size = std::count(island.begin(), island.end(), i);
      if (size > 1 && (smallest == 0 || size < smallest)) smallest = size;
    }
    put("gpu.nvidia.com/nvlink-enabled", truth(smallest > 0));
    if (smallest > 0) put("gpu.nvidia.com/nvlink-gpus-per-island", digits(smallest));
  }

  static bool linked(const GpuDevice& a, const GpuDevice& b) {
    if (a.mig_enabled || b.mig_enabled || b.index < 0) return false;
    const auto place = static_cast<std::size_t>(b.index);
    return place < a.nvlinks.size() && a.nvlinks[place] > 0;
  }

  const GpuInventory& inventory_;
  const model::HostFacts& host_;
  const PluginConfig& config_;
  const SharingOf sharing_;
  Labels out_;
};

std::string hex(std::uint32_t value) {  // four digits
  std::string out;
  for (const unsigned shift : {12U, 8U, 4U, 0U}) {
    out += "0123456789abcdef"[(value >> shift) & 0xFU];
  }
  return out;
}

}  // namespace

Labels host_labels(const model::HostFacts& host) {
  Labels out;
  const auto put = [&](const std::string& key, const std::string& text) {
    if (std::string value = value_of(text); !value.empty()) {
      out[std::string(kPciPrefix) + key] = std::move(value);
    }
  };
  put("kernel-version.full", host.kernel);
  for (const char* key : {"ID", "VERSION_ID", "OSTREE_VERSION"}) {
    const auto at = host.os_release.find(key);
    if (at != host.os_release.end()) put(std::string("system-os_release.") + key, at->second);
  }
  for (const model::PciDevice& device : host.pci) {
    const std::uint32_t kind = (device.class_code >> 8U) & 0xFFFFU;
    const std::uint32_t group = kind >> 8U;
    // Displays and accelerators by class and vendor, those and networks by vendor alone: the labels
    // that node feature discovery writes on its own and with the settings of NVIDIA's charts.
    const bool accelerator = group == 0x03 || kind == 0x0b40 || group == 0x12;
    if (!accelerator && group != 0x02) continue;
    std::vector<std::string> names = {"pci-" + hex(device.vendor)};
    if (accelerator) names.push_back("pci-" + hex(kind) + "_" + hex(device.vendor));
    for (const std::string& name : names) {
      put(name + ".present", "true");
      if (device.sriov) put(name + ".sriov.capable", "true");
    }
    if (accelerator && device.vendor == kNvidia) out["nvidia.com/gpu.present"] = "true";
  }
  return out;
}

Labels gpu_labels(const GpuInventory& inventory, const model::HostFacts& host,
                  const PluginConfig& config, std::int64_t now_s) {
  if (inventory.gpus.empty()) return {};
  return GpuLabels(inventory, host, config).make(now_s);
}

}  // namespace berth::advertise
