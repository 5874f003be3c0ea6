// The inside of Nodes, shared by nodes.cc (registration, heartbeats, publishing), nodes_pods.cc
// (the life of pods) and nodes_faults.cc.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "edge/kube/informer.h"
#include "embedded/nodes/machine.h"
#include "embedded/nodes/node_objects.h"
#include "embedded/nodes/nodes.h"
#include "embedded/nodes/pod_record.h"
#include "embedded/nodes/telemetry.h"
#include "embedded/workloads/outbox.h"

namespace berth::sim {

struct SimNode {
  explicit SimNode(Machine machine_in) : machine(std::move(machine_in)) {}

  Machine machine;
  const Pool* pool = nullptr;
  int number = 0, number_in_pool = 0;
  std::string uid;               // of the Node; empty: it is not there
  bool alive = true;             // the kubelet talks
  bool ready = true;             // and says Ready
  bool removed = false;          // somebody deleted the Node: the machine is gone
  std::int64_t ready_since = 0;  // wall time
  std::uint64_t serial = 0;      // of the latest trouble of the node
  int boots = 0;
  std::int64_t slow_ns = 0;  // added to starts
  std::uint64_t slow_serial = 0, refuse_serial = 0;
  std::string refuse;   // reason with which pods are refused; empty: they are not
  int refuse_gpu = -1;  // only those that would get this one
  std::vector<bool> ips;
  std::set<kube::Key> pods;
  std::set<kube::Key> deferred;  // those of them that may have asked for more than was free
  bool creating = false, status_wanted = false, status_writing = false;
  bool gpu_wanted = false, gpu_writing = false, gpu_there = false, gpu_told = false;
  bool lease_there = false, lease_writing = false;
  Loop::Timer publish_timer = 0;

  bool works() const { return alive && ready && !removed; }
};

struct Nodes::State {
  State(kube::Client& client_in, Fleet fleet_in, Random random_in, NodesOptions options_in,
        const Logger* log_in, MetricsRegistry* metrics_in);
  ~State();

  // nodes.cc
  void start();
  void list_gpu_nodes(const std::string& next);
  void read_gpu_nodes(const text::Value& list);
  void start_informers();
  void on_nodes_synced();
  void on_node(const kube::ObjectPtr& before, const kube::ObjectPtr& after);
  void node_gone(SimNode& node);
  void check_node(SimNode& node, const text::Value& object);
  void take_fault_annotation(SimNode& node, const text::Value& object);
  void create_node(SimNode& node);
  void node_created(SimNode& node, const kube::Answer& answer);
  void want_status(SimNode& node);
  void write_status(SimNode& node);
  void check_labels(SimNode& node, const text::Value& object);
  NodeView view_of(const SimNode& node) const;
  void heartbeat();
  void renew(SimNode& node);
  void create_lease(SimNode& node, const Outbox::Done& done);
  void want_publish(SimNode& node, bool at_once);
  void publish(SimNode& node);
  void create_gpu_node(SimNode& node, const Outbox::Done& done);
  void sample_telemetry();
  void sample_node(const SimNode& node);

  // nodes_pods.cc
  void on_pod(const kube::ObjectPtr& before, const kube::ObjectPtr& after);
  void add_pod(SimNode& node, const kube::Object& object);
  void change_pod(PodRecord& pod, const text::Value& object);
  void drop_pod(const kube::Key& key);
  void admit(PodRecord& pod);
  void refuse(PodRecord& pod, const Refusal& refusal);
  void run(PodRecord& pod);
  void end_run(PodRecord& pod, int code);
  void finish(PodRecord& pod, int code);
  void fail_pod(PodRecord& pod, std::string reason, std::string message);
  void begin_stop(PodRecord& pod);
  void stopped(PodRecord& pod);
  void release(PodRecord& pod);
  void look_at_resize(PodRecord& pod, const text::Value& object);
  bool try_resize(PodRecord& pod);
  void retry_resizes(SimNode& node);
  void schedule(PodRecord& pod);  // its timer, for what is due first
  void tick(PodRecord& pod);
  bool tick_once(PodRecord& pod, std::int64_t now);
  void want_write(PodRecord& pod);
  void pump(PodRecord& pod);  // the write or deletion that is wanted, when the kubelet talks
  void write_pod(const kube::Key& key, const std::string& uid, const Outbox::Done& done);
  void wrote_pod(const kube::Key& key, const std::string& uid, const kube::Answer& answer);
  void remove_pod(const kube::Key& key, const std::string& uid, const Outbox::Done& done);
  void sweep(SimNode& node);  // what had to wait while the kubelet was away
  PodRecord* find_pod(const kube::Key& key, const std::string& uid);
  std::int64_t backoff_of(const PodRecord& pod) const;

  // nodes_faults.cc
  void inject(const Fault& fault);
  void inject_gpu(SimNode& node, int gpu, const Fault& fault);
  void kill_holders(SimNode& node, int gpu);
  void recover(SimNode& node, int gpu);
  void set_ready(SimNode& node, bool ready);
  void set_alive(SimNode& node, bool alive);
  void reboot(SimNode& node);
  void booted(SimNode& node, std::int64_t agent_ns);
  void recover_later(const Fault& fault, SimNode& node);
  void schedule_script();

  std::int64_t wall() const { return client.loop().wall().now_ns(); }
  std::int64_t ticks() const { return client.loop().monotonic().ticks_ns(); }
  SimNode* find_node(std::string_view name);
  void warn(std::string_view message, const std::string& what, const std::string& why) const;

  // Nothing runs after the State is gone.
  template <class F>
  auto guarded(F f) {
    return [life = std::weak_ptr<int>(life_), f = std::move(f)](auto&&... args) {
      if (!life.expired()) f(std::forward<decltype(args)>(args)...);
    };
  }
  void later(std::int64_t delay_ns, std::function<void()> work) {
    client.loop().after(delay_ns, guarded([work = std::move(work)] { work(); }));
  }

  kube::Client& client;
  const Fleet fleet;
  Random random;
  const NodesOptions options;
  const Logger* log;
  MetricsRegistry* metrics;
  std::optional<Telemetry> telemetry;
  Outbox outbox;
  std::unique_ptr<kube::Informer> node_informer, pod_informer;
  std::vector<SimNode> nodes;
  std::unordered_map<std::string, int> by_name;
  std::map<kube::Key, std::unique_ptr<PodRecord>> pods;
  std::map<std::string, std::vector<int>> holders_before;  // of an earlier run, by pod UID
  std::size_t next_heartbeat = 0;
  bool nodes_synced = false, gpu_nodes_known = true;
  std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace berth::sim
