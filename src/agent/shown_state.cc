#include "agent/shown_state.h"

#include "edge/host/host.h"

namespace berth::agent {

void ShownState::show(const monitor::ExportInput* input, const monitor::ExportOptions& exporting,
                      const monitor::NodeSights& seen, std::int64_t ticks_ns) {
  buffer_.clear();
  if (input != nullptr) monitor::export_metrics(*input, exporting, buffer_);
  const monitor::NodeState judged = monitor::node_state(seen);
  std::string json = monitor::status_json(seen, judged);
  keep(seen, judged, json);
  const MutexLock lock(mutex_);
  page_ = buffer_;
  status_.swap(json);
  at_ = ticks_ns;
}

std::string ShownState::page() const {
  const MutexLock lock(mutex_);
  return page_;
}

std::string ShownState::status() const {
  const MutexLock lock(mutex_);
  return status_;
}

std::int64_t ShownState::shown_at() const {
  const MutexLock lock(mutex_);
  return at_;
}

void ShownState::keep(const monitor::NodeSights& seen, const monitor::NodeState& judged,
                      const std::string& json) {
  if (state_dir_.empty() || json == kept_) return;
  kept_ = json;
  Status wrote = host::write_atomically(state_dir_ + "/status.json", json);
  if (wrote.ok()) {
    wrote = host::write_atomically(state_dir_ + "/status.txt", monitor::status_table(seen, judged));
  }
  if (!wrote.ok()) log_.warn("status could not be kept", {{"error", wrote.error().to_string()}});
}

}  // namespace berth::agent
