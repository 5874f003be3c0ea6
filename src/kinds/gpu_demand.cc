#include "kinds/gpu_demand.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace berth::kinds {

namespace {

using model::GpuDemandSpec;
using text::Decoder;
using text::Value;

constexpr std::string_view kWhole = "nvidia.com/gpu";
constexpr std::string_view kShared = "nvidia.com/gpu.shared";
constexpr std::string_view kFraction = "gpu-fraction";
constexpr std::string_view kMemory = "gpu-memory";
constexpr std::string_view kDevices = "gpu-fraction-num-devices";
constexpr std::int64_t kMaxCount = 1'000'000;  // far above any node; keeps sums in range
constexpr std::int64_t kMib = 1024 * 1024;

struct Asked {
  std::string how;  // for people
  GpuDemandSpec demand;
};

void ask_resource(const Value& object, std::string_view name, std::int64_t amount,
                  std::vector<Asked>& asked, Decoder& d) {
  if (amount == 0) return;
  if (amount > kMaxCount) {
    Decoder::Step step(d, name);
    d.error(object, std::to_string(amount), "at most 1000000");
  }
  GpuDemandSpec demand;
  demand.count = static_cast<int>(std::min(amount, kMaxCount));
  demand.kind = name == kWhole    ? GpuDemandSpec::Kind::kWhole
                : name == kShared ? GpuDemandSpec::Kind::kShared
                                  : GpuDemandSpec::Kind::kMig;
  if (demand.kind == GpuDemandSpec::Kind::kMig) demand.mig = name;
  asked.push_back({std::string(name), std::move(demand)});
}

// Readers of annotations: false when there is one that cannot be read.
bool ask_fraction(const Value& object, const Meta& meta, std::vector<Asked>& asked, Decoder& d) {
  const std::string* text = meta.annotation(kFraction);
  if (text == nullptr) return true;
  int milli = 0;
  bool exact = true;
  if (!parse_fraction(*text, milli, exact)) {
    annotation_error(object, kFraction, "a decimal number above 0 and at most 1, as \"0.5\"", d);
    return false;
  }
  if (!exact)
    annotation_warning(object, kFraction, "at most three decimals; the rest is dropped", d);
  GpuDemandSpec demand;
  demand.kind = GpuDemandSpec::Kind::kFraction;
  demand.count = 1;
  demand.milli = milli;
  asked.push_back({"annotation gpu-fraction", std::move(demand)});
  return true;
}

bool ask_memory(const Value& object, const Meta& meta, std::vector<Asked>& asked, Decoder& d) {
  const std::string* text = meta.annotation(kMemory);
  if (text == nullptr) return true;
  std::int64_t mib = 0;
  if (!parse_int(*text, mib) || mib < 1 || mib > 100'000'000) {
    annotation_error(object, kMemory, "a whole number of MiB, 1..100000000", d);
    return false;
  }
  GpuDemandSpec demand;
  demand.kind = GpuDemandSpec::Kind::kMemory;
  demand.count = 1;
  demand.memory_mib = mib;
  asked.push_back({"annotation gpu-memory", std::move(demand)});
  return true;
}

bool read_device_count(const Value& object, const Meta& meta, GpuDemandSpec& demand, Decoder& d) {
  const std::string* text = meta.annotation(kDevices);
  if (text == nullptr) return true;
  std::int64_t count = 0;
  if (!parse_int(*text, count) || count < 1 || count > model::kMaxGpusPerNode) {
    annotation_error(object, kDevices, "a whole number 1..16", d);
    return false;
  }
  const bool parts =
      demand.kind == GpuDemandSpec::Kind::kFraction || demand.kind == GpuDemandSpec::Kind::kMemory;
  if (!parts) annotation_error(object, kDevices, "gpu-fraction or gpu-memory beside it", d);
  demand.count = static_cast<int>(count);
  return parts;
}

// What annotations alone ask for, where they cannot be read: so many whole GPUs at the most.
GpuDemandSpec whole_devices(int count) {
  GpuDemandSpec demand;
  demand.kind = GpuDemandSpec::Kind::kFraction;  // also of a node that shares its GPUs
  demand.milli = model::kMilliPerGpu;
  demand.count = std::max(1, count);
  return demand;
}

// Of several resources the first is the demand. The others count too: slices as plain resources of
// the node, shares with the whole GPUs.
void keep_others(std::vector<Asked>& asked, model::Amounts& requests) {
  GpuDemandSpec& first = asked.front().demand;
  for (std::size_t i = 1; i < asked.size(); ++i) {
    const GpuDemandSpec& other = asked[i].demand;
    if (other.kind == GpuDemandSpec::Kind::kMig) {
      requests.insert_or_assign(other.mig, other.count);
    } else if (other.kind == GpuDemandSpec::Kind::kShared) {
      first.count = static_cast<int>(std::min<std::int64_t>(first.count + other.count, kMaxCount));
    }
  }
}

bool amounts_read(const Containers& containers) {
  const auto read = [](const Container& c) { return c.resources.read; };
  return std::all_of(containers.init.begin(), containers.init.end(), read) &&
         std::all_of(containers.app.begin(), containers.app.end(), read);
}

// In start order: sidecars, then app containers. A plain init container that alone asks for more
// than all of them together sets the request, and its devices are used again afterwards: it then
// stands for the pod. The numbers always add up to the demand.
std::vector<int> whole_by_container(const Containers& containers, int count) {
  std::vector<int> out;
  const auto take = [&out](const Container& c) {
    const auto it = c.resources.requests.find(kWhole);
    if (it != c.resources.requests.end() && it->second > 0) {
      out.push_back(static_cast<int>(std::min(it->second, kMaxCount)));
    }
  };
  for (const Container& c : containers.init) {
    if (c.restarts_always) take(c);
  }
  for (const Container& c : containers.app) take(c);
  if (std::accumulate(out.begin(), out.end(), std::int64_t{0}) != count) out = {count};
  return out;
}

void read_models(const Value& object, const Meta& meta, model::PodSpec& out, Decoder& d) {
  constexpr std::string_view kKey = "berth.dev/gpu-model";
  const std::string* text = meta.annotation(kKey);
  if (text == nullptr) return;
  for (const std::string_view part : split(*text, ",")) {
    const std::string_view name = trim(part);
    if (name.empty()) return annotation_error(object, kKey, "a comma list of GPU products", d);
    if (std::find(out.gpu_models.begin(), out.gpu_models.end(), name) == out.gpu_models.end()) {
      out.gpu_models.emplace_back(name);
    }
  }
}

void read_min_memory(const Value& object, const Meta& meta, model::PodSpec& out, Decoder& d) {
  constexpr std::string_view kKey = "berth.dev/gpu-memory-min";
  const std::string* text = meta.annotation(kKey);
  if (text == nullptr) return;
  const auto quantity = text::parse_quantity(*text);
  if (!quantity.ok() || quantity->is_negative() || quantity->value() > kMaxAmount) {
    return annotation_error(object, kKey, "a quantity such as 40Gi", d);
  }
  if (!quantity->is_zero() && quantity->value() < kMib) {
    annotation_warning(object, kKey, "a quantity in bytes, as 40Gi or 40000Mi", d);
  }
  out.gpu_min_memory_mib = (quantity->value() + kMib - 1) / kMib;
}

void read_indices(const Value& object, const Meta& meta, model::PodSpec& out, Decoder& d) {
  constexpr std::string_view kKey = "berth.dev/gpus";
  const std::string* text = meta.annotation(kKey);
  if (text == nullptr || text->empty()) return;
  std::vector<int> indices;
  for (const std::string_view part : split(*text, ",")) {
    std::int64_t index = 0;
    if (!parse_int(trim(part), index) || index >= model::kMaxGpusPerNode) {
      return annotation_error(object, kKey, "a comma list of GPU indices 0..15", d);
    }
    indices.push_back(static_cast<int>(index));
  }
  std::sort(indices.begin(), indices.end());
  if (out.node_name.empty()) {
    return annotation_warning(object, kKey, "a pod with spec.nodeName; it is not read here", d);
  }
  out.gpu_indices = std::move(indices);
}

}  // namespace

