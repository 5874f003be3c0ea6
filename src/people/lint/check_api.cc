#include <algorithm>

#include "people/lint/checks.h"
#include "people/lint/shapes.h"
#include "text/nearest.h"

namespace berth::lint {

namespace {

using text::YamlChange;
using text::YamlPath;

// Versions that are gone or going. kind "": all kinds of the group's version.
struct Gone {
  std::string_view api, kind, now;
  bool served;  // still, but deprecated
  std::string_view since;
};
constexpr Gone kGone[] = {
    {"karpenter.sh/v1beta1", "", "karpenter.sh/v1", false, "Karpenter 1.1"},
    {"karpenter.sh/v1alpha5", "", "karpenter.sh/v1 (NodePool)", false, "Karpenter 1.0"},
    {"karpenter.k8s.aws/v1beta1", "", "karpenter.k8s.aws/v1", false, "Karpenter 1.1"},
    {"kueue.x-k8s.io/v1beta1", "", "kueue.x-k8s.io/v1beta2", true, "Kueue 0.19"},
    {"kueue.x-k8s.io/v1alpha1", "", "kueue.x-k8s.io/v1beta2", false, ""},
    {"kueue.x-k8s.io/v1alpha2", "", "kueue.x-k8s.io/v1beta2", false, ""},
    {"tekton.dev/v1beta1", "Pipeline", "tekton.dev/v1", true, "Tekton 1.15"},
    {"tekton.dev/v1beta1", "PipelineRun", "tekton.dev/v1", true, "Tekton 1.15"},
    {"tekton.dev/v1beta1", "Task", "tekton.dev/v1", true, "Tekton 1.15"},
    {"tekton.dev/v1beta1", "TaskRun", "tekton.dev/v1", true, "Tekton 1.15"},
    {"tekton.dev/v1alpha1", "", "tekton.dev/v1", false, ""},
    {"keda.k8s.io/v1alpha1", "", "keda.sh/v1alpha1", false, ""},
    {"resource.k8s.io/v1alpha2", "", "resource.k8s.io/v1", false, "Kubernetes 1.31"},
    {"resource.k8s.io/v1alpha3", "", "resource.k8s.io/v1", false, "Kubernetes 1.33"},
    {"resource.k8s.io/v1beta1", "", "resource.k8s.io/v1", true, "Kubernetes 1.34"},
    {"resource.k8s.io/v1beta2", "", "resource.k8s.io/v1", true, "Kubernetes 1.34"},
    {"autoscaling/v2beta1", "", "autoscaling/v2", false, "Kubernetes 1.25"},
    {"autoscaling/v2beta2", "", "autoscaling/v2", false, "Kubernetes 1.26"},
    {"batch/v1beta1", "", "batch/v1", false, "Kubernetes 1.25"},
    {"batch/v2alpha1", "", "batch/v1", false, "Kubernetes 1.21"},
    {"policy/v1beta1", "PodDisruptionBudget", "policy/v1", false, "Kubernetes 1.25"},
    {"policy/v1beta1", "PodSecurityPolicy", "pod security labels on namespaces", false,
     "Kubernetes 1.25"},
    {"extensions/v1beta1", "Ingress", "networking.k8s.io/v1", false, "Kubernetes 1.22"},
    {"extensions/v1beta1", "", "apps/v1", false, "Kubernetes 1.16"},
    {"apps/v1beta1", "", "apps/v1", false, "Kubernetes 1.16"},
    {"apps/v1beta2", "", "apps/v1", false, "Kubernetes 1.16"},
    {"networking.k8s.io/v1beta1", "Ingress", "networking.k8s.io/v1", false, "Kubernetes 1.22"},
    {"networking.k8s.io/v1beta1", "IngressClass", "networking.k8s.io/v1", false, "Kubernetes 1.22"},
    {"scheduling.k8s.io/v1beta1", "PriorityClass", "scheduling.k8s.io/v1", false,
     "Kubernetes 1.22"},
    {"scheduling.k8s.io/v1alpha1", "PriorityClass", "scheduling.k8s.io/v1", false,
     "Kubernetes 1.22"},
    {"storage.k8s.io/v1beta1", "StorageClass", "storage.k8s.io/v1", false, "Kubernetes 1.22"},
    {"storage.k8s.io/v1beta1", "CSIDriver", "storage.k8s.io/v1", false, "Kubernetes 1.22"},
    {"rbac.authorization.k8s.io/v1beta1", "", "rbac.authorization.k8s.io/v1", false,
     "Kubernetes 1.22"},
    {"apiextensions.k8s.io/v1beta1", "", "apiextensions.k8s.io/v1", false, "Kubernetes 1.22"},
    {"admissionregistration.k8s.io/v1beta1", "ValidatingWebhookConfiguration",
     "admissionregistration.k8s.io/v1", false, "Kubernetes 1.22"},
    {"admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration",
     "admissionregistration.k8s.io/v1", false, "Kubernetes 1.22"},
    {"node.k8s.io/v1beta1", "", "node.k8s.io/v1", false, "Kubernetes 1.25"},
    {"coordination.k8s.io/v1beta1", "Lease", "coordination.k8s.io/v1", false, "Kubernetes 1.22"},
    {"kubescheduler.config.k8s.io/v1beta1", "", "kubescheduler.config.k8s.io/v1", false,
     "Kubernetes 1.25"},
    {"kubescheduler.config.k8s.io/v1beta2", "", "kubescheduler.config.k8s.io/v1", false,
     "Kubernetes 1.28"},
    {"kubescheduler.config.k8s.io/v1beta3", "", "kubescheduler.config.k8s.io/v1", false,
     "Kubernetes 1.29"},
    {"jobset.x-k8s.io/v1alpha1", "", "jobset.x-k8s.io/v1alpha2", false, ""},
    {"ray.io/v1alpha1", "", "ray.io/v1", true, "KubeRay 1.7"},
    {"kubeflow.org/v1beta2", "", "kubeflow.org/v1", false, ""},
    {"kubeflow.org/v1beta1", "", "kubeflow.org/v1", false, ""},
    {"kubeflow.org/v1alpha2", "", "kubeflow.org/v2beta1", false, ""},
    {"serving.kubeflow.org/v1alpha2", "", "serving.kserve.io/v1beta1", false, ""},
    {"serving.kubeflow.org/v1beta1", "", "serving.kserve.io/v1beta1", false, ""},
    {"serving.kserve.io/v1alpha2", "InferenceService", "serving.kserve.io/v1beta1", false, ""},
    {"scheduling.incubator.k8s.io/v1alpha1", "", "scheduling.volcano.sh/v1beta1", false, ""},
    {"scheduling.sigs.dev/v1alpha2", "", "scheduling.volcano.sh/v1beta1", false, ""},
    {"scheduling.sigs.k8s.io/v1alpha1", "PodGroup", "scheduling.x-k8s.io/v1alpha1", false, ""},
};

const Gone* find_gone(const Object& object) {
  for (const Gone& gone : kGone) {
    if (gone.api == object.api && (gone.kind.empty() || gone.kind == object.kind)) return &gone;
  }
  return nullptr;
}

// ---- what else changes with the version ------------------------------------------------------

void kueue_changes(const Place& root, std::vector<YamlChange>& out) {
  const Place spec = root["spec"];
  if (spec.has("cohort")) out.push_back(rename_key(spec["cohort"].path(), "cohortName"));
  const Place checks = spec["admissionChecks"];
  if (checks && !spec.has("admissionChecksStrategy")) {
    std::string list;
    for (const Place& check : checks.items()) {
      list += (list.empty() ? "" : ",") + ("{\"name\":" + text::to_json(check.value()) + "}");
    }
    out.push_back(remove_at(checks.path()));
    out.push_back(put_value(root, {"spec", "admissionChecksStrategy"},
                            "{\"admissionChecks\":[" + list + "]}"));
  }
  for (const char* field : {"whenCanBorrow", "whenCanPreempt"}) {
    const Place choice = spec["flavorFungibility"][field];
    if (choice.is("Borrow") || choice.is("Preempt")) {
      out.push_back(set_text(choice.path(), "MayStopSearch"));
    }
  }
}

void tekton_changes(const Place& root, std::vector<YamlChange>& out) {
  walk(root, [&](const Place& place) {
    if (place.path().empty() || place.key() != "resources" || place.path().size() < 3) return true;
    const YamlPath& path = place.path();
    const std::string& holder = path[path.size() - 2];
    const std::string& list = path[path.size() - 3];
    if (holder == "stepTemplate" || list == "steps" || list == "sidecars") {
      out.push_back(rename_key(path, "computeResources"));
    }
    return true;
  });
}

bool kueue_convertible(std::string_view kind) {
  return kind == "ClusterQueue" || kind == "LocalQueue" || kind == "ResourceFlavor" ||
         kind == "WorkloadPriorityClass" || kind == "Topology" || kind == "AdmissionCheck";
}

// The fields of a version must be those of the next for a change of the version alone.
std::optional<Fix> version_fix(const Object& object, std::string_view now) {
  if (now.find(' ') != std::string_view::npos) return std::nullopt;
  const Place root = object.root();
  Fix out = one_change(set_text({"apiVersion"}, now));
  if (object.group == "kueue.x-k8s.io") {
    if (object.version != "v1beta1" || !kueue_convertible(object.kind)) return std::nullopt;
    kueue_changes(root, out.changes);
  } else if (object.group == "tekton.dev") {
    const bool old = root["spec"].has("resources") || root["spec"].has("taskRunSpecs") ||
                     root["spec"].has("bundle") || root["spec"].has("serviceAccountName");
    if (old) return std::nullopt;
    tekton_changes(root, out.changes);
  } else if (object.group == "karpenter.sh") {
    if (object.kind != "NodePool" || root["spec"]["template"]["spec"].has("kubelet")) {
      return std::nullopt;
    }
  } else if (object.group == "networking.k8s.io" || object.group == "extensions" ||
             object.group == "apiextensions.k8s.io" || object.group == "resource.k8s.io" ||
             object.group == "autoscaling" || object.group == "kubeflow.org" ||
             object.group == "kubescheduler.config.k8s.io" ||
             object.group == "admissionregistration.k8s.io" ||
             object.group.starts_with("serving.kubeflow")) {
    const bool same =
        (object.api == "resource.k8s.io/v1beta2") || object.api == "autoscaling/v2beta2";
    if (!same) return std::nullopt;
  }
  return out;
}

// ---- groups and versions that never were -----------------------------------------------------

std::vector<std::string> groups_of(std::string_view kind, const Schemas* schemas) {
  std::vector<std::string> out = shape_groups(kind);
  if (schemas != nullptr) {
    for (std::string& group : schemas->groups(kind)) out.push_back(std::move(group));
  }
  return out;
}

std::vector<std::string> versions_of(std::string_view group, std::string_view kind,
                                     const Schemas* schemas) {
  std::vector<std::string> out = shape_versions(group, kind);
  if (schemas != nullptr) {
    for (std::string& version : schemas->versions(group, kind)) out.push_back(std::move(version));
  }
  return out;
}

void check_known(const Object& object, const Schemas* schemas, Reporter& out) {
  const Place at = object.root()["apiVersion"];
  const std::vector<std::string> versions = versions_of(object.group, object.kind, schemas);
  if (!versions.empty()) {
    const bool fine = std::find(versions.begin(), versions.end(), object.api) != versions.end();
    if (fine) return;
    out.add(
        "api-version", at,
        "found apiVersion " + object.api + ", want " + versions.front() + " for a " + object.kind,
        "write " + versions.front(), one_change(set_text(at.path(), versions.front())));
    return;
  }
  // A kind of this name in a group whose name is nearly this one.
  for (const std::string& group : groups_of(object.kind, schemas)) {
    const bool part = !group.empty() &&
                      (object.group.ends_with("." + group) || group.ends_with("." + object.group));
    if (!part && text::edits_between(group, object.group, 3) > 3) continue;
    if (group.empty() && object.group.find('.') != std::string::npos) continue;
    const std::vector<std::string> real = versions_of(group, object.kind, schemas);
    if (real.empty()) continue;
    out.add("api-version", at,
            "found apiVersion " + object.api + ", want " + real.front() + ": no " + object.kind +
                " is in the group " + (object.group.empty() ? "core" : object.group),
            "write " + real.front(), one_change(set_text(at.path(), real.front())));
    return;
  }
}

bool needs_name(const Object& object) {
  if (object.kind.ends_with("List") || object.group.find("config") != std::string::npos)
    return false;
  return object.kind != "Kustomization" && object.kind != "Component" &&
         object.kind != "Configuration" && !object.kind.ends_with("Configuration") &&
         object.kind != "ClusterConfig" && !object.kind.ends_with("Review");
}

}  // namespace

void check_api(const Object& object, const Schemas* schemas, Reporter& out) {
  const Place root = object.root();
  if (object.api.empty() || object.kind.empty()) {
    const bool meant =
        root.has("apiVersion") || root.has("kind") || (root.has("metadata") && root.has("spec"));
    if (!meant || !root.value().is_object()) return;
    const char* missing = object.kind.empty() ? "kind" : "apiVersion";
    out.add("object-type", root[missing],
            std::string("the object has no ") + missing + ", or it is no string",
            std::string("add ") + missing + ": an API server cannot know what this is");
    return;
  }
  const bool named = !object.name.empty() || root["metadata"].has("generateName");
  if (!named && needs_name(object)) {
    out.add("object-name", root["metadata"]["name"], "metadata.name is missing",
            "give the " + object.kind + " a name");
  }
  if (const Gone* gone = find_gone(object)) {
    const Place at = root["apiVersion"];
    std::string what = "found apiVersion " + object.api + ", want " + std::string(gone->now);
    const std::string since(gone->since);
    if (gone->served) {
      what += ": it is deprecated, " + since + " still serves it";
    } else {
      what += ": it is not served" + (since.empty() ? " any more" : " since " + since);
    }
    out.add(gone->served ? "api-deprecated" : "api-removed", at, std::move(what),
            "write " + std::string(gone->now), version_fix(object, gone->now));
    return;
  }
  check_known(object, schemas, out);
}

}  // namespace berth::lint
