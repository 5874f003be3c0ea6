// Which resources are served, in which versions, and what is special about them.
//
// Built-in kinds come from sim/schema at the start; CustomResourceDefinitions add and take away
// theirs at run time. A Type is immutable and outlives its registration where a request holds it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "embedded/api/api_error.h"
#include "embedded/api/storage.h"
#include "kinds/schema/schema.h"

namespace berth::sim::api {

enum class Role : std::uint8_t {
  kPlain,
  kPod,
  kNode,
  kNamespace,
  kCrd,
  kEvent,
  kPriorityClass,
  kClaim,   // PersistentVolumeClaim
  kVolume,  // PersistentVolume
  kBudget,  // PodDisruptionBudget
  kMutatingHook,
  kValidatingHook,
  kService,
  kStorageClass,
  kSigningRequest,
  kReview,  // answered, never stored
};

struct Type {
  KindPtr kind;
  Shelf* shelf = nullptr;
  Role role = Role::kPlain;
  bool events_api = false;        // events.k8s.io, a view of the core events
  bool create_on_update = false;  // PUT of something that is not there makes it
  bool unconditional = true;      // PUT without a resourceVersion is taken
  bool returns_deleted = false;   // DELETE answers with the object, not a Status
  std::string crd;                // name of the CRD it comes from

  GroupResource resource() const { return {kind->group, kind->plural}; }
};
using TypePtr = std::shared_ptr<const Type>;

class Registry {
 public:
  explicit Registry(Storage& storage) : storage_(storage) {}

  void add_builtins();
  // All versions of one CRD, in place of those it had before; none takes them away.
  void set_custom(const std::string& crd, const std::vector<KindPtr>& kinds);

  TypePtr find(std::string_view group, std::string_view version, std::string_view plural) const;
  // The first one served of that kind; nullptr: none.
  TypePtr find_kind(std::string_view group, std::string_view kind) const;
  TypePtr of_shelf(const Shelf& shelf) const;  // in the stored version
  bool serves(std::string_view group, std::string_view version) const;
  const std::vector<TypePtr>& types() const { return types_; }  // in the order of discovery
  std::uint64_t generation() const { return generation_; }      // changes when types do

 private:
  void add(const KindPtr& kind, const std::string& crd);

  Storage& storage_;
  std::vector<TypePtr> types_;
  std::uint64_t generation_ = 0;
};

}  // namespace berth::sim::api
