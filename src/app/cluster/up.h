// `berth up`: the embedded cluster until somebody stops it, or for the length of a demo.
#pragma once

#include <cstdint>
#include <string>

#include "app/cli/cli.h"

namespace berth::app {

struct UpOptions {
  std::string fleet_file;  // empty: gpus
  int gpus = 32;
  std::string data = "berth-data";
  bool in_memory = false;
  std::string kubeconfig;  // empty: in the data folder
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;
  std::string page;  // a port of this machine, or none; empty: 8080, or any where that is taken
  bool no_controller = false;
  bool demo = false;
  std::uint64_t seed = 1;
  std::string log_level = "warn";
};

// 0 stopped as asked, 1 it could not start or broke, 2 the options are wrong.
int up_command(const UpOptions& options, Terminal& terminal);

}  // namespace berth::app
