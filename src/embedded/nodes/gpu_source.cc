#include "embedded/nodes/gpu_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "embedded/nodes/fault.h"
#include "embedded/nodes/machine.h"
#include "kinds/products.h"
#include "node/partition/mig_board.h"

namespace berth::sim {

namespace {

using model::GpuAnswer;
using model::GpuEvent;
using model::RecoveryAction;

constexpr int kLinksOfGpu = 18;
constexpr int kFellOffTheBus = 79, kDoubleBitEcc = 48;
constexpr std::int64_t kMigLook = 20'000'000, kMigStep = 100'000'000;  // about what an H200 takes

std::string driver_name(std::string product) {
  std::replace(product.begin(), product.end(), '-', ' ');
  return product.starts_with("NVIDIA") ? product : "NVIDIA " + product;
}

// Compute capability and PCI id of what fleets usually hold; what is not here counts as a Hopper.
struct Chip {
  std::string_view part;
  int major, minor;
  std::uint32_t pci;
};
constexpr std::array<Chip, 8> kChips = {{{"H200", 9, 0, 0x233510de},
                                         {"H100", 9, 0, 0x233010de},
                                         {"GB200", 10, 0, 0x294110de},
                                         {"B200", 10, 0, 0x290110de},
                                         {"A100", 8, 0, 0x20b210de},
                                         {"L40", 8, 9, 0x26b510de},
                                         {"L4", 8, 9, 0x27b810de},
                                         {"T4", 7, 5, 0x1eb810de}}};

const Chip& chip_of(const std::string& model) {
  for (const Chip& chip : kChips) {
    if (model.find(chip.part) != std::string::npos) return chip;
  }
  return kChips[1];
}

// "1g.10gb" on a device of known memory.
model::MigInstance slice_of(const model::GpuDevice& gpu, const std::string& profile, int number) {
  model::MigInstance out;
  out.uuid = "MIG-" + gpu.uuid.substr(4, 34) + fmt::format("{:02x}", number);
  out.profile = profile;
  out.gpu_instance = number + 1;
  out.gpu_slices = profile.empty() || profile[0] < '1' || profile[0] > '7' ? 1 : profile[0] - '0';
  out.compute_slices = out.gpu_slices;
  const std::array<int, 8> slots = {0, 1, 2, 4, 4, 8, 8, 8};
  out.slots = slots[static_cast<std::size_t>(out.gpu_slices)];
  out.start = number * out.slots;
  const partition::MigGeometry geometry = partition::usual_geometry(7, gpu.memory_mib);
  if (const partition::MigProfile* known = partition::find_profile(geometry, profile)) {
    out.slots = known->slots;
    const auto at = static_cast<std::size_t>(number);
    out.start = at < known->starts.size() ? known->starts[at] : number * out.slots;
  }
  out.memory_mib = gpu.memory_mib * out.slots / 8;
  out.multiprocessors = 16 * out.gpu_slices;
  out.engines = {.copy = out.gpu_slices, .decoder = out.gpu_slices, .jpeg = 1};
  return out;
}

model::GpuInventory inventory_of(const Pool& pool, const Machine& machine) {
  model::GpuInventory out;
  out.driver_version = "580.159.04";
  out.cuda_major = 13;
  const std::vector<kinds::GpuNodeGpu> published = machine.published();
  const kinds::Product* product = kinds::find_product(pool.model);
  for (const kinds::GpuNodeGpu& one : published) {
    const model::GpuSpec& spec = one.gpu;
    const Chip& chip = chip_of(spec.model);
    model::GpuDevice gpu;
    gpu.index = gpu.minor = spec.index;
    gpu.uuid = spec.uuid;
    gpu.name = driver_name(spec.model);
    gpu.pci_bus_id = fmt::format("0000:{:02x}:00.0", 0x10 + spec.index);
    gpu.pci_device = chip.pci;
    gpu.memory_mib = spec.memory_mib;
    gpu.compute_major = chip.major;
    gpu.compute_minor = chip.minor;
    gpu.numa = spec.numa;
    gpu.pcie_switch = spec.pcie_switch;
    if (spec.nvlink_clique >= 0) {
      gpu.nvlinks.assign(published.size(), 0);
      for (const kinds::GpuNodeGpu& other : published) {
        const bool linked =
            other.gpu.index != spec.index && other.gpu.nvlink_clique == spec.nvlink_clique;
        gpu.nvlinks[static_cast<std::size_t>(other.gpu.index)] = linked ? kLinksOfGpu : 0;
      }
    }
    gpu.mig_capable = product != nullptr && product->mig_slices > 0;
    gpu.mig_enabled = !pool.mig.empty();
    for (int i = 0; i < pool.mig_slots; ++i) gpu.mig.push_back(slice_of(gpu, pool.mig, i));
    out.gpus.push_back(std::move(gpu));
  }
  return out;
}

}  // namespace

struct SimGpuSource::State : std::enable_shared_from_this<State> {
  explicit State(Loop& loop_in) : loop(loop_in), born(loop_in.monotonic().ticks_ns()) {}

