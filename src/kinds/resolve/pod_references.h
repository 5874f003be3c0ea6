// What pods and templates refer to by name: priority classes and volumes.
#pragma once

#include <string>
#include <vector>

#include "kinds/resolve/resolution.h"

namespace berth::kinds {

class PodReferences : private Part {
 public:
  explicit PodReferences(Resolution& all);

  const PriorityIndex& priorities() const { return priorities_; }

  // Its priority; false when it is refused. T is what the notes go to: a pod, or what makes some.
  template <class T>
  bool settle_priority(const Found<T>& at, const std::string& path, PodObject& pod) const;

  // Its volumes into pod. path: of the template, or empty. Equal ones need no telling twice.
  template <class T>
  void settle_volumes(const Found<T>& at, const std::string& path, const PodObject& from,
                      model::PodSpec& pod, bool tell = true) const {
    std::vector<std::string> warnings;
    volumes_.resolve(from.claims, pod, warnings);
    for (std::string& warning : warnings) {
      if (tell) in_.warn(at, path + "spec.volumes", std::move(warning));
    }
  }

 private:
  PriorityIndex priorities_;
  VolumeIndex volumes_;
};

}  // namespace berth::kinds
