#include "embedded/nodes/machine.h"

#include <algorithm>
#include <bit>

#include "base/random.h"
#include "kinds/products.h"
#include "model/fit.h"

namespace berth::sim {

namespace {

using model::GpuTake;
using Kind = model::GpuDemandSpec::Kind;

// Stable for a name, so that a cluster that is started again finds the same devices.
std::string gpu_uuid(const std::string& node, int index) {
  Random random = Random(0x62657274).split(node + '/' + std::to_string(index));
  std::string out = "GPU-";
  constexpr std::string_view kHex = "0123456789abcdef";
  for (int i = 0; i < 32; ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) out += '-';
    out += kHex[random.below(16)];
  }
  return out;
}

std::int64_t amount_of(const model::Amounts& amounts, std::string_view name) {
  const auto it = amounts.find(name);
  return it == amounts.end() ? 0 : it->second;
}

model::Demand to_demand(const Needs& needs) {
  model::Demand demand;
  demand.kind = needs.gpu.kind;
  demand.count = needs.gpu.count;
  demand.milli = needs.gpu.milli;
  demand.memory_mib = needs.gpu.memory_mib;
  demand.gpus_by_container = needs.gpus_by_container;
  return demand;
}

std::uint16_t bit_of(int index) { return static_cast<std::uint16_t>(1u << index); }

std::string resource_name(const Needs& needs) {
  if (needs.gpu.kind == Kind::kShared) return "nvidia.com/gpu.shared";
  if (needs.gpu.kind == Kind::kMig) return needs.gpu.mig;
  return "nvidia.com/gpu";
}

Refusal out_of(std::string_view resource, std::int64_t asked, std::int64_t used,
               std::int64_t capacity) {
  return {"OutOf" + std::string(resource),
          "Node didn't have enough resource: " + std::string(resource) +
              ", requested: " + std::to_string(asked) + ", used: " + std::to_string(used) +
              ", capacity: " + std::to_string(capacity)};
}

bool has_part(Kind kind) { return kind == Kind::kFraction || kind == Kind::kMemory; }

}  // namespace

Needs needs_of(const model::PodSpec& pod) {
  Needs needs;
  needs.cpu_milli = amount_of(pod.requests, "cpu");
  needs.memory = amount_of(pod.requests, "memory");
  needs.storage = amount_of(pod.requests, "ephemeral-storage");
  needs.gpu = pod.gpu;
  needs.gpus_by_container = pod.gpus_by_container;
  needs.wanted = pod.gpu_indices;
  return needs;
}

Machine::Machine(const Pool& pool, int number) {
  info_.name = pool.node_name(number);
  info_.cpu = free_.cpu = pool.cpu_milli;
  info_.memory = free_.memory = pool.memory_bytes;
  info_.ephemeral = free_.ephemeral = pool.storage_bytes;
  info_.pods = free_.pods = pool.pods;
  info_.numa_policy = pool.numa_policy;
  info_.numa_scope = pool.numa_scope;
  info_.shares_per_gpu = pool.shares;
  info_.gpu_milli = static_cast<std::int16_t>(model::kMilliPerGpu / pool.shares);
  info_.gpu_model = pool.model;
  info_.gpu_memory_mib = pool.gpu_memory_mib;
  mig_slots_ = pool.mig_slots;
  if (mig_slots_ > 0) mig_resource_ = "nvidia.com/mig-" + pool.mig;
  const kinds::Product* product = kinds::find_product(pool.model);
  const bool usual = product != nullptr && product->per_node == pool.gpus;
  info_.numa_known = usual && product->per_numa > 0;
  for (int i = 0; i < pool.gpus; ++i) {
    model::GpuSpec gpu;
    gpu.index = i;
    gpu.uuid = gpu_uuid(info_.name, i);
    gpu.model = pool.model;
    gpu.memory_mib = pool.gpu_memory_mib;
    if (info_.numa_known) gpu.numa = i / product->per_numa;
    if (usual && product->per_switch > 0) gpu.pcie_switch = i / product->per_switch;
    if (pool.nvlink > 0) gpu.nvlink_clique = i / pool.nvlink;
    if (mig_slots_ > 0) gpu.mig.push_back({mig_resource_, mig_slots_});
    const auto at = static_cast<std::size_t>(i);
    clique_[at] = gpu.nvlink_clique;
    if (mig_slots_ > 0) {
      info_.mig = static_cast<std::uint16_t>(info_.mig | bit_of(i));
      slots_[at] = static_cast<std::uint8_t>(mig_slots_);
    } else {
      info_.devices = static_cast<std::uint16_t>(info_.devices | bit_of(i));
      free_.gpu[at] = model::kMilliPerGpu;
    }
    info_.gpus.push_back(std::move(gpu));
  }
  info_.usable = info_.devices;
  info_.mig_usable = info_.mig;
  free_.whole = info_.devices;
}

