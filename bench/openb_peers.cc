#include "openb_peers.h"

#include <numeric>
#include <stdexcept>

namespace berth::openb {
namespace {

constexpr int32_t kMostCpuMilli = 128'000;  // of the largest node of the trace
constexpr int32_t kMostGpuMilli = kMaxGpus * kWholeGpu;

class PeerBase {
 public:
  static constexpr Choice kChoice = Choice::kBest;
  explicit PeerBase(const PodList& list) : shapes_(list.shapes) {}
  bool arrived(uint32_t) const { return false; }
  int pick_gpu(const NodeState& node, uint32_t shape) const {
    return tightest_gpu(node, shapes_[shape]);
  }

 protected:
  const std::vector<Shape>& shapes_;
};

class RandomPeer : public PeerBase {
 public:
  static constexpr Choice kChoice = Choice::kUniform;
  RandomPeer(const PodList& list, uint64_t seed) : PeerBase(list), random_(seed) {}
  int32_t score(const NodeState&, uint32_t, uint32_t) const { return 0; }
  int pick_gpu(const NodeState& node, uint32_t shape) {
    std::array<int, kMaxGpus> fitting{};
    uint64_t count = 0;
    for (int gpu = 0; gpu < node.gpus; ++gpu) {
      if (node.gpu_free[static_cast<size_t>(gpu)] < shapes_[shape].gpu_milli) continue;
      fitting[count++] = gpu;
    }
    return fitting[random_.below(count)];
  }

 private:
  Random random_;
};

class DotProdPeer : public PeerBase {
 public:
  using PeerBase::PeerBase;
  int32_t score(const NodeState& node, uint32_t, uint32_t at) const {
    const Shape& shape = shapes_[at];
    const double cpu = static_cast<double>(node.cpu_free) / kMostCpuMilli *
                       static_cast<double>(shape.cpu_milli) / kMostCpuMilli;
    const double gpu = static_cast<double>(node.gpu_total_free) / kMostGpuMilli *
                       static_cast<double>(shape.total_gpu_milli()) / kMostGpuMilli;
    return static_cast<int32_t>(100.0 * (1.0 - (cpu + gpu) / 2.0));
  }
};

// Nodes that hold only pods of the same kind first, then mixed ones, idle ones, foreign ones.
class ClusteringPeer : public PeerBase {
 public:
  using PeerBase::PeerBase;
  int32_t score(const NodeState& node, uint32_t, uint32_t at) const {
    const uint16_t kind = tenant_bit(shapes_[at]);
    if (kind == 0) return 0;
    const int32_t fullness = 25 * (kMostGpuMilli - node.gpu_total_free) / kMostGpuMilli;
    if (node.tenants == kind) return fullness + 75;
    if ((node.tenants & kind) != 0) return fullness + 50;
    return fullness + (node.tenants == 0 ? 25 : 0);
  }
};

// Shared GPUs first, then free GPUs of nodes in use, then idle nodes.
class PackingPeer : public PeerBase {
 public:
  using PeerBase::PeerBase;
  int32_t score(const NodeState& node, uint32_t, uint32_t at) const {
    const Shape& shape = shapes_[at];
    if (shape.num_gpu == 0) return 0;
    int32_t whole = 0;
    for (int gpu = 0; gpu < node.gpus; ++gpu) {
      whole += node.gpu_free[static_cast<size_t>(gpu)] == kWholeGpu ? 1 : 0;
    }
    if (whole == node.gpus) return std::max(33 - whole, whole);
    if (shape.gpu_milli == kWholeGpu) return std::max(50 - shape.num_gpu, 33);
    const int32_t room = node.gpu_free[static_cast<size_t>(tightest_gpu(node, shape))];
    if (room == kWholeGpu) return 49;
    return std::max(100 - room / 100, 50);
  }
};

class BestFitPeer : public PeerBase {
 public:
  static constexpr Choice kChoice = Choice::kBestNormalised;
  using PeerBase::PeerBase;
  int32_t score(const NodeState& node, uint32_t, uint32_t at) const {
    const Shape& shape = shapes_[at];
    const double cpu = static_cast<double>(node.cpu_free - shape.cpu_milli) / kMostCpuMilli;
    const double gpu =
        static_cast<double>(node.gpu_total_free - shape.total_gpu_milli()) / kMostGpuMilli;
    return static_cast<int32_t>(100.0 * (1.0 - 0.5 * cpu - 0.5 * gpu));
  }
};

// Fragmentation gradient descent. With R the idle GPU of a node and S(m) the room on GPUs that fit
// shape m (0 when the node cannot run m), F = R - sum p_m S(m); the score falls with the growth of
// F.
class FgdPeer : public PeerBase {
 public:
  FgdPeer(const PodList& list, size_t nodes) : PeerBase(list), usable_(nodes) {
    pick_typical(list);
  }

  int32_t score(const NodeState& node, uint32_t index, uint32_t at) {
    return best_placement(node, usable_before(node, index), shapes_[at]).first;
  }

  int pick_gpu(const NodeState& node, uint32_t at) const {
    return best_placement(node, usable(node), shapes_[at]).second;
  }

 private:
  struct Typical {
    Shape shape;
    double share = 0;
    size_t threshold = 0;  // index into thresholds_
  };
  struct Cached {
    NodeState state;
    double value = -1;
  };

