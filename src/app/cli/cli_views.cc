#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "app/cli/command_table.h"
#include "app/cli/complete.h"
#include "app/views/cluster_view.h"
#include "app/views/fit_command.h"
#include "app/views/fleet_command.h"
#include "app/views/preempted_command.h"
#include "app/views/queue_command.h"
#include "app/views/snapshot_command.h"
#include "app/views/version_command.h"
#include "text/rfc3339.h"

namespace berth::app {

namespace {

constexpr const char* kPlainCodes =
    "Exit code: 0 shown, 1 the cluster cannot be reached or a file not read, 2 the\n"
    "command line is wrong.\n";

void add_cluster_options(CLI::App& command, ViewOptions& options) {
  add_choice_options(command, options);
  command.add_option("-n,--namespace", options.ns, "default: the context's")->type_name("NS");
}

void add_show_options(CLI::App& command, ViewArguments& arguments) {
  add_view_options(command, arguments.view);
  command.add_option("-o,--output", arguments.output, "how to print it (default table)")
      ->type_name("table|json|yaml|csv");
  add_watch_options(command, arguments.watch, arguments.every_s);
}

void add_snapshot_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "snapshot",
      "writes down what a cluster has, without Secrets, for -f of every\nother command");
  command->footer(
      "Exit code: 0 written, 1 the cluster cannot be reached, 2 the command line is wrong.\n"
      "Examples:\n"
      "  berth snapshot -o cluster.json\n"
      "  berth plan -f cluster.json\n");
  const auto args = std::make_shared<SnapshotArguments>();
  add_cluster_options(*command, args->view);
  command->add_option("-o,--output", args->file, "the file (default: standard output)")
      ->type_name("FILE");
  command->add_flag("--with-arguments", args->arguments,
                    "commands, arguments, probes and all annotations too, which\nmay hold secrets");
  command->callback([args, &context] { context.code = snapshot_command(*args, context.terminal); });
}

void add_fleet_commands(CLI::App& app, CommandContext& context) {
  CLI::App* status = app.add_subcommand(
      "status",
      "can the fleet take work now: states of GPUs, what fits, what waits\nand why, the "
      "worst problems");
  status->footer(std::string(kPlainCodes) + "Example:  berth status --watch\n");
  const auto status_args = std::make_shared<ViewArguments>();
  add_show_options(*status, *status_args);
  status->callback(
      [status_args, &context] { context.code = status_command(*status_args, context.terminal); });

  CLI::App* gpus = app.add_subcommand("gpus", "nodes and their GPUs, and who holds them");
  gpus->footer(std::string(kPlainCodes) +
               "Cells: ■ used, □ free, x unhealthy, - reserved, ? unknown. -o csv has a line for\n"
               "each GPU.\n"
               "Examples:\n"
               "  berth gpus --tree\n"
               "  berth gpus --devices -f cluster.json\n");
  const auto gpus_args = std::make_shared<GpusArguments>();
  add_show_options(*gpus, gpus_args->show);
  gpus->add_flag("--tree", gpus_args->tree, "by rack, a cell for each GPU");
  gpus->add_flag("--devices", gpus_args->devices, "the tree, with a line for each GPU");
  gpus->add_option("--agent-namespace", gpus_args->show.view.agent_namespace,
                   "where berth is installed (default berth-system): no other\nagents are believed")
      ->type_name("NS");
  gpus->callback(
      [gpus_args, &context] { context.code = gpus_command(*gpus_args, context.terminal); });

  CLI::App* doctor =
      app.add_subcommand("doctor", "checks a cluster and says what to do (docs/doctor.md)");
  doctor->footer(
      "Exit code: 0 healthy, 10 warnings, 40 errors, 1 the cluster cannot be reached or a\n"
      "file not read, 2 the command line is wrong.\n"
      "Example:  berth doctor --context production\n");
  const auto doctor_args = std::make_shared<ViewArguments>();
  add_show_options(*doctor, *doctor_args);
  doctor->callback(
      [doctor_args, &context] { context.code = doctor_command(*doctor_args, context.terminal); });
}

