// The commands of the program: each group is declared in a file of its own (cli_*.cc), the only
// ones that see CLI11, and carried out elsewhere (*_command.h).
#pragma once

#include "app/cli/cli.h"

namespace CLI {
class App;
}
namespace berth::kube {
struct ConfigChoice;
}

namespace berth::app {

struct CommandContext {
  Terminal& terminal;
  int code = 0;  // what the command that ran returned
};

void add_plan_command(CLI::App& app, CommandContext& context);
void add_cluster_commands(CLI::App& app, CommandContext& context);  // up, run, controller
void add_agent_command(CLI::App& app, CommandContext& context);
void add_lint_commands(CLI::App& app, CommandContext& context);  // lint, convert
void add_replay_command(CLI::App& app, CommandContext& context);
void add_why_command(CLI::App& app, CommandContext& context);
void add_view_commands(CLI::App& app, CommandContext& context);  // status, queue, gpus, ...

// --kubeconfig, --context and the other flags of kubectl that choose a cluster (kubectl_flags.h).
void add_choice_options(CLI::App& command, kube::ConfigChoice& choice);

// -f, -n, -A, --kubeconfig, --context, --now, --scheduler-name: of every command that looks at a
// cluster.
struct ViewOptions;
void add_view_options(CLI::App& command, ViewOptions& options);

// -w, --every.
void add_watch_options(CLI::App& command, bool& on, int& every_s);

}  // namespace berth::app