  // The most frequent shapes that together make up 95 % of the list.
  void pick_typical(const PodList& list) {
    std::vector<uint32_t> order(list.shapes.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [&list](uint32_t a, uint32_t b) {
      const uint32_t of_a = list.shape_counts[a];
      const uint32_t of_b = list.shape_counts[b];
      return of_a != of_b ? of_a > of_b : a < b;
    });
    const auto total = static_cast<double>(list.pods.size());
    double taken = 0;
    for (const uint32_t at : order) {
      if (taken >= 0.95 * total) break;
      taken += list.shape_counts[at];
      const Shape& shape = list.shapes[at];
      if (shape.num_gpu == 0) continue;  // all idle GPU is a fragment for it, before and after
      typical_.push_back({shape, static_cast<double>(list.shape_counts[at]), 0});
      const auto known = std::find(thresholds_.begin(), thresholds_.end(), shape.gpu_milli);
      typical_.back().threshold = static_cast<size_t>(known - thresholds_.begin());
      if (known == thresholds_.end()) thresholds_.push_back(shape.gpu_milli);
    }
    for (Typical& item : typical_) item.share /= taken;
  }

  double usable(const NodeState& node) const {
    struct Room {
      int32_t sum = 0;
      int32_t count = 0;
    };
    std::array<Room, 128> rooms;
    for (size_t at = 0; at < thresholds_.size(); ++at) {
      Room room;
      for (const int16_t free : node.gpu_free) {
        const bool fits = free >= thresholds_[at];
        room.sum += fits ? free : 0;
        room.count += fits ? 1 : 0;
      }
      rooms[at] = room;
    }
    double value = 0;
    for (const Typical& item : typical_) {
      if (node.cpu_free < item.shape.cpu_milli) continue;
      if (((item.shape.model_mask >> node.model) & 1U) == 0) continue;
      const Room& room = rooms[item.threshold];
      if (room.count >= item.shape.num_gpu) value += item.share * room.sum;
    }
    return value;
  }

  double usable_before(const NodeState& node, uint32_t index) {
    Cached& cached = usable_[index];
    if (cached.value < 0 || cached.state.cpu_free != node.cpu_free ||
        cached.state.gpu_free != node.gpu_free) {
      cached = {node, usable(node)};
    }
    return cached.value;
  }

  int32_t sigmoid_score(const NodeState& node, double before, const Shape& shape, int gpu) const {
    NodeState after = node;
    place(after, shape, gpu);
    const double growth = before - usable(after) - static_cast<double>(shape.total_gpu_milli());
    return static_cast<int32_t>(100.0 / (1.0 + std::exp(growth / 1000.0)));
  }

  std::pair<int32_t, int> best_placement(const NodeState& node, double before,
                                         const Shape& shape) const {
    if (!is_fractional(shape)) return {sigmoid_score(node, before, shape, -1), -1};
    std::pair<int32_t, int> best{-1, -1};
    std::array<int16_t, kMaxGpus> seen{};
    size_t seen_count = 0;
    for (int gpu = 0; gpu < node.gpus; ++gpu) {
      const int16_t room = node.gpu_free[static_cast<size_t>(gpu)];
      if (room < shape.gpu_milli) continue;
      const auto end = seen.begin() + static_cast<std::ptrdiff_t>(seen_count);
      if (std::find(seen.begin(), end, room) != end) continue;
      seen[seen_count++] = room;
      const int32_t score = sigmoid_score(node, before, shape, gpu);
      if (score > best.first) best = {score, gpu};
    }
    return best;
  }

  std::vector<Typical> typical_;
  std::vector<int32_t> thresholds_;
  std::vector<Cached> usable_;
};

template <class Policy>
Fill fill_with(Policy policy, const Inventory& inventory, const PodList& list,
               const Arrivals& arrivals) {
  return Filler<Policy>(inventory, list, arrivals, policy).run();
}

}  // namespace

const std::vector<std::string>& peer_names() {
  static const std::vector<std::string> names = {"random",  "dotprod", "clustering",
                                                 "packing", "bestfit", "fgd"};
  return names;
}

std::string published_name(const std::string& peer) {
  if (peer == "random") return "01-Random";
  if (peer == "dotprod") return "02-DotProd";
  if (peer == "clustering") return "03-GpuClustering";
  if (peer == "packing") return "04-GpuPacking";
  if (peer == "bestfit") return "05-BestFit";
  if (peer == "fgd") return "06-FGD";
  return "";
}

Fill run_peer(const std::string& name, const Inventory& inventory, const PodList& list,
              const Arrivals& arrivals) {
  if (name == "random") {
    return fill_with(RandomPeer(list, arrivals.node_order.front()), inventory, list, arrivals);
  }
  if (name == "dotprod") return fill_with(DotProdPeer(list), inventory, list, arrivals);
  if (name == "clustering") return fill_with(ClusteringPeer(list), inventory, list, arrivals);
  if (name == "packing") return fill_with(PackingPeer(list), inventory, list, arrivals);
  if (name == "bestfit") return fill_with(BestFitPeer(list), inventory, list, arrivals);
  if (name == "fgd") {
    return fill_with(FgdPeer(list, inventory.nodes.size()), inventory, list, arrivals);
  }
  throw std::runtime_error("no policy '" + name + "'");
}

}  // namespace berth::openb