void add_queue_commands(CLI::App& app, CommandContext& context) {
  CLI::App* queue = app.add_subcommand(
      "queue", "queues: quota, what is used and borrowed, who is next and why it\nwaits");
  queue->footer(std::string(kPlainCodes) +
                "Examples:\n"
                "  berth queue\n"
                "  berth queue research\n");
  const auto queue_args = std::make_shared<QueueArguments>();
  add_show_options(*queue, queue_args->show);
  queue->add_option("name", queue_args->name,
                    "a ClusterQueue, or a LocalQueue of the namespace: who waits there");
  queue->callback(
      [queue_args, &context] { context.code = queue_command(*queue_args, context.terminal); });

  CLI::App* preempted =
      app.add_subcommand("preempted", "who had to make room, when, why and for whom");
  preempted->footer(std::string(kPlainCodes) +
                    "Events are forgotten by the cluster after an hour or so.\n"
                    "Examples:\n"
                    "  berth preempted -A\n"
                    "  berth preempted resnet -n vision\n");
  const auto preempted_args = std::make_shared<PreemptedArguments>();
  add_show_options(*preempted, preempted_args->show);
  preempted->add_option("name", preempted_args->name, "a Job, Workload or Pod; may be ns/name");
  preempted->callback([preempted_args, &context] {
    context.code = preempted_command(*preempted_args, context.terminal);
  });
}

