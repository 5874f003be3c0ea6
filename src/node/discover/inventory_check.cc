#include "node/discover/inventory_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "kinds/readers.h"

namespace berth::discover {

namespace {

constexpr std::size_t kMaxProblems = 10;

bool is_id_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.' || c == '/';
}

class Check {
 public:
  void problem(const std::string& path, const std::string& what) {
    if (++count_ > kMaxProblems) return;
    if (!text_.empty()) text_ += "; ";
    text_ += path + ": " + what;
  }

  void id(const std::string& path, const std::string& value) {
    if (value.empty() || value.size() > model::kMaxUuidBytes ||
        !std::all_of(value.begin(), value.end(), is_id_char)) {
      return problem(
          path, "found " + kinds::quoted(value) + ", want 1..63 letters, digits or any of -_./");
    }
    if (!uuids_.insert(value).second)
      problem(path, kinds::quoted(value) + " twice, want each once");
  }
  void name(const std::string& path, const std::string& value) {
    const bool plain = std::all_of(value.begin(), value.end(), [](char c) {
      return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) != 0x7f;
    });
    if (!plain || value.size() > model::kMaxNameBytes) {
      problem(path, "found " + kinds::quoted(value) + ", want at most 96 bytes on one line");
    }
  }
  void range(const std::string& path, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value < low || value > high) {
      problem(path, "found " + std::to_string(value) + ", want " + std::to_string(low) + ".." +
                        std::to_string(high));
    }
  }

  Status status() const {
    if (count_ == 0) return {};
    std::string text = text_;
    if (count_ > kMaxProblems) {
      text += "; and " + std::to_string(count_ - kMaxProblems) + " more";
    }
    return invalid(std::move(text));
  }

 private:
  std::set<std::string, std::less<>> uuids_;
  std::string text_;
  std::size_t count_ = 0;
};

struct Place {
  int start, end;
  std::string path;
};

void check_mig(const std::string& path, const model::GpuDevice& gpu, Check& check) {
  if (!gpu.mig.empty() && !gpu.mig_enabled) {
    check.problem(path + ".mig", "instances on a GPU whose MIG mode is off");
  }
  if (gpu.mig.size() > model::kMaxMigPerGpu) {
    return check.problem(path + ".mig", std::to_string(gpu.mig.size()) +
                                            " instances, want at most " +
                                            std::to_string(model::kMaxMigPerGpu));
  }
  std::map<int, Place> places;  // by GPU instance: compute instances share one
  std::set<std::pair<int, int>> ids;
  for (std::size_t i = 0; i < gpu.mig.size(); ++i) {
    const model::MigInstance& mig = gpu.mig[i];
    const std::string at = path + ".mig[" + std::to_string(i) + "]";
    check.id(at + ".uuid", mig.uuid);
    check.name(at + ".profile", mig.profile);
    check.range(at + ".gpuInstance", mig.gpu_instance, 0, 1'000);
    check.range(at + ".computeInstance", mig.compute_instance, 0, 1'000);
    if (!ids.insert({mig.gpu_instance, mig.compute_instance}).second) {
      check.problem(at, "instance " + std::to_string(mig.gpu_instance) + "/" +
                            std::to_string(mig.compute_instance) + " twice, want each once");
    }
    if (mig.start < 0) continue;  // the probe could not tell
    check.range(at + ".start", mig.start, 0, 63);
    check.range(at + ".slots", mig.slots, 1, 64);
    const Place place{mig.start, mig.start + mig.slots, at};
    for (const auto& [instance, other] : places) {
      const bool same = instance == mig.gpu_instance;
      if (same && (other.start != place.start || other.end != place.end)) {
        check.problem(at + ".start", "another placement than " + other.path +
                                         ", which is of the same GPU instance");
      }
      if (!same && place.start < other.end && other.start < place.end) {
        check.problem(at + ".start", "overlaps " + other.path);
      }
    }
    places.try_emplace(mig.gpu_instance, place);
  }
}

}  // namespace

Status check_inventory(const model::GpuInventory& inventory) {
  Check check;
  check.name("driverVersion", inventory.driver_version);
  std::set<std::string, std::less<>> buses;
  for (std::size_t i = 0; i < inventory.gpus.size(); ++i) {
    const model::GpuDevice& gpu = inventory.gpus[i];
    const std::string at = "gpus[" + std::to_string(i) + "]";
    check.range(at + ".index", gpu.index, 0, model::kMaxGpuIndex);
    if (i > 0 && gpu.index <= inventory.gpus[i - 1].index) {
      check.problem(at + ".index", "found " + std::to_string(gpu.index) + " after " +
                                       std::to_string(inventory.gpus[i - 1].index) +
                                       ", want them ascending, each once");
    }
    check.id(at + ".uuid", gpu.uuid);
    check.name(at + ".name", gpu.name);
    check.range(at + ".minor", gpu.minor, 0, 1'023);
    check.range(at + ".memoryMiB", gpu.memory_mib, 0, 100'000'000);
    check.range(at + ".numa", gpu.numa, -1, 255);
    check.range(at + ".pcieSwitch", gpu.pcie_switch, -1, 255);
    check.name(at + ".pciBusId", gpu.pci_bus_id);
    check.name(at + ".fabricCluster", gpu.fabric_cluster);
    if (!gpu.pci_bus_id.empty() && !buses.insert(gpu.pci_bus_id).second) {
      check.problem(at + ".pciBusId", kinds::quoted(gpu.pci_bus_id) + " twice, want each once");
    }
    if (gpu.nvlinks.size() > model::kMaxGpuIndex + 1) {
      check.problem(at + ".nvlinks", std::to_string(gpu.nvlinks.size()) +
                                         " entries, want at most " +
                                         std::to_string(model::kMaxGpuIndex + 1));
    }
    check_mig(at, gpu, check);
  }
  return check.status();
}

}  // namespace berth::discover
