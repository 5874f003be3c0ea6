#include "agent/gpu_inventory.h"

#include <algorithm>
#include <utility>

#include "edge/host/host.h"

namespace berth::agent {

namespace {

constexpr std::int64_t kRetryInventory = 5'000'000'000;
constexpr std::uint16_t kNvidia = 0x10de;
constexpr std::uint32_t kDisplayClass = 0x03;

}  // namespace

GpuInventoryKeeper::GpuInventoryKeeper(Loop& loop, discover::GpuSource& source,
                                       InventoryOptions options, const Logger& log,
                                       std::function<void(Came)> came)
    : loop_(loop),
      source_(source),
      options_(std::move(options)),
      log_(log),
      tell_(std::move(came)),
      host_(host::read_host(options_.host_root)) {}

GpuInventoryKeeper::~GpuInventoryKeeper() { loop_.cancel(timer_); }

void GpuInventoryKeeper::take() {
  if (asking_) {
    ask_again_ = true;
    return;
  }
  asking_ = true;
  loop_.cancel(timer_);
  source_.take_inventory(
      [this, alive = std::weak_ptr<bool>(alive_)](Result<model::GpuInventory> found) {
        if (!alive.expired()) came(std::move(found));
      });
}

void GpuInventoryKeeper::came(Result<model::GpuInventory> found) {
  asking_ = false;
  Came told{.failed = !found.ok()};
  timer_ = loop_.after(told.failed ? kRetryInventory : options_.again_ns, [this] { take(); });
  if (told.failed) {
    fail(found.error());
  } else {
    problem_.clear();
    model::HostFacts facts = host::read_host(options_.host_root);
    if (!options_.simulated) host::place_on_bus(options_.host_root, *found, facts);
    host_ = std::move(facts);
    keep_vanished(*found);
    if (!gpus_ || *gpus_ != *found) {
      log_.info("inventory", {{"gpus", found->gpus.size()}, {"driver", found->driver_version}});
      gpus_ = std::move(*found);
      told.changed = true;
    }
  }
  tell_(told);
  if (std::exchange(ask_again_, false)) take();
}

void GpuInventoryKeeper::fail(const Error& error) {
  if (!gpus_ && !options_.simulated) host_ = host::read_host(options_.host_root);
  const bool first = problem_.empty();
  if (problem_ == error.to_string()) return;
  problem_ = error.to_string();
  if (gpus_ || gpus_on_bus() != 0) {
    log_.warn("the GPU driver does not answer", {{"why", problem_}});
  } else if (first) {
    log_.info("no GPU on the PCI bus, and no driver: nothing to do until there is one");
  }
}

void GpuInventoryKeeper::keep_vanished(model::GpuInventory& found) {
  if (!gpus_) return;
  const std::int64_t now = loop_.monotonic().ticks_ns();
  for (const model::GpuDevice& before : gpus_->gpus) {
    const bool there =
        std::any_of(found.gpus.begin(), found.gpus.end(),
                    [&](const model::GpuDevice& gpu) { return gpu.uuid == before.uuid; });
    const bool place_taken =
        std::any_of(found.gpus.begin(), found.gpus.end(),
                    [&](const model::GpuDevice& gpu) { return gpu.index == before.index; });
    if (there) {
      vanished_.erase(before.uuid);
      continue;
    }
    const std::int64_t since = vanished_.try_emplace(before.uuid, now).first->second;
    if (place_taken || now - since > options_.forget_ns) {
      vanished_.erase(before.uuid);
      continue;
    }
    found.gpus.push_back(before);
  }
  std::sort(found.gpus.begin(), found.gpus.end(),
            [](const model::GpuDevice& a, const model::GpuDevice& b) { return a.index < b.index; });
}

int GpuInventoryKeeper::gpus_on_bus() const {
  if (host_.pci.empty()) return -1;  // a machine whose bus cannot be read, rather than one without
  return static_cast<int>(
      std::count_if(host_.pci.begin(), host_.pci.end(), [](const model::PciDevice& device) {
        return device.vendor == kNvidia && device.class_code >> 16 == kDisplayClass;
      }));
}

}  // namespace berth::agent
