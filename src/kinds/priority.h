// scheduling.k8s.io/v1 PriorityClass, and what a class name is worth.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "kinds/meta.h"

namespace berth::kinds {

struct PriorityClassObject {
  Meta meta;
  int value = 0;
  bool global_default = false;
  bool preempts = true;
};
void decode(const text::Value& v, PriorityClassObject& out, text::Decoder& d);

struct ResolvedPriority {
  int value = 0;
  std::string name;
  bool preempts = true;
};

// system-cluster-critical and system-node-critical are always there.
class PriorityIndex {
 public:
  PriorityIndex();
  void add(const PriorityClassObject& object);

  // An empty name: the global default (of several the lowest, as Kubernetes does), else 0.
  // Nothing when the class does not exist.
  std::optional<ResolvedPriority> find(std::string_view name) const;

 private:
  std::map<std::string, ResolvedPriority, std::less<>> classes_;
  std::optional<ResolvedPriority> default_;
};

}  // namespace berth::kinds
