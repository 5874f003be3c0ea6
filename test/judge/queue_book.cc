#include "judge/queue_book.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "judge/match.h"

namespace berth::judging::quota {

using model::WorkloadSpec;

std::string full_name(const WorkloadSpec& spec) { return spec.ns + "/" + spec.name; }

namespace {

std::string tie_of(const WorkloadSpec& spec) {
  return spec.uid.empty() ? full_name(spec) : spec.uid;
}

void put_part(std::string& text, const std::string& part) {
  text += std::to_string(part.size()) + ":" + part + ",";
}

std::string pod_shape(const model::PodSpec& pod) {
  std::string text;
  for (const auto& [key, value] : pod.node_selector) {
    put_part(text, key);
    put_part(text, value);
  }
  for (const model::NodeSelectorTerm& term : pod.required_nodes) {
    text += "|";
    for (const text::Requirement& requirement : term.labels) {
      put_part(text, requirement.key);
      text += std::to_string(static_cast<int>(requirement.op));
      for (const std::string& value : requirement.values) put_part(text, value);
    }
  }
  for (const model::Toleration& toleration : pod.tolerations) {
    text += "~";
    put_part(text, toleration.key);
    put_part(text, toleration.value);
    text += std::to_string(static_cast<int>(toleration.op));
    text += toleration.effect ? std::to_string(static_cast<int>(*toleration.effect)) : "-";
  }
  return text;
}

std::string ask_shape(const model::TopologyAsk& ask) {
  std::string text = std::to_string(static_cast<int>(ask.mode));
  put_part(text, ask.level);
  put_part(text, ask.group);
  for (const auto& slice : ask.slices) put_part(text, slice.level + std::to_string(slice.size));
  return text;
}

double seconds(std::int64_t from_ns, std::int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) / 1e9;
}

double alpha(double elapsed_s, double half_life_s) {
  return half_life_s <= 0 ? 0 : 1 - std::pow(0.5, elapsed_s / half_life_s);
}

}  // namespace

std::string shape_of(const WorkloadSpec& spec) {
  std::string text = std::to_string(spec.priority) + ";";
  std::vector<int> counts = counts_of(spec);
  for (std::size_t i = 0; i < spec.pod_sets.size(); ++i) {
    const model::PodSetSpec& set = spec.pod_sets[i];
    put_part(text, set.name);
    text += std::to_string(counts[i]) + "," + std::to_string(set.min_count.value_or(-1)) + ",";
    for (const auto& [resource, amount] : set.requests) {
      put_part(text, resource);
      text += std::to_string(amount) + ",";
    }
    put_part(text, ask_shape(set.topology));
    put_part(text, pod_shape(*set.pod));
  }
  return text;
}

Book::Book(model::QueueInputs inputs, std::int64_t now_ns)
    : inputs_(std::move(inputs)), tree_(inputs_), now_ns_(now_ns), sampled_ns_(now_ns) {
  std::vector<WorkloadSpec> workloads = std::move(inputs_.workloads);
  inputs_.workloads.clear();
  for (const WorkloadSpec& spec : workloads) add(spec);
}

// ---- who is who ----

const model::QueueSpec* Book::queue(const std::string& name) const {
  for (const model::QueueSpec& queue : inputs_.queues) {
    if (queue.name == name) return &queue;
  }
  return nullptr;
}

std::string Book::queue_of(const WorkloadSpec& spec) const {
  for (const model::LocalQueueSpec& local : inputs_.local_queues) {
    if (local.ns == spec.ns && local.name == spec.queue) {
      return queue(local.queue) == nullptr ? "" : local.queue;
    }
  }
  return "";
}

