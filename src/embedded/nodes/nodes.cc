#include "embedded/nodes/nodes.h"

#include <algorithm>

#include "embedded/nodes/nodes_state.h"
#include "embedded/workloads/read.h"
#include "kinds/gpu_node.h"
#include "text/path.h"

namespace berth::sim {

namespace {

using kube::Answer;

constexpr std::int64_t kRetryNs = 2'000'000'000;
constexpr std::int64_t kAbsentRetryNs = 30'000'000'000;
constexpr std::string_view kFaultKey = "sim.berth.dev/fault";

bool ready_in(const text::Value& node) {
  const text::Value* ready = find_type(at(node, "status.conditions"), "Ready");
  return ready != nullptr && text_at(*ready, "status") == "True";
}

}  // namespace

Nodes::State::State(kube::Client& client_in, Fleet fleet_in, Random random_in,
                    NodesOptions options_in, const Logger* log_in, MetricsRegistry* metrics_in)
    : client(client_in),
      fleet(std::move(fleet_in)),
      random(random_in),
      options(options_in),
      log(log_in),
      metrics(metrics_in),
      outbox(options.max_writes_at_once) {
  nodes.reserve(fleet.nodes());
  for (const Pool& pool : fleet.pools) {
    for (int i = 0; i < pool.count; ++i) {
      SimNode node(Machine(pool, i));
      node.pool = &pool;
      node.number = static_cast<int>(nodes.size());
      node.number_in_pool = i;
      node.ips.assign(static_cast<std::size_t>(pool.pods) + 1, false);
      by_name.emplace(node.machine.name(), node.number);
      nodes.push_back(std::move(node));
    }
  }
  if (metrics != nullptr) {
    telemetry.emplace(*metrics, random.split("telemetry"), fleet.gpus());
    for (const SimNode& node : nodes) {
      telemetry->add_node(node.machine.name(), node.machine.gpu_count());
    }
  }
}

Nodes::State::~State() {
  life_.reset();
  for (const auto& [key, pod] : pods) client.loop().cancel(pod->timer);
  for (const SimNode& node : nodes) client.loop().cancel(node.publish_timer);
}

void Nodes::State::warn(std::string_view message, const std::string& what,
                        const std::string& why) const {
  if (log != nullptr) log->warn(message, {{"what", what}, {"why", why}});
}

SimNode* Nodes::State::find_node(std::string_view name) {
  const auto it = by_name.find(std::string(name));
  return it == by_name.end() ? nullptr : &nodes[static_cast<std::size_t>(it->second)];
}

void Nodes::State::start() {
  for (SimNode& node : nodes) node.ready_since = wall();
  list_gpu_nodes("");
}

// What an earlier run published tells which devices running pods hold, and which are out of order.
void Nodes::State::list_gpu_nodes(const std::string& next) {
  kube::ListOptions list;
  list.limit = 500;
  list.next = next;
  client.list(kube::resources::gpu_nodes(), list, guarded([this, next](Answer answer) {
                if (answer.not_found()) {
                  gpu_nodes_known = false;
                } else if (!answer.ok()) {
                  return later(kRetryNs, [this] { list_gpu_nodes(""); });
                } else {
                  read_gpu_nodes(answer.body.root());
                  const auto more = text_at(answer.body.root(), "metadata.continue");
                  if (!more.empty()) return list_gpu_nodes(std::string(more));
                }
                start_informers();
              }));
}

void Nodes::State::read_gpu_nodes(const text::Value& list) {
  for (const text::Value& item : at(list, "items").items()) {
    SimNode* node = find_node(text_at(item, "metadata.name"));
    if (node == nullptr) continue;
    node->gpu_there = true;
    kinds::GpuNode read;
    text::Decoder d;
    kinds::decode(item, read, d);
    for (const kinds::GpuNodeGpu& gpu : read.gpus) {
      if (gpu.gpu.index < 0 || gpu.gpu.index >= node->machine.gpu_count()) continue;
      if (gpu.gpu.health == model::Health::kUnhealthy) {
        node->machine.break_gpu(
            gpu.gpu.index, gpu.gpu.health_reason.empty() ? "unhealthy" : gpu.gpu.health_reason);
      }
      for (const std::string& uid : gpu.holders) holders_before[uid].push_back(gpu.gpu.index);
    }
  }
}

void Nodes::State::start_informers() {
  if (node_informer != nullptr) return;
  kube::InformerOptions of_nodes{.resource = kube::resources::nodes()};
  of_nodes.keep = kube::Keep::kKeys;
  node_informer = std::make_unique<kube::Informer>(client, random.split("nodes"), of_nodes);
  node_informer->add_handler(
      guarded([this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
        on_node(before, after);
      }));
  node_informer->on_synced(guarded([this] { on_nodes_synced(); }));
  kube::InformerOptions of_pods{.resource = kube::resources::pods()};
  of_pods.keep = kube::Keep::kKeys;
  of_pods.field_selector = "spec.nodeName!=";  // pods that wait for a node are nothing to us
  pod_informer = std::make_unique<kube::Informer>(client, random.split("pods"), of_pods);
  pod_informer->add_handler(
      guarded([this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
        on_pod(before, after);
      }));
  node_informer->start();
  pod_informer->start();
}

void Nodes::State::on_nodes_synced() {
  if (nodes_synced) return;
  nodes_synced = true;
  for (SimNode& node : nodes) {
    if (node.uid.empty()) create_node(node);
  }
  schedule_script();
  heartbeat();
  sample_telemetry();
}

// ---- the Node object ----

void Nodes::State::on_node(const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
  const kube::Key& key = after != nullptr ? after->key : before->key;
  SimNode* node = find_node(key.name);
  if (node == nullptr) return;
  if (after == nullptr) return node_gone(*node);
  const bool fresh = node->uid != after->uid;
  node->uid = after->uid;
  if (node->removed) {  // registered again by hand
    node->removed = false;
    set_alive(*node, true);
  }
  if (fresh) {
    want_publish(*node, true);
    check_labels(*node, after->root());
  }
  check_node(*node, after->root());
}

void Nodes::State::node_gone(SimNode& node) {
  node.uid.clear();
  node.removed = true;
  node.lease_there = node.gpu_there = node.gpu_told = false;
}

// Writes only where the object says something else than this kubelet.
void Nodes::State::check_node(SimNode& node, const text::Value& object) {
  take_fault_annotation(node, object);
  if (!node.alive) return;
  const auto gpus = node.machine.advertised();
  const std::string_view told =
      gpus ? at(object, "status.allocatable")[gpus->resource].string() : std::string_view{};
  const bool amounts = !gpus || told == std::to_string(gpus->allocatable);
  const bool cpu = !text_at(object, "status.allocatable.cpu").empty();
  if (ready_in(object) != node.ready || !amounts || !cpu) want_status(node);
}

// kubectl annotate node N sim.berth.dev/fault="xid gpu=3 code=79": done once, then taken away.
void Nodes::State::take_fault_annotation(SimNode& node, const text::Value& object) {
  const text::Value& all = at(object, "metadata.annotations");
  const text::Value* text = all.find(kFaultKey);
  if (text == nullptr || text->is_null()) return;
  const std::string words(text->string());
  const std::string name = node.machine.name();
  outbox.push([this, name, words](const Outbox::Done& done) {
    client.patch(
        kube::resources::nodes(), {"", name}, kube::PatchType::kJson,
        // The test makes it happen once, whoever else looks.
        R"([{"op":"test","path":"/metadata/annotations/sim.berth.dev~1fault","value":)" +
            [&words] {
              std::string quoted;
              text::append_json_string(quoted, words);
              return quoted;
            }() +
            R"(},{"op":"remove","path":"/metadata/annotations/sim.berth.dev~1fault"}])",
        {}, guarded([this, name, words, done](Answer answer) {
          done();
          SimNode* found = find_node(name);
          if (!answer.ok() || found == nullptr) return;
          Result<Fault> fault = parse_fault(words, found->machine.gpu_count());
          if (!fault.ok()) return warn("fault not understood", name, fault.error().to_string());
          fault->node = name;
          inject(*fault);
        }));
  });
}

void Nodes::State::create_node(SimNode& node) {
  if (node.creating || node.removed) return;
  node.creating = true;
  outbox.push([this, &node](const Outbox::Done& done) {
    client.create(kube::resources::nodes(), "",
                  node_object(*node.pool, node.number_in_pool, view_of(node)), {},
                  guarded([this, &node, done](Answer answer) {
                    done();
                    node_created(node, answer);
                  }));
  });
}

void Nodes::State::node_created(SimNode& node, const Answer& answer) {
  node.creating = false;
  if (answer.conflict()) return;  // the informer tells of it
  if (!answer.ok()) {
    warn("node not registered", node.machine.name(), answer.error().to_string());
    return later(kRetryNs, [this, &node] {
      if (node.uid.empty()) create_node(node);
    });
  }
  const bool fresh = node.uid.empty();
  node.uid = text_at(answer.body.root(), "metadata.uid");
  if (fresh) want_publish(node, true);
  check_node(node, answer.body.root());
}

NodeView Nodes::State::view_of(const SimNode& node) const {
  return {&node.machine, node.number, node.ready, node.ready_since, wall(), node.boots};
}

void Nodes::State::want_status(SimNode& node) {
  node.status_wanted = true;
  write_status(node);
}

void Nodes::State::write_status(SimNode& node) {
  if (!node.status_wanted || node.status_writing || !node.alive || node.uid.empty()) return;
  node.status_writing = true;
  outbox.push([this, &node](const Outbox::Done& done) {
    node.status_wanted = false;
    client.patch(kube::resources::nodes(), {"", node.machine.name()}, kube::PatchType::kStrategic,
                 node_status_patch(view_of(node)), {.subresource = "status"},
                 guarded([this, &node, done](Answer answer) {
                   done();
                   node.status_writing = false;
                   if (!answer.ok() && !answer.not_found()) {
                     warn("node status not written", node.machine.name(),
                          answer.error().to_string());
                     node.status_wanted = true;
                     return later(kRetryNs, [this, &node] { write_status(node); });
                   }
                   write_status(node);
                 }));
  });
}

// A Node that was there before us may lack labels, as after a change of the fleet.
void Nodes::State::check_labels(SimNode& node, const text::Value& object) {
  const auto labels = node_labels(*node.pool, node.number_in_pool);
  const text::Value& there = at(object, "metadata.labels");
  const bool same = std::all_of(labels.begin(), labels.end(), [&](const auto& label) {
    const text::Value* found = there.find(label.first);
    return found != nullptr && found->string() == label.second;
  });
  if (same) return;
  outbox.push([this, &node, labels](const Outbox::Done& done) {
    client.patch(kube::resources::nodes(), {"", node.machine.name()}, kube::PatchType::kMerge,
                 node_labels_patch(labels), {}, guarded([done](Answer) { done(); }));
  });
}

// ---- leases ----

// One node after another, so that the writes are spread over the period.
void Nodes::State::heartbeat() {
  const std::int64_t each = options.heartbeat_ns / static_cast<std::int64_t>(nodes.size());
  SimNode& node = nodes[next_heartbeat];
  next_heartbeat = (next_heartbeat + 1) % nodes.size();
  renew(node);
  later(std::max<std::int64_t>(each, 1'000'000), [this] { heartbeat(); });
}

void Nodes::State::renew(SimNode& node) {
  if (!node.alive || node.uid.empty() || node.lease_writing) return;
  node.lease_writing = true;
  outbox.push([this, &node](const Outbox::Done& done) {
    if (!node.lease_there) return create_lease(node, done);
    client.patch(kube::resources::leases(), {"kube-node-lease", node.machine.name()},
                 kube::PatchType::kMerge, lease_patch(node.machine.name(), wall()),
                 {.urgent = true}, guarded([this, &node, done](Answer answer) {
                   if (answer.not_found()) return create_lease(node, done);
                   done();
                   node.lease_writing = false;
                 }));
  });
}

void Nodes::State::create_lease(SimNode& node, const Outbox::Done& done) {
  client.create(kube::resources::leases(), "kube-node-lease",
                lease_object(node.machine.name(), node.uid, wall()), {.urgent = true},
                guarded([&node, done](Answer answer) {
                  done();
                  node.lease_writing = false;
                  node.lease_there = answer.ok() || answer.conflict();
                }));
}

// ---- GpuNode ----

void Nodes::State::want_publish(SimNode& node, bool at_once) {
  if (telemetry) sample_node(node);
  if (node.machine.gpu_count() == 0) return;
  node.gpu_wanted = true;
  if (at_once) {
    client.loop().cancel(node.publish_timer);
    node.publish_timer = 0;
    return publish(node);
  }
  if (node.publish_timer != 0) return;
  node.publish_timer = client.loop().after(options.publish_ns, guarded([this, &node] {
                                             node.publish_timer = 0;
                                             publish(node);
                                           }));
}

void Nodes::State::publish(SimNode& node) {
  if (!node.gpu_wanted || node.gpu_writing || !node.alive || node.uid.empty()) return;
  node.gpu_writing = true;
  outbox.push([this, &node](const Outbox::Done& done) {
    if (!node.gpu_there) return create_gpu_node(node, done);
    node.gpu_wanted = false;
    std::vector<std::vector<std::string>> holders(node.machine.info().gpus.size());
    for (const kube::Key& key : node.pods) {
      const auto it = pods.find(key);
      if (it == pods.end()) continue;
      for (std::size_t i = 0; i < holders.size(); ++i) {
        if (it->second->held.gpus.take[i] > 0) holders[i].push_back(it->second->uid);
      }
    }
    client.patch(kube::resources::gpu_nodes(), {"", node.machine.name()}, kube::PatchType::kMerge,
                 gpu_node_status_patch(node.machine, holders), {.subresource = "status"},
                 guarded([this, &node, done](Answer answer) {
                   done();
                   node.gpu_writing = false;
                   if (answer.ok()) {
                     node.gpu_told = true;
                     return publish(node);
                   }
                   node.gpu_wanted = true;
                   if (answer.not_found()) node.gpu_there = false;
                   later(kRetryNs, [this, &node] { publish(node); });
                 }));
  });
}

void Nodes::State::create_gpu_node(SimNode& node, const Outbox::Done& done) {
  client.create(kube::resources::gpu_nodes(), "", gpu_node_object(node.machine.name(), node.uid),
                {}, guarded([this, &node, done](Answer answer) {
                  done();
                  node.gpu_writing = false;
                  node.gpu_there = answer.ok() || answer.conflict();
                  if (node.gpu_there) {
                    gpu_nodes_known = true;
                    return publish(node);
                  }
                  // A cluster without the definition: nobody reads it there.
                  if (answer.not_found()) gpu_nodes_known = false;
                  later(answer.not_found() ? kAbsentRetryNs : kRetryNs,
                        [this, &node] { publish(node); });
                }));
}

// ---- telemetry ----

void Nodes::State::sample_node(const SimNode& node) {
  std::vector<GpuLoad> loads(node.machine.info().gpus.size());
  for (std::size_t i = 0; i < loads.size(); ++i) {
    loads[i].memory_mib = node.machine.info().gpus[i].memory_mib;
    loads[i].healthy = node.machine.trouble(static_cast<int>(i)).reason.empty();
  }
  for (const kube::Key& key : node.pods) {
    const auto it = pods.find(key);
    if (it == pods.end() || it->second->stage != PodStage::kRunning) continue;
    for (std::size_t i = 0; i < loads.size(); ++i) {
      if (it->second->held.gpus.take[i] == 0) continue;
      loads[i].utilization = std::min(100, loads[i].utilization + it->second->facts.utilization);
      loads[i].used_mib = loads[i].memory_mib * loads[i].utilization / 100;
    }
  }
  for (std::size_t i = 0; i < loads.size(); ++i) {
    telemetry->set(static_cast<std::size_t>(node.number), i, loads[i]);
  }
}

void Nodes::State::sample_telemetry() {
  if (!telemetry) return;
  for (const SimNode& node : nodes) sample_node(node);
  later(options.telemetry_ns, [this] { sample_telemetry(); });
}

// ---- Nodes ----

Nodes::Nodes(kube::Client& client, Fleet fleet, Random random, NodesOptions options,
             const Logger* log, MetricsRegistry* metrics)
    : state_(std::make_unique<State>(client, std::move(fleet), random, options, log, metrics)) {}

Nodes::~Nodes() = default;

void Nodes::start() {
  if (!state_->nodes.empty()) state_->start();
}

bool Nodes::registered() const {
  return std::all_of(state_->nodes.begin(), state_->nodes.end(), [this](const SimNode& node) {
    const bool gpus = node.machine.gpu_count() == 0 || node.gpu_told || !state_->gpu_nodes_known;
    return node.removed || (!node.uid.empty() && gpus);
  });
}

void Nodes::inject(const Fault& fault) { state_->inject(fault); }

std::map<std::string, std::vector<int>, std::less<>> Nodes::loads() const {
  std::map<std::string, std::vector<int>, std::less<>> out;
  if (!state_->telemetry) return out;
  for (const SimNode& node : state_->nodes) {
    std::vector<int>& busy = out[node.machine.name()];
    for (int i = 0; i < node.machine.gpu_count(); ++i) {
      busy.push_back(state_->telemetry->busy(static_cast<std::size_t>(node.number),
                                             static_cast<std::size_t>(i)));
    }
  }
  return out;
}

NodesSummary Nodes::summary() const {
  NodesSummary out;
  for (const SimNode& node : state_->nodes) {
    if (node.removed) continue;
    out.nodes += 1;
    out.ready += node.works() && !node.uid.empty() ? 1 : 0;
    out.gpus += static_cast<std::size_t>(node.machine.gpu_count());
    out.healthy_gpus += static_cast<std::size_t>(node.machine.healthy_gpus());
    out.used_gpus += static_cast<std::size_t>(node.machine.used_gpus());
  }
  for (const auto& [key, pod] : state_->pods) {
    out.running_pods += pod->stage == PodStage::kRunning || pod->stage == PodStage::kStopping;
  }
  return out;
}

}  // namespace berth::sim
