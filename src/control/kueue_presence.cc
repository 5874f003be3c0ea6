#include "control/kueue_presence.h"

#include <string_view>
#include <utility>

#include "text/path.h"
#include "text/yaml.h"

namespace berth::control {

bool KueuePresence::changed(const Change& change) {
  if (change.is("Lease")) {
    if (change.object != nullptr) {
      lease_.seen(*change.object, common_.now());
    } else {
      lease_.gone();
    }
    return true;
  }
  if (change.is("ConfigMap")) {
    configuration_changed(change);
    return true;
  }
  if (change.is("Namespace") || change.resource.kind.ends_with("Queue")) board_due_ = true;
  return false;
}

void KueuePresence::configuration_changed(const Change& change) {
  constexpr std::string_view kVersion = "config.kueue.x-k8s.io/v1beta2";
  bool read = false;
  if (change.object != nullptr) {
    const std::string_view yaml = text_at(*change.object, "data[controller_manager_config.yaml]");
    auto documents = text::parse_yaml(yaml);
    if (documents.ok() && !documents->empty()) {
      const text::Value& root = documents->front().root();
      const text::Value* version = root.find("apiVersion");
      common_.world.put(version == nullptr ? kVersion : version->string(), "Configuration", root);
      read = true;
    } else {
      common_.log.warn("Kueue's Configuration cannot be read", {{"configmap", change.name()}});
    }
  }
  if (!read) common_.world.remove(kVersion, "Configuration", "", "");
  board_due_ = true;
}

// Where Kueue runs, its own webhook does what there is to do.
void KueuePresence::tell_webhook() {
  if (board_ == nullptr) return;
  const bool ours = leaves_queues_to_us();
  if (!std::exchange(board_due_, false) && ours == board_ours_) return;
  board_ours_ = ours;
  board_->tell(ours ? common_.world.objects().queue_demands() : kinds::QueueDemands());
}

std::string KueuePresence::trouble() {
  if (!manage_queues_ || !lease_.live(common_.now())) return {};
  if (!std::exchange(said_, true)) {
    common_.log.warn("queues are left to Kueue", {{"lease", lease_.holder()}});
  }
  return "queues are left to Kueue, which is running: its lease is held by " + lease_.holder();
}

}  // namespace berth::control
