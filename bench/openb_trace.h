// The openb trace: GPU nodes and pod lists of a production cluster, read and checked.
//
// A list may lack the columns after gpu_milli (the multigpu lists do); a missing gpu_spec means any
// model. Everything that is not a plain non-negative number, a known column or a node that can
// exist is an error that names the file and the line: a benchmark on half-read data would look
// plausible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace berth::openb {

inline constexpr int kMaxGpus = 8;
inline constexpr int32_t kWholeGpu = 1000;
inline constexpr uint64_t kAnyModel = ~uint64_t{0};

struct NodeSpec {
  int32_t cpu_milli = 0;
  int32_t memory_mib = 0;
  int16_t gpus = 0;
  uint8_t model = 0;      // index into Inventory::models
  uint16_t class_id = 0;  // index into Inventory::classes
};

// Nodes that cannot be told apart when empty, memory aside.
struct NodeClass {
  uint8_t model = 0;
  int16_t gpus = 0;
  int32_t cpu_milli = 0;
  int32_t nodes = 0;
};

struct Inventory {
  std::vector<std::string> models;
  std::vector<NodeClass> classes;
  std::vector<NodeSpec> nodes;
  int64_t gpu_milli = 0;

  // The bit set of a `|` list of models; unknown names match no node. Empty text: any model.
  uint64_t model_mask(std::string_view spec) const;
};

struct Shape {
  int32_t cpu_milli = 0;
  int32_t gpu_milli = 0;  // per device
  int32_t num_gpu = 0;
  uint64_t model_mask = kAnyModel;

  int64_t total_gpu_milli() const { return int64_t{gpu_milli} * num_gpu; }
  bool operator==(const Shape&) const = default;
};

struct ShapeHash {
  size_t operator()(const Shape& shape) const;
};

struct Pod {
  uint32_t shape = 0;  // index into PodList::shapes
  int32_t memory_mib = 0;
};

struct PodList {
  std::string name;
  std::vector<Shape> shapes;
  std::vector<uint32_t> shape_counts;
  std::vector<Pod> pods;  // sorted by pod name
};

// All three throw std::runtime_error; the program prints the message and ends.
Inventory load_inventory(const std::string& data_dir);
PodList load_pod_list(const std::string& data_dir, const std::string& name,
                      const Inventory& inventory);
std::vector<std::string> list_names(const std::string& data_dir);

// splitmix64: the same sequence on every machine, unlike the standard distributions.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 0x1234567ULL) {}
  uint64_t next();
  uint64_t below(uint64_t bound) { return next() % bound; }

 private:
  uint64_t state_;
};

// One experiment: the arrival order (pods of the list, shuffled, then resampled up to `ratio` times
// the GPUs of the inventory, or thinned down to it) and the node order that breaks ties.
struct Arrivals {
  std::vector<uint32_t> pods;
  std::vector<uint32_t> node_order;
};
Arrivals make_arrivals(const Inventory& inventory, const PodList& list, uint64_t seed,
                       double ratio);

}  // namespace berth::openb
