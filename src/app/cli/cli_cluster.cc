#include <CLI/CLI.hpp>
#include <memory>

#include "app/cli/command_table.h"
#include "app/cluster/controller_command.h"
#include "app/cluster/run_job.h"
#include "app/cluster/up.h"

namespace berth::app {

namespace {

constexpr const char* kUpHelp =
    "an embedded GPU cluster on this machine: API server for kubectl,\n"
    "simulated nodes, controller; state in a folder";
constexpr const char* kUpFooter =
    "Exit code: 0 stopped as asked, 1 it could not start or broke, 2 the command line is wrong.\n"
    "Examples:\n"
    "  berth up\n"
    "  berth up --gpus 64 --data /tmp/lab\n"
    "  berth up --nodes examples/fleets/small.yaml\n";
constexpr const char* kRunHelp = "submits a Job and follows it to its end";
constexpr const char* kRunFooter =
    "Exit code: 0 it succeeded, 1 it failed or the cluster cannot be reached, 2 the command line\n"
    "is wrong, 130 Ctrl-C (the Job goes on).\n"
    "Example:\n"
    "  berth run --gpus 8 --pods 2 --seconds 30 -- python train.py\n";
constexpr const char* kControllerHelp =
    "the control plane on a Kubernetes cluster: admits, places, binds,\n"
    "preempts; one of several leads";
constexpr const char* kControllerFooter =
    "Exit code: 0 stopped as asked, 1 it could not go on, 2 the command line is wrong.\n"
    "Example:\n"
    "  berth controller --kubeconfig ~/.kube/config\n";

void add_up_options(CLI::App& up, UpOptions& args) {
  up.add_option("--nodes", args.fleet_file, "simulated machines: fleet YAML, see docs/fleet.md")
      ->type_name("FILE");
  up.add_option("--gpus", args.gpus, "without --nodes: so many H100s, eight a node (default 32)")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000));
  up.add_option("--data", args.data, "folder for the state (default berth-data)")->type_name("DIR");
  up.add_flag("--in-memory", args.in_memory, "keep nothing when it ends");
  up.add_option("--kubeconfig", args.kubeconfig, "where to write it (default DIR/kubeconfig)")
      ->type_name("FILE");
  up.add_option("--address", args.address, "listen there (default 127.0.0.1)")->type_name("ADDR");
  up.add_option("--port", args.port, "listen there (default 0: any free one)")->type_name("N");
  up.add_option("--page", args.page, "port of the web page on this machine, or none (default 8080)")
      ->type_name("PORT");
  up.add_flag("--no-controller", args.no_controller,
              "without berth's own control plane: run berth controller");
  up.add_flag("--demo", args.demo, "submit a dozen jobs, show what becomes of them, and end");
  up.add_option("--seed", args.seed, "of names and delays (default 1)")->type_name("N");
  up.add_option("--log-level", args.log_level, "debug, info or warn (default warn)")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warn"}));
}

void add_run_options(CLI::App& run, RunOptions& args) {
  run.add_option("--gpus", args.job.gpus, "of each pod (default 1)")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000));
  run.add_option("--pods", args.job.pods, "that start together (default 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 10'000));
  run.add_option("--name", args.job.name, "of the Job (default: the command and the time)")
      ->type_name("NAME");
  args.job.ns.clear();  // the context's, unless it is told
  run.add_option("-n,--namespace", args.job.ns, "of the Job (default: the context's)")
      ->type_name("NS");
  run.add_option("--queue", args.job.queue, "LocalQueue to wait in (default: the namespace's)")
      ->type_name("NAME");
  run.add_option("--image", args.job.image, "of its container (default busybox)")
      ->type_name("IMAGE");
  run.add_option("--cpu", args.job.cpu, "of each pod (default 1)")->type_name("QUANTITY");
  run.add_option("--memory", args.job.memory, "of each pod (default 1Gi)")->type_name("QUANTITY");
  run.add_option("--priority-class", args.job.priority_class, "of its pods")->type_name("NAME");
  run.add_option("--seconds", args.job.seconds, "how long simulated nodes let it run")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000));
  add_choice_options(run, args.cluster);
  run.add_flag("--detach", args.detach, "submit only");
  run.add_option("command", args.job.command, "what to run, after --")->type_name("CMD...");
}

// Who leaves the option out has no such server; who names no place has made a mistake.
std::string some_address(const std::string& given) {
  return given.empty() ? "found \"\", want HOST:PORT" : "";
}

