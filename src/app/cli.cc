#include "app/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>
#include <sstream>

#include "app/command_table.h"
#include "text/escape.h"

namespace berth::app {

namespace {

std::string names_of(const std::vector<CLI::App*>& commands) {
  std::string out;
  for (const CLI::App* command : commands) {
    if (command->get_group().empty()) continue;  // not for people
    out += (out.empty() ? "" : ", ") + command->get_name();
  }
  return out;
}

// Help as kubectl's users read it: where a command of ours is named, with the plugin's name.
std::string as_called(const std::string& text, const std::string& program,
                      const std::vector<CLI::App*>& commands) {
  constexpr std::string_view kOwn = "berth ";
  if (program == "berth") return text;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    const bool called =
        rest.starts_with(kOwn) && !out.ends_with("kubectl ") &&
        (out.empty() || out.back() == ' ' || out.back() == '\n' || out.back() == '(') &&
        std::any_of(commands.begin(), commands.end(), [&](const CLI::App* command) {
          return rest.substr(kOwn.size()).starts_with(command->get_name());
        });
    if (called) {
      out += program + ' ';
      at += kOwn.size();
    } else {
      out += text[at++];
    }
  }
  return out;
}

}  // namespace

int run_command(const std::vector<std::string>& arguments, Terminal& terminal) {
  CLI::App app("berth: a GPU platform for Kubernetes", terminal.program);
  app.set_version_flag("--version", std::string("berth ") + BERTH_VERSION);
  app.require_subcommand(1);
  CommandContext context{terminal};
  add_plan_command(app, context);
  add_why_command(app, context);
  add_cluster_commands(app, context);
  add_agent_command(app, context);
  add_lint_commands(app, context);
  add_replay_command(app, context);
  add_view_commands(app, context);
  const bool named = !arguments.empty() && !arguments[0].starts_with('-');
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  if (named && std::none_of(commands.begin(), commands.end(), [&](const CLI::App* command) {
        return command->get_name() == arguments[0];
      })) {
    terminal.err << "berth: found command " << text::terminal_safe(arguments[0])
                 << ", want one of: " << names_of(commands) << "; see " << terminal.program
                 << " --help\n";
    return kExitUsage;
  }
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::Success& success) {  // --help and --version
    std::ostringstream text;
    app.exit(success, text, terminal.err);
    terminal.out << as_called(text.str(), terminal.program, commands);
    return 0;
  } catch (const CLI::ParseError& error) {
    terminal.err << "berth: " << text::terminal_safe(error.what()) << '\n'
                 << "berth: see " << terminal.program << ' ' << (named ? arguments[0] + " " : "")
                 << "--help\n";
    return kExitUsage;
  }
  return context.code;
}

}  // namespace berth::app
