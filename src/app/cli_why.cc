#include <CLI/CLI.hpp>
#include <memory>

#include "app/command_table.h"
#include "app/why_command.h"

namespace berth::app {

namespace {

constexpr const char* kWhyHelp =
    "why a pod, job, workload or pod group waits, and what would let it\nstart; changes nothing";
constexpr const char* kWhyFooter =
    "Exit code: 0 it runs, 10 it waits, 20 something must be corrected, 30 it never fits,\n"
    "40 the platform is broken, 1 nothing to look at, 2 the command line is wrong.\n"
    "Examples:\n"
    "  berth why job vision/resnet\n"
    "  berth why pod train-0 -n team -o json\n"
    "  berth why vision/resnet -f examples/team-cluster\n";

}  // namespace

void add_why_command(CLI::App& app, CommandContext& context) {
  CLI::App* why = app.add_subcommand("why", kWhyHelp);
  why->footer(kWhyFooter);
  const auto args = std::make_shared<WhyArguments>();
  why->add_option("subject", args->subject,
                  "pod|job|workload|podgroup NAME, or NAME; NAME may be\nNAMESPACE/NAME")
      ->required()
      ->expected(1, 2)
      ->type_name("KIND NAME");
  add_view_options(*why, args->view);
  why->add_option("-o,--output", args->output, "how to print it (default table)")
      ->type_name("table|json|yaml");
  why->add_option("--policy", args->policy, "as of berth plan")->type_name("POLICY");
  why->add_option("--queue-policy", args->queue_policy, "as of berth plan")->type_name("RULES");
  why->add_flag("--no-preemption", args->no_preemption, "never evict a running pod");
  why->add_flag("--quota-only", args->quota_only,
                "queues admit by quota (and topology) alone; another\nscheduler binds");
  why->callback([args, &context] { context.code = why_command(*args, context.terminal); });
}

}  // namespace berth::app