bool Book::active(const model::QueueSpec& queue) const {
  if (queue.stop != model::StopPolicy::kNone || tree_.cyclic(queue_node(queue.name))) return false;
  for (const model::ResourceGroup& group : queue.groups) {
    for (const model::FlavorQuota& quota : group.flavors) {
      auto flavor = std::find_if(inputs_.flavors.begin(), inputs_.flavors.end(),
                                 [&](const auto& one) { return one.name == quota.flavor; });
      if (flavor == inputs_.flavors.end()) return false;
      if (flavor->topology.empty()) continue;
      if (std::none_of(inputs_.topologies.begin(), inputs_.topologies.end(),
                       [&](const auto& one) { return one.name == flavor->topology; })) {
        return false;
      }
    }
  }
  return std::all_of(queue.checks.begin(), queue.checks.end(), [&](const auto& check) {
    return std::any_of(inputs_.checks.begin(), inputs_.checks.end(),
                       [&](const auto& known) { return known.name == check.name && known.active; });
  });
}

bool Book::waits(const WorkloadSpec& spec) const {
  if (!spec.active || spec.finished || spec.admission) return false;
  if (!spec.held_by.empty() || !spec.incomplete.empty()) return false;
  const bool stopped =
      std::any_of(inputs_.local_queues.begin(), inputs_.local_queues.end(), [&](const auto& local) {
        return local.ns == spec.ns && local.name == spec.queue &&
               local.stop != model::StopPolicy::kNone;
      });
  return !stopped && !queue_of(spec).empty();
}

bool Book::namespace_matches(const std::string& name) const {
  const WorkloadSpec& wanted = spec(name);
  const auto& selector = queue(queue_of(wanted))->namespaces;
  if (!selector) return false;
  auto labels = inputs_.namespaces.find(wanted.ns);
  return matches(*selector, labels == inputs_.namespaces.end() ? model::Labels{} : labels->second);
}

std::int64_t Book::queue_ns(const WorkloadSpec& spec) const {
  if (spec.evicted == "PodsReadyTimeout" && !inputs_.config.requeue_by_creation) {
    return spec.evicted_ns;
  }
  return spec.evicted == "AdmissionCheck" ? spec.evicted_ns : spec.created_ns;
}

Asker Book::asker(const std::string& name) const {
  const WorkloadSpec& wanted = spec(name);
  Asker asker{.workload = name,
              .queue = queue(queue_of(wanted)),
              .config = &inputs_.config,
              .priority = wanted.priority,
              .queue_ns = queue_ns(wanted),
              .tie = tie_of(wanted),
              .past_usage = nullptr};
  if (fair_by_usage(*asker.queue)) {
    asker.past_usage = [this](const std::string& local) { return past_usage(local); };
  }
  return asker;
}

Holding Book::holding(const std::string& name, const Record& record) const {
  const WorkloadSpec& spec = record.spec;
  Holding out{.workload = name,
              .queue = spec.admission->queue,
              .local_queue = spec.ns + "/" + spec.queue,
              .usage = {},
              .assigned = {},
              .priority = spec.priority,
              .queue_ns = queue_ns(spec),
              .reserved_ns = spec.reserved_ns,
              .tie = tie_of(spec),
              .evicted = !spec.evicted.empty()};
  std::vector<int> counts = counts_of(spec);
  for (const model::PodSetAdmission& set : spec.admission->pod_sets) {
    int now = set.count;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (spec.pod_sets[i].name == set.name) now = std::min(now, counts[i]);
    }
    for (const auto& [resource, flavor] : set.flavors) {
      FlavorResource fr{flavor, resource};
      auto found = set.usage.find(resource);
      std::int64_t amount = found == set.usage.end() ? 0 : found->second;
      if (now < set.count) amount = amount / set.count * now;
      out.usage[fr] = plus(out.usage[fr], amount);
      out.assigned.insert(fr);
    }
  }
  return out;
}

QuotaState Book::snapshot() const {
  QuotaState state(tree_);
  for (const auto& [name, record] : records_) {
    if (record.place == Place::kHolding && tree_.has(queue_node(record.spec.admission->queue))) {
      state.put(holding(name, record));
    }
  }
  return state;
}

