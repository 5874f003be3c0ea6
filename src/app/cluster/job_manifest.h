// The Job that `berth run` and the demo submit, as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace berth::app {

struct JobAsk {
  std::string ns = "default", name;
  int pods = 1;  // all at once
  int gpus = 1;  // of each pod; 0: none
  std::string queue;
  std::string image = "busybox";
  std::vector<std::string> command;
  std::string cpu = "1", memory = "1Gi";
  int seconds = -1;  // how long simulated nodes let it run; -1: not said
  int exit_code = 0;
  std::string priority_class;
  std::string scheduler_name = "berth";
};

std::string job_manifest(const JobAsk& ask);

}  // namespace berth::app
