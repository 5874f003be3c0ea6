// The node agent: one process for each GPU node, one state on one loop.
//
//   GpuSource --inventory--> offer --> device plugins, CDI spec, labels, GpuNode
//             --readings, events--> health --> lists of devices, conditions, metrics
//   kubelet   --pod-resources--> holders --> GpuNode, metrics; Allocate --> journal
//
// Without a client it serves the kubelet and metrics and leaves the API alone. What a restart must
// not forget is in state_dir: the journal of what was handed out, and the verdicts on GPUs.
// Everything else comes from the driver, the kubelet and the API.
//
// A driver that is missing or hangs, a kubelet that restarts, an API server that is away, a bad
// configuration: each is a state with a reason, and nothing that works stops because of it. GPUs
// that vanish stay advertised as unhealthy for a while; labels stay.
//
// On the loop's thread, but page() and status(), which any thread may call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "agent/plugins.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/random.h"
#include "edge/kube/client.h"
#include "node/advertise/plugin_config.h"
#include "node/discover/gpu_source.h"
#include "node/monitor/exporter.h"
#include "node/monitor/health.h"
#include "node/partition/mig_config.h"

namespace berth::agent {

struct AgentOptions {
  std::string node_name;
  std::string kubelet_dir = "/var/lib/kubelet";
  std::string cdi_dir = "/var/run/cdi";      // empty: no CDI spec is written
  std::string state_dir = "/var/lib/berth";  // empty: nothing is kept over a restart
  std::string host_root = "/";               // sysfs and /proc below it
  std::string kernel_log = "/dev/kmsg";      // empty: not read
  bool simulated = false;                    // device nodes are stand-ins
  std::string instance;                      // see PluginOptions
  bool take_over = false;
  advertise::PluginConfig config;
  monitor::HealthOptions health;
  monitor::ExportOptions exporting;
  // MIG layouts (docs/mig.md). Without a driver for them they are left alone.
  partition::MigDriver* mig_driver = nullptr;
  std::string mig_layout;  // where the Node has no label nvidia.com/mig.config
  std::shared_ptr<const partition::MigConfig> mig_config;  // null: the usual names
  std::string mig_config_problem;                          // why it could not be read
  std::int64_t read_ns = 1'000'000'000;
  std::int64_t inventory_ns = 60'000'000'000;
  std::int64_t pods_ns = 10'000'000'000;
  std::int64_t forget_ns = 600'000'000'000;  // a GPU that vanished stays listed so long
};

class Agent {
 public:
  Agent(Loop& loop, discover::GpuSource& source, kube::Client* client, Random random,
        AgentOptions options, const Logger& log, MetricsRegistry& metrics);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  void start();
  // A configuration that was read anew; problem: why it could not be, then the old one holds.
  void set_config(const advertise::PluginConfig& config);
  void set_config_problem(const std::string& problem);
  // The file of MIG layouts, read anew.
  void set_mig_config(std::shared_ptr<const partition::MigConfig> config);
  void set_mig_config_problem(const std::string& problem);
  bool ready() const;

  std::string page() const;    // what Prometheus reads, without the registry's own metrics
  std::string status() const;  // JSON: `berth agent status` prints it
  bool live() const;           // a reading or a driver's error came lately; any thread

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace berth::agent
