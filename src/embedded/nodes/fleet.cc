#include "embedded/nodes/fleet.h"

#include <algorithm>
#include <set>

#include "embedded/nodes/fault.h"
#include "kinds/names.h"
#include "kinds/products.h"
#include "kinds/readers.h"
#include "text/rfc3339.h"
#include "text/selector.h"
#include "text/yaml.h"

namespace berth::sim {

namespace {

using text::Decoder;
using text::Value;

constexpr std::int64_t kGi = std::int64_t{1} << 30;
constexpr int kDefaultGpus = 8;
constexpr std::string_view kDefaultModel = "NVIDIA-H100-80GB-HBM3";

// The short names that people say, beside those of the product table.
std::string full_model(std::string_view word) {
  if (word == "H100") return "NVIDIA-H100-80GB-HBM3";
  if (word == "A100") return "NVIDIA-A100-SXM4-80GB";
  if (word == "V100") return "Tesla-V100-SXM2-32GB";
  if (word == "B300") return "NVIDIA-B300-SXM6-AC";
  const kinds::Product* product = kinds::find_product(word);
  return std::string(product == nullptr ? word : product->name);
}

// What a machine with this model usually has, for each of its GPUs.
struct PerGpu {
  int cpus;
  std::int64_t memory_gi;
};
PerGpu usual_machine(const kinds::Product* product) {
  if (product == nullptr) return {12, 64};
  if (product->name.find("-GB") != std::string_view::npos) return {36, 240};
  if (product->name.find("-GH") != std::string_view::npos) return {72, 480};
  if (product->nvlink) return {24, 256};
  return {12, 64};
}

constexpr std::pair<std::string_view, model::NumaPolicy> kFleetNumaPolicies[] = {
    {"none", model::NumaPolicy::kNone},
    {"best-effort", model::NumaPolicy::kBestEffort},
    {"restricted", model::NumaPolicy::kRestricted},
    {"single-numa-node", model::NumaPolicy::kSingleNumaNode}};
constexpr std::pair<std::string_view, model::NumaScope> kFleetNumaScopes[] = {
    {"container", model::NumaScope::kContainer}, {"pod", model::NumaScope::kPod}};

bool good_effect(std::string_view effect) {
  return effect == "NoSchedule" || effect == "PreferNoSchedule" || effect == "NoExecute";
}

constexpr text::Field<Taint> kTaintFields[] = {
    text::required(text::field<&Taint::key>("key")),
    text::field<&Taint::value>("value"),
    text::required(text::field<&Taint::effect>("effect")),
};

// {key, value, effect}, or "key=value:Effect" as kubectl spells it.
void read_pool_taint(const Value& v, Taint& out, Decoder& d) {
  const std::size_t before = d.errors();
  if (v.is_string()) {
    const std::string_view word = v.string();
    const std::size_t colon = word.rfind(':');
    if (colon == std::string_view::npos) return d.mismatch(v, "key=value:Effect");
    const std::string_view left = word.substr(0, colon);
    const std::size_t equals = left.find('=');
    out.key = left.substr(0, equals);
    if (equals != std::string_view::npos) out.value = left.substr(equals + 1);
    out.effect = word.substr(colon + 1);
  } else {
    decode_object(v, kTaintFields, out, d);
  }
  if (d.errors() != before) return;
  if (!text::validate_label_key(out.key).ok()) {
    d.error(v, "the key " + kinds::quoted(out.key), "a label key");
  } else if (!text::validate_label_value(out.value).ok()) {
    d.error(v, "the value " + kinds::quoted(out.value), "a label value");
  } else if (!good_effect(out.effect)) {
    d.error(v, "the effect " + kinds::quoted(out.effect),
            "NoSchedule, PreferNoSchedule or NoExecute");
  }
}

void read_pool_labels(const Value& v, std::map<std::string, std::string>& out, Decoder& d) {
  if (!v.is_object()) return d.mismatch(v, "an object of strings");
  for (const text::Member& member : v.members()) {
    Decoder::Step step(d, member.key);
    if (!text::validate_label_key(member.key).ok()) {
      d.error(member.value, "the key " + kinds::quoted(member.key), "a label key");
    } else if (!member.value.is_string() ||
               !text::validate_label_value(member.value.string()).ok()) {
      d.mismatch(member.value, "a label value (a string of at most 63 letters, digits, . _ -)");
    } else {
      out[std::string(member.key)] = member.value.string();
    }
  }
}

void read_domain_name(const Value& v, std::string& out, Decoder& d) {
  if (!v.is_string() || !text::validate_label_value(v.string()).ok()) {
    return d.mismatch(v, "a label value");
  }
  out = v.string();
}

struct PoolRead {
  Pool pool;
  int gpus = -1, nvlink = -1;
  std::int64_t gpu_memory_bytes = -1;
};

template <auto Member, auto Reader = text::internal::DefaultReader{}>
void read_pool_member(const Value& v, PoolRead& out, Decoder& d) {
  Reader(v, out.pool.*Member, d);
}

constexpr auto read_taints = kinds::list_of<read_pool_taint>;

template <std::int64_t Least>
void read_amount(const Value& v, std::int64_t& out, Decoder& d, bool milli) {
  const std::size_t before = d.errors();
  std::int64_t amount = 0;
  (milli ? text::read_quantity_milli : text::read_quantity_value)(v, amount, d);
  if (d.errors() != before) return;
  if (amount < Least || amount > kinds::kMaxAmount) {
    return d.mismatch(v, milli ? "a quantity of cpu from 100m" : "a quantity of bytes from 1Mi");
  }
  out = amount;
}

using P = PoolRead;
constexpr text::Field<P> kPoolFields[] = {
    text::required(text::custom<P>("name", read_pool_member<&Pool::name>)),
    text::custom<P>("count", read_pool_member<&Pool::count, text::int_between<1, kMaxFleetNodes>>),
    text::custom<P>("model", read_pool_member<&Pool::model>),
    text::field<&P::gpus, text::int_between<0, model::kMaxGpusPerNode>>("gpus"),
    text::field<&P::nvlink, text::int_between<0, model::kMaxGpusPerNode>>("nvlink"),
    text::custom<P>("racks", read_pool_member<&Pool::racks, text::int_between<1, kMaxFleetNodes>>),
    text::custom<P>("zone", read_pool_member<&Pool::zone, read_domain_name>),
    text::custom<P>("block", read_pool_member<&Pool::block, read_domain_name>),
    text::custom<P>("labels", read_pool_member<&Pool::labels, read_pool_labels>),
    text::custom<P>("taints", read_pool_member<&Pool::taints, read_taints>),
    text::custom<P>("cpu", [](const Value& v, P& out,
                              Decoder& d) { read_amount<100>(v, out.pool.cpu_milli, d, true); }),
    text::custom<P>("memory",
                    [](const Value& v, P& out, Decoder& d) {
                      read_amount<1 << 20>(v, out.pool.memory_bytes, d, false);
                    }),
    text::custom<P>("storage",
                    [](const Value& v, P& out, Decoder& d) {
                      read_amount<1 << 20>(v, out.pool.storage_bytes, d, false);
                    }),
    text::custom<P>("gpuMemory",
                    [](const Value& v, P& out, Decoder& d) {
                      read_amount<1 << 20>(v, out.gpu_memory_bytes, d, false);
                    }),
    text::custom<P>("pods", read_pool_member<&Pool::pods, text::int_between<1, 250>>),
    text::custom<P>("shares",
                    read_pool_member<&Pool::shares, text::int_between<1, model::kMaxSharesPerGpu>>),
    text::custom<P>("mig", read_pool_member<&Pool::mig>),
    text::custom<P>("numaPolicy",
                    read_pool_member<&Pool::numa_policy, text::one_of<kFleetNumaPolicies>>),
    text::custom<P>("numaScope",
                    read_pool_member<&Pool::numa_scope, text::one_of<kFleetNumaScopes>>),
};

void fill_pool_mig(const Value& v, Pool& pool, const kinds::Product* product, Decoder& d) {
  if (pool.mig.empty()) return;
  Decoder::Step step(d, "mig");
  const int slices = product == nullptr ? 7 : product->mig_slices;
  if (slices == 0) {
    return d.error(v, "the profile " + kinds::quoted(pool.mig),
                   "no profile: " + pool.model + " has no MIG");
  }
  pool.mig_slots = kinds::mig_slots_per_gpu(pool.mig, slices, pool.gpu_memory_mib);
  if (pool.mig_slots == 0) {
    return d.error(v, kinds::quoted(pool.mig), "a MIG profile such as 1g.10gb");
  }
  pool.mig_slots = std::min(pool.mig_slots, 8);
  if (pool.shares > 1) d.error(v, "mig and shares", "one of the two");
}

// Fills in what the file leaves out.
void complete_pool(const Value& v, PoolRead& read, Decoder& d) {
  Pool& pool = read.pool;
  if (pool.model.empty() && read.gpus > 0) pool.model = kDefaultModel;
  if (pool.model.empty()) {
    pool.gpus = 0;
  } else {
    pool.model = full_model(pool.model);
    const kinds::Product* product = kinds::find_product(pool.model);
    Decoder::Step step(d, "model");
    if (!text::validate_label_value(pool.model).ok()) {
      return d.error(v, kinds::quoted(pool.model), "a product name, as NVIDIA-H100-80GB-HBM3");
    }
    if (product == nullptr && read.gpu_memory_bytes < 0) {
      return d.error(v, kinds::quoted(pool.model),
                     "a known product, as NVIDIA-H100-80GB-HBM3 or L4, or gpuMemory beside it");
    }
    pool.gpus = read.gpus >= 0                                ? read.gpus
                : product != nullptr && product->per_node > 0 ? product->per_node
                                                              : 1;
    pool.gpu_memory_mib =
        read.gpu_memory_bytes >= 0 ? read.gpu_memory_bytes >> 20 : product->memory_mib;
    pool.nvlink = read.nvlink >= 0                        ? read.nvlink
                  : product != nullptr && product->nvlink ? pool.gpus
                                                          : 0;
  }
  const kinds::Product* product = kinds::find_product(pool.model);
  if (pool.gpus == 0) {
    pool.model.clear();
    pool.nvlink = 0;
  }
  if (pool.nvlink > pool.gpus) {
    Decoder::Step step(d, "nvlink");
    d.error(v, std::to_string(pool.nvlink),
            "at most the number of gpus, " + std::to_string(pool.gpus));
  }
  if (pool.nvlink == 1) pool.nvlink = 0;  // a clique of one is none
  const PerGpu usual = usual_machine(product);
  if (pool.cpu_milli == 0) pool.cpu_milli = pool.gpus == 0 ? 32'000 : 1000 * pool.gpus * usual.cpus;
  if (pool.memory_bytes == 0) {
    pool.memory_bytes = (pool.gpus == 0 ? 128 : pool.gpus * usual.memory_gi) * kGi;
  }
  if (pool.storage_bytes == 0) pool.storage_bytes = 1024 * kGi;
  fill_pool_mig(v, pool, product, d);
}

void read_pool(const Value& v, Pool& out, Decoder& d) {
  PoolRead read;
  const std::size_t before = d.errors();
  decode_object(v, kPoolFields, read, d);
  if (d.errors() != before) return;
  if (!kinds::is_dns_label(read.pool.name) || read.pool.name.size() > 50) {
    Decoder::Step step(d, "name");
    return d.error(v, kinds::quoted(read.pool.name),
                   "a DNS label of at most 50 characters, as a100");
  }
  read.pool.racks = std::min(read.pool.racks, read.pool.count);
  complete_pool(v, read, d);
  out = std::move(read.pool);
}

struct FleetRead {
  std::vector<Pool> pools;
  const Value* faults = nullptr;
};
constexpr auto read_pools = kinds::list_of<read_pool>;
constexpr text::Field<FleetRead> kFleetFields[] = {
    text::required(text::field<&FleetRead::pools, read_pools>("pools")),
    text::custom<FleetRead>("faults",
                            [](const Value& v, FleetRead& out, Decoder&) { out.faults = &v; }),
};

void check_pools(const Value& root, const std::vector<Pool>& pools, Decoder& d) {
  Decoder::Step step(d, "pools");
  std::size_t nodes = 0;
  std::set<std::string> names;
  for (const Pool& pool : pools) {
    nodes += static_cast<std::size_t>(pool.count);
    if (!names.insert(pool.name).second) {
      d.error(root, "the pool " + kinds::quoted(pool.name) + " twice", "each name once");
    }
  }
  if (nodes == 0) d.error(root, "no nodes", "at least one pool");
  if (nodes > kMaxFleetNodes) {
    d.error(root, std::to_string(nodes) + " nodes", "at most " + std::to_string(kMaxFleetNodes));
  }
}

}  // namespace

std::string Pool::node_name(int i) const { return name + '-' + std::to_string(i); }

std::string Pool::rack_of(int i) const {
  const std::int64_t rack = std::int64_t{i} * racks / std::max(count, 1);
  return name + "-rack" + std::to_string(rack);
}

std::size_t Fleet::nodes() const {
  std::size_t out = 0;
  for (const Pool& pool : pools) out += static_cast<std::size_t>(pool.count);
  return out;
}

std::size_t Fleet::gpus() const {
  std::size_t out = 0;
  for (const Pool& pool : pools) {
    out += static_cast<std::size_t>(pool.count) * static_cast<std::size_t>(pool.gpus);
  }
  return out;
}

namespace {

template <class T>
std::string one_of_names(std::span<const text::Field<T>> fields) {
  std::string out = "one of ";
  for (bool first = true; const text::Field<T>& field : fields) {
    out += (first ? "" : ", ") + std::string(field.name);
    first = false;
  }
  return out;
}

}  // namespace

Result<Fleet> parse_fleet(std::string_view yaml) {
  text::YamlOptions options;
  options.limits.max_bytes = 16 * 1024 * 1024;
  BERTH_TRY(const std::vector<text::Document> documents, text::parse_yaml(yaml, options));
  if (documents.size() != 1) {
    return invalid("found " + std::to_string(documents.size()) +
                   " documents, want one with pools and, maybe, faults");
  }
  const Value& root = documents[0].root();
  Decoder d;
  FleetRead read;
  decode_object(root, kFleetFields, read, d);
  if (d.ok()) check_pools(root, read.pools, d);
  Fleet fleet;
  fleet.pools = std::move(read.pools);
  if (d.ok() && read.faults != nullptr) {
    Decoder::Step step(d, "faults");
    read_faults(*read.faults, fleet, d);
  }
  // A name that nobody knows is a mistake here, not something to step over.
  for (const text::Issue& issue : d.issues()) {
    if (issue.severity != text::Issue::kWarning) continue;
    text::Issue shown = issue;
    const bool of_pool =
        shown.path.starts_with("pools[") && shown.path.find("].") + 2 == shown.path.rfind('.') + 1;
    if (shown.allowed.empty() && of_pool) shown.allowed = one_of_names<P>(kPoolFields);
    if (shown.allowed.empty() && shown.path.find('.') == std::string::npos) {
      shown.allowed = one_of_names<FleetRead>(kFleetFields);
    }
    return invalid(shown.message());
  }
  if (!d.ok()) return d.to_error();
  return fleet;
}

Fleet fleet_of_gpus(int gpus) {
  gpus = std::clamp(gpus, 0, static_cast<int>(kDefaultGpus * (kMaxFleetNodes - 1)));
  Fleet fleet;
  const auto add = [&fleet](std::string name, int count, int per_node) {
    PoolRead read;
    read.pool.name = std::move(name);
    read.pool.count = count;
    read.pool.racks = (count + 7) / 8;  // of eight nodes each
    if (per_node > 0) read.pool.model = kDefaultModel;
    read.gpus = per_node;
    Decoder d;
    complete_pool(Value(), read, d);
    fleet.pools.push_back(std::move(read.pool));
  };
  if (gpus >= kDefaultGpus) add("gpu", gpus / kDefaultGpus, kDefaultGpus);
  if (gpus % kDefaultGpus != 0) add("rest", 1, gpus % kDefaultGpus);
  if (gpus == 0) add("cpu", 1, 0);
  return fleet;
}

}  // namespace berth::sim
