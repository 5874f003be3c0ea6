#include <CLI/CLI.hpp>
#include <memory>

#include "app/cli/command_table.h"
#include "app/plan/replay_command.h"

namespace berth::app {

void add_replay_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "replay",
      "makes the decisions of a log again (berth controller\n--decision-inputs) and compares them");
  command->footer(
      "Exit code: 0 all came out the same, 1 one differs, 2 the file is damaged.\n"
      "Examples:\n"
      "  berth replay inputs.log\n"
      "  berth replay inputs.log --at 8d1f0c2b7a90e3f4   # an id of the decision log\n");
  const auto args = std::make_shared<ReplayArguments>();
  command->add_option("file", args->file, "the log")->required()->type_name("FILE");
  command->add_option("--at", args->at, "show this decision as it is made now")->type_name("ID");
  command->callback([args, &context] { context.code = replay_command(*args, context.terminal); });
}

}  // namespace berth::app
