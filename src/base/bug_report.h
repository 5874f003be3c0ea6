// Survived bugs, logged and counted as berth_bug_total{site="decide/schedule/gang.cc:120"}.
//
// The shipped commands construct one first thing in main() and keep it to the end; tests do not, so
// that a bug aborts them. One at a time per process. Thread-safe.
#pragma once

#include "base/check.h"
#include "base/log.h"
#include "base/metrics.h"

namespace berth {

class BugReporter final : public BugSink {
 public:
  BugReporter(const Logger& log, MetricsRegistry& metrics);  // installs itself
  ~BugReporter() override;                                   // puts back what was there
  BugReporter(const BugReporter&) = delete;
  BugReporter& operator=(const BugReporter&) = delete;

  void bug(const BugSite& site) noexcept override;

 private:
  const Logger& log_;
  CounterFamily& bugs_;
  BugSink* before_;
};

}  // namespace berth
