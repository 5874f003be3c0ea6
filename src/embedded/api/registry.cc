#include "embedded/api/registry.h"

#include <algorithm>

namespace berth::sim::api {

namespace {

struct SpecialRole {
  std::string_view resource;
  Role role;
};
constexpr SpecialRole kSpecialRoles[] = {
    {"pods", Role::kPod},
    {"nodes", Role::kNode},
    {"namespaces", Role::kNamespace},
    {"customresourcedefinitions.apiextensions.k8s.io", Role::kCrd},
    {"events", Role::kEvent},
    {"events.events.k8s.io", Role::kEvent},
    {"priorityclasses.scheduling.k8s.io", Role::kPriorityClass},
    {"persistentvolumeclaims", Role::kClaim},
    {"persistentvolumes", Role::kVolume},
    {"poddisruptionbudgets.policy", Role::kBudget},
    {"mutatingwebhookconfigurations.admissionregistration.k8s.io", Role::kMutatingHook},
    {"validatingwebhookconfigurations.admissionregistration.k8s.io", Role::kValidatingHook},
    {"services", Role::kService},
    {"storageclasses.storage.k8s.io", Role::kStorageClass},
    {"certificatesigningrequests.certificates.k8s.io", Role::kSigningRequest},
};

Role role_of(const Kind& kind) {
  if (kind.group == "authorization.k8s.io" || kind.group == "authentication.k8s.io") {
    return Role::kReview;
  }
  const std::string resource = kind.group_resource();
  for (const SpecialRole& special : kSpecialRoles) {
    if (special.resource == resource) return special.role;
  }
  return Role::kPlain;
}

bool one_of_resources(const Kind& kind, std::initializer_list<std::string_view> names) {
  const std::string resource = kind.group_resource();
  return std::find(names.begin(), names.end(), resource) != names.end();
}

}  // namespace

void Registry::add(const KindPtr& kind, const std::string& crd) {
  auto type = std::make_shared<Type>();
  type->kind = kind;
  type->crd = crd;
  type->role = crd.empty() ? role_of(*kind) : Role::kPlain;
  type->events_api = crd.empty() && kind->group == "events.k8s.io";
  type->create_on_update = one_of_resources(
      *kind,
      {"leases.coordination.k8s.io", "endpoints", "events", "events.events.k8s.io", "limitranges"});
  type->unconditional =
      crd.empty() &&
      !one_of_resources(*kind, {"leases.coordination.k8s.io", "poddisruptionbudgets.policy",
                                "customresourcedefinitions.apiextensions.k8s.io",
                                "mutatingwebhookconfigurations."
                                "admissionregistration.k8s.io",
                                "validatingwebhookconfigurations."
                                "admissionregistration.k8s.io"});
  type->returns_deleted =
      one_of_resources(*kind, {"pods", "services", "serviceaccounts", "persistentvolumes",
                               "persistentvolumeclaims", "resourcequotas", "podtemplates"});
  if (type->role != Role::kReview) {
    const std::string shelf = type->events_api ? "events" : kind->group_resource();
    type->shelf = &storage_.add_shelf(shelf, kind->storage && !type->events_api ? kind : nullptr);
  }
  types_.push_back(std::move(type));
}

namespace {

struct ReviewForm {
  std::string_view group, kind, plural;
  bool namespaced;
};
// Asked and answered, never stored, so they have no schema.
constexpr ReviewForm kReviews[] = {
    {"authentication.k8s.io", "TokenReview", "tokenreviews", false},
    {"authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", false},
    {"authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", false},
    {"authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews", false},
    {"authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", false},
    {"authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreviews", true},
};

}  // namespace

void Registry::add_builtins() {
  for (const KindPtr& kind : builtin_kinds()) add(kind, {});
  for (const ReviewForm& form : kReviews) {
    if (find(form.group, "v1", form.plural)) continue;
    auto kind = std::make_shared<Kind>();
    kind->group = form.group;
    kind->version = "v1";
    kind->kind = form.kind;
    kind->list_kind = kind->kind + "List";
    kind->plural = form.plural;
    kind->singular = kind->plural.substr(0, kind->plural.size() - 1);
    kind->namespaced = form.namespaced;
    add(kind, {});
  }
  ++generation_;
}

void Registry::set_custom(const std::string& crd, const std::vector<KindPtr>& kinds) {
  std::erase_if(types_, [&](const TypePtr& type) { return type->crd == crd; });
  for (const KindPtr& kind : kinds) add(kind, crd);
  ++generation_;
}

TypePtr Registry::find(std::string_view group, std::string_view version,
                       std::string_view plural) const {
  for (const TypePtr& type : types_) {
    const Kind& kind = *type->kind;
    if (kind.served && kind.plural == plural && kind.group == group && kind.version == version) {
      return type;
    }
  }
  return nullptr;
}

TypePtr Registry::find_kind(std::string_view group, std::string_view kind) const {
  for (const TypePtr& type : types_) {
    if (type->kind->served && type->kind->kind == kind && type->kind->group == group) return type;
  }
  return nullptr;
}

TypePtr Registry::of_shelf(const Shelf& shelf) const {
  for (const TypePtr& type : types_) {
    if (type->shelf == &shelf && type->kind == shelf.kind) return type;
  }
  return nullptr;
}

bool Registry::serves(std::string_view group, std::string_view version) const {
  return std::any_of(types_.begin(), types_.end(), [&](const TypePtr& type) {
    return type->kind->served && type->kind->group == group && type->kind->version == version;
  });
}

}  // namespace berth::sim::api
