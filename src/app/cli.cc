#include "app/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <istream>
#include <optional>
#include <ostream>

#include "advertise/plugin_config.h"
#include "app/agent_command.h"
#include "app/controller_command.h"
#include "app/explain.h"
#include "app/input.h"
#include "app/plan_json.h"
#include "app/plan_table.h"
#include "app/run_job.h"
#include "app/up.h"
#include "text/escape.h"
#include "text/quantity.h"
#include "text/rfc3339.h"

namespace berth::app {

namespace {

struct PlanArguments {
  std::vector<std::string> paths;
  std::string cycles = "until-stable";
  std::string output = "table";
  std::optional<std::string> explain;
  std::string policy = "fragmentation";
  std::string max_input = "256Mi";
  std::string now;
  bool no_preemption = false;
  bool quota_only = false;
  std::string queue_policy;
};

constexpr const char* kPlanHelp =
    "prints what of a cluster's manifests would be placed where, and why\n"
    "the rest waits; changes nothing";
constexpr const char* kPlanFooter =
    "Exit code: 0 everything is placed, 10 something waits, 20 something is invalid or\n"
    "unreadable, 2 the command line is wrong.\n"
    "Examples:\n"
    "  berth plan -f cluster.yaml -f jobs/\n"
    "  kubectl get nodes,pods,pvc,pv,pdb -A -o yaml | berth plan -f - -f new-job.yaml\n"
    "  berth plan -f examples/team-cluster --explain vision/resnet\n";

struct Settings {
  InputOptions input;
  PlanOptions plan;
};

// Checks what CLI11 does not: each error names the option and what it takes.
Result<Settings> settings_of(const PlanArguments& args, const Terminal& terminal) {
  Settings settings;
  settings.input.paths = args.paths;
  if (args.output != "table" && args.output != "json" && args.output != "yaml") {
    return invalid("--output: found \"" + text::terminal_safe(args.output) +
                   "\", want table, json or yaml");
  }
  if (args.explain && args.explain->empty()) {
    return invalid("--explain: found \"\", want the name of a workload, as in the table");
  }
  if (args.explain && args.output != "table") {
    return invalid("--explain prints text; leave -o away, or --explain: -o " + args.output +
                   " has the certificate of every workload that waits");
  }
  BERTH_TRY(settings.plan.policy, parse_policy(args.policy));
  settings.plan.policy.preemption = !args.no_preemption;
  settings.plan.quota_only = args.quota_only;
  BERTH_TRY(settings.plan.queue_policy, parse_queue_policy(args.queue_policy));
  settings.plan.queue_policy.preemption = !args.no_preemption;
  if (args.cycles != "until-stable") {
    int cycles = 0;
    const char* end = args.cycles.data() + args.cycles.size();
    const auto [stop, code] = std::from_chars(args.cycles.data(), end, cycles);
    if (code != std::errc() || stop != end || cycles < 1 || cycles > kMaxCycles) {
      return invalid("--cycles: found \"" + text::terminal_safe(args.cycles) +
                     "\", want until-stable or a number 1..1000");
    }
    settings.plan.cycles = cycles;
  }
  const Result<text::Quantity> size = text::parse_quantity(args.max_input);
  if (!size.ok() || size->value() < 1 || size->value() > static_cast<std::int64_t>(kMostMaxInput)) {
    return invalid("--max-input: found \"" + text::terminal_safe(args.max_input) +
                   "\", want a size such as 512Mi, less than 4Gi");
  }
  settings.input.max_bytes = static_cast<std::uint64_t>(size->value());
  settings.plan.now_ns = terminal.wall.now_ns();
  if (!args.now.empty()) {
    Result<std::int64_t> now = text::parse_rfc3339(args.now);
    if (!now.ok()) return invalid("--now: " + now.error().to_string());
    settings.plan.now_ns = *now;
  }
  return settings;
}

// Quoted for a shell when it needs to be.
std::string shell_word(const std::string& word) {
  const bool plain =
      !word.empty() &&
      word.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+") ==
          std::string::npos;
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + '\'';
}

std::string command_line(const PlanArguments& args) {
  std::string out = "berth plan";
  for (const std::string& path : args.paths) out += " -f " + shell_word(path);
  if (args.cycles != PlanArguments{}.cycles) out += " --cycles " + shell_word(args.cycles);
  if (args.policy != PlanArguments{}.policy) out += " --policy " + shell_word(args.policy);
  if (args.no_preemption) out += " --no-preemption";
  if (args.quota_only) out += " --quota-only";
  if (!args.queue_policy.empty()) out += " --queue-policy " + shell_word(args.queue_policy);
  if (args.max_input != PlanArguments{}.max_input) {
    out += " --max-input " + shell_word(args.max_input);
  }
  if (!args.now.empty()) out += " --now " + shell_word(args.now);
  return out;
}

void print_troubles(const PlanResult& plan, std::ostream& err) {
  constexpr std::size_t kMost = 20;
  for (std::size_t i = 0; i < plan.invalid.size() && i < kMost; ++i) {
    err << "berth: " << text::terminal_safe(note_line(plan.invalid[i])) << '\n';
  }
  if (plan.invalid.size() > kMost) {
    err << "berth: +" << plan.invalid.size() - kMost << " more\n";
  }
  err << "berth: nothing was planned: half of a cluster would give a wrong plan\n";
}

int print_explanation(const PlanArguments& args, const PlanResult& plan,
                      const objects::Inputs& inputs, Terminal& terminal) {
  const Result<const Workload*> workload = find_workload(plan, inputs, *args.explain);
  if (!workload.ok()) {
    terminal.err << "berth: --explain: " << workload.error().to_string() << '\n';
    return kExitUsage;
  }
  terminal.out << explain(plan, **workload);
  return exit_code(plan);
}

int plan_command(const PlanArguments& args, Terminal& terminal) {
  const Result<Settings> settings = settings_of(args, terminal);
  if (!settings.ok()) {
    terminal.err << "berth: " << settings.error().to_string() << '\n';
    return kExitUsage;
  }
  Progress progress(terminal.err_is_terminal ? &terminal.err : nullptr, terminal.monotonic);
  Input input = read_input(settings->input, terminal.in, progress);
  const bool readable = input.unreadable.empty();
  const std::int64_t before_ns = terminal.monotonic.ticks_ns();
  const PlanResult plan = readable ? make_plan(input.inputs, settings->plan)
                                   : unreadable_plan(std::move(input.unreadable));
  const std::int64_t took_ns = terminal.monotonic.ticks_ns() - before_ns;
  if (!readable) print_troubles(plan, terminal.err);
  if (readable && args.explain) return print_explanation(args, plan, input.inputs, terminal);
  if (args.output == "json") {
    terminal.out << plan_json(plan);
  } else if (args.output == "yaml") {
    terminal.out << plan_yaml(plan);
  } else {
    TableOptions options;
    options.command = command_line(args);
    if (terminal.out_is_terminal) options.decision_ns = took_ns;
    terminal.out << plan_table(plan, options);
  }
  return exit_code(plan);
}

void add_plan_options(CLI::App& plan, PlanArguments& args) {
  plan.add_option("-f,--file", args.paths,
                  "manifests: files, folders (*.yaml *.yml *.json), or -\nfor standard input")
      ->required()
      ->type_name("PATH");
  plan.add_option("--cycles", args.cycles, "decision cycles to run (default until-stable)")
      ->type_name("N|until-stable");
  plan.add_option("-o,--output", args.output, "how to print the plan (default table)")
      ->type_name("table|json|yaml");
  plan.add_option("--explain", args.explain, "why one workload waits, or where it goes")
      ->type_name("WORKLOAD");
  plan.add_option(
          "--policy", args.policy,
          "fragmentation (default), pack or spread; rules follow\nafter commas, see docs/plan.md")
      ->type_name("POLICY");
  plan.add_flag("--no-preemption", args.no_preemption, "never evict a running pod");
  plan.add_flag("--quota-only", args.quota_only,
                "queues admit by quota (and topology) alone; another\nscheduler binds");
  plan.add_option("--queue-policy", args.queue_policy,
                  "preemption by queues beyond Kueue's rules: min-runtime=10m,\nbudgets, "
                  "victims=fewest|least-lost, no-ping-pong,\nmax-evictions=N")
      ->type_name("RULES");
  plan.add_option("--max-input", args.max_input, "refuse more input than this (default 256Mi)")
      ->type_name("SIZE");
  plan.add_option("--now", args.now, "plan at this time (orders victims by lost work)")
      ->type_name("RFC3339");
}

constexpr const char* kUpHelp =
    "an embedded GPU cluster on this machine: API server for kubectl,\n"
    "simulated nodes, controller; state in a folder";
constexpr const char* kUpFooter =
    "Exit code: 0 stopped as asked, 1 it could not start or broke, 2 the command line is wrong.\n"
    "Examples:\n"
    "  berth up\n"
    "  berth up --gpus 64 --data /tmp/lab\n"
    "  berth up --nodes examples/fleets/small.yaml\n";
constexpr const char* kRunHelp = "submits a Job and follows it to its end";
constexpr const char* kRunFooter =
    "Exit code: 0 it succeeded, 1 it failed or the cluster cannot be reached, 2 the command line\n"
    "is wrong, 130 Ctrl-C (the Job goes on).\n"
    "Example:\n"
    "  berth run --gpus 8 --pods 2 --seconds 30 -- python train.py\n";
constexpr const char* kControllerHelp =
    "the control plane on a Kubernetes cluster: admits, places, binds,\n"
    "preempts; one of several leads";
constexpr const char* kControllerFooter =
    "Exit code: 0 stopped as asked, 1 it could not go on, 2 the command line is wrong.\n"
    "Example:\n"
    "  berth controller --kubeconfig ~/.kube/config\n";

void add_up_options(CLI::App& up, UpOptions& args) {
  up.add_option("--nodes", args.fleet_file, "simulated machines: fleet YAML, see docs/fleet.md")
      ->type_name("FILE");
  up.add_option("--gpus", args.gpus, "without --nodes: so many H100s, eight a node (default 32)")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000));
  up.add_option("--data", args.data, "folder for the state (default berth-data)")->type_name("DIR");
  up.add_flag("--in-memory", args.in_memory, "keep nothing when it ends");
  up.add_option("--kubeconfig", args.kubeconfig, "where to write it (default DIR/kubeconfig)")
      ->type_name("FILE");
  up.add_option("--address", args.address, "listen there (default 127.0.0.1)")->type_name("ADDR");
  up.add_option("--port", args.port, "listen there (default 0: any free one)")->type_name("N");
  up.add_flag("--no-controller", args.no_controller,
              "without berth's own control plane: run berth controller");
  up.add_flag("--demo", args.demo, "submit a dozen jobs, show what becomes of them, and end");
  up.add_option("--seed", args.seed, "of names and delays (default 1)")->type_name("N");
  up.add_option("--log-level", args.log_level, "debug, info or warn (default warn)")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warn"}));
}

