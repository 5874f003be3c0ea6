// `berth agent`: the node agent, what it says of itself, and recordings of a machine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/cli/cli.h"

namespace berth::app {

struct AgentArguments {
  std::string source;  // "nvml", "sim=FILE", "recorded=FILE"; empty: nvml
  std::string node_name, kubeconfig, context;
  std::string kubelet_dir, cdi_dir, state_dir, metrics_address;  // empty: the usual
  std::string health_address;                                    // for probes alone; empty: none
  std::string host_root;
  std::string config_file;
  std::map<std::string, std::string> plugin_flags;  // of NVIDIA's device plugin, as given
  std::string counters_file;                        // the exporter's CSV
  bool old_hostname = false, old_metric_names = false, pod_uid = false;
  bool take_over = false, no_cdi = false;
  bool print_labels = false;
  std::string mig_layout, mig_config;  // the layout's name; the file of layouts
  std::string helper_path;             // empty: this program
  std::string sim_faults;              // a file whose lines are faults
  int sample_ms = 1'000;               // between readings
  std::string log_level = "info", log_format = "text";
  // record
  std::string record_file;
  int record_seconds = 10;
  // status
  std::string status_output = "table";
  // forgive
  std::string forgive_gpu, forgive_why;
};

// What the command line left open, from the environment: NODE_NAME, BERTH_SOURCE,
// BERTH_KUBELET_DIR, BERTH_CDI_DIR, BERTH_STATE_DIR, BERTH_METRICS, BERTH_HEALTH, BERTH_HOST_ROOT,
// BERTH_KUBECONFIG, CONFIG_FILE, BERTH_MIG_LAYOUT, BERTH_MIG_CONFIG, BERTH_HELPER.
void fill_from_environment(AgentArguments& arguments,
                           const std::map<std::string, std::string>& environment);

// 0 stopped as asked, 1 it could not start or go on, 2 the options are wrong.
int agent_command(const AgentArguments& arguments, Terminal& terminal);
// Also 10: the node is not ready.
int agent_status_command(const AgentArguments& arguments, Terminal& terminal);
// 0 it takes pods, 1 it stays out or nobody heard, 2 the options are wrong.
int agent_forgive_command(const AgentArguments& arguments, Terminal& terminal);
int agent_record_command(const AgentArguments& arguments, Terminal& terminal);

}  // namespace berth::app
