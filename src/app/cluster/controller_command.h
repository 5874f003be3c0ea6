// `berth controller`: the control plane on any Kubernetes cluster, one of several at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/cli.h"
#include "app/plan/policy_option.h"

namespace berth::app {

struct ControllerArguments {
  std::string kubeconfig, context;  // empty: in the cluster, else the usual kubeconfig
  std::vector<std::string> scheduler_names = {"berth"};
  PolicyArguments policy;
  bool no_queues = false, keep_on_gpu_failure = false;
  bool no_election = false;
  std::string lease_namespace = "berth-system";
  std::string identity;                          // empty: host name and process id
  std::string decision_log;                      // a file; empty: none
  std::string decision_inputs;                   // a file for berth replay; empty: none
  std::string metrics_address = "127.0.0.1:0";   // "": none
  std::string health_address;                    // for probes alone; "": none
  std::string webhook_address;                   // "host:port"; empty: no webhook
  std::string webhook_url;                       // how the API server reaches it, or
  std::string webhook_service;                   // its Service, in lease_namespace
  std::string webhook_certificate, webhook_key;  // files; empty: a certificate of its own
  std::int64_t webhook_authority_seconds = 365 * 86'400;
  bool refuse_bypasses = false;            // the webhook does not only warn of them
  bool end_conversion = false;             // only that: before an uninstall
  std::string page_address;                // "host:port"; empty: no page
  std::string page_certificate, page_key;  // files; empty: a certificate of its own
  std::uint16_t agent_port = 9400;         // of the agents' metrics; 0: the page does not ask them
  std::string log_level = "info";
  std::string log_format = "text";
};

// 0 stopped as asked, 1 it could not go on (the leadership was lost, the cluster refused it), 2 the
// options are wrong.
int controller_command(const ControllerArguments& arguments, Terminal& terminal);

}  // namespace berth::app