void add_run_options(CLI::App& run, RunOptions& args) {
  run.add_option("--gpus", args.job.gpus, "of each pod (default 1)")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000));
  run.add_option("--pods", args.job.pods, "that start together (default 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 10'000));
  run.add_option("--name", args.job.name, "of the Job (default: the command and the time)")
      ->type_name("NAME");
  run.add_option("-n,--namespace", args.job.ns, "of the Job (default default)")->type_name("NS");
  run.add_option("--queue", args.job.queue, "LocalQueue to wait in (default: the namespace's)")
      ->type_name("NAME");
  run.add_option("--image", args.job.image, "of its container (default busybox)")
      ->type_name("IMAGE");
  run.add_option("--cpu", args.job.cpu, "of each pod (default 1)")->type_name("QUANTITY");
  run.add_option("--memory", args.job.memory, "of each pod (default 1Gi)")->type_name("QUANTITY");
  run.add_option("--priority-class", args.job.priority_class, "of its pods")->type_name("NAME");
  run.add_option("--seconds", args.job.seconds, "how long simulated nodes let it run")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000));
  run.add_option("--kubeconfig", args.kubeconfig,
                 "the cluster (default $KUBECONFIG, ~/.kube/config)")
      ->type_name("FILE");
  run.add_option("--context", args.context, "of the kubeconfig")->type_name("NAME");
  run.add_flag("--detach", args.detach, "submit only");
  run.add_option("command", args.job.command, "what to run, after --")->type_name("CMD...");
}

