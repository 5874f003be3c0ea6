#include <CLI/CLI.hpp>
#include <memory>

#include "app/cli/command_table.h"
#include "app/views/watch.h"
#include "app/why/why_command.h"
#include "app/why/why_no_gpu_command.h"

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
    "  berth why job vision/resnet --watch\n"
    "  berth why vision/resnet -f examples/team-cluster\n";

constexpr const char* kNoGpuFooter =
    "Exit code: 0 nothing is wrong, 10 a warning or it has no node yet, 20 the pod must be\n"
    "corrected, 40 the node or a GPU is broken, 1 there is no such pod or nothing to look at, 2\n"
    "the command line is wrong.\n"
    "Examples:\n"
    "  berth why-no-gpu train-0 -n team\n"
    "  berth why-no-gpu team/train-0 --node-local\n"
    "  berth why-no-gpu team/train-0 -f cluster.json -o json\n";

void add_no_gpu_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "why-no-gpu",
      "why a pod sees no GPU though it should: each step of the way of a\nGPU into it");
  command->footer(kNoGpuFooter);
  const auto args = std::make_shared<NoGpuArguments>();
  command->add_option("pod", args->pod, "NAME or NAMESPACE/NAME")->required()->type_name("POD");
  add_view_options(*command, args->view);
  command->add_option("-o,--output", args->output, "how to print it (default table)")
      ->type_name("table|json|yaml");
  command->add_flag("--node-local", args->node_local,
                    "on the pod's node: look at the agent's status as well");
  command->add_option("--state-dir", args->state_dir, "of the agent (default /var/lib/berth)")
      ->type_name("DIR");
  command->callback(
      [args, &context] { context.code = why_no_gpu_command(*args, context.terminal); });
}

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
  why->add_option("--policy", args->policy.policy, "as of berth plan")->type_name("POLICY");
  why->add_option("--queue-policy", args->policy.queue_policy, "as of berth plan")
      ->type_name("RULES");
  why->add_flag("--no-preemption", args->policy.no_preemption, "never evict a running pod");
  why->add_flag("--quota-only", args->quota_only,
                "queues admit by quota (and topology) alone; another\nscheduler binds");
  why->add_flag("--holders", args->holders, "all who hold GPUs, on all nodes that could take it");
  why->add_option("--controller", args->controller,
                  "where the controller answers: https://HOST:PORT or\nNS/SERVICE:PORT (default "
                  "berth-system/berth-page:443)")
      ->type_name("PLACE");
  why->add_option("--controller-ca", args->controller_ca, "whose certificates the URL has")
      ->type_name("FILE");
  why->add_flag("--no-controller", args->no_controller,
                "look at what you may list, without asking it");
  const auto watch = std::make_shared<WatchOptions>();
  add_watch_options(*why, watch->on, watch->every_s);
  why->callback([args, watch, &context] {
    watch->between = args->output == "table" ? "\n" : args->output == "yaml" ? "---\n" : "";
    context.code = watched(*watch, context.terminal,
                           [&args](Terminal& terminal) { return why_command(*args, terminal); });
  });
  add_no_gpu_command(app, context);
}

}  // namespace berth::app