void add_webhook_options(CLI::App& controller, ControllerArguments& args) {
  controller.add_option("--webhook", args.webhook_address, "serve the admission webhook there")
      ->type_name("HOST:PORT")
      ->check(some_address);
  controller.add_option("--webhook-url", args.webhook_url, "how the API server reaches it")
      ->type_name("URL");
  controller
      .add_option(
          "--webhook-service", args.webhook_service,
          "the Service by which it does, where manifests bring the\nwebhook's configuration")
      ->type_name("NAME");
  controller
      .add_option("--webhook-cert", args.webhook_certificate,
                  "its certificate, read anew on change (default: its own)")
      ->type_name("FILE");
  controller.add_option("--webhook-key", args.webhook_key, "of the certificate")->type_name("FILE");
  controller.add_flag(
      "--refuse-bypasses", args.refuse_bypasses,
      "the webhook refuses pods that reach for GPUs past their\nlimits (default: it warns)");
  controller.add_flag("--end-conversion", args.end_conversion,
                      "before an uninstall: convert Kueue's kinds no more,\nand end");
  // For tests: a life of seconds shows in seconds what a year does.
  controller.add_option("--webhook-authority-seconds", args.webhook_authority_seconds)
      ->check(CLI::Range(std::int64_t{12}, std::int64_t{10 * 365 * 86'400}))
      ->group("");
}

void add_controller_options(CLI::App& controller, ControllerArguments& args) {
  controller
      .add_option("--kubeconfig", args.kubeconfig,
                  "the cluster (default: the one it runs in, $KUBECONFIG,\n~/.kube/config)")
      ->type_name("FILE");
  controller.add_option("--context", args.context, "of the kubeconfig")->type_name("NAME");
  controller
      .add_option("--scheduler-name", args.scheduler_names,
                  "pods of these are ours (default berth); also volcano,\nkai-scheduler")
      ->type_name("NAME");
  controller.add_option("--policy", args.policy.policy, "as of berth plan")->type_name("POLICY");
  controller.add_option("--queue-policy", args.policy.queue_policy, "as of berth plan")
      ->type_name("RULES");
  controller.add_flag("--no-preemption", args.policy.no_preemption, "never evict a running pod");
  controller.add_flag("--keep-on-gpu-failure", args.keep_on_gpu_failure,
                      "leave pods on a GPU that broke where they are");
  controller.add_flag("--no-queues", args.no_queues, "leave Kueue's objects to Kueue");
  controller.add_flag("--no-election", args.no_election, "lead at once: only when it is alone");
  controller.add_option("--lease-namespace", args.lease_namespace, "default berth-system")
      ->type_name("NS");
  controller.add_option("--identity", args.identity, "in the lease (default host and process)")
      ->type_name("NAME");
  controller.add_option("--decision-log", args.decision_log, "every decision, as JSON lines")
      ->type_name("FILE");
  controller
      .add_option("--decision-inputs", args.decision_inputs,
                  "what decisions are made from, for berth replay")
      ->type_name("FILE");
  controller.add_option("--metrics", args.metrics_address, "serve /metrics there")
      ->type_name("HOST:PORT");
  controller
      .add_option("--health", args.health_address,
                  "serve /healthz and /readyz there, for probes: a port that\nnobody else fills")
      ->type_name("HOST:PORT")
      ->check(some_address);
  add_webhook_options(controller, args);
  controller
      .add_option("--page", args.page_address,
                  "serve the web page there, to tokens that may see it")
      ->type_name("HOST:PORT")
      ->check(some_address);
  controller.add_option("--page-cert", args.page_certificate, "its certificate (default: its own)")
      ->type_name("FILE");
  controller.add_option("--page-key", args.page_key, "of the certificate")->type_name("FILE");
  controller
      .add_option("--agent-port", args.agent_port,
                  "where agents serve metrics, for the page; 0: do not ask them (default 9400)")
      ->type_name("PORT");
  controller.add_option("--log-level", args.log_level, "debug, info or warn (default info)")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warn"}));
  controller.add_option("--log-format", args.log_format, "text or json (default text)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}));
}

}  // namespace

void add_cluster_commands(CLI::App& app, CommandContext& context) {
  CLI::App* up = app.add_subcommand("up", kUpHelp);
  up->footer(kUpFooter);
  const auto up_args = std::make_shared<UpOptions>();
  add_up_options(*up, *up_args);
  up->callback([up_args, &context] { context.code = up_command(*up_args, context.terminal); });
  CLI::App* run = app.add_subcommand("run", kRunHelp);
  run->footer(kRunFooter);
  const auto run_args = std::make_shared<RunOptions>();
  add_run_options(*run, *run_args);
  run->callback(
      [run_args, &context] { context.code = run_job_command(*run_args, context.terminal); });
  CLI::App* controller = app.add_subcommand("controller", kControllerHelp);
  controller->footer(kControllerFooter);
  const auto args = std::make_shared<ControllerArguments>();
  add_controller_options(*controller, *args);
  controller->callback(
      [args, &context] { context.code = controller_command(*args, context.terminal); });
}

}  // namespace berth::app
