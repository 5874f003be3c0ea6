#include <CLI/CLI.hpp>
#include <memory>

#include "app/agent/agent_command.h"
#include "app/agent/agent_helper.h"
#include "app/cli/command_table.h"
#include "node/advertise/plugin_config.h"

namespace berth::app {

namespace {

constexpr const char* kAgentHelp =
    "the agent of a GPU node: device plugin, CDI, labels, health, metrics";
constexpr const char* kAgentFooter =
    "Each option also as environment: NODE_NAME, BERTH_SOURCE, BERTH_KUBECONFIG, "
    "BERTH_KUBELET_DIR,\n"
    "BERTH_CDI_DIR, BERTH_STATE_DIR, BERTH_METRICS, BERTH_HEALTH, BERTH_HOST_ROOT,\n"
    "BERTH_MIG_LAYOUT, BERTH_MIG_CONFIG, BERTH_HELPER; flags and variables of NVIDIA's\n"
    "device plugin are read as they are (docs/agent-config.md). Without a kubeconfig, outside a\n"
    "cluster, labels and objects are left alone.\n"
    "Exit code: 0 stopped as asked, 1 it could not start or go on, 2 the command line is wrong.\n"
    "Examples:\n"
    "  berth agent --node-name gpu-1 --kubeconfig /etc/kubernetes/kubelet.conf\n"
    "  berth agent --source sim=examples/fleets/small.yaml --node-name h100-0 --print-labels\n"
    "  berth agent --mig-layout all-balanced --mig-strategy mixed\n"
    "  berth agent status\n"
    "  berth agent forgive 3 --why 'riser replaced'\n"
    "  berth agent record h200.json --seconds 30\n";

void add_agent_places(CLI::App& agent, AgentArguments& args) {
  agent
      .add_option("--source", args.source,
                  "where GPUs come from: nvml (default), sim=FLEET.yaml or\nrecorded=FILE")
      ->type_name("SOURCE");
  agent.add_option("--node-name", args.node_name, "of this machine's Node (default: host name)")
      ->type_name("NAME");
  agent.add_option("--kubeconfig", args.kubeconfig, "default: in the cluster, else none")
      ->type_name("FILE");
  agent.add_option("--context", args.context, "of the kubeconfig")->type_name("NAME");
  agent.add_option("--kubelet-dir", args.kubelet_dir, "default /var/lib/kubelet")->type_name("DIR");
  agent.add_option("--cdi-dir", args.cdi_dir, "for the CDI spec (default /var/run/cdi)")
      ->type_name("DIR");
  agent.add_flag("--no-cdi", args.no_cdi, "write no CDI spec");
  agent.add_option("--state-dir", args.state_dir, "what a restart needs (default /var/lib/berth)")
      ->type_name("DIR");
  agent.add_option("--host-root", args.host_root, "sysfs and /proc are below it (default /)")
      ->type_name("DIR");
  agent.add_option("--metrics", args.metrics_address, "serve there (default :9400), or none")
      ->type_name("HOST:PORT");
  agent
      .add_option("--health", args.health_address,
                  "serve /healthz and /readyz there, for probes: a port that\nnobody else fills")
      ->type_name("HOST:PORT")
      ->check([](const std::string& given) {
        return given.empty() ? std::string("found \"\", want HOST:PORT") : std::string();
      });
  agent
      .add_option("--config-file", args.config_file,
                  "NVIDIA's device plugin's; read anew on change")
      ->type_name("FILE");
}

void add_agent_options(CLI::App& agent, AgentArguments& args) {
  add_agent_places(agent, args);
  agent.add_option("--counters-file", args.counters_file, "metrics to serve, DCGM exporter's CSV")
      ->type_name("FILE");
  agent.add_flag("--old-hostname-label", args.old_hostname, "the label Hostname beside hostname");
  agent.add_flag("--old-metric-names", args.old_metric_names, "names and labels of exporter 1.x");
  agent.add_flag("--pod-uid-label", args.pod_uid, "the label pod_uid");
  agent.add_option("--sample-ms", args.sample_ms, "between readings of the GPUs (default 1000)")
      ->type_name("N")
      ->check(CLI::Range(10, 60'000));
  agent
      .add_option("--mig-layout", args.mig_layout,
                  "how GPUs are cut, where the Node's label nvidia.com/mig.config\ndoes not say")
      ->type_name("NAME");
  agent
      .add_option("--mig-config", args.mig_config,
                  "mig-parted's file of layouts; read anew on change")
      ->type_name("FILE");
  agent.add_option("--helper-path", args.helper_path, "who changes GPUs (default: this program)")
      ->type_name("FILE");
  agent.add_flag("--take-over", args.take_over, "register beside another vendor's device plugin");
  agent.add_flag("--print-labels", args.print_labels, "print the node's labels and end");
  agent.add_option("--sim-faults", args.sim_faults, "lines of this file become faults, as added")
      ->type_name("FILE");
  agent.add_option("--log-level", args.log_level, "debug, info or warn (default info)")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warn"}));
  agent.add_option("--log-format", args.log_format, "text or json (default text)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}));
  for (const advertise::PluginFlag& flag : advertise::plugin_flags()) {
    const std::string name(flag.flag);
    if (agent.get_option_no_throw(name) != nullptr) continue;
    agent
        .add_option_function<std::string>(
            name, [&args, name](const std::string& value) { args.plugin_flags[name] = value; },
            std::string(flag.what))
        ->expected(0, 1)
        ->default_str("true")
        ->option_text("VALUE")
        ->group("NVIDIA device plugin");
  }
}

// For the agent alone: not in the list of commands.
void add_helper_command(CLI::App& app, CommandContext& context) {
  const auto held = std::make_shared<HelperArguments>();
  CLI::App* helper = app.add_subcommand("agent-helper", "changes GPUs for the agent");
  helper->group("");
  helper->add_option("--driver-root", held->driver_root, "where the driver is")->type_name("DIR");
  helper->add_option("--library", held->library, "NVML's name or path")->type_name("FILE");
  helper->add_option("--lock", held->lock, "one helper at a time")->type_name("FILE");
  helper->footer(
      "Reads one request from stdin and answers on stdout: docs/privileges.md.\n"
      "Exit code: 0 done, 1 refused or failed, 2 the command line is wrong.");
  helper->callback(
      [held, &context] { context.code = agent_helper_command(*held, context.terminal); });
}

}  // namespace

void add_agent_command(CLI::App& app, CommandContext& context) {
  const auto held = std::make_shared<AgentArguments>();
  AgentArguments& args = *held;
  CLI::App* agent = app.add_subcommand("agent", kAgentHelp);
  agent->footer(kAgentFooter);
  add_helper_command(app, context);
  add_agent_options(*agent, args);
  CLI::App* status = agent->add_subcommand("status", "what the agent on this machine says");
  status->add_option("--state-dir", args.state_dir, "the agent's (default /var/lib/berth)")
      ->type_name("DIR");
  status->add_option("-o,--output", args.status_output, "table or json (default table)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"table", "json"}));
  status->footer("Exit code: 0 the node is ready, 10 it is not, 1 there is no agent, 2 usage.");
  CLI::App* forgive = agent->add_subcommand(
      "forgive", "lets a GPU back in that waits for an operator or for a reset");
  forgive->add_option("gpu", args.forgive_gpu, "its UUID or index")->type_name("GPU")->required();
  forgive->add_option("--why", args.forgive_why, "for the log and the Node's events")
      ->type_name("TEXT");
  forgive->add_option("--state-dir", args.state_dir, "the agent's (default /var/lib/berth)")
      ->type_name("DIR");
  forgive->footer(
      "Exit code: 0 the GPU takes pods, 1 it stays out or no agent answered, 2 usage.\n"
      "What readings show is not forgiven: a GPU that the driver calls lost stays out.");
  CLI::App* record = agent->add_subcommand("record", "writes what this machine's GPUs answer");
  record->add_option("file", args.record_file, "to write")->type_name("FILE")->required();
  record->add_option("--seconds", args.record_seconds, "how long (default 10)")
      ->type_name("N")
      ->check(CLI::Range(1, 3'600));
  agent->callback([held, &context, agent, status, forgive, record] {
    if (agent->got_subcommand(status)) {
      context.code = agent_status_command(*held, context.terminal);
    } else if (agent->got_subcommand(forgive)) {
      context.code = agent_forgive_command(*held, context.terminal);
    } else if (agent->got_subcommand(record)) {
      context.code = agent_record_command(*held, context.terminal);
    } else {
      context.code = agent_command(*held, context.terminal);
    }
  });
}

}  // namespace berth::app
