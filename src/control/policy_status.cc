#include "control/policy_status.h"

#include "kinds/policy.h"

namespace berth::control {

bool PolicyStatus::changed(const Change& change) {
  if (change.is("BerthPolicy")) dirty_.insert(change.key.name);
  return false;
}

bool PolicyStatus::tick(std::int64_t) {
  std::erase_if(dirty_, [this](const std::string& name) { return keep(name); });
  return false;
}

bool PolicyStatus::keep(const std::string& name) {
  const kube::Key at{"", name};
  const kube::ObjectPtr object = policies_.find(at);
  if (!object) return true;
  std::string patch =
      kinds::policy_status_patch(object->root(), flags_, common_.loop.wall().now_ns());
  if (patch.empty()) return true;
  Write write = write_patch(policies_.options().resource, at, kube::PatchType::kMerge,
                            std::move(patch), "status");
  write.kind = WriteClass::kStatus;
  write.key = "policy|" + name;
  write.copy = &policies_;
  common_.writer.add(std::move(write));
  return false;  // until it says so
}

}  // namespace berth::control
