#include <CLI/CLI.hpp>
#include <memory>

#include "app/cli/command_table.h"
#include "app/plan/plan_command.h"

namespace berth::app {

namespace {

constexpr const char* kPlanHelp =
    "prints what of a cluster's manifests would be placed where, and why\n"
    "the rest waits; changes nothing";
constexpr const char* kPlanFooter =
    "Exit code: 0 everything is placed, 10 something waits, 20 something is invalid or\n"
    "unreadable, 2 the command line is wrong.\n"
    "Examples:\n"
    "  berth plan -f cluster.yaml -f jobs/\n"
    "  kubectl get nodes,pods,pvc,pv,pdb -A -o yaml | berth plan -f - -f new-job.yaml\n"
    "  berth plan -f examples/team-cluster --explain vision/resnet\n";

void add_plan_options(CLI::App& plan, PlanArguments& args) {
  plan.add_option("-f,--file", args.paths,
                  "manifests: files, folders (*.yaml *.yml *.json), or -\nfor standard input")
      ->required()
      ->type_name("PATH");
  plan.add_option("--cycles", args.cycles, "decision cycles to run (default until-stable)")
      ->type_name("N|until-stable");
  plan.add_option("-o,--output", args.output, "how to print the plan (default table)")
      ->type_name("table|json|yaml|csv");
  plan.add_option("--explain", args.explain, "why one workload waits, or where it goes")
      ->type_name("WORKLOAD");
  plan.add_option("--policy", args.policy.policy,
                  "fragmentation, pack or spread; rules follow after commas\n(default: the "
                  "BerthPolicy; see docs/policy.md)")
      ->type_name("POLICY");
  plan.add_flag("--no-preemption", args.policy.no_preemption, "never evict a running pod");
  plan.add_flag("--quota-only", args.quota_only,
                "queues admit by quota (and topology) alone; another\nscheduler binds");
  plan.add_option("--queue-policy", args.policy.queue_policy,
                  "preemption by queues beyond Kueue's rules (default: the\nBerthPolicy): "
                  "min-runtime=10m, budgets, "
                  "\nvictims=fewest|least-lost, owners-first, no-ping-pong,\nmax-evictions=N")
      ->type_name("RULES");
  plan.add_option("--max-input", args.max_input, "refuse more input than this (default 256Mi)")
      ->type_name("SIZE");
  plan.add_option("--now", args.now, "plan at this time (orders victims by lost work)")
      ->type_name("RFC3339");
}

}  // namespace

void add_plan_command(CLI::App& app, CommandContext& context) {
  CLI::App* plan = app.add_subcommand("plan", kPlanHelp);
  plan->footer(kPlanFooter);
  const auto args = std::make_shared<PlanArguments>();
  add_plan_options(*plan, *args);
  plan->callback([args, &context] { context.code = plan_command(*args, context.terminal); });
}

}  // namespace berth::app
