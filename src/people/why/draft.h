// A change of the cluster that is tried: what the model of it becomes, and which objects say so.
//
// Both sides are edited together by whoever proposes a change; trial.h runs the decision on the
// model's side, and the objects' side is what people are told to apply.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/workload.h"
#include "text/tree.h"

namespace berth::people {

using text::Tree;

// An object as a file or the API has it.
struct RawObject {
  std::string api_version, kind, ns, name, uid, resource_version;
  const text::Value* value = nullptr;
  bool lasts = true;  // the value is the source's own, not of a change that is tried
};

// Where objects can be looked up; without it fixes name no objects.
class ObjectSource {
 public:
  virtual ~ObjectSource() = default;
  virtual std::optional<RawObject> find(std::string_view kind, std::string_view ns,
                                        std::string_view name) const = 0;
  virtual std::vector<RawObject> of_kind(std::string_view kind) const = 0;
  // Of kinds of which there may be many; what of_kind() has, in its order.
  virtual std::vector<RawObject> in_namespace(std::string_view kind, std::string_view ns) const;
};

// No before: to be created. No after: to be deleted.
struct ObjectChange {
  std::string api_version, kind, ns, name;
  std::optional<Tree> before, after;
  friend bool operator==(const ObjectChange&, const ObjectChange&) = default;
};

struct Draft {
  std::map<std::string, model::PodSpec> pods;  // by "ns/name": new, or in place of the old
  std::set<std::string> gone_pods;             // "ns/name"
  std::set<std::string> own_pods;              // of pods: new ones of what is asked about
  std::map<std::string, model::NodeSpec> nodes;
  std::map<std::string, model::GangSpec> gangs;  // by "ns/name"
  std::set<std::string> gone_gangs;
  std::shared_ptr<model::QueueRules> queues;             // null: as they are
  std::map<std::string, model::WorkloadSpec> workloads;  // by "ns/name", in place of the old
  std::set<std::string> gone_workloads;
  std::vector<ObjectChange> objects;

  const model::QueueRules& rules(const model::QueueRules& otherwise) const {
    return queues ? *queues : otherwise;
  }
  // The object for editing, as earlier edits left it; null where the source does not have it.
  Tree* edit(const ObjectSource* source, std::string_view kind, std::string_view ns,
             std::string_view name);
  void remove(const ObjectSource* source, std::string_view kind, std::string_view ns,
              std::string_view name);
  void create(Tree object);
};

}  // namespace berth::people
