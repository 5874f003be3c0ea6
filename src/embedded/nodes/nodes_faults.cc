// What goes wrong with simulated nodes, and how it comes right again.
#include <algorithm>

#include "embedded/nodes/fault.h"
#include "embedded/nodes/nodes_state.h"

namespace berth::sim {

namespace {

constexpr int kAborted = 134;  // a program whose GPU fails under it
constexpr int kLostInReboot = 255;

}  // namespace

void Nodes::State::schedule_script() {
  for (std::size_t i = 0; i < fleet.faults.size(); ++i) {
    later(fleet.faults[i].at_ns, [this, i] { inject(fleet.faults[i]); });
  }
}

void Nodes::State::inject(const Fault& fault) {
  SimNode* node = find_node(fault.node);
  if (node == nullptr || fault.gpu >= node->machine.gpu_count()) return;
  if (telemetry) telemetry->count_fault(std::string(name(fault.kind)));
  if (log != nullptr) {
    log->info("simulated fault", {{"node", fault.node},
                                  {"kind", name(fault.kind)},
                                  {"gpu", fault.gpu},
                                  {"code", fault.code}});
  }
  switch (fault.kind) {
    case FaultKind::kXid:
    case FaultKind::kEcc:
    case FaultKind::kGpuLost:
    case FaultKind::kGpuSilent:
    case FaultKind::kNvlinkDown:
      for (int i = 0; i < node->machine.gpu_count(); ++i) {
        if (fault.gpu < 0 || fault.gpu == i) inject_gpu(*node, i, fault);
      }
      want_publish(*node, true);
      want_status(*node);
      break;
    case FaultKind::kRecover:
      return recover(*node, fault.gpu);
    case FaultKind::kNotReady:
      set_ready(*node, false);
      break;
    case FaultKind::kReady:
      set_alive(*node, true);
      return set_ready(*node, true);
    case FaultKind::kSilent:
      set_alive(*node, false);
      break;
    case FaultKind::kReboot:
      return reboot(*node), recover_later(fault, *node);
    case FaultKind::kSlowStart:
      node->slow_ns = fault.delay_ns;
      ++node->slow_serial;
      break;
    case FaultKind::kRefusePods:
      node->refuse = fault.reason;
      node->refuse_gpu = fault.gpu;
      ++node->refuse_serial;
      break;
  }
  if (fault.for_ns > 0) recover_later(fault, *node);
}

void Nodes::State::inject_gpu(SimNode& node, int gpu, const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kXid: {
      const XidEffect effect = xid_effect(fault.code);
      if (effect == XidEffect::kIgnore) return;
      if (effect == XidEffect::kGpu) node.machine.break_gpu(gpu, xid_text(fault.code));
      return kill_holders(node, gpu);
    }
    case FaultKind::kEcc:
      node.machine.break_gpu(gpu, "uncorrectable ECC error");
      return kill_holders(node, gpu);
    case FaultKind::kGpuLost:
      node.machine.break_gpu(gpu, "GPU is lost");
      return kill_holders(node, gpu);
    case FaultKind::kGpuSilent:
      node.machine.break_gpu(gpu, "the driver does not answer for it");
      return;
    default:  // the device works on, alone
      node.machine.drop_nvlink(gpu);
  }
}

// A kubelet does not kill a pod whose device fails; the program in it dies.
void Nodes::State::kill_holders(SimNode& node, int gpu) {
  const std::vector<kube::Key> keys(node.pods.begin(), node.pods.end());
  for (const kube::Key& key : keys) {
    const auto it = pods.find(key);
    if (it == pods.end() || it->second->stage != PodStage::kRunning) continue;
    if (it->second->held.gpus.take[static_cast<std::size_t>(gpu)] == 0) continue;
    end_run(*it->second, kAborted);
  }
}

void Nodes::State::recover(SimNode& node, int gpu) {
  for (int i = 0; i < node.machine.gpu_count(); ++i) {
    if (gpu < 0 || gpu == i) node.machine.recover_gpu(i);
  }
  want_publish(node, true);
  want_status(node);
  if (gpu >= 0) return;
  node.slow_ns = 0;
  node.refuse.clear();
  ++node.slow_serial;
  ++node.refuse_serial;
  set_alive(node, true);
  set_ready(node, true);
}

