// `berth run`: submits one Job and follows it to its end.
#pragma once

#include <string>
#include <vector>

#include "app/cli/cli.h"
#include "app/cluster/job_manifest.h"
#include "edge/kube/config.h"

namespace berth::app {

struct RunOptions {
  JobAsk job;
  kube::ConfigChoice cluster;
  bool detach = false;  // do not follow
};

// 0 the Job succeeded (or was submitted, with detach), 1 it failed or the cluster could not be
// reached, 2 the options are wrong, 130 stopped by Ctrl-C (the Job goes on).
int run_job_command(const RunOptions& options, Terminal& terminal);

}  // namespace berth::app
