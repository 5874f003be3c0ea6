// From labels and allocatable amounts to devices.
#include <algorithm>
#include <optional>

#include "kinds/node.h"
#include "kinds/products.h"

namespace berth::kinds {

namespace {

using model::Amounts;
using model::GpuSpec;
using model::NodeSpec;

constexpr std::string_view kGpuAmount = "nvidia.com/gpu";
constexpr std::string_view kSharedAmount = "nvidia.com/gpu.shared";
constexpr std::string_view kMigAmountPrefix = "nvidia.com/mig-";
constexpr const char* kNotAdvertised = "not advertised by the node";

std::int64_t take_amount(Amounts& amounts, std::string_view name) {
  const auto it = amounts.find(name);
  if (it == amounts.end()) return 0;
  const std::int64_t amount = it->second;
  amounts.erase(it);
  return amount;
}

std::string_view label(const NodeSpec& node, std::string_view key) {
  const auto it = node.labels.find(key);
  return it == node.labels.end() ? std::string_view{} : std::string_view(it->second);
}

// What labels and amounts say, before it becomes devices.
struct Advertised {
  std::string product, mig_profile;  // profile: of strategy single
  std::optional<std::int64_t> count, memory_mib, replicas;
  std::int64_t whole = 0, shared = 0;  // allocatable
  std::vector<std::pair<std::string, std::int64_t>> mig;
  bool sharing = false;
};

std::optional<std::int64_t> number_label(const NodeSpec& node, std::string_view key,
                                         std::int64_t most, GpuFacts& facts) {
  const std::string_view text = label(node, key);
  if (text.empty()) return std::nullopt;
  std::int64_t number = 0;
  if (parse_int(text, number) && number <= most) return number;
  facts.errors.push_back("label " + std::string(key) + ": found " + quoted(text) +
                         ", want a whole number 0.." + std::to_string(most));
  return std::nullopt;
}

Advertised read_advertised(NodeSpec& node, GpuFacts& facts) {
  Advertised a;
  a.whole = take_amount(node.allocatable, kGpuAmount);
  a.shared = take_amount(node.allocatable, kSharedAmount);
  for (const auto& [name, amount] : node.allocatable) {
    if (std::string_view(name).starts_with(kMigAmountPrefix) && amount > 0) {
      a.mig.emplace_back(name, amount);
    }
  }
  a.product = label(node, "nvidia.com/gpu.product");
  constexpr std::string_view kSharedSuffix = "-SHARED";
  if (std::string_view(a.product).ends_with(kSharedSuffix)) {
    a.product.resize(a.product.size() - kSharedSuffix.size());
    a.sharing = true;
  }
  if (const std::size_t mig = a.product.rfind("-MIG-"); mig != std::string::npos) {
    a.mig_profile = a.product.substr(mig + 5);
    a.product.resize(mig);
  }
  a.count = number_label(node, "nvidia.com/gpu.count", 1'000'000, facts);
  a.memory_mib = number_label(node, "nvidia.com/gpu.memory", 100'000'000, facts);
  a.replicas = number_label(node, "nvidia.com/gpu.replicas", model::kMaxSharesPerGpu, facts);
  const std::string_view strategy = label(node, "nvidia.com/gpu.sharing-strategy");
  if (!strategy.empty()) a.sharing = strategy != "none";
  if (a.shared > 0) a.sharing = true;
  // The kubelet refuses a pod that asks for a name which the node does not offer.
  if (a.whole > 0 && a.shared == 0) node.gpu_names = model::GpuNames::kGpu;
  if (a.shared > 0 && a.whole == 0) node.gpu_names = model::GpuNames::kShared;
  return a;
}

// Devices in use of a layout: how many, how many shares each, how many of them are advertised.
struct Shape {
  std::int64_t devices = 0, shares = 1, usable = 0, partitioned = 0;
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

Shape shape_single_mig(const Advertised& a, const Product* product) {
  Shape s;
  const std::int64_t slices = std::max(a.count.value_or(0), a.whole + a.shared);
  s.shares =
      std::max(1, mig_slots_per_gpu(a.mig_profile, product == nullptr ? 7 : product->mig_slices,
                                    product == nullptr ? 0 : product->memory_mib));
  s.devices = ceil_div(slices, s.shares);
  s.usable = (a.whole + a.shared) / s.shares;
  if (s.usable == 0 && a.whole + a.shared > 0) {  // less than one GPU's worth: what there is
    s.usable = s.devices = 1;
    s.shares = a.whole + a.shared;
  }
  return s;
}

// A device may hold several profiles: the parts that each slot takes of one add up.
std::int64_t devices_for_mig(const Advertised& a, const Product* product) {
  constexpr std::int64_t kParts = 840;  // divisible by every number of slots a GPU can hold
  std::int64_t parts = 0;
  for (const auto& [name, amount] : a.mig) {
    const int per_gpu = mig_slots_per_gpu(std::string_view(name).substr(kMigAmountPrefix.size()),
                                          product == nullptr ? 7 : product->mig_slices,
                                          product == nullptr ? 0 : product->memory_mib);
    parts += std::min<std::int64_t>(amount, 1'000'000) * (kParts / std::max(1, per_gpu));
  }
  return ceil_div(parts, kParts);
}

Shape shape_devices(const Advertised& a, const Product* product, GpuFacts& facts) {
  Shape s;
  const std::int64_t amount = a.whole + a.shared;
  if (a.sharing) {
    s.shares = a.replicas.value_or(1);
    if (s.shares <= 1 && amount > 0) {
      const std::int64_t devices = std::max<std::int64_t>(1, a.count.value_or(1));
      s.shares = std::clamp<std::int64_t>(amount / devices, 1, model::kMaxSharesPerGpu);
      facts.warnings.push_back("the label nvidia.com/gpu.replicas is missing; " +
                               std::to_string(s.shares) + " shares a GPU are assumed");
    }
    s.shares = std::max<std::int64_t>(1, s.shares);
  }
  s.usable = amount / s.shares;
  const std::int64_t partitioned = devices_for_mig(a, product);
  s.devices = std::max(a.count.value_or(0), s.usable);
  // A count that leaves no room for the slots does not know of the partitioned devices.
  if (!a.count || s.devices == s.usable) s.devices = s.usable + partitioned;
  s.partitioned = std::min(partitioned, s.devices - s.usable);
  return s;
}

// The slots over the partitioned devices, the lower indices first when they do not go evenly.
void spread_slots(const Advertised& a, std::int64_t first, std::vector<GpuSpec>& gpus) {
  const std::int64_t devices = static_cast<std::int64_t>(gpus.size()) - first;
  if (devices <= 0) return;
  for (const auto& [name, amount] : a.mig) {
    for (std::int64_t i = 0; i < devices; ++i) {
      const std::int64_t slots = amount / devices + (i < amount % devices ? 1 : 0);
      if (slots == 0) continue;
      gpus[static_cast<std::size_t>(first + i)].mig.push_back(
          {name, static_cast<int>(std::min<std::int64_t>(slots, 1'000'000))});
    }
  }
}

void lay_out(const Advertised& a, const Shape& s, const Product* product, NodeSpec& node) {
  const bool usual = product != nullptr && product->per_node == s.devices;
  for (std::int64_t i = 0; i < s.devices; ++i) {
    GpuSpec gpu;
    gpu.index = static_cast<int>(i);
    gpu.model = a.product;
    if (!a.mig_profile.empty()) gpu.model += "-MIG-" + a.mig_profile;
    gpu.memory_mib = a.memory_mib.value_or(0);
    if (gpu.memory_mib == 0 && product != nullptr) gpu.memory_mib = product->memory_mib;
    if (product != nullptr && product->nvlink) gpu.nvlink_clique = 0;
    if (usual && product->per_numa > 0) gpu.numa = gpu.index / product->per_numa;
    if (usual && product->per_switch > 0) gpu.pcie_switch = gpu.index / product->per_switch;
    if (i >= s.usable && i < s.devices - s.partitioned) {
      gpu.health = model::Health::kUnhealthy;
      gpu.health_reason = kNotAdvertised;
    }
    node.gpus.push_back(std::move(gpu));
  }
  if (s.partitioned > 0) spread_slots(a, s.devices - s.partitioned, node.gpus);
}

void fill_from_labels(NodeSpec& node, GpuFacts& facts) {
  const Advertised a = read_advertised(node, facts);
  const Product* product = find_product(a.product);
  Shape s = a.mig_profile.empty() || a.mig_profile == "INVALID" ? shape_devices(a, product, facts)
                                                                : shape_single_mig(a, product);
  if (s.devices == 0) return;
  if (s.devices > model::kMaxGpusPerNode) {
    facts.errors.push_back("found " + std::to_string(s.devices) +
                           " GPUs, want at most 16 (on a node "
                           "that shares GPUs the label nvidia.com/gpu.replicas says how)");
    // Which of them is which cannot be told: they are there for who runs on them, for nobody new.
    s = {.devices = model::kMaxGpusPerNode};
  }
  node.gpus_assumed = true;
  node.shares_per_gpu =
      static_cast<int>(std::clamp<std::int64_t>(s.shares, 1, model::kMaxSharesPerGpu));
  lay_out(a, s, product, node);
}

void fill_from_agent(const GpuNode& agent, NodeSpec& node, GpuFacts& facts) {
  GpuFacts labels;  // do not count where the agent speaks
  const Advertised a = read_advertised(node, labels);
  node.nics = agent.nics;
  node.numa_policy = agent.numa_policy;
  node.numa_scope = agent.numa_scope;
  std::int64_t healthy = 0;
  int least = model::kMaxSharesPerGpu, most = 1;
  for (const GpuNodeGpu& g : agent.gpus) {
    node.gpus.push_back(g.gpu);
    if (!g.gpu.mig.empty()) continue;
    least = std::min(least, g.shares);
    most = std::max(most, g.shares);
    if (g.gpu.health == model::Health::kHealthy) healthy += g.shares;
  }
  node.shares_per_gpu = std::min(least, most);
  if (least < most) {
    facts.warnings.push_back("the GpuNode gives its GPUs different shares; " +
                             std::to_string(node.shares_per_gpu) + " each are assumed");
  }
  const std::int64_t advertised = a.whole + a.shared;
  if (advertised != healthy) {
    facts.warnings.push_back("the GpuNode has " + std::to_string(healthy) +
                             " healthy GPUs or shares, allocatable " + std::to_string(advertised) +
                             "; the GpuNode holds");
  }
}

}  // namespace

GpuFacts fill_gpus(const GpuNode* agent, NodeSpec& node) {
  GpuFacts facts;
  if (agent != nullptr) {
    fill_from_agent(*agent, node, facts);
  } else {
    fill_from_labels(node, facts);
  }
  return facts;
}

}  // namespace berth::kinds
