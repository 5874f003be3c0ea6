// berth replay: makes the decisions of a log again and compares them.
#pragma once

#include <string>

#include "app/cli/cli.h"

namespace berth::app {

struct ReplayArguments {
  std::string file;
  std::string at;  // the id of a decision: show it as it is made now; empty: none
};

// 0 all came out the same, 1 one differs or is not there, 2 the file is damaged or cannot be read.
int replay_command(const ReplayArguments& arguments, Terminal& terminal);

}  // namespace berth::app
