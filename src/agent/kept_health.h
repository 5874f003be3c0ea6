// The verdicts on GPUs, kept over a restart in a file of the state folder.
#pragma once

#include <string>

#include "base/log.h"
#include "node/monitor/health.h"

namespace berth::agent {

class KeptHealth {
 public:
  // path empty: nothing is kept.
  KeptHealth(const monitor::HealthOptions& options, std::string path, const Logger& log)
      : book(options), path_(std::move(path)), log_(log) {}

  void restore(const std::string& host_root);  // and whether the machine booted since
  void keep();

  monitor::HealthBook book;

 private:
  std::string path_, written_;
  const Logger& log_;
};

}  // namespace berth::agent
