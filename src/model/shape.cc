#include "model/shape.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace berth::model {
namespace {

// Canonical bytes: numbers end where their last byte says and texts are length-prefixed, so that no
// two different specs share a key.
class KeyWriter {
 public:
  explicit KeyWriter(std::string buffer = {}) : out_(std::move(buffer)) {
    out_.resize(out_.capacity());
  }
  std::string take() {
    out_.resize(size_);
    return std::move(out_);
  }

  KeyWriter& add(std::int64_t value) {
    auto bits = static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
    char* at = room(10);
    for (; bits >= 0x80; bits >>= 7) *at++ = static_cast<char>(bits | 0x80);
    *at++ = static_cast<char>(bits);
    size_ = static_cast<std::size_t>(at - out_.data());
    return *this;
  }
  KeyWriter& add(const std::string& value) {
    add(static_cast<std::int64_t>(value.size()));
    std::memcpy(room(value.size()), value.data(), value.size());
    size_ += value.size();
    return *this;
  }
  KeyWriter& add(const Labels& labels) {
    add(static_cast<std::int64_t>(labels.size()));
    for (const auto& [key, value] : labels) add(key).add(value);
    return *this;
  }
  KeyWriter& add(const text::Selector& selector) {
    add(static_cast<std::int64_t>(selector.size()));
    for (const auto& r : selector) {
      add(r.key)
          .add(static_cast<std::int64_t>(r.op))
          .add(static_cast<std::int64_t>(r.values.size()));
      for (const auto& value : r.values) add(value);
    }
    return *this;
  }
  KeyWriter& add(const std::vector<NodeSelectorTerm>& terms) {
    add(static_cast<std::int64_t>(terms.size()));
    for (const auto& term : terms) add(term.labels).add(term.fields);
    return *this;
  }
  KeyWriter& add(const PodSet& set) {
    add(static_cast<std::int64_t>(set.namespaces.size()));
    for (const auto& ns : set.namespaces) add(ns);
    return add(set.all_namespaces).add(set.selector).add(set.match_nothing);
  }
  KeyWriter& add(const std::vector<PodAffinityTerm>& terms) {
    add(static_cast<std::int64_t>(terms.size()));
    for (const auto& term : terms) add(term.topology_key).add(term.pods).add(term.weight);
    return *this;
  }

 private:
  char* room(std::size_t bytes) {
    if (out_.size() - size_ < bytes) out_.resize(2 * out_.size() + bytes);
    return out_.data() + size_;
  }