  // What is wrong with one GPU.
  struct Ailment {
    GpuAnswer answer = GpuAnswer::kFine;
    RecoveryAction recovery = RecoveryAction::kNone;
    bool remap_pending = false, links_down = false;
    std::uint64_t serial = 0;  // of the latest: the end of an older one does not end it
  };

  Loop& loop;
  const std::int64_t born;
  Pool pool;
  std::vector<Fault> script;
  model::GpuInventory inventory;
  std::unique_ptr<partition::MigBoard> board;  // its MIG side
  std::vector<Ailment> ailments;
  bool asked = false;  // an inventory was given: readings are of it
  std::function<void(const GpuEvent&)> handler;

  // Not after the source is gone: the owner holds the only lasting reference.
  void later(std::int64_t delay_ns, std::function<void(State&)> work) {
    loop.after(delay_ns, [weak = weak_from_this(), work = std::move(work)] {
      if (const auto self = weak.lock()) work(*self);
    });
  }

  void tell(GpuEvent::Kind kind, int gpu, int code = 0, std::string detail = {}) {
    GpuEvent event;
    event.kind = kind;
    event.uuid = inventory.gpus[static_cast<std::size_t>(gpu)].uuid;
    event.pci_bus_id = inventory.gpus[static_cast<std::size_t>(gpu)].pci_bus_id;
    event.code = code;
    event.detail = std::move(detail);
    later(0, [event](State& state) {
      if (state.handler) state.handler(event);
    });
  }

