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

bool Finalizers::changed(const Change& change) {
  if (!change.is("Pod")) return false;
  if (change.object == nullptr || !is_held(*change.object) || !is_over(*change.object)) {
    due_.erase(change.name());
    return false;
  }
  due_[change.name()] = {change.key, std::string(text_at(*change.object, "metadata.uid"))};
  return false;
}

bool Finalizers::tick(std::int64_t) {
  if (!common_.queues_are_ours()) return false;
  for (const auto& [name, due] : due_) {
    Write write = write_patch(kube::resources::pods(), due.key, kube::PatchType::kStrategic,
                              release_patch(due.uid));
    write.key = "finalizer|" + name;
    write.done = [this, pod = name](const kube::Answer& answer) {
      if (answer.not_found()) due_.erase(pod);
      // The watch will say that it is off; asked again in case it says something else.
      common_.writer.hold("finalizer|" + pod, common_.now() + kTryAgain);
    };
    common_.writer.add(std::move(write));
  }
  return false;
}

}  // namespace berth::control
