// `berth agent-helper`: the short-lived process that changes GPUs for the agent. It reads one
// request from stdin, carries it out and writes one answer to stdout (node/partition/mig_words.h);
// it knows the verbs of that list and nothing else. Not for people: docs/privileges.md.
#pragma once

#include <string>

#include "app/cli/cli.h"

namespace berth::app {

struct HelperArguments {
  std::string library = "libnvidia-ml.so.1";
  std::string driver_root;
  std::string lock;  // a file: one helper at a time; empty: not looked at
};

// 0 done, 1 refused or failed (the answer says why), 2 the command line is wrong.
int agent_helper_command(const HelperArguments& arguments, Terminal& terminal);

}  // namespace berth::app
