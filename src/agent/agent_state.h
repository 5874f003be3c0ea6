// The inside of Agent, shared by agent.cc (inventory, offers, what is published), agent_watch.cc
// (readings, events, health, metrics) and agent_pods.cc (allocation, who holds what).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent.h"
#include "agent/mig_keeper.h"
#include "agent/node_link.h"
#include "agent/requests.h"
#include "base/mutex.h"
#include "edge/host/host.h"
#include "edge/kubelet/pod_resources.h"
#include "node/advertise/cdi.h"
#include "node/advertise/labels.h"
#include "node/advertise/resources.h"
#include "node/allocate/grant.h"
#include "node/allocate/journal.h"
#include "node/allocate/ledger.h"
#include "node/allocate/preferred.h"
#include "node/monitor/node_state.h"

namespace berth::agent {

struct Agent::State : std::enable_shared_from_this<State> {
  State(Loop& loop_in, discover::GpuSource& source_in, kube::Client* client_in, Random random_in,
        AgentOptions options_in, const Logger& log_in, MetricsRegistry& metrics_in);

  Loop& loop;
  discover::GpuSource& source;
  kube::Client* const client;
  Random random;
  AgentOptions options;
  const Logger& log;
  MetricsRegistry& metrics;
  const std::int64_t born;

  // ---- the machine (agent.cc)
  std::optional<model::GpuInventory> inventory;  // with GPUs that vanished
  model::HostFacts host;
  std::map<std::string, std::int64_t> vanished;  // UUID -> since, monotonic
  std::string driver_problem, offer_problem, cdi_problem, config_problem;
  advertise::Offer offer;
  advertise::DriverFiles files;
  advertise::Extras extras;
  std::map<std::string, std::unique_ptr<allocate::Chooser>> choosers;  // by resource
  std::map<std::string, std::string> cdi_written;                      // by path
  std::map<std::string, std::string> labels_said;
  std::unique_ptr<Plugins> plugins;
  std::unique_ptr<NodeLink> link;
  Loop::Timer inventory_timer = 0;
  bool asking_inventory = false, ask_again = false, publish_posted = false;

  void start();
  void open_desk();
  void take_inventory();
  void inventory_came(Result<model::GpuInventory> found);
  void keep_vanished(model::GpuInventory& found);
  void rebuild();
  advertise::DriverFiles find_files() const;
  void write_cdi();
  bool write_spec(const std::string& path, const std::string& spec);
  void say_labels();
  void publish_later();  // soon, once for a burst
  void publish();
  void set_plugins();
  void say_node();

  // ---- readings, events, health (agent_watch.cc)
  monitor::HealthBook health;
  std::vector<model::GpuReading> readings;
  std::int64_t read_at = 0;  // wall time; 0: never
  bool read_under_way = false;
  Loop::Timer read_timer = 0;
  std::unique_ptr<host::KernelLog> kernel_log;
  std::string health_written;
  std::unique_ptr<RequestInbox> desk;

  void read_later(std::int64_t delay_ns);
  void read();
  void readings_came(std::vector<model::GpuReading> came);
  void event_came(const model::GpuEvent& event);
  void kernel_line(const std::string& line);
  void verdicts_changed(const std::vector<std::string>& uuids);
  void note_events();
  void keep_health();
  Result<std::string> forgive(const Request& request);
  void render();
  int gpus_on_bus() const;  // -1: not known
  monitor::NodeSights sights() const;

  // ---- pods and devices (agent_pods.cc)
  allocate::Journal journal;
  std::unique_ptr<kubelet::PodResources> pod_resources;
  std::vector<model::HeldDevices> held;
  bool held_known = false, listing = false;
  Loop::Timer pods_timer = 0;
  allocate::Ledger ledger;
  std::set<std::string> differing;  // pods whose difference was counted
  monitor::Holders holders;
  std::map<int, monitor::Holder> processes;
  std::map<std::string, std::string> container_names;  // of this node's pods, by id

  void start_pods();
  void list_pods();
  void list_pods_in(std::int64_t delay_ns);
  void held_came(Result<std::vector<model::HeldDevices>> came);
  void join();
  void find_processes();
  Result<std::vector<std::string>> prefer(const std::string& resource,
                                          const std::vector<std::string>& available,
                                          const std::vector<std::string>& must_include, int size);
  Result<model::ContainerGrant> allocate(const std::string& resource,
                                         const std::vector<std::string>& ids);
  allocate::GrantRules grant_rules() const;
  const model::OfferedResource* find_resource(const std::string& name) const;
  std::string journal_path() const { return options.state_dir + "/allocations.jsonl"; }
  std::string health_path() const { return options.state_dir + "/health.json"; }
  void keep_status(const monitor::NodeSights& seen, const monitor::NodeState& judged,
                   const std::string& json);

  // ---- MIG layouts (mig_agent.cc)
  std::unique_ptr<MigKeeper> mig;  // absent: they are left alone

  void start_mig();
  void declare_mig();
  void follow_mig();
  std::optional<partition::MigUse> mig_use() const;
  bool mig_withheld(int gpu, const std::string& uuid) const;
  std::optional<NodeCondition> mig_condition() const;

  // ---- for other threads
  mutable Mutex mutex;
  std::string page BERTH_GUARDED_BY(mutex), status BERTH_GUARDED_BY(mutex);
  std::string status_kept, page_buffer;              // the loop's alone
  std::int64_t page_at BERTH_GUARDED_BY(mutex) = 0;  // monotonic

  CounterFamily& verdict_changes;
  CounterFamily& allocations;
  Counter hint_differences, forgiven;

  // Work for later that is dropped when the agent is gone.
  template <class F>
  auto mine(F work) {
    return [weak = weak_from_this(), work](auto&&... values) {
      if (const auto self = weak.lock()) work(*self, std::forward<decltype(values)>(values)...);
    };
  }
};

}  // namespace berth::agent
