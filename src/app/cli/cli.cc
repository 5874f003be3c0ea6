#include "app/cli/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>
#include <sstream>

#include "app/cli/command_table.h"
#include "app/cli/complete.h"
#include "app/cli/kubectl_flags.h"
#include "kinds/readers.h"
#include "people/view/wrap.h"
#include "text/escape.h"
#include "text/nearest.h"

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

// "; did you mean status?", where a word is near.
std::string meant(std::string_view word, const std::vector<std::string>& known) {
  const std::string near = text::nearest(word, known);
  return near.empty() ? "" : "; did you mean " + near + '?';
}

// The first option that the command does not have, and the one that was meant; empty: none such.
std::string unknown_option(const CLI::App& command, const std::vector<std::string>& arguments) {
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (name == "--") return "";
    if (!name.starts_with("--") || std::find(known.begin(), known.end(), name) != known.end()) {
      continue;
    }
    return "found option " + text::terminal_safe(name) + ", which " + command.get_name() +
           " does not have" + meant(name, known);
  }
  return "";
}

// What is wrong with the words: CLI11 names those it did not expect from the last to the first.
std::string usage_trouble(const CLI::ParseError& error, const CLI::App* command,
                          const std::vector<std::string>& arguments) {
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const std::string unknown =
      extra && command != nullptr ? unknown_option(*command, arguments) : std::string();
  return unknown.empty() ? text::terminal_safe(error.what()) : unknown;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::vector<CompletionCommand> known_to_shells(const std::vector<CLI::App*>& commands) {
  std::vector<CompletionCommand> out;
  for (const CLI::App* command : commands) {
    if (command->get_group().empty()) continue;
    CompletionCommand known{command->get_name(), first_line(command->get_description()), {}};
    for (const CLI::Option* option : command->get_options()) {
      const std::string type = option->get_type_name();
      CompletionCommand::Option one{"", first_line(option->get_description())};
      one.value = option->get_type_size_max() > 0;
      one.file = type == "FILE" || type == "PATH" || type == "DIR";
      if (type.find('|') != std::string::npos) {
        for (const std::string_view value : kinds::split(type, "|")) {
          one.values.emplace_back(value);
        }
      }
      for (const std::string& name : option->get_lnames()) {
        one.shown = "--" + name;
        known.options.push_back(one);
      }
      for (const std::string& name : option->get_snames()) {
        one.shown = "-" + name;
        known.options.push_back(one);
      }
    }
    out.push_back(std::move(known));
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

int run_command(const std::vector<std::string>& given, Terminal& terminal) {
  const std::vector<std::string> arguments = command_first(given);
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
  if (named && arguments[0] == kCompleteCommand) {
    terminal.out << completion_lines(complete({arguments.begin() + 1, arguments.end()},
                                              known_to_shells(commands),
                                              names_of_cluster(terminal)));
    return 0;
  }
  const auto command = std::find_if(commands.begin(), commands.end(), [&](const CLI::App* one) {
    return named && one->get_name() == arguments[0];
  });
  const bool asks_app = !arguments.empty() && (arguments[0] == "-h" || arguments[0] == "--help" ||
                                               arguments[0] == "--version");
  if (!asks_app && (arguments.empty() || !named || command == commands.end())) {
    std::vector<std::string> names;
    for (const CLI::App* one : commands) {
      if (!one->get_group().empty()) names.push_back(one->get_name());
    }
    const std::string found =
        named ? "found command " + text::terminal_safe(arguments[0]) + meant(arguments[0], names)
        : arguments.empty()
            ? "found no command"
            : "found option " + text::terminal_safe(arguments[0]) + " before a command";
    std::string text;
    people::wrap("", 2, "berth: " + found + "; there are: " + names_of(commands), text);
    terminal.err << text << "berth: see " << terminal.program << " --help\n";
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
    const CLI::App* used = command == commands.end() ? nullptr : *command;
    terminal.err << "berth: " << usage_trouble(error, used, arguments) << '\n'
                 << "berth: see " << terminal.program << ' ' << (named ? arguments[0] + " " : "")
                 << "--help\n";
    return kExitUsage;
  }
  return context.code;
}

}  // namespace berth::app
