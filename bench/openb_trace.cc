#include "openb_trace.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace berth::openb {
namespace {

constexpr std::string_view kNodeFile = "openb_node_list_gpu_node.csv";
constexpr std::string_view kListPrefix = "openb_pod_list_";
constexpr std::string_view kListSuffix = ".csv";

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// A CSV file without quoting, read row by row; columns are asked for by name.
class CsvFile {
 public:
  explicit CsvFile(std::string path) : path_(std::move(path)), in_(path_) {
    if (!in_) throw std::runtime_error(path_ + ": cannot be opened");
    std::string header;
    if (!read_line(header)) throw std::runtime_error(path_ + ": is empty");
    header_ = split(header, ',');
  }

  bool next() {
    std::string line;
    do {
      if (!read_line(line)) return false;
    } while (line.empty());
    row_ = split(line, ',');
    if (row_.size() != header_.size()) {
      fail("has " + std::to_string(row_.size()) + " columns, the header " +
           std::to_string(header_.size()));
    }
    return true;
  }

  int required(const std::string& name) const {
    const int at = optional(name);
    if (at < 0) throw std::runtime_error(path_ + ": has no column " + name);
    return at;
  }

  int optional(const std::string& name) const {
    const auto found = std::find(header_.begin(), header_.end(), name);
    return found == header_.end() ? -1 : static_cast<int>(found - header_.begin());
  }

  const std::string& text(int column) const { return row_[static_cast<size_t>(column)]; }

  int32_t number(int column, int32_t most) const {
    const std::string& field = text(column);
    int32_t value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error != std::errc{} || end != field.data() + field.size() || value < 0 || value > most) {
      fail("column " + header_[static_cast<size_t>(column)] + " is '" + field +
           "', expected a number from 0 to " + std::to_string(most));
    }
    return value;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(path_ + ":" + std::to_string(line_) + ": " + what);
  }

 private:
  bool read_line(std::string& line) {
    if (!std::getline(in_, line)) return false;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    ++line_;
    return true;
  }

  std::string path_;
  std::ifstream in_;
  int line_ = 0;
  std::vector<std::string> header_;
  std::vector<std::string> row_;
};

struct NamedPod {
  std::string name;
  size_t line = 0;
  Pod pod;
};

constexpr int32_t kMostMilli = 1'000'000'000;

uint8_t intern_model(Inventory& inventory, const std::string& model) {
  const auto found = std::find(inventory.models.begin(), inventory.models.end(), model);
  if (found != inventory.models.end()) {
    return static_cast<uint8_t>(found - inventory.models.begin());
  }
  inventory.models.push_back(model);
  return static_cast<uint8_t>(inventory.models.size() - 1);
}

uint16_t intern_class(Inventory& inventory, const NodeSpec& node) {
  for (size_t at = 0; at < inventory.classes.size(); ++at) {
    NodeClass& known = inventory.classes[at];
    if (known.model == node.model && known.gpus == node.gpus && known.cpu_milli == node.cpu_milli) {
      ++known.nodes;
      return static_cast<uint16_t>(at);
    }
  }
  inventory.classes.push_back({node.model, node.gpus, node.cpu_milli, 1});
  return static_cast<uint16_t>(inventory.classes.size() - 1);
}

void require_directory(const std::string& data_dir) {
  if (std::filesystem::is_directory(data_dir)) return;
  throw std::runtime_error("the data folder '" + data_dir +
                           "' does not exist; name the folder of the openb CSV files with --data");
}

Shape read_shape(const CsvFile& csv, const Inventory& inventory, const std::string& spec, int cpu,
                 int num_gpu, int gpu_milli) {
  Shape shape;
  shape.cpu_milli = csv.number(cpu, kMostMilli);
  shape.num_gpu = csv.number(num_gpu, kMaxGpus);
  shape.gpu_milli = csv.number(gpu_milli, kWholeGpu);
  if (shape.num_gpu == 0 && shape.gpu_milli != 0) csv.fail("asks for gpu_milli of no GPU");
  if (shape.num_gpu > 0 && shape.gpu_milli == 0) csv.fail("asks for GPUs but no gpu_milli");
  if (shape.num_gpu > 1 && shape.gpu_milli != kWholeGpu) csv.fail("asks for parts of many GPUs");
  if (shape.num_gpu > 0) shape.model_mask = inventory.model_mask(spec);
  return shape;
}

// The other lists are named so that an operator who mistyped sees the choice.
void require_list(const std::string& data_dir, const std::string& path, const std::string& name) {
  if (std::filesystem::exists(path)) return;
  std::string known;
  for (const std::string& other : list_names(data_dir)) known += " " + other;
  throw std::runtime_error("no pod list '" + name + "' in '" + data_dir + "'; there are:" + known);
}

}  // namespace

size_t ShapeHash::operator()(const Shape& shape) const {
  uint64_t hash = static_cast<uint64_t>(shape.cpu_milli) << 20U;
  hash ^= static_cast<uint64_t>(shape.gpu_milli) * 8191U + static_cast<uint64_t>(shape.num_gpu);
  hash ^= shape.model_mask * 0x9E3779B97F4A7C15ULL;
  return static_cast<size_t>((hash ^ (hash >> 31U)) * 0xBF58476D1CE4E5B9ULL);
}

