#include "app/version_command.h"

#include <ostream>

#include "app/cluster_lister.h"
#include "app/sheet.h"
#include "kube/config.h"
#include "text/escape.h"
#include "text/json_writer.h"

namespace berth::app {

namespace {

struct Versions {
  std::string client = BERTH_VERSION;
  std::string server, where, trouble;
};

std::string versions_json(const Versions& versions) {
  text::JsonWriter out({.indent = 2});
  out.begin_object();
  out.field("version", "berth.dev/version/v1");
  out.field("client", versions.client);
  out.key("server");
  if (versions.server.empty()) {
    out.null();
  } else {
    out.value(versions.server);
  }
  out.field("address", versions.where);
  out.field("trouble", versions.trouble);
  out.end_object();
  return std::move(out).take();
}

// The words that may follow the program's name, and those that follow each command.
std::string bash_script(const std::vector<CompletionCommand>& commands) {
  std::string names, cases;
  for (const CompletionCommand& command : commands) {
    names += (names.empty() ? "" : " ") + command.name;
    std::string options, values;
    for (const auto& option : command.options) {
      options += (options.empty() ? "" : " ") + option.shown;
      if (option.values.empty() && !option.file) continue;
      std::string words;
      for (const std::string& value : option.values) words += (words.empty() ? "" : " ") + value;
      values += "        " + option.shown + ") " +
                (option.file ? "COMPREPLY=($(compgen -f -- \"$cur\"))"
                             : "COMPREPLY=($(compgen -W \"" + words + "\" -- \"$cur\"))") +
                "; return ;;\n";
    }
    cases += "    " + command.name + ")\n      case \"$prev\" in\n" + values +
             "      esac\n      COMPREPLY=($(compgen -W \"" + options +
             "\" -- \"$cur\"))\n      ;;\n";
  }
  return "# bash completion of berth: source <(berth completion bash)\n"
         "_berth() {\n"
         "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         names +
         "\" -- \"$cur\"))\n"
         "    return\n"
         "  fi\n"
         "  case \"${COMP_WORDS[1]}\" in\n" +
         cases +
         "  esac\n"
         "}\n"
         "complete -o default -F _berth berth kubectl-berth\n";
}

std::string quoted_for_zsh(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '[' || c == ']' || c == ':') {
      out += '\\';
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string zsh_script(const std::vector<CompletionCommand>& commands) {
  std::string names, cases;
  for (const CompletionCommand& command : commands) {
    names += "    '" + command.name + ':' + quoted_for_zsh(command.help) + "'\n";
    cases += "    " + command.name + ")\n      _arguments \\\n";
    for (const auto& option : command.options) {
      std::string action;
      for (const std::string& value : option.values) action += (action.empty() ? "" : " ") + value;
      cases += "        '" + option.shown + '[' + quoted_for_zsh(option.help) + ']';
      if (!action.empty()) cases += ":value:(" + action + ')';
      if (option.file) cases += ":file:_files";
      cases += "' \\\n";
    }
    cases += "        '*:file:_files'\n      ;;\n";
  }
  return "#compdef berth kubectl-berth\n"
         "# zsh completion of berth: source <(berth completion zsh)\n"
         "_berth() {\n"
         "  local -a commands\n"
         "  commands=(\n" +
         names +
         "  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe 'command' commands\n"
         "    return\n"
         "  fi\n"
         "  local command=\"$words[2]\"\n"
         "  shift words\n"
         "  (( CURRENT-- ))\n"
         "  case \"$command\" in\n" +
         cases +
         "  esac\n"
         "}\n"
         "compdef _berth berth kubectl-berth\n";
}

std::string fish_script(const std::vector<CompletionCommand>& commands) {
  const auto quote = [](const std::string& text) {
    std::string out = "'";
    for (const char c : text) {
      if (c == '\'' || c == '\\') out += '\\';
      out += c;
    }
    return out + '\'';
  };
  std::string out = "# fish completion of berth: berth completion fish | source\n";
  for (const CompletionCommand& command : commands) {
    out += "complete -c berth -n __fish_use_subcommand -f -a " + command.name + " -d " +
           quote(command.help) + '\n';
    for (const auto& option : command.options) {
      const bool is_long = option.shown.starts_with("--");
      out += "complete -c berth -n '__fish_seen_subcommand_from " + command.name + "' " +
             (is_long ? "-l " + option.shown.substr(2) : "-s " + option.shown.substr(1)) + " -d " +
             quote(option.help);
      std::string values;
      for (const std::string& value : option.values) values += (values.empty() ? "" : " ") + value;
      if (!values.empty()) out += " -x -a " + quote(values);
      if (option.file) out += " -r";
      out += '\n';
    }
  }
  return out + "complete -c kubectl-berth -w berth\n";
}

}  // namespace

int version_command(const VersionArguments& arguments, Terminal& terminal) {
  if (arguments.output != "table" && arguments.output != "json" && arguments.output != "yaml") {
    terminal.err << "berth: --output: found \"" << text::terminal_safe(arguments.output)
                 << "\", want table, json or yaml\n";
    return 2;
  }
  Versions versions;
  int code = 0;
  if (!arguments.client) {
    const Result<kube::Config> config =
        kube::find_config(arguments.view.kubeconfig, arguments.view.context, terminal.environment);
    const bool named = !arguments.view.kubeconfig.empty() || !arguments.view.context.empty();
    if (config.ok()) {
      versions.where = config->server;
      const Result<kube::ServerVersion> server = version_of_server(*config, terminal);
      if (server.ok()) {
        versions.server = server->text;
      } else {
        versions.trouble = server.error().to_string();
        code = 1;
      }
    } else {
      versions.trouble = config.error().to_string();
      code = named ? 1 : 0;
    }
  }
  if (arguments.output == "json") {
    terminal.out << versions_json(versions) << '\n';
  } else if (arguments.output == "yaml") {
    terminal.out << yaml_of(versions_json(versions));
  } else {
    terminal.out << "berth       " << versions.client << '\n';
    if (!versions.server.empty()) {
      terminal.out << "kubernetes  " << text::terminal_safe(versions.server) << " at "
                   << text::terminal_safe(versions.where) << '\n';
    }
  }
  if (!versions.trouble.empty()) {
    terminal.err << "berth: no server: " << text::terminal_safe(versions.trouble) << '\n';
  }
  return code;
}

Result<std::string> completion_script(const std::string& shell,
                                      const std::vector<CompletionCommand>& commands) {
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  return invalid("found shell " + text::terminal_safe(shell) + ", want bash, zsh or fish");
}

}  // namespace berth::app
