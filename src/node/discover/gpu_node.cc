#include "node/discover/gpu_node.h"

#include <algorithm>
#include <map>

namespace berth::discover {

namespace {

// As feature discovery spells names in labels: blanks become '-', other odd characters go.
std::string product_label(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.';
    if (kept) out += c;
    if (c == ' ') out += '-';
  }
  return out;
}

bool linked(const model::GpuDevice& from, const model::GpuDevice& to) {
  const auto at = static_cast<std::size_t>(to.index);
  return to.index >= 0 && at < from.nvlinks.size() && from.nvlinks[at] > 0;
}

// The number of each GPU's clique, -1 for one without links. Cliques are numbered from 0 in the
// order of their lowest index.
std::vector<int> cliques(const std::vector<model::GpuDevice>& gpus) {
  std::vector<int> of(gpus.size(), -1);
  int next = 0;
  for (std::size_t first = 0; first < gpus.size(); ++first) {
    if (of[first] >= 0) continue;
    std::vector<std::size_t> reached{first};
    of[first] = next;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (std::size_t other = 0; other < gpus.size(); ++other) {
        const model::GpuDevice& here = gpus[reached[i]];
        if (of[other] >= 0 || (!linked(here, gpus[other]) && !linked(gpus[other], here))) continue;
        of[other] = next;
        reached.push_back(other);
      }
    }
    if (reached.size() == 1) {
      of[first] = -1;
    } else {
      ++next;
    }
  }
  return of;
}

std::vector<model::MigSlots> mig_slots(const model::GpuDevice& gpu) {
  std::map<std::string, int> counts;
  for (const model::MigInstance& mig : gpu.mig) {
    std::string profile = mig.profile;
    std::replace(profile.begin(), profile.end(), '+', '.');
    ++counts["nvidia.com/mig-" + profile];
  }
  std::vector<model::MigSlots> out;
  for (const auto& [resource, count] : counts) out.push_back({resource, count});
  return out;
}

}  // namespace

kinds::GpuNode gpu_node(const std::string& node, const model::GpuInventory& inventory,
                        const model::HostFacts& host, const std::vector<GpuStanding>& standing) {
  kinds::GpuNode out;
  out.name = node;
  out.driver_version = inventory.driver_version;
  if (inventory.cuda_major > 0) {
    out.cuda_version =
        std::to_string(inventory.cuda_major) + "." + std::to_string(inventory.cuda_minor);
  }
  const std::vector<int> clique_of = cliques(inventory.gpus);
  for (std::size_t i = 0; i < inventory.gpus.size(); ++i) {
    const model::GpuDevice& gpu = inventory.gpus[i];
    if (gpu.index < 0 || gpu.index >= model::kMaxGpusPerNode ||
        out.gpus.size() == static_cast<std::size_t>(model::kMaxGpusPerNode)) {
      continue;
    }
    kinds::GpuNodeGpu& entry = out.gpus.emplace_back();
    entry.gpu.index = gpu.index;
    entry.gpu.uuid = gpu.uuid;
    entry.gpu.model = product_label(gpu.name);
    entry.gpu.memory_mib = gpu.memory_mib;
    entry.gpu.numa = gpu.numa;
    entry.gpu.pcie_switch = gpu.pcie_switch;
    entry.gpu.nvlink_clique = clique_of[i];
    entry.gpu.mig = mig_slots(gpu);
    if (i >= standing.size()) continue;
    entry.gpu.health = standing[i].healthy ? model::Health::kHealthy : model::Health::kUnhealthy;
    if (!standing[i].healthy) entry.gpu.health_reason = standing[i].reason;
    entry.shares = std::clamp(standing[i].shares, 1, model::kMaxSharesPerGpu);
    entry.holders = standing[i].holders;
  }
  for (const model::NicDevice& nic : host.nics) {
    out.nics.push_back({nic.name, nic.numa, nic.pcie_switch});
  }
  return out;
}

}  // namespace berth::discover