void add_controller_options(CLI::App& controller, ControllerArguments& args) {
  controller
      .add_option("--kubeconfig", args.kubeconfig,
                  "the cluster (default: the one it runs in, $KUBECONFIG,\n~/.kube/config)")
      ->type_name("FILE");
  controller.add_option("--context", args.context, "of the kubeconfig")->type_name("NAME");
  controller
      .add_option("--scheduler-name", args.scheduler_names,
                  "pods of these are ours (default berth); also volcano,\nkai-scheduler")
      ->type_name("NAME");
  controller.add_option("--policy", args.policy, "as of berth plan")->type_name("POLICY");
  controller.add_option("--queue-policy", args.queue_policy, "as of berth plan")
      ->type_name("RULES");
  controller.add_flag("--no-preemption", args.no_preemption, "never evict a running pod");
  controller.add_flag("--no-queues", args.no_queues, "leave Kueue's objects to Kueue");
  controller.add_flag("--no-election", args.no_election, "lead at once: only when it is alone");
  controller.add_option("--lease-namespace", args.lease_namespace, "default berth-system")
      ->type_name("NS");
  controller.add_option("--identity", args.identity, "in the lease (default host and process)")
      ->type_name("NAME");
  controller.add_option("--decision-log", args.decision_log, "every decision, as JSON lines")
      ->type_name("FILE");
  controller.add_option("--metrics", args.metrics_address, "serve /metrics and /healthz there")
      ->type_name("HOST:PORT");
  controller.add_option("--webhook", args.webhook_address, "serve the admission webhook there")
      ->type_name("HOST:PORT");
  controller.add_option("--webhook-url", args.webhook_url, "how the API server reaches it")
      ->type_name("URL");
  controller.add_option("--log-level", args.log_level, "debug, info or warn (default info)")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warn"}));
  controller.add_option("--log-format", args.log_format, "text or json (default text)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}));
}

constexpr const char* kAgentHelp =
    "the agent of a GPU node: device plugin, CDI, labels, health, metrics";
constexpr const char* kAgentFooter =
    "Each option also as environment: NODE_NAME, BERTH_SOURCE, BERTH_KUBECONFIG, "
    "BERTH_KUBELET_DIR,\n"
    "BERTH_CDI_DIR, BERTH_STATE_DIR, BERTH_METRICS, BERTH_HOST_ROOT; flags and variables of "
    "NVIDIA's\n"
    "device plugin are read as they are (docs/agent-config.md). Without a kubeconfig, outside a\n"
    "cluster, labels and objects are left alone.\n"
    "Exit code: 0 stopped as asked, 1 it could not start or go on, 2 the command line is wrong.\n"
    "Examples:\n"
    "  berth agent --node-name gpu-1 --kubeconfig /etc/kubernetes/kubelet.conf\n"
    "  berth agent --source sim=examples/fleets/small.yaml --node-name h100-0 --print-labels\n"
    "  berth agent status\n"
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
  agent
      .add_option("--metrics", args.metrics_address, "serve there (default 0.0.0.0:9400), or none")
      ->type_name("HOST:PORT");
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

void add_agent_command(CLI::App& app, AgentArguments& args, Terminal& terminal, int& code) {
  CLI::App* agent = app.add_subcommand("agent", kAgentHelp);
  agent->footer(kAgentFooter);
  add_agent_options(*agent, args);
  CLI::App* status = agent->add_subcommand("status", "what the agent on this machine says");
  status->add_option("--state-dir", args.state_dir, "the agent's (default /var/lib/berth)")
      ->type_name("DIR");
  status->add_option("-o,--output", args.status_output, "table or json (default table)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"table", "json"}));
  status->footer("Exit code: 0 the node is ready, 10 it is not, 1 there is no agent, 2 usage.");
  CLI::App* record = agent->add_subcommand("record", "writes what this machine's GPUs answer");
  record->add_option("file", args.record_file, "to write")->type_name("FILE")->required();
  record->add_option("--seconds", args.record_seconds, "how long (default 10)")
      ->type_name("N")
      ->check(CLI::Range(1, 3'600));
  agent->callback([&args, &terminal, &code, agent, status, record] {
    if (agent->got_subcommand(status)) {
      code = agent_status_command(args, terminal);
    } else if (agent->got_subcommand(record)) {
      code = agent_record_command(args, terminal);
    } else {
      code = agent_command(args, terminal);
    }
  });
}

struct Commands {
  AgentArguments agent;
  PlanArguments plan;
  UpOptions up;
  RunOptions run;
  ControllerArguments controller;
};

void add_commands(CLI::App& app, Commands& args, Terminal& terminal, int& code) {
  CLI::App* plan = app.add_subcommand("plan", kPlanHelp);
  plan->footer(kPlanFooter);
  add_plan_options(*plan, args.plan);
  plan->callback([&] { code = plan_command(args.plan, terminal); });
  CLI::App* up = app.add_subcommand("up", kUpHelp);
  up->footer(kUpFooter);
  add_up_options(*up, args.up);
  up->callback([&] { code = up_command(args.up, terminal); });
  CLI::App* run = app.add_subcommand("run", kRunHelp);
  run->footer(kRunFooter);
  add_run_options(*run, args.run);
  run->callback([&] { code = run_job_command(args.run, terminal); });
  CLI::App* controller = app.add_subcommand("controller", kControllerHelp);
  controller->footer(kControllerFooter);
  add_controller_options(*controller, args.controller);
  controller->callback([&] { code = controller_command(args.controller, terminal); });
  add_agent_command(app, args.agent, terminal, code);
}

}  // namespace

int run_command(const std::vector<std::string>& arguments, Terminal& terminal) {
  CLI::App app("berth: a GPU platform for Kubernetes", "berth");
  app.set_version_flag("--version", std::string("berth ") + BERTH_VERSION);
  app.require_subcommand(1);
  Commands args;
  int code = 0;
  add_commands(app, args, terminal, code);
  const bool named = !arguments.empty() && !arguments[0].starts_with('-');
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  if (named && std::none_of(commands.begin(), commands.end(), [&](const CLI::App* command) {
        return command->get_name() == arguments[0];
      })) {
    terminal.err << "berth: found command " << text::terminal_safe(arguments[0])
                 << ", want plan, up, run, controller or agent; see berth --help\n";
    return kExitUsage;
  }
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::Success& success) {  // --help and --version
    app.exit(success, terminal.out, terminal.err);
    return 0;
  } catch (const CLI::ParseError& error) {
    terminal.err << "berth: " << text::terminal_safe(error.what()) << '\n'
                 << "berth: see berth " << (named ? arguments[0] + " " : "") << "--help\n";
    return kExitUsage;
  }
  return code;
}

}  // namespace berth::app
