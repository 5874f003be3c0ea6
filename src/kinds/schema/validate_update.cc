// What may not change once an object exists.
#include <set>

#include "kinds/schema/rules.h"
#include "text/editor.h"
#include "text/identity.h"
#include "text/members.h"
#include "text/path.h"

namespace berth::sim {
namespace {

Value with_images_of(const Value& containers, const Value& live, text::Editor& edit) {
  std::vector<Value> out;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    out.push_back(edit.with(containers.items()[i], "image", at(live.items()[i], "image")));
  }
  return edit.array(out);
}

// What a toleration tolerates, for how long aside; an empty field is none.
std::string tolerated_by(const Value& toleration) {
  std::vector<Member> said;
  for (const Member& member : toleration.members()) {
    const bool empty =
        member.value.is_null() || (member.value.is_string() && member.value.string().empty());
    if (!empty && member.key != "tolerationSeconds") said.push_back(member);
  }
  return text::identity_of(Value::make_object(said, 0));
}

void tolerations_only_added(const Value& live, const Value& spec, Causes& out) {
  std::set<std::string> now;
  for (const Value& one : at(spec, "tolerations").items()) now.insert(tolerated_by(one));
  for (const Value& old : at(live, "tolerations").items()) {
    if (!now.contains(tolerated_by(old))) {
      out.add(forbidden_value("spec.tolerations",
                              "existing toleration can not be modified except its "
                              "tolerationSeconds"));
      return;
    }
  }
}

void gates_only_deleted(const Value& live, const Value& spec, Causes& out) {
  std::set<std::string_view> known;
  for (const Value& old : at(live, "schedulingGates").items()) known.insert(text_at(old, "name"));
  for (std::size_t i = 0; const Value& gate : at(spec, "schedulingGates").items()) {
    if (!known.contains(text_at(gate, "name"))) {
      out.add(forbidden_value("spec.schedulingGates[" + std::to_string(i) + "].name",
                              "only deletion is allowed, but found new scheduling gate '" +
                                  std::string(text_at(gate, "name")) + "'"));
    }
    ++i;
  }
}

// A gated pod may still be steered: more node selector, other node affinity.
Value without_gated_changes(const Value& live, const Value& spec, text::Editor& edit, Causes& out) {
  Value changed = spec;
  if (at(live, "schedulingGates").size() == 0) return changed;
  text::MemberIndex selector(at(spec, "nodeSelector"));
  for (const Member& label : at(live, "nodeSelector").members()) {
    const Value* now = selector.find(label.key);
    if (now == nullptr || !text::equal(*now, label.value)) {
      out.add(invalid_value("spec.nodeSelector", at(spec, "nodeSelector"),
                            "only additions to spec.nodeSelector are allowed (no mutations or "
                            "deletions)"));
      break;
    }
  }
  changed = edit.with(changed, "nodeSelector", at(live, "nodeSelector"));
  return edit.with_at(changed, "affinity.nodeAffinity", at(live, "affinity.nodeAffinity"));
}

void pod_update(const Value& live, const Value& spec, Causes& out) {
  for (const std::string_view list : {"containers", "initContainers"}) {
    if (live[list].size() != spec[list].size()) {
      out.add(forbidden_value("spec." + std::string(list),
                              "pod updates may not add or remove containers"));
      return;
    }
  }
  tolerations_only_added(live, spec, out);
  gates_only_deleted(live, spec, out);
  text::Editor edit;
  Value allowed = without_gated_changes(live, spec, edit, out);
  for (const std::string_view list : {"containers", "initContainers"}) {
    if (spec[list].size() == 0) continue;
    allowed = edit.with(allowed, list, with_images_of(spec[list], live[list], edit));
  }
  for (const std::string_view free : {"activeDeadlineSeconds", "tolerations", "schedulingGates"}) {
    allowed = edit.with(allowed, free, live[free]);
  }
  const auto grace = at(live, "terminationGracePeriodSeconds").as_int64();
  if (grace.value_or(0) < 0 && at(spec, "terminationGracePeriodSeconds").as_int64() == 1) {
    allowed = edit.with(allowed, "terminationGracePeriodSeconds",
                        at(live, "terminationGracePeriodSeconds"));
  }
  if (same_meaning(allowed, live)) return;
  out.add(forbidden_value(
      "spec",
      "pod updates may not change fields other than `spec.containers[*].image`,"
      "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
      "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be "
      "set to 1 if it was previously negative)"));
}

// A suspended job that never started may still be told where to run.
Value schedulable_parts_of(const Value& from, const Value& to, text::Editor& edit) {
  Value out = to;
  for (const std::string_view field : {"nodeSelector", "tolerations", "schedulingGates"}) {
    out = edit.with_at(out, "spec", field, at(from, "spec")[field]);
  }
  for (const std::string_view field : {"labels", "annotations"}) {
    out = edit.with_at(out, "metadata", field, at(from, "metadata")[field]);
  }
  out = edit.with_at(out, "spec.affinity.nodeAffinity", at(from, "spec.affinity.nodeAffinity"));
  for (const std::string_view list : {"containers", "initContainers"}) {
    const Value& now = at(from, "spec")[list];
    const Value& old = at(to, "spec")[list];
    if (old.size() == 0 || now.size() != old.size()) continue;
    std::vector<Value> items;
    for (std::size_t i = 0; i < old.size(); ++i) {
      items.push_back(edit.with(old.items()[i], "resources", at(now.items()[i], "resources")));
    }
    out = edit.with_at(out, "spec", list, edit.array(items));
  }
  return out;
}

void job_update(const Value& live_job, const Value& live, const Value& spec, Path& path,
                Causes& out) {
  const bool indexed = text_at(spec, "completionMode") == "Indexed";
  if (!indexed) {
    check_immutable(live, spec, "completions", path, out);
  } else if (!same_meaning(at(live, "completions"), at(spec, "completions")) &&
             at(spec, "completions").as_int64() != at(spec, "parallelism").as_int64()) {
    out.add(invalid_value("spec.completions", at(spec, "completions"),
                          "can only be modified in tandem with spec.parallelism"));
  }
  for (const std::string_view field : {"selector", "completionMode", "podFailurePolicy",
                                       "backoffLimitPerIndex", "managedBy", "successPolicy"}) {
    check_immutable(live, spec, field, path, out);
  }
  text::Editor edit;
  Value old = at(live, "template");
  const bool held = at(live, "suspend").as_bool();
  if (held && at(live_job, "status").find("startTime") == nullptr) {
    old = schedulable_parts_of(at(spec, "template"), old, edit);
  }
  if (!same_meaning(old, at(spec, "template"))) {
    out.add(invalid_value("spec.template", at(spec, "template"), "field is immutable"));
  }
}

void immutable_meta(const Value& live, const Value& object, Causes& out) {
  const Value& old = at(live, "metadata");
  const Value& now = at(object, "metadata");
  if (old.find("deletionTimestamp") != nullptr) {
    std::string extra;
    std::set<std::string_view> known;
    for (const Value& one : at(old, "finalizers").items()) known.insert(one.string());
    for (const Value& finalizer : at(now, "finalizers").items()) {
      if (known.contains(finalizer.string())) continue;
      extra += (extra.empty() ? "" : ", ") + go_quote(finalizer.string());
    }
    if (!extra.empty()) {
      out.add(forbidden_value("metadata.finalizers",
                              "no new finalizers can be added if the object is being deleted, "
                              "found new finalizers []string{" +
                                  extra + "}"));
    }
  }
  Path path;
  path.child("metadata");
  for (const std::string_view field : {"name", "namespace", "uid", "creationTimestamp",
                                       "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    check_immutable(old, now, field, path, out);
  }
}

void controller_update(const Kind& kind, const Value& live, const Value& spec, Path& path,
                       Causes& out) {
  check_immutable(live, spec, "selector", path, out);
  if (kind.kind != "StatefulSet") return;
  for (const std::string_view field :
       {"volumeClaimTemplates", "serviceName", "podManagementPolicy"}) {
    check_immutable(live, spec, field, path, out);
  }
}

void core_update(const Kind& kind, const Value& live, const Value& object, Path& path,
                 Causes& out) {
  const Value& old = at(live, "spec");
  const Value& now = at(object, "spec");
  if (kind.kind == "Pod") return pod_update(old, now, out);
  if (kind.kind == "Service" && !text_at(old, "clusterIP").empty() &&
      text_at(old, "type") != "ExternalName" && text_at(now, "type") != "ExternalName") {
    check_immutable(old, now, "clusterIP", path, out);
  }
  if (kind.kind == "PersistentVolumeClaim" && !text_at(old, "volumeName").empty()) {
    text::Editor edit;
    if (!same_meaning(edit.without(old, "resources"), edit.without(now, "resources"))) {
      out.add(forbidden_value("spec",
                              "spec is immutable after creation except resources.requests and "
                              "volumeAttributesClassName for bound claims"));
    }
  }
  if (kind.kind != "ConfigMap" && kind.kind != "Secret") return;
  if (kind.kind == "Secret") {
    Path root;
    check_immutable(live, object, "type", root, out);
  }
  if (!at(live, "immutable").as_bool()) return;
  for (const std::string_view field : {"data", "binaryData", "immutable"}) {
    if (same_meaning(live[field], object[field])) continue;
    out.add(forbidden_value(std::string(field), "field is immutable when `immutable` is set"));
  }
}

}  // namespace

void check_immutable(const Value& live, const Value& object, std::string_view key, Path& path,
                     Causes& out) {
  if (same_meaning(live[key], object[key])) return;
  out.add(invalid_value(path.with(key), object[key], "field is immutable"));
}

void validate_builtin_update(const Kind& kind, const Value& live, const Value& object,
                             Causes& out) {
  Path path;
  path.child("spec");
  const Value& old = at(live, "spec");
  const Value& now = at(object, "spec");
  Path root;
  if (kind.group.empty()) return core_update(kind, live, object, path, out);
  if (kind.group == "apps" && kind.kind != "ControllerRevision") {
    controller_update(kind, old, now, path, out);
  } else if (kind.group == "batch" && kind.kind == "Job") {
    job_update(live, old, now, path, out);
  } else if (kind.kind == "PriorityClass") {
    if (!same_meaning(at(live, "value"), at(object, "value"))) {
      out.add(forbidden_value("value", "may not be changed in an update."));
    }
    check_immutable(live, object, "preemptionPolicy", root, out);
  } else if (kind.group == "rbac.authorization.k8s.io") {
    if (same_meaning(at(live, "roleRef"), at(object, "roleRef"))) return;
    out.add(invalid_value("roleRef", at(object, "roleRef"), "cannot change roleRef"));
  } else if (kind.group == "resource.k8s.io" &&
             (kind.kind == "ResourceClaim" || kind.kind == "ResourceClaimTemplate")) {
    check_immutable(live, object, "spec", root, out);
  } else if (kind.group == "apiextensions.k8s.io") {
    check_immutable(old, now, "group", path, out);
    check_immutable(old, now, "scope", path, out);
    check_immutable(at(old, "names"), at(now, "names"), "kind", path, out);
  } else if (kind.group == "storage.k8s.io" && kind.kind == "StorageClass") {
    for (const std::string_view field :
         {"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"}) {
      check_immutable(live, object, field, root, out);
    }
  } else if (kind.kind == "RuntimeClass") {
    check_immutable(live, object, "handler", root, out);
  }
}

std::vector<Cause> validate_update(const Kind& kind, const Value& live, const Value& object,
                                   std::string_view subresource) {
  Causes out;
  const bool status = subresource == "status" && !kind.custom;
  if (status) {
    validate_metadata(kind, object, out);
  } else {
    std::vector<Cause> causes = validate(kind, object);
    if (kind.custom && !causes.empty()) {  // a definition may have become stricter meanwhile
      Causes fresh;
      Path path;
      validate_metadata(kind, object, fresh);
      validate_schema(*kind.schema, object, path, true, fresh, &live);
      causes = std::move(fresh.list());
    }
    for (Cause& cause : causes) out.add(std::move(cause));
  }
  immutable_meta(live, object, out);
  if (!kind.custom && kind.kind == "CertificateSigningRequest") {
    signing_request_update(live, object, subresource, out);
  }
  if (subresource.empty() && !kind.custom) validate_builtin_update(kind, live, object, out);
  return std::move(out.list());
}

}  // namespace berth::sim
