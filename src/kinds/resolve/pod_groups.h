// Groups of pods that start together, of any scheduler, by "ns/name".
#pragma once

#include <map>
#include <string>
#include <utility>

#include "kinds/resolve/known_nodes.h"
#include "kinds/resolve/pod_references.h"
#include "kinds/resolve/resolution.h"

namespace berth::kinds {

class PodGroups : private Part {
 public:
  PodGroups(Resolution& all, const PodReferences& references);

  const model::GangSpec* find(const std::string& key) const;  // null: there is none
  // False: there is one of its name. at: where notes on it go.
  bool add(model::GangSpec gang, const Origin& at, const std::string& shown);
  // Priority and group of a pod or a template; false when it is refused.
  template <class T>
  bool settle(const Found<T>& at, const std::string& path, PodObject& pod);

  bool is_kai(const std::string& key) const { return kai_.contains(key); }
  // The queue of Kueue that the group's label, or its Workload's, names; null: neither does.
  const std::string* kueue_queue(const std::string& key) const;
  void note(const std::string& key, std::string message);
  void warn(const std::string& key, std::string path, std::string message);

  void replace(const std::string& key);  // a workload of a queue stands for it from here on
  void finish(const KnownNodes& nodes);  // into the Inputs

 private:
  template <class T>
  bool join(const Found<T>& at, const std::string& path, PodObject& pod);
  template <class T>
  void take_topology(const Found<T>& at, const Membership& member, const model::PodSpec& pod,
                     model::GangSpec& gang);
  void check_workload_refs();

  const PodReferences& references_;
  std::map<std::string, model::GangSpec, std::less<>> gangs_;
  std::map<std::string, std::pair<Origin, std::string>, std::less<>> places_;
  std::map<std::string, std::string, std::less<>> kueue_queues_;
  NameSet kai_;
  NameSet replaced_;
};

}  // namespace berth::kinds