void Nodes::State::set_ready(SimNode& node, bool ready) {
  ++node.serial;
  if (node.ready == ready) return;
  node.ready = ready;
  node.ready_since = wall();
  want_status(node);
  if (ready) sweep(node);
}

void Nodes::State::set_alive(SimNode& node, bool alive) {
  ++node.serial;
  if (node.alive == alive) return;
  node.alive = alive;
  if (!alive) return;
  node.ready_since = wall();
  renew(node);
  want_status(node);
  publish(node);
  sweep(node);
}

void Nodes::State::reboot(SimNode& node) {
  set_alive(node, false);
  ++node.boots;
  const std::vector<kube::Key> keys(node.pods.begin(), node.pods.end());
  for (const kube::Key& key : keys) {
    const auto it = pods.find(key);
    if (it == pods.end()) continue;
    PodRecord& pod = *it->second;
    if (pod.stage == PodStage::kRunning || pod.stage == PodStage::kBackoff) {
      end_run(pod, kLostInReboot);  // told when the kubelet is back
      pod.start_due = 0;            // and started by it
    } else if (pod.stage == PodStage::kStarting) {
      release(pod);
      pod.stage = PodStage::kWaiting;
      pod.start_due = pod.deadline_due = 0;
    } else if (pod.stage == PodStage::kStopping) {
      stopped(pod);
    }
    schedule(pod);
  }
}

void Nodes::State::booted(SimNode& node, std::int64_t agent_ns) {
  for (int i = 0; i < node.machine.gpu_count(); ++i) node.machine.recover_gpu(i);
  node.ready = true;
  node.machine.set_agent(agent_ns == 0);
  const std::vector<kube::Key> keys(node.pods.begin(), node.pods.end());
  for (const kube::Key& key : keys) {
    const auto it = pods.find(key);
    if (it == pods.end() || it->second->stage != PodStage::kBackoff) continue;
    if (agent_ns > 0) {  // the kubelet admits its pods anew, and asks for their devices
      release(*it->second);
      Held none;
      const auto refusal = node.machine.admit(it->second->facts.needs, none);
      if (refusal) {
        refuse(*it->second, *refusal);
        continue;
      }
      it->second->held = none;
    }
    it->second->write_wanted = false;  // running again is all there is to tell
    it->second->start_due = ticks() + 1 + options.start_ns;
    schedule(*it->second);
  }
  node.gpu_wanted = node.machine.gpu_count() > 0;
  set_alive(node, true);
  if (agent_ns == 0) return;
  later(agent_ns, [this, &node, boots = node.boots] {
    if (node.boots != boots) return;
    node.machine.set_agent(true);
    want_publish(node, true);
    want_status(node);
  });
}

// Ends what this fault began, unless something newer happened to the same part.
void Nodes::State::recover_later(const Fault& fault, SimNode& node) {
  const std::uint64_t of_node = node.serial, of_slow = node.slow_serial,
                      of_refuse = node.refuse_serial;
  std::vector<std::uint64_t> of_gpu;
  for (int i = 0; i < node.machine.gpu_count(); ++i) {
    of_gpu.push_back(node.machine.trouble(i).serial);
  }
  const FaultKind kind = fault.kind;
  const std::int64_t agent = fault.agent_ns;
  const int gpu = fault.gpu;
  const std::int64_t span =
      kind == FaultKind::kReboot && fault.for_ns == 0 ? options.reboot_ns : fault.for_ns;
  later(span, [this, &node, kind, gpu, agent, of_node, of_slow, of_refuse, of_gpu] {
    switch (kind) {
      case FaultKind::kNotReady:
        if (node.serial == of_node) set_ready(node, true);
        return;
      case FaultKind::kSilent:
        if (node.serial == of_node) set_alive(node, true);
        return;
      case FaultKind::kReboot:
        if (node.serial == of_node) booted(node, agent);
        return;
      case FaultKind::kSlowStart:
        if (node.slow_serial == of_slow) node.slow_ns = 0;
        return;
      case FaultKind::kRefusePods:
        if (node.refuse_serial == of_refuse) node.refuse.clear();
        return;
      default:
        for (int i = 0; i < node.machine.gpu_count(); ++i) {
          const bool meant = gpu < 0 || gpu == i;
          if (meant && node.machine.trouble(i).serial == of_gpu[static_cast<std::size_t>(i)]) {
            recover(node, i);
          }
        }
    }
  });
}

}  // namespace berth::sim