int Machine::healthy_gpus() const {
  return std::popcount(static_cast<std::uint16_t>(info_.usable | info_.mig_usable));
}

int Machine::used_gpus() const {
  int out = 0;
  for (std::size_t i = 0; i < info_.gpus.size(); ++i) {
    const bool used = mig_slots_ > 0 ? slots_[i] < mig_slots_ : free_.gpu[i] < model::kMilliPerGpu;
    out += used ? 1 : 0;
  }
  return out;
}

// What the annotation names, when it is free and of the right number.
bool Machine::follow(const Needs& needs, GpuTake& out) const {
  if (needs.wanted.empty() ||
      needs.wanted.size() != static_cast<std::size_t>(std::max(needs.gpu.count, 0))) {
    return false;
  }
  const bool mig = needs.gpu.kind == Kind::kMig;
  out = GpuTake{};
  out.unit = mig ? std::int16_t{0}
                 : static_cast<std::int16_t>(model::device_milli(info_, to_demand(needs)));
  for (const int index : needs.wanted) {
    if (index < 0 || index >= gpu_count()) return false;
    const auto at = static_cast<std::size_t>(index);
    if (((mig ? info_.mig_usable : info_.usable) & bit_of(index)) == 0) return false;
    ++out.take[at];
    const bool room = mig ? out.take[at] <= slots_[at] : out.take[at] * out.unit <= free_.gpu[at];
    if (!room) return false;
  }
  return true;
}