  std::string out_;  // the first size_ bytes count
  std::size_t size_ = 0;
};

// The range of values that round up to the same step: 1/16 of the power of two below.
struct Rounded {
  std::int64_t least = 0, most = 0;
};
Rounded rounded(std::int64_t value, std::int64_t min_step) {
  if (value <= 0) return {};
  std::int64_t step = std::max(
      std::int64_t{1} << (std::bit_width(static_cast<std::uint64_t>(value)) - 1) >> 4, min_step);
  std::int64_t most = (value + step - 1) / step * step;
  return {most - step + 1, most};
}
constexpr std::int64_t kCpuStep = 50, kMilliStep = 10;

std::int64_t cpu_of(const PodSpec& pod) {
  auto it = pod.requests.find("cpu");
  return it == pod.requests.end() ? 0 : it->second;
}

void add_demand(KeyWriter& key, const PodSpec& pod, bool core) {
  key.add(core);
  const auto& gpu = pod.gpu;
  if (core) {
    key.add(rounded(cpu_of(pod), kCpuStep).most).add(rounded(gpu.milli, kMilliStep).most);
  } else {
    key.add(static_cast<std::int64_t>(pod.requests.size()));
    for (const auto& [name, amount] : pod.requests) key.add(name).add(amount);
    key.add(gpu.milli);
  }
  key.add(static_cast<std::int64_t>(gpu.kind)).add(gpu.count).add(gpu.memory_mib);
  key.add(gpu.mig).add(static_cast<std::int64_t>(pod.gpus_by_container.size()));
  for (int n : pod.gpus_by_container) key.add(n);
}

void add_rules(KeyWriter& key, const PodSpec& pod) {
  key.add(pod.node_selector).add(pod.required_nodes);
  key.add(static_cast<std::int64_t>(pod.preferred_nodes.size()));
  for (const auto& p : pod.preferred_nodes) key.add(p.weight).add(std::vector{p.term});
  key.add(static_cast<std::int64_t>(pod.tolerations.size()));
  for (const auto& t : pod.tolerations) {
    key.add(t.key).add(static_cast<std::int64_t>(t.op)).add(t.value);
    key.add(t.effect ? static_cast<std::int64_t>(*t.effect) : -1);
  }
  key.add(static_cast<std::int64_t>(pod.volumes.size()));
  for (const auto& v : pod.volumes) key.add(v.claim).add(v.node_terms);
  key.add(static_cast<std::int64_t>(pod.gpu_models.size()));
  for (const auto& m : pod.gpu_models) key.add(m);
  key.add(pod.gpu_min_memory_mib).add(pod.gpu.memory_mib);
  key.add(pod.gpu.kind != GpuDemandSpec::Kind::kNone);
}

std::string shape_key(const PodSpec& pod, bool quiet, std::string buffer) {
  KeyWriter key(std::move(buffer));
  key.add(quiet);
  add_demand(key, pod, false);
  add_rules(key, pod);
  key.add(pod.ns).add(pod.labels);
  key.add(pod.affinity).add(pod.anti_affinity);
  key.add(pod.preferred_affinity).add(pod.preferred_anti_affinity);
  key.add(static_cast<std::int64_t>(pod.spread.size()));
  for (const auto& s : pod.spread) {
    key.add(s.max_skew).add(s.topology_key).add(s.hard).add(s.pods).add(s.min_domains);
    key.add(s.honor_affinity).add(s.honor_taints);
  }
  key.add(static_cast<std::int64_t>(pod.host_ports.size()));
  for (const auto& p : pod.host_ports) key.add(p.protocol).add(p.ip).add(p.port);
  key.add(pod.terminating).add(pod.owner).add(pod.service).add(pod.queue).add(pod.priority_class);
  return key.take();
}

std::string counter_key(const Counter& counter) {
  KeyWriter key;
  key.add(static_cast<std::int64_t>(counter.kind)).add(counter.pods).add(counter.owner);
  key.add(counter.key).add(counter.living);
  return key.take();
}

// The table's live value for the key, or what make() gives. Dead entries are swept as the table
// grows, so that its size stays within a small factor of what is alive.
template <class Table, class Make>
auto find_or_make(Table& table, std::string key, Make&& make) {
  if (auto it = table.find(key); it != table.end()) {
    if (auto live = it->second.lock()) return live;
  }
  if (table.size() >= 1024 && table.size() == table.max_load()) {
    boost::unordered::erase_if(table, [](const auto& entry) { return entry.second.expired(); });
  }
  auto value = make();
  table.insert_or_assign(std::move(key), value);
  return value;
}

}  // namespace

bool tolerates(const Toleration& toleration, const Taint& taint) {
  if (toleration.effect && *toleration.effect != taint.effect) return false;
  if (toleration.key.empty()) return toleration.op == Toleration::Op::kExists;
  if (toleration.key != taint.key) return false;
  return toleration.op == Toleration::Op::kExists || toleration.value == taint.value;
}

bool matches(const PodSet& set, const std::string& ns, const Labels& labels) {
  if (set.match_nothing) return false;
  if (!set.all_namespaces &&
      std::find(set.namespaces.begin(), set.namespaces.end(), ns) == set.namespaces.end()) {
    return false;
  }
  return text::matches(set.selector, [&](std::string_view key) -> std::optional<std::string_view> {
    auto it = labels.find(key);
    if (it == labels.end()) return std::nullopt;
    return std::string_view(it->second);
  });
}

bool counts(const Counter& counter, const Shape& shape) {
  switch (counter.kind) {
    case Counter::Kind::kSet:
      return !(counter.living && shape.terminating) &&
             matches(counter.pods, shape.ns, shape.labels);
    case Counter::Kind::kOwner:
      return shape.owner == counter.owner;
    case Counter::Kind::kBars:
      return std::any_of(shape.bars.begin(), shape.bars.end(),
                         [&](const auto& bar) { return bar->serial == counter.serial; });
  }
  return false;
}