// ---- heaps and parking ----

void Book::line_up(Record& record) {
  record.backing_off = false;
  if (!waits(record.spec)) {
    record.place = Place::kOut;
  } else if (record.spec.requeue_at_ns > now_ns_ ||
             (record.spec.requeue_at_ns == 0 && !record.spec.not_requeued.empty())) {
    record.place = Place::kParked;
    record.backing_off = true;
  } else {
    std::string name = queue_of(record.spec);
    const bool known = parked_shapes_[name].contains(shape_of(record.spec));
    record.place = known ? Place::kParked : Place::kHeap;
  }
}

std::vector<NodeName> Book::whole_tree(const std::string& queue) const {
  NodeName node = queue_node(queue);
  if (!tree_.has(node)) return {};
  return tree_.cyclic(node) ? std::vector<NodeName>{node} : tree_.queues_below(tree_.root(node));
}

void Book::flush(const std::string& queue) {
  for (const NodeName& node : whole_tree(queue)) {
    parked_shapes_.erase(node.name);
    for (auto& [name, record] : records_) {
      if (record.place == Place::kParked && !record.backing_off &&
          queue_of(record.spec) == node.name) {
        record.place = Place::kHeap;
      }
    }
  }
}

void Book::bump(const std::string& queue) {
  for (const NodeName& node : whole_tree(queue)) ++generations_[node.name];
}

bool Book::pops_before(const Record& a, const Record& b, const model::QueueSpec& queue) const {
  if (fair_by_usage(queue)) {
    const double a_past = past_usage(a.spec.ns + "/" + a.spec.queue);
    const double b_past = past_usage(b.spec.ns + "/" + b.spec.queue);
    if (a_past != b_past) return a_past < b_past;
  }
  auto preemptor = preemptors_.find(queue.name);
  if (preemptor != preemptors_.end() && !queue.strict_fifo) {
    const bool a_sticks = full_name(a.spec) == preemptor->second;
    const bool b_sticks = full_name(b.spec) == preemptor->second;
    if (a_sticks != b_sticks) return a_sticks;
  }
  if (a.spec.priority != b.spec.priority) return a.spec.priority > b.spec.priority;
  if (queue_ns(a.spec) != queue_ns(b.spec)) return queue_ns(a.spec) < queue_ns(b.spec);
  return tie_of(a.spec) < tie_of(b.spec);
}

void Book::begin(std::int64_t now_ns) {
  now_ns_ = now_ns;
  ++cycle_;
  for (auto& [name, record] : records_) {
    if (record.backing_off && record.spec.requeue_at_ns <= now_ns_) line_up(record);
  }
  sample();
}

std::vector<std::string> Book::take_heads() {
  std::vector<std::string> heads;
  for (const auto& [node, unused] : tree_.nodes()) {
    const model::QueueSpec* spec = node.cohort ? nullptr : queue(node.name);
    if (spec == nullptr || !active(*spec)) continue;
    const Record* best = nullptr;
    for (const auto& [name, record] : records_) {
      if (record.place != Place::kHeap || queue_of(record.spec) != node.name) continue;
      if (best == nullptr || pops_before(record, *best, *spec)) best = &record;
    }
    if (best != nullptr) heads.push_back(full_name(best->spec));
  }
  for (const std::string& head : heads) records_.at(head).place = Place::kOut;
  return heads;
}

Tried Book::progress(const std::string& name) const {
  const Record& record = records_.at(name);
  if (!record.scan || record.scan->shape != shape_of(record.spec)) return {};
  auto generation = generations_.find(queue_of(record.spec));
  const std::int64_t now = generation == generations_.end() ? 0 : generation->second;
  if (cycle_ - record.scan->cycle > 1 && now != record.scan->generation) return {};
  return record.scan->tried;
}

void Book::remember(const std::string& name, const Tried& tried) {
  Record& record = records_.at(name);
  record.scan = ScanProgress{.cycle = cycle_,
                             .generation = generations_[queue_of(record.spec)],
                             .shape = shape_of(record.spec),
                             .tried = tried};
}