std::optional<GpuTake> Machine::choose_slots(int count) const {
  GpuTake out;
  model::MigFree left = slots_;
  for (int n = 0; n < count; ++n) {
    int best = -1;
    for (int i = 0; i < gpu_count(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if ((info_.mig_usable & bit_of(i)) == 0 || left[at] == 0) continue;
      if (best < 0 || left[at] < left[static_cast<std::size_t>(best)]) best = i;
    }
    if (best < 0) return std::nullopt;
    --left[static_cast<std::size_t>(best)];
    ++out.take[static_cast<std::size_t>(best)];
  }
  return out;
}

// How many devices, shares or slots of what is asked for are free and healthy.
int Machine::free_devices(const Needs& needs) const {
  int out = 0;
  for (int i = 0; i < gpu_count(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (needs.gpu.kind == Kind::kMig) {
      if ((info_.mig_usable & bit_of(i)) != 0) out += slots_[at];
    } else if ((info_.usable & bit_of(i)) != 0 && free_.gpu[at] > 0) {
      out += free_.gpu[at] / info_.gpu_milli;
    }
  }
  return out;
}

bool Machine::choose(const Needs& needs, Held& held, std::optional<Refusal>& refusal) const {
  const Kind kind = needs.gpu.kind;
  if (kind == Kind::kNone || needs.gpu.count <= 0) return true;
  if (!agent_) {
    refusal = Refusal{"UnexpectedAdmissionError",
                      "Allocate failed due to no healthy devices present; cannot allocate "
                      "unhealthy devices " +
                          resource_name(needs) + ", which is unexpected"};
    return false;
  }
  const model::Demand demand = to_demand(needs);
  held.mig = kind == Kind::kMig;
  const bool ours = held.mig ? needs.gpu.mig == mig_resource_ : kind != Kind::kShared;
  const bool whole = kind == Kind::kWhole && info_.shares_per_gpu == 1;
  const bool numa = whole && model::numa_applies(info_, demand);
  if (ours && follow(needs, held.gpus)) {
    std::uint16_t mask = 0;
    for (const int index : needs.wanted) mask = static_cast<std::uint16_t>(mask | bit_of(index));
    if (!numa || model::choose_whole(info_, mask, demand) != 0) return true;
  }
  held.differs = !needs.wanted.empty();
  held.gpus = GpuTake{};
  std::optional<GpuTake> chosen;
  if (ours)
    chosen = held.mig ? choose_slots(needs.gpu.count) : model::choose_gpus(info_, free_, demand);
  if (chosen) {
    held.gpus = *chosen;
    return true;
  }
  // Parts of a GPU are not the kubelet's business: the pod runs, on no device that we know.
  if (has_part(kind)) return true;
  const int available = ours ? free_devices(needs) : 0;
  if (numa && available >= needs.gpu.count) {
    refusal =
        Refusal{"TopologyAffinityError", "Resources cannot be allocated with Topology locality"};
  } else {
    refusal = Refusal{"UnexpectedAdmissionError",
                      "Allocate failed due to requested number of devices unavailable for " +
                          resource_name(needs) + ". Requested: " + std::to_string(needs.gpu.count) +
                          ", Available: " + std::to_string(available) + ", which is unexpected"};
  }
  return false;
}

std::optional<Refusal> Machine::admit_amounts(const Needs& needs) const {
  if (free_.pods < 1) return out_of("pods", 1, info_.pods - free_.pods, info_.pods);
  if (needs.cpu_milli > 0 && needs.cpu_milli > free_.cpu) {
    return out_of("cpu", needs.cpu_milli, info_.cpu - free_.cpu, info_.cpu);
  }
  if (needs.memory > 0 && needs.memory > free_.memory) {
    return out_of("memory", needs.memory, info_.memory - free_.memory, info_.memory);
  }
  if (needs.storage > 0 && needs.storage > free_.ephemeral) {
    return out_of("ephemeral-storage", needs.storage, info_.ephemeral - free_.ephemeral,
                  info_.ephemeral);
  }
  return std::nullopt;
}

std::optional<Refusal> Machine::admit(const Needs& needs, Held& held) {
  held = Held{};
  std::optional<Refusal> refusal;
  if (!choose(needs, held, refusal)) return refusal;
  refusal = admit_amounts(needs);
  if (refusal) return refusal;
  held.any = true;
  held.cpu_milli = needs.cpu_milli;
  held.memory = needs.memory;
  held.storage = needs.storage;
  take(held, 1);
  return std::nullopt;
}

Held Machine::hold(const Needs& needs, const std::vector<int>& indices) {
  Held held;
  held.any = true;
  held.cpu_milli = needs.cpu_milli;
  held.memory = needs.memory;
  held.storage = needs.storage;
  if (needs.gpu.kind != Kind::kNone) {
    held.mig = needs.gpu.kind == Kind::kMig;
    held.gpus.unit = held.mig
                         ? std::int16_t{0}
                         : static_cast<std::int16_t>(model::device_milli(info_, to_demand(needs)));
    for (const int index : indices.empty() ? needs.wanted : indices) {
      if (index >= 0 && index < gpu_count()) ++held.gpus.take[static_cast<std::size_t>(index)];
    }
    if (held.gpus.empty()) {
      std::optional<Refusal> ignored;
      Held chosen;
      if (choose(needs, chosen, ignored)) held.gpus = chosen.gpus;
    }
  }
  take(held, 1);
  return held;
}

void Machine::release(Held& held) {
  if (held.any) take(held, -1);
  held = Held{};
}

std::optional<Refusal> Machine::resize(const Needs& needs, Held& held) {
  const auto words = [](std::string_view what, std::string_view resource, std::int64_t asked) {
    return "Node didn't have enough " + std::string(what) + ": " + std::string(resource) +
           ", requested: " + std::to_string(asked);
  };
  struct Amount {
    std::string_view name;
    std::int64_t asked, held, free, all;
  };
  const Amount amounts[] = {{"memory", needs.memory, held.memory, free_.memory, info_.memory},
                            {"cpu", needs.cpu_milli, held.cpu_milli, free_.cpu, info_.cpu}};
  for (const Amount& a : amounts) {
    if (a.asked <= a.all) continue;
    return Refusal{"Infeasible",
                   words("capacity", a.name, a.asked) + ", capacity: " + std::to_string(a.all)};
  }
  for (const Amount& a : amounts) {
    if (a.asked <= a.held || a.asked - a.held <= a.free) continue;
    return Refusal{"Deferred", words("resource", a.name, a.asked) +
                                   ", used: " + std::to_string(a.all - a.free - a.held) +
                                   ", capacity: " + std::to_string(a.all)};
  }
  take(held, -1);
  held.memory = needs.memory;
  held.cpu_milli = needs.cpu_milli;
  take(held, 1);
  return std::nullopt;
}

void Machine::take(const Held& held, int sign) {
  free_.pods -= sign;
  free_.cpu -= sign * held.cpu_milli;
  free_.memory -= sign * held.memory;
  free_.ephemeral -= sign * held.storage;
  for (int i = 0; i < gpu_count(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (held.gpus.take[at] == 0) continue;
    const int by = sign * held.gpus.take[at];
    if (held.mig) {
      slots_[at] = static_cast<std::uint8_t>(std::clamp(slots_[at] - by, 0, mig_slots_));
      continue;
    }
    free_.gpu[at] = static_cast<std::int16_t>(free_.gpu[at] - by * held.gpus.unit);
    const bool whole = free_.gpu[at] == model::kMilliPerGpu;
    free_.whole =
        static_cast<std::uint16_t>(whole ? free_.whole | bit_of(i) : free_.whole & ~bit_of(i));
  }
}

bool Machine::break_gpu(int index, std::string reason) {
  GpuTrouble& trouble_now = trouble(index);
  ++trouble_now.serial;
  if (trouble_now.reason == reason) return false;
  trouble_now.reason = std::move(reason);
  info_.usable = static_cast<std::uint16_t>(info_.usable & ~bit_of(index));
  info_.mig_usable = static_cast<std::uint16_t>(info_.mig_usable & ~bit_of(index));
  return true;
}

bool Machine::drop_nvlink(int index) {
  GpuTrouble& trouble_now = trouble(index);
  ++trouble_now.serial;
  if (trouble_now.nvlink_down) return false;
  trouble_now.nvlink_down = true;
  info_.gpus[static_cast<std::size_t>(index)].nvlink_clique = -1;
  return true;
}

bool Machine::recover_gpu(int index) {
  GpuTrouble& trouble_now = trouble(index);
  ++trouble_now.serial;
  const bool was = !trouble_now.reason.empty() || trouble_now.nvlink_down;
  trouble_now.reason.clear();
  trouble_now.nvlink_down = false;
  const auto at = static_cast<std::size_t>(index);
  info_.gpus[at].nvlink_clique = clique_[at];
  std::uint16_t& usable = mig_slots_ > 0 ? info_.mig_usable : info_.usable;
  usable = static_cast<std::uint16_t>(usable | bit_of(index));
  return was;
}

std::vector<kinds::GpuNodeGpu> Machine::published() const {
  std::vector<kinds::GpuNodeGpu> out;
  for (const model::GpuSpec& spec : info_.gpus) {
    kinds::GpuNodeGpu gpu;
    gpu.gpu = spec;
    gpu.shares = info_.shares_per_gpu;
    const GpuTrouble& t = trouble(spec.index);
    if (!t.reason.empty()) {
      gpu.gpu.health = model::Health::kUnhealthy;
      gpu.gpu.health_reason = t.reason;
    } else if (t.nvlink_down) {
      gpu.gpu.health_reason = "NVLink down";
    }
    out.push_back(std::move(gpu));
  }
  return out;
}

std::optional<Machine::Advertised> Machine::advertised() const {
  if (gpu_count() == 0) return std::nullopt;
  const int each = !agent_ ? 0 : mig_slots_ > 0 ? mig_slots_ : info_.shares_per_gpu;
  return Advertised{mig_slots_ > 0 ? mig_resource_ : "nvidia.com/gpu", gpu_count() * each,
                    healthy_gpus() * each};
}

}  // namespace berth::sim
