// berth version.
#pragma once

#include <string>

#include "app/views/cluster_view.h"

namespace berth::app {

struct VersionArguments {
  ViewOptions view;
  bool client = false;  // do not ask the server
  std::string output = "table";
};

// 0 told; 1 a cluster was named and cannot be reached; 2 wrong options.
int version_command(const VersionArguments& arguments, Terminal& terminal);

}  // namespace berth::app
