// The inside of Agent: its parts, and what each file does with them. agent.cc: what is offered and
// published; agent_watch.cc: readings, events, health; agent_mig.cc: MIG layouts.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent.h"
#include "agent/cdi_specs.h"
#include "agent/gpu_inventory.h"
#include "agent/gpu_offer.h"
#include "agent/kept_health.h"
#include "agent/mig_keeper.h"
#include "agent/node_link.h"
#include "agent/pod_devices.h"
#include "agent/requests.h"
#include "agent/shown_state.h"
#include "edge/host/host.h"

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

  GpuInventoryKeeper inventory;
  GpuOffer offer;
  CdiSpecs cdi;
  PodDevices pods;
  KeptHealth health;
  ShownState shown;
  std::unique_ptr<MigKeeper> mig;    // absent: layouts are left alone
  std::unique_ptr<NodeLink> link;    // absent: there is no API server
  std::unique_ptr<Plugins> plugins;  // from start() on
  std::unique_ptr<host::KernelLog> kernel_log;
  std::unique_ptr<RequestInbox> requests;  // of operators

  // ---- what is offered and published (agent.cc)
  std::string config_problem;
  std::map<std::string, std::string> labels_said;
  bool publish_posted = false;

  void start();
  void start_plugins();
  void open_requests();
  void follow_kernel_log();
  void inventory_came(GpuInventoryKeeper::Came came);
  void rebuild();
  void join();
  void say_labels();
  void publish_later();  // soon, once for a burst
  void publish();
  void set_plugins();
  void say_node();
  Result<model::ContainerGrant> allocate(const std::string& resource,
                                         const std::vector<std::string>& ids);

  // ---- readings, events, health (agent_watch.cc)
  std::vector<model::GpuReading> readings;
  std::int64_t read_at = 0;  // wall time; 0: never
  bool read_under_way = false;
  Loop::Timer read_timer = 0;

  void read_later(std::int64_t delay_ns);
  void read();
  void readings_came(std::vector<model::GpuReading> came);
  void event_came(const model::GpuEvent& event);
  void kernel_line(const std::string& line);
  void verdicts_changed(const std::vector<std::string>& uuids);
  void note_events();
  Result<std::string> forgive(const Request& request);
  void render();
  monitor::NodeSights sights() const;

  // ---- MIG layouts (agent_mig.cc)
  void start_mig();
  void declare_mig();
  void follow_mig();
  bool mig_withheld(int gpu, const std::string& uuid) const;
  std::optional<NodeCondition> mig_condition() const;

  CounterFamily& verdict_changes;
  CounterFamily& allocations;
  Counter forgiven;

  // Work for later that is dropped when the agent is gone.
  template <class F>
  auto mine(F work) {
    return [weak = weak_from_this(), work](auto&&... values) {
      if (const auto self = weak.lock()) work(*self, std::forward<decltype(values)>(values)...);
    };
  }
};

}  // namespace berth::agent