std::shared_ptr<const Demand> ShapeBook::intern_demand(const PodSpec& pod, bool core) {
  KeyWriter key;
  add_demand(key, pod, core);
  return find_or_make(demands_, key.take(), [&] {
    auto demand = std::make_shared<Demand>();
    demand->serial = ++*serial_;
    if (!core) demand->core = intern_demand(pod, true);
    for (const auto& [name, amount] : pod.requests) {
      if (name == "cpu") {
        demand->cpu = amount;
      } else if (core) {
        continue;
      } else if (name == "memory") {
        demand->memory = amount;
      } else if (name == "ephemeral-storage") {
        demand->ephemeral = amount;
      } else if (name != "pods" && amount > 0) {
        demand->extended.emplace_back(strings_->intern(name), amount);
      }
    }
    demand->kind = pod.gpu.kind;
    demand->count = pod.gpu.count;
    demand->milli = pod.gpu.milli;
    demand->memory_mib = pod.gpu.memory_mib;
    if (pod.gpu.kind == GpuDemandSpec::Kind::kMig) {
      demand->mig = strings_->intern(pod.gpu.mig);
      demand->mig_unusable = strings_->intern(mig_unusable(pod.gpu.mig));
    }
    demand->gpus_by_container = pod.gpus_by_container;
    if (core) {
      Rounded cpu = rounded(demand->cpu, kCpuStep), milli = rounded(demand->milli, kMilliStep);
      demand->cpu = cpu.least;
      demand->score_cpu = cpu.most;
      demand->milli = static_cast<int>(milli.least);
      demand->score_milli = static_cast<int>(milli.most);
    }
    return std::shared_ptr<const Demand>(std::move(demand));
  });
}

// A label that no node has tells no nodes apart; when one comes that has it, classes are made anew.
void ShapeBook::use_label(const std::string& key) {
  if (label_keys_.insert(key).second && strings_->find(key)) ++keys_version_;
}

void ShapeBook::use_labels(const text::Selector& selector) {
  for (const auto& r : selector) use_label(r.key);
}

std::shared_ptr<const NodeRules> ShapeBook::intern_rules(const PodSpec& pod) {
  KeyWriter key;
  add_rules(key, pod);
  return find_or_make(rules_, key.take(), [&] {
    auto rules = std::make_shared<NodeRules>();
    rules->serial = ++*serial_;
    rules->node_selector = pod.node_selector;
    rules->required_nodes = pod.required_nodes;
    rules->preferred_nodes = pod.preferred_nodes;
    rules->tolerations = pod.tolerations;
    rules->volumes = pod.volumes;
    rules->gpu_models = pod.gpu_models;
    rules->asks_gpu = pod.gpu.kind != GpuDemandSpec::Kind::kNone;
    rules->gpu_memory_mib =
        rules->asks_gpu ? std::max(pod.gpu_min_memory_mib, pod.gpu.memory_mib) : 0;
    for (const auto& [label, value] : pod.node_selector) use_label(label);
    for (const auto& term : pod.required_nodes) use_labels(term.labels);
    for (const auto& p : pod.preferred_nodes) use_labels(p.term.labels);
    for (const auto& v : pod.volumes) {
      for (const auto& term : v.node_terms) use_labels(term.labels);
    }
    return std::shared_ptr<const NodeRules>(std::move(rules));
  });
}

int ShapeBook::topology_key(const std::string& label, bool by_name) {
  const auto [it, fresh] =
      topology_key_ids_.emplace(label, static_cast<int>(topology_keys_.size()));
  if (fresh) {
    topology_keys_.push_back(label);
    if (by_name || strings_->find(label)) ++keys_version_;
  }
  return it->second;
}

CounterRef ShapeBook::intern_counter(Counter counter, News& news) {
  std::string key = counter_key(counter);
  if (const auto it = counter_keys_.find(key); it != counter_keys_.end()) {
    ++counters_[it->second].rules;
    return counters_[it->second].counter;
  }
  counter.serial = ++*serial_;
  if (free_counters_.empty()) {
    counter.index = static_cast<std::uint32_t>(counters_.size());
    counters_.emplace_back();
  } else {
    counter.index = free_counters_.back();
    free_counters_.pop_back();
  }
  KeptCounter& kept = counters_[counter.index];
  kept = {std::make_shared<const Counter>(std::move(counter)), 1};
  counter_keys_.emplace(std::move(key), kept.counter->index);
  news.counters.push_back(kept.counter);
  return kept.counter;
}