void Book::unstick(const std::string& name) {
  std::erase_if(preemptors_, [&](const auto& one) { return one.second == name; });
}

void Book::park_equals(const std::string& queue, const std::string& shape) {
  parked_shapes_[queue].insert(shape);
  for (auto& [name, record] : records_) {
    if (record.place == Place::kHeap && queue_of(record.spec) == queue &&
        shape_of(record.spec) == shape) {
      record.place = Place::kParked;
    }
  }
}

bool Book::requeue(const std::string& name, const std::string& reason) {
  Record& record = records_.at(name);
  std::string queue_name = queue_of(record.spec);
  const bool strict = queue(queue_name)->strict_fifo;
  const bool failed_late = reason == "FailedAfterNomination" || reason == "PendingPreemption";
  if (reason == "PendingPreemption") {
    preemptors_[queue_name] = name;
  } else if (!failed_late) {
    unstick(name);
  }
  if (failed_late) record.scan.reset();  // the next attempt may come back to the same flavors
  bool heap =
      strict ? reason != "NamespaceMismatch" : failed_late || reason == "WaitingForPodsReady";
  if (record.scan) {
    heap = heap || std::any_of(record.scan->tried.begin(), record.scan->tried.end(),
                               [](const auto& one) { return one.second >= 0; });
  }
  record.backing_off = record.spec.requeue_at_ns > now_ns_;
  record.place = heap && !record.backing_off ? Place::kHeap : Place::kParked;
  const bool hopeless = reason == "NoFit" || reason == "PreemptionNoCandidates";
  if (record.place == Place::kParked && hopeless && !strict) {
    park_equals(queue_name, shape_of(record.spec));
  }
  return record.place == Place::kParked;
}

// ---- what happens to workloads ----

void Book::add(const WorkloadSpec& spec) {
  std::string name = full_name(spec);
  Record& record = records_[name];
  record = Record{.spec = spec, .place = Place::kOut};
  if (spec.finished) {
    records_.erase(name);
  } else if (spec.admission) {
    record.place = Place::kHolding;
  } else {
    line_up(record);
  }
}

void Book::finish(const std::string& name) {
  auto found = records_.find(name);
  if (found == records_.end()) return;
  const Record record = found->second;
  records_.erase(found);
  const bool held = record.place == Place::kHolding;
  std::string queue_name = held ? record.spec.admission->queue : queue_of(record.spec);
  if (held) bump(queue_name);
  unstick(name);
  penalties_[record.spec.ns + "/" + record.spec.queue].erase(name);
  flush(queue_name);
}

void Book::admit(const std::string& name, const model::AdmissionSpec& admission) {
  Record& record = records_.at(name);
  WorkloadSpec& spec = record.spec;
  spec.admission = admission;
  spec.reserved_ns = now_ns_;
  spec.evicted.clear();
  spec.preempted.clear();
  spec.pods_ready = false;
  record.place = Place::kHolding;
  record.scan.reset();
  spec.admitted = true;
  for (const model::QueueSpec::Check& check : queue(admission.queue)->checks) {
    bool applies = check.flavors.empty();
    for (const model::PodSetAdmission& set : admission.pod_sets) {
      for (const auto& [resource, flavor] : set.flavors) {
        applies = applies || std::find(check.flavors.begin(), check.flavors.end(), flavor) !=
                                 check.flavors.end();
      }
    }
    auto state = spec.checks.find(check.name);
    const bool done = state != spec.checks.end() && state->second == model::CheckState::kReady;
    if (applies && !done) spec.admitted = false;
  }
  if (spec.admitted) spec.admitted_ns = now_ns_;
  unstick(name);
  charge(name, record);
}

void Book::evict(const std::string& name, const std::string& reason) {
  Record& record = records_.at(name);
  record.leaving = true;
  record.spec.evicted = "Preempted";
  record.spec.evicted_ns = now_ns_;
  record.spec.preempted = reason;
}