bool parse_fraction(std::string_view text, int& milli, bool& exact) {
  const std::size_t dot = text.find('.');
  const std::string_view whole = text.substr(0, dot);
  const std::string_view part = dot == std::string_view::npos ? "" : text.substr(dot + 1);
  if (whole.empty() && part.empty()) return false;
  const auto digits = [](std::string_view s) {
    return std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (!digits(whole) || !digits(part) || whole.size() > 9) return false;
  std::int64_t units = 0;
  if (!whole.empty() && !parse_int(whole, units)) return false;
  int thousandths = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    thousandths = thousandths * 10 + (i < part.size() ? part[i] - '0' : 0);
  }
  exact = part.find_first_not_of('0', 3) == std::string_view::npos;
  const std::int64_t total = units * model::kMilliPerGpu + thousandths;
  if (total < 1 || total > model::kMilliPerGpu || (total == model::kMilliPerGpu && !exact)) {
    return false;
  }
  milli = static_cast<int>(total);
  return true;
}

bool read_gpu_demand(const Value& object, const Meta& meta, const Containers& containers,
                     model::PodSpec& out, Decoder& d) {
  std::vector<Asked> asked;
  for (auto it = out.requests.begin(); it != out.requests.end();) {
    const bool gpu = is_gpu_resource(it->first);
    if (gpu) ask_resource(object, it->first, it->second, asked, d);
    it = gpu ? out.requests.erase(it) : std::next(it);
  }
  const bool by_resource = !asked.empty();
  const bool by_fraction = ask_fraction(object, meta, asked, d);
  bool read = ask_memory(object, meta, asked, d) && by_fraction;
  if (asked.size() > 1) {
    std::string how;
    for (const Asked& a : asked) how += (how.empty() ? "" : " and ") + a.how;
    d.error(object, how, "one way of asking for GPUs");
    read = false;
  }
  if (by_resource) keep_others(asked, out.requests);
  if (!asked.empty()) out.gpu = std::move(asked.front().demand);
  GpuDemandSpec parts = out.gpu;
  read = read_device_count(object, meta, parts, d) && read;
  if (!by_resource) out.gpu = read ? std::move(parts) : whole_devices(parts.count);
  if (by_resource) read = amounts_read(containers);
  if (out.gpu.kind == GpuDemandSpec::Kind::kWhole) {
    out.gpus_by_container = whole_by_container(containers, out.gpu.count);
  }
  read_models(object, meta, out, d);
  read_min_memory(object, meta, out, d);
  read_indices(object, meta, out, d);
  return read;
}

}  // namespace berth::kinds