void add_fit_command(CLI::App& app, CommandContext& context) {
  CLI::App* fit = app.add_subcommand(
      "fit", "would a workload start now, when, or never, and why; changes nothing");
  fit->footer(
      "Exit code: 0 now, 10 not now, 30 never, 1 the cluster cannot be reached or a file not\n"
      "read, 2 the command line is wrong.\n"
      "Examples:\n"
      "  berth fit --gpus 8\n"
      "  berth fit --gpus 8 --pods 4 --model H100 --topology rack --queue research\n");
  const auto args = std::make_shared<FitArguments>();
  add_show_options(*fit, args->show);
  fit->add_option("--gpus", args->gpus, "of each pod (default 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 16));
  fit->add_option("--pods", args->pods, "that start together (default 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 10'000));
  fit->add_option("--model", args->model, "of the GPUs: H100, or the product's label")
      ->type_name("MODEL");
  fit->add_option("--topology", args->topology,
                  "all pods in one: rack, zone, block, host, or a node label")
      ->type_name("LEVEL");
  fit->add_option("--queue", args->queue,
                  "a LocalQueue of the namespace, or a ClusterQueue; - for none\n(default: the "
                  "namespace's LocalQueue named default, else none)")
      ->type_name("NAME");
  fit->add_option("--priority-class", args->priority_class, "of the pods or the workload")
      ->type_name("NAME");
  fit->add_option("--cpu", args->cpu, "of each pod (default: asks for none)")
      ->type_name("QUANTITY");
  fit->add_option("--memory", args->memory, "of each pod (default: asks for none)")
      ->type_name("QUANTITY");
  fit->callback([args, &context] { context.code = fit_command(*args, context.terminal); });
}

void add_version_command(CLI::App& app, CommandContext& context) {
  CLI::App* version =
      app.add_subcommand("version", "berth's version, and the server's where one is reached");
  version->footer(
      "Exit code: 0 told, 1 the cluster cannot be reached, 2 the command line is wrong.\n");
  const auto args = std::make_shared<VersionArguments>();
  add_cluster_options(*version, args->view);
  version->add_flag("--client", args->client, "do not ask the server");
  version->add_option("-o,--output", args->output, "how to print it (default table)")
      ->type_name("table|json|yaml");
  version->callback([args, &context] { context.code = version_command(*args, context.terminal); });
}

void add_completion_command(CLI::App& app, CommandContext& context) {
  CLI::App* completion = app.add_subcommand(
      "completion", "a script that completes commands, options and names in a shell");
  completion->footer(
      "Exit code: 0 written, 2 the command line is wrong.\n"
      "Names of pods, jobs, queues and namespaces are asked of the cluster, two seconds at most.\n"
      "kubectl completes `kubectl berth` by itself where kubectl_complete-berth is in PATH.\n"
      "Examples:\n"
      "  source <(berth completion bash)\n"
      "  berth completion fish | source\n");
  const auto shell = std::make_shared<std::string>();
  completion->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->callback([shell, &context] {
    const Result<std::string> script = completion_script(*shell);
    context.code = script.ok() ? 0 : kExitUsage;
    if (script.ok()) context.terminal.out << *script;
  });
}

}  // namespace

void add_choice_options(CLI::App& command, kube::ConfigChoice& choice) {
  command
      .add_option("--kubeconfig", choice.kubeconfig,
                  "the cluster (default $KUBECONFIG, ~/.kube/config)")
      ->type_name("FILE");
  command.add_option("--context", choice.context, "of the kubeconfig")->type_name("NAME");
  const auto as_kubectl = [&command](const char* name, auto& value, const char* help) {
    return command.add_option(name, value, help)->group("As of kubectl");
  };
  as_kubectl("--cluster", choice.cluster, "of the kubeconfig")->type_name("NAME");
  as_kubectl("--user", choice.user, "of the kubeconfig")->type_name("NAME");
  as_kubectl("-s,--server", choice.server, "address of the API server")->type_name("URL");
  as_kubectl("--token", choice.token, "bearer token")->type_name("TOKEN");
  as_kubectl("--as", choice.as, "act as this user")->type_name("USER");
  as_kubectl("--as-group", choice.as_groups, "and as of these groups")
      ->type_name("GROUP")
      ->allow_extra_args(false);
  as_kubectl("--certificate-authority", choice.ca_file, "whose certificates the server has")
      ->type_name("FILE");
  as_kubectl("--tls-server-name", choice.tls_server_name, "name in the server's certificate")
      ->type_name("NAME");
  as_kubectl("--request-timeout", choice.request_timeout,
             "of every request to the API server: 5s, 2m (default: berth's own)")
      ->type_name("TIME")
      ->check([](const std::string& given) {
        const Result<std::int64_t> time = kube::parse_request_timeout(given);
        return time.ok() ? std::string() : time.error().message();
      });
  command
      .add_option_function<int>(
          "-v,--v", [](int /*level*/) {}, "taken for kubectl's sake, and of no effect")
      ->type_name("LEVEL")
      ->group("As of kubectl");
  command
      .add_flag("--insecure-skip-tls-verify", choice.insecure,
                "do not look at the server's certificate")
      ->group("As of kubectl");
}

void add_watch_options(CLI::App& command, bool& on, int& every_s) {
  command.add_flag("-w,--watch", on, "again and again, until Ctrl-C; in a pipe: what changed");
  command.add_option("--every", every_s, "seconds between two looks (default 2)")
      ->type_name("N")
      ->check(CLI::Range(1, 3600));
}

void add_view_options(CLI::App& command, ViewOptions& options) {
  command
      .add_option("-f,--file", options.files,
                  "look at manifests or a snapshot instead of a cluster: files,\nfolders, or - for "
                  "standard input")
      ->type_name("PATH")
      ->allow_extra_args(false);  // a name may follow
  add_cluster_options(command, options);
  command.add_flag("-A,--all-namespaces", options.all_namespaces, "show those of all namespaces");
  command.add_option("--now", options.now, "the time it is (default: the clock's, the snapshot's)")
      ->type_name("RFC3339")
      ->check([](const std::string& given) {
        const Result<std::int64_t> time = text::parse_rfc3339(given);
        return time.ok() ? std::string() : time.error().to_string();
      });
  command
      .add_option("--scheduler-name", options.scheduler_names,
                  "pods of these are berth's (default berth)")
      ->type_name("NAME")
      ->allow_extra_args(false);
}

void add_view_commands(CLI::App& app, CommandContext& context) {
  add_fleet_commands(app, context);
  add_queue_commands(app, context);
  add_fit_command(app, context);
  add_snapshot_command(app, context);
  add_version_command(app, context);
  add_completion_command(app, context);
}

}  // namespace berth::app