void Book::evictions_done() {
  std::vector<std::string> gone;
  for (auto& [name, record] : records_) {
    if (!record.leaving) continue;
    gone.push_back(name);
    WorkloadSpec& spec = record.spec;
    const std::string held_in = spec.admission->queue;
    spec.admission.reset();
    spec.admitted = false;
    spec.reserved_ns = spec.admitted_ns = 0;
    for (auto& [check, state] : spec.checks) state = model::CheckState::kAwaited;
    penalties_[spec.ns + "/" + spec.queue].erase(name);
    record.leaving = false;
    record.place = Place::kOut;
    bump(held_in);
    flush(held_in);
  }
  for (const std::string& name : gone) line_up(records_.at(name));
}

void Book::ready(const std::string& name) {
  auto found = records_.find(name);
  if (found != records_.end()) found->second.spec.pods_ready = true;
}

bool Book::waiting_for_pods() const {
  if (!inputs_.config.wait_for_pods_ready || !inputs_.config.block_admission) return false;
  return std::any_of(records_.begin(), records_.end(), [](const auto& one) {
    const Record& record = one.second;
    return record.place == Place::kHolding && record.spec.admitted && !record.spec.pods_ready;
  });
}

// ---- usage that local queues had ----

bool Book::fair_by_usage(const model::QueueSpec& queue) const {
  return inputs_.config.half_life_s.has_value() && queue.admission_fair_sharing;
}

void Book::sample() {
  if (!inputs_.config.half_life_s) return;
  const double elapsed = seconds(sampled_ns_, now_ns_), half_life = *inputs_.config.half_life_s;
  if (elapsed < inputs_.config.sampling_s) return;
  sampled_ns_ = now_ns_;
  const double a = alpha(elapsed, half_life);
  for (auto& [local, past] : consumed_) {
    for (auto& [resource, amount] : past) amount = half_life <= 0 ? 0 : (1 - a) * amount;
  }
  std::map<std::string, std::map<std::string, std::int64_t>> now;  // whole numbers first
  for (const auto& [name, record] : records_) {
    if (record.place != Place::kHolding || !record.spec.admitted) continue;
    Holding held = holding(name, record);
    for (const auto& [fr, amount] : held.usage) now[held.local_queue][fr.resource] += amount;
  }
  for (const auto& [local, used] : now) {
    for (const auto& [resource, amount] : used) {
      consumed_[local][resource] += a * static_cast<double>(amount);
    }
  }
}

void Book::charge(const std::string& name, const Record& record) {
  if (!inputs_.config.half_life_s) return;
  const double a = alpha(inputs_.config.sampling_s, *inputs_.config.half_life_s);
  Holding held = holding(name, record);
  Past& past =
      record.spec.admitted ? consumed_[held.local_queue] : penalties_[held.local_queue][name];
  for (const auto& [fr, amount] : held.usage) past[fr.resource] += a * static_cast<double>(amount);
}

double Book::past_usage(const std::string& local_queue) const {
  double weight = 1, sum = 0;
  for (const model::LocalQueueSpec& local : inputs_.local_queues) {
    if (local.ns + "/" + local.name == local_queue) weight = local.weight;
  }
  if (weight <= 0) return std::numeric_limits<double>::infinity();
  auto add = [&](const Past& past) {
    for (const auto& [resource, amount] : past) {
      auto found = inputs_.config.resource_weights.find(resource);
      sum += amount * (found == inputs_.config.resource_weights.end() ? 1 : found->second);
    }
  };
  if (auto found = consumed_.find(local_queue); found != consumed_.end()) add(found->second);
  if (auto found = penalties_.find(local_queue); found != penalties_.end()) {
    for (const auto& [workload, past] : found->second) add(past);
  }
  return sum / weight;
}

}  // namespace berth::judging::quota
