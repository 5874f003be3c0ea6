#include <CLI/CLI.hpp>
#include <memory>

#include "app/cli/command_table.h"
#include "app/lint/lint_command.h"

namespace berth::app {

namespace {

constexpr const char* kLintHelp =
    "finds what is wrong with manifests: fields, versions, GPUs, queues,\n"
    "quotas, metrics; scripts that install them as well";
constexpr const char* kLintFooter =
    "Exit code: 0 nothing is wrong, 1 errors were found (with --strict warnings count too),\n"
    "20 something is unreadable, 2 the command line is wrong.\n"
    "Examples:\n"
    "  berth lint job.yaml queues/\n"
    "  kubectl get clusterqueues -o yaml | berth lint -\n"
    "  berth lint --rules\n";
constexpr const char* kConvertHelp =
    "writes a manifest with what can be corrected without asking, and\n"
    "leaves comments, order and everything else as it is";
constexpr const char* kConvertFooter =
    "Exit code: 0 nothing is left to correct, 1 something is (it is listed), 20 the file is\n"
    "unreadable and nothing is written, 2 the command line is wrong.\n"
    "Examples:\n"
    "  berth convert nodepool.yaml -o nodepool.v1.yaml\n"
    "  berth convert --diff job.yaml\n"
    "  berth convert --in-place job.yaml\n";

}  // namespace

void add_lint_commands(CLI::App& app, CommandContext& context) {
  CLI::App* lint = app.add_subcommand("lint", kLintHelp);
  lint->footer(kLintFooter);
  const auto args = std::make_shared<LintArguments>();
  lint->add_option("files", args->paths,
                   "files, folders (*.yaml *.yml *.json *.sh *.promql *.py), or -\nfor standard "
                   "input")
      ->type_name("FILE");
  lint->add_option("-o,--output", args->output, "how to print findings (default text)")
      ->type_name("text|json|yaml|csv");
  lint->add_flag("--strict", args->strict, "warnings count for the exit code too");
  lint->add_flag("--rules", args->rules, "list every rule and why it matters");
  lint->add_option("--max-input", args->max_input, "refuse more input than this (default 256Mi)")
      ->type_name("SIZE");
  lint->callback([args, &context] { context.code = lint_command(*args, context.terminal); });

  CLI::App* convert = app.add_subcommand("convert", kConvertHelp);
  convert->footer(kConvertFooter);
  const auto how = std::make_shared<ConvertArguments>();
  convert->add_option("file", how->path, "the manifest, or - for standard input")
      ->required()
      ->type_name("FILE");
  CLI::Option* out =
      convert->add_option("-o,--output", how->out, "write here (default standard output)")
          ->type_name("FILE");
  CLI::Option* place = convert->add_flag("--in-place", how->in_place, "change the file itself");
  CLI::Option* diff = convert->add_flag("--diff", how->diff, "print only what would change");
  place->excludes(out)->excludes(diff);
  diff->excludes(out);
  convert->callback([how, &context] { context.code = convert_command(*how, context.terminal); });
}

}  // namespace berth::app
