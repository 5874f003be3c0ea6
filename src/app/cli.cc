#include "app/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "app/command_table.h"
#include "text/escape.h"

namespace berth::app {

namespace {

std::string names_of(const std::vector<CLI::App*>& commands) {
  std::string out;
  for (const CLI::App* command : commands) out += (out.empty() ? "" : ", ") + command->get_name();
  return out;
}

}  // namespace

int run_command(const std::vector<std::string>& arguments, Terminal& terminal) {
  CLI::App app("berth: a GPU platform for Kubernetes", "berth");
  app.set_version_flag("--version", std::string("berth ") + BERTH_VERSION);
  app.require_subcommand(1);
  CommandContext context{terminal};
  add_plan_command(app, context);
  add_cluster_commands(app, context);
  add_agent_command(app, context);
  add_lint_commands(app, context);
  add_view_commands(app, context);
  const bool named = !arguments.empty() && !arguments[0].starts_with('-');
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  if (named && std::none_of(commands.begin(), commands.end(), [&](const CLI::App* command) {
        return command->get_name() == arguments[0];
      })) {
    terminal.err << "berth: found command " << text::terminal_safe(arguments[0])
                 << ", want one of: " << names_of(commands) << "; see berth --help\n";
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
  return context.code;
}

}  // namespace berth::app
