// berth snapshot: writes down what a cluster has, for -f of every other command.
#pragma once

#include <string>

#include "app/views/cluster_view.h"

namespace berth::app {

struct SnapshotArguments {
  ViewOptions view;
  std::string file;        // empty: standard output
  bool arguments = false;  // what may hold secrets, too (kinds/kept.h)
};

// 0 written, 1 the cluster cannot be reached or the file not written, 2 the options are wrong.
int snapshot_command(const SnapshotArguments& arguments, Terminal& terminal);

}  // namespace berth::app
