#include "node/allocate/ledger.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace berth::allocate {
namespace {

using PodName = std::pair<std::string_view, std::string_view>;  // namespace, name
using DeviceIds = std::set<std::string_view>;

// "ns/name/container" without the container.
PodName pod_of(std::string_view holder) {
  const std::size_t first = holder.find('/');
  if (first == std::string_view::npos) return {};
  const std::string_view rest = holder.substr(first + 1);
  return {holder.substr(0, first), rest.substr(0, rest.find('/'))};
}

// What each pod holds. A device that an init container passed on counts once.
std::map<PodName, DeviceIds> held_by_pod(const std::vector<JournalEntry>& journal,
                                         const std::vector<model::HeldDevices>& held) {
  std::map<PodName, DeviceIds> out;
  for (const model::HeldDevices& h : held) {
    out[{h.ns, h.pod}].insert(h.ids.begin(), h.ids.end());
  }
  std::map<PodName, DeviceIds> noted;
  for (const JournalEntry& entry : journal) {
    if (entry.pod.empty()) continue;
    const PodName pod = pod_of(entry.pod);
    if (!out.contains(pod)) noted[pod].insert(entry.ids.begin(), entry.ids.end());
  }
  out.merge(noted);
  return out;
}

std::map<std::string_view, int> gpu_by_uuid(const model::GpuInventory& inventory) {
  std::map<std::string_view, int> out;
  for (const model::GpuDevice& gpu : inventory.gpus) {
    out[gpu.uuid] = gpu.index;
    for (const model::MigInstance& mig : gpu.mig) out[mig.uuid] = gpu.index;
  }
  return out;
}

// A pod whose containers are still being served holds a part of what it was meant to.
bool within_hint(std::vector<int> gpus, std::vector<int> hint) {
  std::sort(gpus.begin(), gpus.end());
  std::sort(hint.begin(), hint.end());
  return std::includes(hint.begin(), hint.end(), gpus.begin(), gpus.end());
}

void add_hints(const NodePod& pod, std::vector<Hint>& out) {
  std::set<std::pair<std::string_view, int>> seen;
  for (const NodePod::Ask& ask : pod.asks) {
    if (ask.size <= 0 || !seen.insert({ask.resource, ask.size}).second) continue;
    out.push_back(
        {.pod_uid = pod.uid, .gpus = pod.gpus, .resource = ask.resource, .size = ask.size});
  }
}

}  // namespace

std::string_view device_uuid(std::string_view id) { return id.substr(0, id.find("::")); }

Ledger join(const model::GpuInventory& inventory, const std::vector<JournalEntry>& journal,
            const std::vector<model::HeldDevices>& held, const std::vector<NodePod>& pods) {
  const std::map<PodName, DeviceIds> by_pod = held_by_pod(journal, held);
  const std::map<std::string_view, int> by_uuid = gpu_by_uuid(inventory);
  Ledger out;
  for (const NodePod& pod : pods) {
    if (pod.finished) continue;
    std::vector<int> gpus;
    if (auto it = by_pod.find({pod.ns, pod.name}); it != by_pod.end()) {
      for (std::string_view id : it->second) {
        auto gpu = by_uuid.find(device_uuid(id));
        if (gpu != by_uuid.end()) gpus.push_back(gpu->second);
      }
    }
    for (int gpu : std::set<int>(gpus.begin(), gpus.end())) out.holders[gpu].push_back(pod.uid);
    if (pod.gpus.empty()) continue;
    if (gpus.empty()) {
      add_hints(pod, out.open);
    } else if (!within_hint(std::move(gpus), pod.gpus)) {
      out.differing.push_back(pod.uid);
    }
  }
  for (auto& [gpu, uids] : out.holders) std::sort(uids.begin(), uids.end());
  std::sort(out.open.begin(), out.open.end(), [](const Hint& a, const Hint& b) {
    return std::tie(a.pod_uid, a.resource, a.size) < std::tie(b.pod_uid, b.resource, b.size);
  });
  std::sort(out.differing.begin(), out.differing.end());
  return out;
}

}  // namespace berth::allocate
