#include "agent/kept_health.h"

#include <utility>

#include "edge/host/host.h"

namespace berth::agent {

void KeptHealth::restore(const std::string& host_root) {
  if (!path_.empty()) {
    const Result<std::string> kept = host::read_text(path_);
    const Status restored = kept.ok() ? book.restore(*kept) : Status();
    if (!restored.ok()) {
      log_.warn("what was known of the GPUs' health could not be read: it starts anew",
                {{"file", path_}, {"error", restored.error().to_string()}});
    }
  }
  const Result<std::string> boot =
      host::read_text(host_root + "/proc/sys/kernel/random/boot_id", 256);
  if (boot.ok()) book.set_boot(*boot);
}

void KeptHealth::keep() {
  if (path_.empty()) return;
  std::string text = book.save();
  if (text == written_) return;
  const Status wrote = host::write_atomically(path_, text);
  if (wrote.ok()) {
    written_ = std::move(text);
  } else {
    log_.warn("verdicts could not be kept", {{"error", wrote.error().to_string()}});
  }
}

}  // namespace berth::agent
