#include "control/finalizers.h"

#include <string_view>

#include "kinds/readers.h"
#include "text/json_writer.h"
#include "text/path.h"

namespace berth::control {

using text::Value;

namespace {

constexpr std::string_view kManagedFinalizer = "kueue.x-k8s.io/managed";
constexpr std::int64_t kTryAgain = 5'000'000'000;

bool is_held(const Value& pod) {
  const Value* list = find(pod, "metadata.finalizers");
  if (list == nullptr) return false;
  for (const Value& one : list->items()) {
    if (one.string() == kManagedFinalizer) return true;
  }
  return false;
}

bool is_over(const Value& pod) {
  const Value* deleted = find(pod, "metadata.deletionTimestamp");
  if (deleted != nullptr && !deleted->is_null()) return true;
  const Value* phase = find(pod, "status.phase");
  return phase != nullptr && (phase->string() == "Succeeded" || phase->string() == "Failed");
}

// For this very pod, and whatever other finalizers it has stay.
std::string release_patch(const std::string& uid) {
  text::JsonWriter out;
  out.object([&] {
    out.object("metadata", [&] {
      out.field("uid", uid);
      out.array("$deleteFromPrimitiveList/finalizers", [&] { out.value(kManagedFinalizer); });
    });
  });
  return std::move(out).take();
}

}  // namespace

void Finalizers::pod_changed(const kube::Key& key, const Value& pod) {
  if (!is_held(pod) || !is_over(pod)) {
    due_.erase(key.to_string());
    return;
  }
  const Value* uid = find(pod, "metadata.uid");
  Due& due = due_[key.to_string()];
  due.key = key;
  due.uid = uid == nullptr ? std::string() : std::string(uid->string());
}

void Finalizers::clear() {
  for (auto& [name, due] : due_) due.writing = false;
}

void Finalizers::tick() {
  const std::int64_t now = loop_.monotonic().ticks_ns();
  for (auto& [name, due] : due_) {
    if (due.writing || now < due.not_before) continue;
    due.writing = true;
    writer_.add(
        WriteClass::kAct, due.key.ns,
        [key = due.key, patch = release_patch(due.uid)](kube::Client& client,
                                                        kube::Client::Done done) {
          return client.patch(kube::resources::pods(), key, kube::PatchType::kStrategic, patch, {},
                              std::move(done));
        },
        [this, pod = name](const kube::Answer& answer) {
          const auto it = due_.find(pod);
          if (it == due_.end()) return;
          it->second.writing = false;
          // The watch will say that it is off; asked again in case it says something else.
          it->second.not_before = loop_.monotonic().ticks_ns() + kTryAgain;
          if (answer.not_found()) due_.erase(it);
        });
  }
}

}  // namespace berth::control
