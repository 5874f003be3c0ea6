#include <CLI/CLI.hpp>
#include <memory>

#include "app/cluster_view.h"
#include "app/command_table.h"
#include "app/snapshot_command.h"

namespace berth::app {

namespace {

void add_cluster_options(CLI::App& command, ViewOptions& options) {
  command
      .add_option("--kubeconfig", options.kubeconfig,
                  "the cluster (default $KUBECONFIG, ~/.kube/config)")
      ->type_name("FILE");
  command.add_option("--context", options.context, "of the kubeconfig")->type_name("NAME");
  command.add_option("-n,--namespace", options.ns, "default: the context's")->type_name("NS");
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
  command->callback([args, &context] { context.code = snapshot_command(*args, context.terminal); });
}

}  // namespace

void add_view_options(CLI::App& command, ViewOptions& options) {
  command
      .add_option("-f,--file", options.files,
                  "look at manifests or a snapshot instead of a cluster: files,\nfolders, or - for "
                  "standard input")
      ->type_name("PATH");
  add_cluster_options(command, options);
  command.add_flag("-A,--all-namespaces", options.all_namespaces, "show those of all namespaces");
  command.add_option("--now", options.now, "the time it is (default: the clock's, the snapshot's)")
      ->type_name("RFC3339");
  command
      .add_option("--scheduler-name", options.scheduler_names,
                  "pods of these are berth's (default berth)")
      ->type_name("NAME");
}

void add_view_commands(CLI::App& app, CommandContext& context) {
  add_snapshot_command(app, context);
}

}  // namespace berth::app
