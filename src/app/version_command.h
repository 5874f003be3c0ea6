// berth version and berth completion.
#pragma once

#include <string>
#include <vector>

#include "app/cluster_view.h"

namespace berth::app {

struct VersionArguments {
  ViewOptions view;
  bool client = false;  // do not ask the server
  std::string output = "table";
};

// 0 told; 1 a cluster was named and cannot be reached; 2 wrong options.
int version_command(const VersionArguments& arguments, Terminal& terminal);

// What a shell may complete.
struct CompletionCommand {
  std::string name, help;  // help: the first line
  struct Option {
    std::string shown, help;  // "--watch", "-n"
    std::vector<std::string> values;
    bool file = false;  // takes the name of a file
  };
  std::vector<Option> options;
};

// A script for bash, zsh or fish. Names are ours: nothing in it comes from outside.
Result<std::string> completion_script(const std::string& shell,
                                      const std::vector<CompletionCommand>& commands);

}  // namespace berth::app
