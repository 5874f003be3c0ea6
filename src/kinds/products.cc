#include "kinds/products.h"

#include <algorithm>
#include <string>

#include "kinds/readers.h"

namespace berth::kinds {

namespace {

constexpr Product kProducts[] = {
    // name, memory MiB, NVLink, per node, per NUMA node, per switch, MIG slices
    {"NVIDIA-GB300", 284208, true, 4, 2, 0, 7},
    {"NVIDIA-GB200", 189471, true, 4, 2, 0, 7},
    {"NVIDIA-B300-SXM6-AC", 275040, true, 8, 4, 2, 7},
    {"NVIDIA-B200", 183359, true, 8, 4, 2, 7},
    {"NVIDIA-GH200-480GB", 97871, false, 1, 1, 0, 7},
    {"NVIDIA-GH200-144G-HBM3e", 146831, false, 1, 1, 0, 7},
    {"NVIDIA-H200", 143771, true, 8, 4, 2, 7},
    {"NVIDIA-H200-NVL", 143771, false, 8, 4, 0, 7},
    {"NVIDIA-H100-80GB-HBM3", 81559, true, 8, 4, 2, 7},
    {"NVIDIA-H100-NVL", 95830, false, 8, 4, 0, 7},
    {"NVIDIA-H100-PCIe", 81559, false, 8, 4, 0, 7},
    {"NVIDIA-H800", 81559, true, 8, 4, 2, 7},
    {"NVIDIA-H20", 97871, true, 8, 4, 2, 7},
    {"NVIDIA-A100-SXM4-80GB", 81920, true, 8, 4, 2, 7},
    {"NVIDIA-A100-SXM4-40GB", 40960, true, 8, 4, 2, 7},
    {"NVIDIA-A100-80GB-PCIe", 81920, false, 8, 4, 0, 7},
    {"NVIDIA-A100-PCIE-80GB", 81920, false, 8, 4, 0, 7},
    {"NVIDIA-A100-PCIE-40GB", 40960, false, 8, 4, 0, 7},
    {"NVIDIA-A800-SXM4-80GB", 81920, true, 8, 4, 2, 7},
    {"NVIDIA-A30", 24576, false, 0, 0, 0, 4},
    {"NVIDIA-A10", 23028, false, 0, 0, 0, 0},
    {"NVIDIA-A10G", 23028, false, 8, 4, 0, 0},
    {"NVIDIA-A16", 15356, false, 0, 0, 0, 0},
    {"NVIDIA-A2", 15356, false, 0, 0, 0, 0},
    {"NVIDIA-A40", 46068, false, 0, 0, 0, 0},
    {"NVIDIA-L4", 23034, false, 8, 4, 0, 0},
    {"NVIDIA-L40", 46068, false, 8, 4, 0, 0},
    {"NVIDIA-L40S", 46068, false, 8, 4, 0, 0},
    {"NVIDIA-RTX-A6000", 49140, false, 0, 0, 0, 0},
    {"NVIDIA-RTX-6000-Ada-Generation", 49140, false, 0, 0, 0, 0},
    {"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 97887, false, 8, 4, 0, 4},
    {"Tesla-T4", 15360, false, 0, 0, 0, 0},
    {"Tesla-P4", 7680, false, 0, 0, 0, 0},
    {"Tesla-P100-PCIE-16GB", 16384, false, 0, 0, 0, 0},
    {"Tesla-P100-SXM2-16GB", 16384, true, 8, 4, 2, 0},
    {"Tesla-V100-SXM2-16GB", 16384, true, 8, 4, 2, 0},
    {"Tesla-V100-SXM2-32GB", 32768, true, 8, 4, 2, 0},
    {"Tesla-V100-SXM3-32GB", 32768, true, 16, 8, 2, 0},
    {"Tesla-V100-PCIE-16GB", 16384, false, 0, 0, 0, 0},
    {"Tesla-V100-PCIE-32GB", 32768, false, 0, 0, 0, 0},
};

std::string normal_form(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, 100)) {
    out += c == ' ' || c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  for (const std::string_view vendor : {"nvidia-", "tesla-"}) {
    if (out.starts_with(vendor)) out.erase(0, vendor.size());
  }
  return out;
}

}  // namespace

std::span<const Product> products() { return kProducts; }

const Product* find_product(std::string_view name) {
  if (name.empty()) return nullptr;
  const std::string wanted = normal_form(name);
  for (const Product& product : kProducts) {
    if (normal_form(product.name) == wanted) return &product;
  }
  return nullptr;
}

int mig_slots_per_gpu(std::string_view profile, int mig_slices, std::int64_t memory_mib) {
  const std::size_t g = profile.find("g.");
  const std::size_t gb = profile.find("gb", g == std::string_view::npos ? 0 : g);
  std::int64_t slices = 0, memory_gb = 0;
  if (g == std::string_view::npos || gb == std::string_view::npos || gb < g + 2 ||
      !parse_int(profile.substr(0, g), slices) ||
      !parse_int(profile.substr(g + 2, gb - g - 2), memory_gb) || slices < 1 || slices > 8) {
    return 0;
  }
  if (mig_slices <= 0) mig_slices = 7;
  // Media engines: one such slice a GPU.
  const std::string_view rest = profile.substr(gb + 2);
  if (rest.starts_with(".me") || rest.starts_with("+me")) return 1;
  int most = static_cast<int>(mig_slices / slices);
  // Memory comes in 8 parts on GPUs with 7 slices; a slice takes at least one.
  if (memory_mib > 0 && memory_gb > 0) {
    const std::int64_t parts = mig_slices == 7 ? 8 : mig_slices;
    const std::int64_t by_memory = (memory_mib / 1000 + parts) / memory_gb;
    most = static_cast<int>(std::min<std::int64_t>(most, by_memory));
  }
  return std::max(most, 1);
}

}  // namespace berth::kinds
