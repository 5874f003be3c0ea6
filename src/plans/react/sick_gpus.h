// Pods on GPUs that broke: which of them have to go, and when.
//
// A kubelet takes a broken GPU out of what it offers and leaves the pod on it alone. A program that
// hangs on it holds the rest of its gang for ever, so its workload starts over elsewhere:
// - A GPU that broke: after `grace_ns`, in which the program may end by itself.
// - One whose driver does not answer: after `silent_ns`. It may be busy, and the job well.
// - One that is only to run empty (a remap is pending, it flaps): never. Its jobs go on.
// At most `most_per_minute` workloads are ended for it, whatever agents say: a fault of theirs, or
// of a driver, must not empty a cluster.
//
// Pure: told what agents publish, it says who is affected; it never acts. What it knows comes with
// the GpuNodes again after a restart, and the grace begins anew. Times are monotonic ticks. One
// thread. Memory: an entry for each GPU that is not healthy.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace berth::react {

struct SickGpuPolicy {
  bool act = true;
  std::int64_t grace_ns = 10'000'000'000;
  std::int64_t silent_ns = 300'000'000'000;
  int most_per_minute = 10;
};

enum class Ailment : std::uint8_t { kBroken, kSilent, kToRunEmpty };
// Of the reason that an agent gives; one that is not known means broken.
Ailment ailment_of(std::string_view reason);

struct SickGpu {
  int index = 0;
  std::string reason;
  std::vector<std::string> holders;  // UIDs of pods
};

struct Casualty {
  std::string uid, node;
  int gpu = 0;
  std::string reason;
  friend bool operator==(const Casualty&, const Casualty&) = default;
};

class SickGpus {
 public:
  explicit SickGpus(SickGpuPolicy policy = {}) : policy_(policy) {}

  // All GPUs of a node that are not healthy now; of the others it is forgotten since when.
  void told(const std::string& node, const std::vector<SickGpu>& sick, std::int64_t now);
  void node_gone(const std::string& node) { nodes_.erase(node); }

  // Pods whose time is over, as long as they hold such a GPU; by node, index and UID, each once.
  std::vector<Casualty> due(std::int64_t now) const;
  // Whether this workload may be ended now. Asked again of the same one, while it is not forgotten,
  // the answer stays yes.
  bool may_end(const std::string& workload, std::int64_t now);
  // Those that are still to be ended: the others are forgotten.
  void keep(const std::set<std::string>& workloads);

 private:
  struct Gpu {
    std::int64_t since = 0;
    Ailment ailment = Ailment::kBroken;
    SickGpu what;
  };
  bool over(const Gpu& gpu, std::int64_t now) const;

  SickGpuPolicy policy_;
  std::map<std::string, std::map<int, Gpu>> nodes_;
  std::set<std::string> granted_;
  std::int64_t tokens_ = -1, tokens_at_ = 0;  // in thousandths
};

}  // namespace berth::react