  void inject(const Fault& fault) {
    for (int i = 0; i < static_cast<int>(ailments.size()); ++i) {
      if (fault.gpu < 0 || fault.gpu == i) inject(i, fault);
    }
  }
  void inject(int gpu, const Fault& fault);
  void recover(int gpu);
  model::GpuReading reading(std::size_t at) const;
};

void SimGpuSource::State::inject(int gpu, const Fault& fault) {
  Ailment& ailment = ailments[static_cast<std::size_t>(gpu)];
  switch (fault.kind) {
    case FaultKind::kXid:
      if (fault.code == kFellOffTheBus) {
        ailment.answer = GpuAnswer::kLost;
      } else if (xid_effect(fault.code) == XidEffect::kGpu) {
        ailment.recovery = RecoveryAction::kGpuReset;
      }
      tell(GpuEvent::Kind::kXid, gpu, fault.code);
      break;
    case FaultKind::kEcc:
      ailment.remap_pending = true;
      ailment.recovery = RecoveryAction::kGpuReset;
      tell(GpuEvent::Kind::kEccDouble, gpu);
      tell(GpuEvent::Kind::kXid, gpu, kDoubleBitEcc);
      break;
    case FaultKind::kGpuLost:
      ailment.answer = GpuAnswer::kLost;
      tell(GpuEvent::Kind::kUnavailable, gpu);
      break;
    case FaultKind::kNvlinkDown:
      ailment.links_down = true;
      break;
    case FaultKind::kGpuSilent:
      ailment.answer = GpuAnswer::kSilent;
      break;
    case FaultKind::kRecover:
      return recover(gpu);
    default:
      return;  // of kubelets: not of GPUs
  }
  const std::uint64_t serial = ++ailment.serial;
  if (fault.for_ns <= 0) return;
  later(fault.for_ns, [gpu, serial](State& state) {
    if (state.ailments[static_cast<std::size_t>(gpu)].serial == serial) state.recover(gpu);
  });
}

void SimGpuSource::State::recover(int gpu) {
  Ailment& ailment = ailments[static_cast<std::size_t>(gpu)];
  const std::uint64_t serial = ailment.serial;
  ailment = Ailment{};
  ailment.serial = serial + 1;
  tell(GpuEvent::Kind::kRecoveryAction, gpu);
}

model::GpuReading SimGpuSource::State::reading(std::size_t at) const {
  const model::GpuDevice& gpu = inventory.gpus[at];
  const Ailment& ailment = ailments[at];
  model::GpuReading out;
  out.uuid = gpu.uuid;
  out.answer = ailment.answer;
  if (out.answer == GpuAnswer::kLost) out.error = "GPU is lost";
  if (out.answer == GpuAnswer::kSilent) out.error = "the driver did not answer";
  if (out.answer != GpuAnswer::kFine) return out;
  const int links = gpu.nvlinks.empty() ? 0 : kLinksOfGpu;
  out.condition.recovery = ailment.recovery;
  out.condition.remap_pending = ailment.remap_pending;
  out.condition.nvlinks_down = ailment.links_down ? links : 0;
  out.condition.nvlinks_up = links - out.condition.nvlinks_down;
  const std::int64_t age_ms = (loop.monotonic().ticks_ns() - born) / 1'000'000;
  model::GpuCounters& c = out.counters;
  c.sm_clock_mhz = 345;
  c.memory_clock_mhz = 2619;
  c.gpu_temperature = 30 + static_cast<double>(at);
  c.memory_temperature = 38 + static_cast<double>(at);
  c.power_w = 70;
  c.energy_mj = static_cast<std::uint64_t>(70 * age_ms);
  c.gpu_utilization = c.memory_utilization = c.encoder_utilization = c.decoder_utilization = 0;
  c.memory_reserved_mib = 512;
  c.memory_used_mib = 0;
  c.memory_free_mib = static_cast<std::uint64_t>(std::max<std::int64_t>(gpu.memory_mib - 512, 0));
  c.pcie_replays = c.nvlink_bandwidth = 0;
  c.remapped_correctable = c.remapped_uncorrectable = 0;
  c.ecc_single_volatile = c.ecc_double_volatile = 0;
  c.ecc_single_aggregate = c.ecc_double_aggregate = 0;
  c.graphics_active = c.sm_active = c.tensor_active = c.dram_active = 0;
  c.pcie_tx_bytes = c.pcie_rx_bytes = 0;
  for (const model::MigInstance& slice : gpu.mig) {
    model::GpuCounters of_slice;
    of_slice.memory_used_mib = 0;
    of_slice.memory_free_mib = static_cast<std::uint64_t>(slice.memory_mib);
    of_slice.graphics_active = of_slice.tensor_active = of_slice.dram_active = 0;
    out.mig.emplace_back(slice.uuid, of_slice);
  }
  return out;
}

SimGpuSource::SimGpuSource(std::shared_ptr<State> state) : state_(std::move(state)) {}
SimGpuSource::~SimGpuSource() = default;

Result<std::unique_ptr<SimGpuSource>> SimGpuSource::make(Loop& loop, const Fleet& fleet,
                                                         const std::string& node) {
  const Pool* found = nullptr;
  int number = 0;
  for (const Pool& pool : fleet.pools) {
    for (int i = 0; i < pool.count && found == nullptr; ++i) {
      if (pool.node_name(i) == node || fleet.nodes() == 1) found = &pool, number = i;
    }
  }
  if (found == nullptr) {
    const std::string first = fleet.pools.empty() ? "" : fleet.pools.front().node_name(0);
    return invalid("the fleet has no node \"" + node + "\"; the first of its " +
                   std::to_string(fleet.nodes()) + " nodes is \"" + first + '"');
  }
  auto state = std::make_shared<State>(loop);
  state->pool = *found;
  const std::string in_fleet = found->node_name(number);
  state->inventory = inventory_of(*found, Machine(*found, number));
  state->board = std::make_unique<partition::MigBoard>(state->inventory);
  state->ailments.resize(state->inventory.gpus.size());
  for (const Fault& fault : fleet.faults) {
    if (fault.node == in_fleet) state->script.push_back(fault);
  }
  return std::unique_ptr<SimGpuSource>(new SimGpuSource(std::move(state)));
}

void SimGpuSource::take_inventory(std::function<void(Result<model::GpuInventory>)> done) {
  state_->later(0, [done = std::move(done)](State& state) {
    state.asked = true;
    done(state.inventory);
  });
}

void SimGpuSource::read(std::function<void(std::vector<model::GpuReading>)> done) {
  state_->later(0, [done = std::move(done)](State& state) {
    std::vector<model::GpuReading> out;
    for (std::size_t i = 0; state.asked && i < state.ailments.size(); ++i) {
      out.push_back(state.reading(i));
    }
    done(std::move(out));
  });
}

void SimGpuSource::watch(std::function<void(const GpuEvent&)> handler) {
  state_->handler = std::move(handler);
  for (const Fault& fault : state_->script) {
    state_->later(fault.at_ns, [fault](State& state) { state.inject(fault); });
  }
}

void SimGpuSource::look(std::function<void(Result<std::vector<partition::MigGpu>>)> done) {
  state_->later(kMigLook, [done = std::move(done)](State& state) { done(state.board->gpus()); });
}

void SimGpuSource::carry_out(const partition::MigStep& step, std::function<void(Status)> done) {
  state_->later(kMigStep, [step, done = std::move(done)](State& state) {
    const Status carried = state.board->carry_out(step, state.inventory);
    for (std::size_t i = 0; carried.ok() && i < state.inventory.gpus.size(); ++i) {
      if (state.inventory.gpus[i].uuid == step.gpu) {
        state.tell(GpuEvent::Kind::kMigChanged, static_cast<int>(i));
      }
    }
    done(carried);
  });
}

void SimGpuSource::inject(const Fault& fault) { state_->inject(fault); }
int SimGpuSource::gpus() const { return static_cast<int>(state_->ailments.size()); }
int SimGpuSource::shares() const { return state_->pool.shares; }

}  // namespace berth::sim
