// One simulated machine: its room and its GPUs, who holds them, and what is wrong with them.
//
// Pure: it knows nothing of the API. admit() does what a kubelet's admission does, in its order:
// devices first (UnexpectedAdmissionError, TopologyAffinityError), then the other amounts
// (OutOfcpu, OutOfmemory, OutOfephemeral-storage, OutOfpods). resize() is what it does about a pod
// that asks for other amounts while it runs. Inside this folder.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "embedded/nodes/fleet.h"
#include "kinds/gpu_node.h"
#include "kinds/pod.h"
#include "model/device_choice.h"

namespace berth::sim {

// What a pod takes of a machine.
struct Needs {
  std::int64_t cpu_milli = 0, memory = 0, storage = 0;
  model::GpuDemandSpec gpu;
  std::vector<int> gpus_by_container;
  std::vector<int> wanted;  // berth.dev/gpus
};
Needs needs_of(const model::PodSpec& pod);

struct Held {
  bool any = false;  // a place on the machine at all
  bool mig = false;
  bool differs = false;  // from what berth.dev/gpus wanted
  std::int64_t cpu_milli = 0, memory = 0, storage = 0;
  model::GpuTake gpus;
};

struct Refusal {
  std::string reason, message;
};

struct GpuTrouble {
  std::string reason;  // empty: the device is well
  bool nvlink_down = false;
  std::uint64_t serial = 0;  // of the latest trouble: an older one's end does not end it
};

class Machine {
 public:
  Machine(const Pool& pool, int number);

  const std::string& name() const { return info_.name; }
  int gpu_count() const { return static_cast<int>(info_.gpus.size()); }
  int healthy_gpus() const;
  int used_gpus() const;
  const model::NodeInfo& info() const { return info_; }

  // held is filled when there is no refusal.
  std::optional<Refusal> admit(const Needs& needs, Held& held);
  // Without asking: a pod that runs already. indices: devices it is known to hold.
  Held hold(const Needs& needs, const std::vector<int>& indices);
  void release(Held& held);
  // CPU and memory of a pod that runs. Refused as Infeasible (more than the machine has) or
  // Deferred (more than is free now), held is as it was.
  std::optional<Refusal> resize(const Needs& needs, Held& held);

  // True when something changed.
  bool break_gpu(int index, std::string reason);
  bool drop_nvlink(int index);
  bool recover_gpu(int index);
  // Without its agent a machine advertises no devices, and hands out none.
  void set_agent(bool there) { agent_ = there; }
  GpuTrouble& trouble(int index) { return troubles_[static_cast<std::size_t>(index)]; }
  const GpuTrouble& trouble(int index) const { return troubles_[static_cast<std::size_t>(index)]; }

  // The devices as an agent publishes them, without holders.
  std::vector<kinds::GpuNodeGpu> published() const;
  // What the device plugin advertises: the resource and how many, all and healthy.
  struct Advertised {
    std::string resource;
    int capacity = 0, allocatable = 0;
  };
  std::optional<Advertised> advertised() const;

 private:
  bool choose(const Needs& needs, Held& held, std::optional<Refusal>& refusal) const;
  bool follow(const Needs& needs, model::GpuTake& take) const;
  std::optional<Refusal> admit_amounts(const Needs& needs) const;
  std::optional<model::GpuTake> choose_slots(int count) const;
  int free_devices(const Needs& needs) const;
  void take(const Held& held, int sign);

  model::NodeInfo info_;
  model::NodeState free_;
  model::MigFree slots_{};  // free ones
  std::string mig_resource_;
  int mig_slots_ = 0;
  bool agent_ = true;
  std::array<int, model::kMaxGpusPerNode> clique_{};  // as built
  std::array<GpuTrouble, model::kMaxGpusPerNode> troubles_;
};

}  // namespace berth::sim