TopologyTerm ShapeBook::term(const PodAffinityTerm& spec, const PodSpec& pod, News& news) {
  return {.counter =
              intern_counter({.kind = Counter::Kind::kSet, .pods = spec.pods, .owner = {}}, news),
          .key = topology_key(spec.topology_key),
          .weight = spec.weight,
          .self = matches(spec.pods, pod.ns, pod.labels)};
}

void ShapeBook::add_terms(const PodSpec& pod, Shape& shape, News& news) {
  for (const auto& t : pod.affinity) shape.affinity.push_back(term(t, pod, news));
  for (const auto& t : pod.anti_affinity) {
    shape.anti_affinity.push_back(term(t, pod, news));
    shape.bars.push_back(intern_counter({.kind = Counter::Kind::kBars,
                                         .pods = t.pods,
                                         .owner = {},
                                         .key = topology_key(t.topology_key)},
                                        news));
  }
  for (const auto& t : pod.preferred_affinity) {
    shape.preferred_affinity.push_back(term(t, pod, news));
  }
  for (const auto& t : pod.preferred_anti_affinity) {
    shape.preferred_anti_affinity.push_back(term(t, pod, news));
  }
  for (const auto& s : pod.spread) {
    SpreadTerm spread{
        .counter = intern_counter(
            {.kind = Counter::Kind::kSet, .pods = s.pods, .owner = {}, .living = true}, news),
        .key = topology_key(s.topology_key),
        .max_skew = s.max_skew,
        .min_domains = s.min_domains,
        .self = matches(s.pods, pod.ns, pod.labels),
        .honor_affinity = s.honor_affinity,
        .honor_taints = s.honor_taints};
    (s.hard ? shape.hard_spread : shape.soft_spread).push_back(std::move(spread));
  }
}

ShapeBook::News ShapeBook::intern(const PodSpec& pod, bool quiet) {
  News news;
  scratch_ = shape_key(pod, quiet, std::move(scratch_));
  if (const auto* known = by_key_.find(scratch_)) {
    if ((news.shape = known->lock())) return news;
  }
  auto before = keys_version_;
  auto shape = std::make_shared<Shape>();
  shape->serial = ++*serial_;
  shape->demand = intern_demand(pod);
  shape->rules = intern_rules(pod);
  shape->ns = pod.ns;
  shape->labels = pod.labels;
  shape->quiet = quiet;
  if (!quiet) add_terms(pod, *shape, news);
  if (!pod.owner.empty()) shape->owner = pod.ns + "/" + pod.owner;
  shape->host_ports = pod.host_ports;
  for (auto& port : shape->host_ports) {
    if (port.ip.empty()) port.ip = "0.0.0.0";
    if (port.protocol.empty()) port.protocol = "TCP";
  }
  shape->queue = pod.queue;
  shape->priority_class = pod.priority_class;
  shape->terminating = pod.terminating;
  shape->service = pod.service;
  if (const auto apart = shape->owner.empty() ? std::nullopt : keeps_apart_(*shape)) {
    shape->replicas =
        intern_counter({.kind = Counter::Kind::kOwner, .pods = {}, .owner = shape->owner}, news);
    if (!apart->over.empty()) shape->apart_over = topology_key(apart->over);
  }
  shape->key = scratch_;
  if (free_indices_.empty()) {
    shape->index = static_cast<std::uint32_t>(shapes_.size());
    shapes_.emplace_back();
  } else {
    shape->index = free_indices_.back();
    free_indices_.pop_back();
  }
  news.shape = shape;
  news.new_shape = true;
  news.new_keys = keys_version_ != before;
  shapes_[shape->index] = news.shape;
  by_key_.put(shape->key, news.shape);
  return news;
}

std::vector<CounterRef> ShapeBook::release(const Shape& shape) {
  by_key_.erase(shape.key);
  shapes_[shape.index].reset();
  free_indices_.push_back(shape.index);
  std::vector<CounterRef> out;
  for_each_counter(shape, [&](const Counter& counter) {
    KeptCounter& kept = counters_[counter.index];
    if (--kept.rules > 0) return;
    counter_keys_.erase(counter_key(counter));
    free_counters_.push_back(counter.index);
    out.push_back(std::move(kept.counter));
    kept.counter.reset();
  });
  return out;
}

}  // namespace berth::model
