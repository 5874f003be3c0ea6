// What the agent shows of itself: the page that Prometheus reads, the status, and the files of it
// for `berth agent status`, which asks nobody: they are there when the agent is not.
//
// Written on the loop's thread, read on any.
#pragma once

#include <cstdint>
#include <string>

#include "base/log.h"
#include "base/mutex.h"
#include "node/monitor/exporter.h"
#include "node/monitor/node_state.h"

namespace berth::agent {

class ShownState {
 public:
  // state_dir empty: no files.
  ShownState(std::string state_dir, const Logger& log)
      : state_dir_(std::move(state_dir)), log_(log) {}

  // input: null where there is no inventory yet.
  void show(const monitor::ExportInput* input, const monitor::ExportOptions& exporting,
            const monitor::NodeSights& seen, std::int64_t ticks_ns);

  std::string page() const;
  std::string status() const;  // JSON
  std::int64_t shown_at() const;

 private:
  void keep(const monitor::NodeSights& seen, const monitor::NodeState& judged,
            const std::string& json);

  std::string state_dir_;
  const Logger& log_;
  mutable Mutex mutex_;
  std::string page_ BERTH_GUARDED_BY(mutex_), status_ BERTH_GUARDED_BY(mutex_);
  std::int64_t at_ BERTH_GUARDED_BY(mutex_) = 0;  // monotonic
  std::string kept_, buffer_;                     // the loop's alone
};

}  // namespace berth::agent