uint64_t Inventory::model_mask(std::string_view spec) const {
  if (spec.empty()) return kAnyModel;
  uint64_t mask = 0;
  for (const std::string& part : split(spec, '|')) {
    const auto found = std::find(models.begin(), models.end(), part);
    if (found != models.end()) mask |= uint64_t{1} << static_cast<unsigned>(found - models.begin());
  }
  return mask;
}

Inventory load_inventory(const std::string& data_dir) {
  require_directory(data_dir);
  CsvFile csv(data_dir + "/" + std::string(kNodeFile));
  const int cpu = csv.required("cpu_milli");
  const int memory = csv.required("memory_mib");
  const int gpu = csv.required("gpu");
  const int model = csv.required("model");
  Inventory inventory;
  while (csv.next()) {
    NodeSpec node;
    node.cpu_milli = csv.number(cpu, kMostMilli);
    node.memory_mib = csv.number(memory, kMostMilli);
    node.gpus = static_cast<int16_t>(csv.number(gpu, kMaxGpus));
    node.model = intern_model(inventory, csv.text(model));
    if (inventory.models.size() > 64) csv.fail("names a 65th GPU model");
    node.class_id = intern_class(inventory, node);
    inventory.gpu_milli += int64_t{node.gpus} * kWholeGpu;
    inventory.nodes.push_back(node);
  }
  if (inventory.gpu_milli == 0) csv.fail("the inventory has no GPU");
  return inventory;
}

PodList load_pod_list(const std::string& data_dir, const std::string& name,
                      const Inventory& inventory) {
  require_directory(data_dir);
  const std::string path =
      data_dir + "/" + std::string(kListPrefix) + name + std::string(kListSuffix);
  require_list(data_dir, path, name);
  CsvFile csv(path);
  const int pod_name = csv.required("name");
  const int cpu = csv.required("cpu_milli");
  const int memory = csv.required("memory_mib");
  const int num_gpu = csv.required("num_gpu");
  const int gpu_milli = csv.required("gpu_milli");
  const int spec = csv.optional("gpu_spec");

  PodList list;
  list.name = name;
  std::unordered_map<Shape, uint32_t, ShapeHash> known;
  std::vector<NamedPod> rows;
  while (csv.next()) {
    const Shape shape = read_shape(csv, inventory, spec < 0 ? std::string() : csv.text(spec), cpu,
                                   num_gpu, gpu_milli);
    const auto [at, fresh] = known.try_emplace(shape, static_cast<uint32_t>(list.shapes.size()));
    if (fresh) {
      list.shapes.push_back(shape);
      list.shape_counts.push_back(0);
    }
    ++list.shape_counts[at->second];
    rows.push_back({csv.text(pod_name), rows.size(), {at->second, csv.number(memory, kMostMilli)}});
  }
  // Equal names keep the order of the file.
  std::sort(rows.begin(), rows.end(), [](const NamedPod& a, const NamedPod& b) {
    return a.name != b.name ? a.name < b.name : a.line < b.line;
  });
  for (const NamedPod& row : rows) list.pods.push_back(row.pod);
  const bool any_gpu = std::any_of(list.shapes.begin(), list.shapes.end(),
                                   [](const Shape& shape) { return shape.num_gpu > 0; });
  if (!any_gpu) csv.fail("no pod asks for a GPU");
  return list;
}

std::vector<std::string> list_names(const std::string& data_dir) {
  require_directory(data_dir);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(data_dir)) {
    const std::string file = entry.path().filename().string();
    if (file.starts_with(kListPrefix) && file.ends_with(kListSuffix)) {
      names.push_back(
          file.substr(kListPrefix.size(), file.size() - kListPrefix.size() - kListSuffix.size()));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

uint64_t Random::next() {
  state_ += 0x9E3779B97F4A7C15ULL;
  uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBULL;
  return mixed ^ (mixed >> 31U);
}

Arrivals make_arrivals(const Inventory& inventory, const PodList& list, uint64_t seed,
                       double ratio) {
  Random random(seed);
  const auto shuffle = [&random](std::vector<uint32_t>& items) {
    for (size_t left = items.size(); left > 1; --left) {
      std::swap(items[left - 1], items[random.below(left)]);
    }
  };
  Arrivals arrivals;
  arrivals.pods.resize(list.pods.size());
  std::iota(arrivals.pods.begin(), arrivals.pods.end(), 0U);
  shuffle(arrivals.pods);

  const auto demand_of = [&list](uint32_t pod) {
    return list.shapes[list.pods[pod].shape].total_gpu_milli();
  };
  const auto target = static_cast<int64_t>(ratio * static_cast<double>(inventory.gpu_milli));
  int64_t demand = 0;
  for (const uint32_t pod : arrivals.pods) demand += demand_of(pod);
  // The order is already random: dropping the tail deletes a uniformly random subset.
  while (demand > target) {
    demand -= demand_of(arrivals.pods.back());
    arrivals.pods.pop_back();
  }
  while (true) {
    const auto pod = static_cast<uint32_t>(random.below(list.pods.size()));
    if (demand + demand_of(pod) > target) break;
    demand += demand_of(pod);
    arrivals.pods.push_back(pod);
  }
  arrivals.node_order.resize(inventory.nodes.size());
  std::iota(arrivals.node_order.begin(), arrivals.node_order.end(), 0U);
  shuffle(arrivals.node_order);
  return arrivals;
}

}  // namespace berth::openb
