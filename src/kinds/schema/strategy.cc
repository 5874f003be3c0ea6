// What the server itself changes in an object before it is created or updated.
#include "kinds/schema/fields.h"
#include "kinds/schema/rules.h"
#include "text/editor.h"
#include "text/members.h"
#include "text/path.h"

namespace berth::sim {
namespace {

// In Go these are the same as an absent field.
bool counts_as_nothing(const Value& value) {
  switch (value.kind()) {
    case text::Kind::kNull:
      return true;
    case text::Kind::kBool:
      return !value.as_bool();
    case text::Kind::kString:
      return value.string().empty();
    case text::Kind::kNumber:
      return false;
    case text::Kind::kArray:
      return value.size() == 0;
    case text::Kind::kObject:
      for (const Member& member : value.members()) {
        if (!counts_as_nothing(member.value)) return false;
      }
      return true;
  }
  return false;
}

}  // namespace

bool same_meaning(const Value& a, const Value& b) {
  if (counts_as_nothing(a) && counts_as_nothing(b)) return true;
  if (a.is_object() && b.is_object()) {
    text::MemberIndex in_a(a), in_b(b);
    for (const Member& member : a.members()) {
      const Value* other = in_b.find(member.key);
      if (!same_meaning(member.value, other == nullptr ? Value() : *other)) return false;
    }
    for (const Member& member : b.members()) {
      if (in_a.find(member.key) == nullptr && !counts_as_nothing(member.value)) return false;
    }
    return true;
  }
  if (a.is_array() && b.is_array() && a.size() == b.size()) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!same_meaning(a.items()[i], b.items()[i])) return false;
    }
    return true;
  }
  return text::equal(a, b);
}

namespace {

bool has_generation(const Kind& kind) {
  if (kind.custom) return true;
  static constexpr std::string_view kGroups[] = {"apps",
                                                 "batch",
                                                 "policy",
                                                 "networking.k8s.io",
                                                 "admissionregistration.k8s.io",
                                                 "apiextensions.k8s.io",
                                                 "discovery.k8s.io"};
  for (const std::string_view group : kGroups) {
    if (kind.group == group) return true;
  }
  if (kind.group.empty()) return kind.kind == "Pod" || kind.kind == "ReplicationController";
  return kind.group == "autoscaling" || kind.group == "flowcontrol.apiserver.k8s.io" ||
         kind.kind == "ResourceSlice" || kind.kind == "PodGroup" || kind.kind == "PriorityClass" ||
         kind.kind == "DeviceClass";
}

struct QosSums {
  bool any = false;
  bool guaranteed = true;
};

// Only cpu and memory count.
void add_qos(const Value& container, QosSums& sums) {
  const Value& resources = at(container, "resources");
  for (const std::string_view name : {"cpu", "memory"}) {
    const std::string_view limit = at(resources, "limits")[name].string();
    const std::string_view request = at(resources, "requests")[name].string();
    const auto given = [](std::string_view amount) { return !amount.empty() && amount != "0"; };
    sums.any = sums.any || given(limit) || given(request);
    if (!given(limit) || (given(request) && request != limit)) sums.guaranteed = false;
  }
}

}  // namespace

std::string_view qos_class(const Value& spec) {
  QosSums sums;
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const Value& container : spec[list].items()) add_qos(container, sums);
  }
  if (!sums.any) return "BestEffort";
  return sums.guaranteed ? "Guaranteed" : "Burstable";
}

namespace {

Value job_selector(const Value& object, text::Editor& edit) {
  const Value& spec = at(object, "spec");
  if (at(spec, "manualSelector").as_bool()) return object;
  const Value& meta = at(object, "metadata");
  Value out = object;
  const std::pair<std::string_view, std::string_view> wanted[] = {
      {"job-name", text_at(meta, "name")},
      {"batch.kubernetes.io/job-name", text_at(meta, "name")},
      {"controller-uid", text_at(meta, "uid")},
      {"batch.kubernetes.io/controller-uid", text_at(meta, "uid")},
  };
  const Value& labels = at(spec, "template.metadata.labels");
  for (const auto& [label, value] : wanted) {
    if (labels.find(label) != nullptr) continue;
    out = edit.with_at(out, "spec.template.metadata.labels", label, edit.string(value));
  }
  constexpr std::string_view kUid = "batch.kubernetes.io/controller-uid";
  if (at(spec, "selector.matchLabels").find(kUid) == nullptr) {
    out = edit.with_at(out, "spec.selector.matchLabels", kUid, edit.string(text_at(meta, "uid")));
  }
  if (at(meta, "labels").size() == 0) {
    out = edit.with_at(out, "metadata.labels", at(out, "spec.template.metadata.labels"));
  }
  return out;
}

// A pod with gates says so from the start.
Value gated_condition(const Value& pod, text::Editor& edit) {
  if (at(pod, "spec.schedulingGates").size() == 0) return pod;
  std::vector<Member> condition = {
      {"type", edit.string("PodScheduled")},
      {"status", edit.string("False")},
      {"reason", edit.string("SchedulingGated")},
      {"message", edit.string("Scheduling is blocked due to non-empty scheduling gates")}};
  const Value& now = at(pod, "metadata.creationTimestamp");
  if (now.is_string()) condition.push_back({"lastTransitionTime", now});
  const Value list[] = {edit.object(condition)};
  return edit.with_at(pod, "status.conditions", edit.array(list));
}

// Addresses as a list, and one family of them.
Value service_addresses(const Value& service, text::Editor& edit) {
  const Value& spec = at(service, "spec");
  if (text_at(spec, "type") == "ExternalName") return service;
  Value out = service;
  const std::string_view address = text_at(spec, "clusterIP");
  if (!address.empty() && at(spec, "clusterIPs").size() == 0) {
    const Value list[] = {edit.string(address)};
    out = edit.with_at(out, "spec.clusterIPs", edit.array(list));
  }
  if (at(spec, "ipFamilies").size() == 0) {
    const bool six = address.find(':') != std::string_view::npos;
    const Value list[] = {edit.string(six ? "IPv6" : "IPv4")};
    out = edit.with_at(out, "spec.ipFamilies", edit.array(list));
  }
  if (text_at(spec, "ipFamilyPolicy").empty()) {
    out = edit.with_at(out, "spec.ipFamilyPolicy", edit.string("SingleStack"));
  }
  return out;
}

Value fresh_status(const Kind& kind, const Value& object, text::Editor& edit) {
  if (!kind.status) return object;
  if (kind.custom) return edit.without(object, "status");
  if (kind.group.empty()) {
    if (kind.kind == "Node") return object;  // a kubelet registers with its status
    if (kind.kind == "Pod") {
      const Member status[] = {{"phase", edit.string("Pending")},
                               {"qosClass", edit.string(qos_class(at(object, "spec")))}};
      return gated_condition(edit.with(object, "status", edit.object(status)), edit);
    }
    if (kind.kind == "Namespace" || kind.kind.starts_with("PersistentVolume")) {
      const Member status[] = {
          {"phase", edit.string(kind.kind == "Namespace" ? "Active" : "Pending")}};
      return edit.with(object, "status", edit.object(status));
    }
    if (kind.kind == "Service") {
      const Member status[] = {{"loadBalancer", edit.object({})}};
      return service_addresses(edit.with(object, "status", edit.object(status)), edit);
    }
  }
  const Schema::Property* property = kind.schema->find("status");
  if (property == nullptr) return edit.without(object, "status");
  std::vector<Member> zeros;  // what Go writes of an empty status
  for (const Member& member : zero_object(*property->schema, edit).members()) {
    if (!member.value.is_null()) zeros.push_back(member);
  }
  return edit.with(object, "status", edit.object(zeros));
}

// What of metadata a client cannot change.
Value fixed_metadata(const Value& live, const Value& object, text::Editor& edit) {
  Value out = object;
  for (const std::string_view field :
       {"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp",
        "deletionGracePeriodSeconds", "generation", "generateName"}) {
    const Value* value = at(live, "metadata").find(field);
    const bool given = at(object, "metadata").find(field) != nullptr;
    if (field == "generateName" && given) continue;
    if (value != nullptr) {
      out = edit.with_at(out, "metadata", field, *value);
    } else if (given) {
      out = edit.without_at(out, "metadata", field);
    }
  }
  return out;
}

bool spec_changed(const Kind& kind, const Value& live, const Value& object) {
  if (!kind.custom && kind.group != "admissionregistration.k8s.io" &&
      kind.group != "discovery.k8s.io") {
    return !same_meaning(at(live, "spec"), at(object, "spec"));
  }
  text::Editor edit;
  const auto rest = [&](const Value& whole) {
    const Value bare = edit.without(edit.without(whole, "metadata"), "apiVersion");
    return kind.status ? edit.without(bare, "status") : bare;
  };
  return !text::equal(rest(live), rest(object));
}

}  // namespace

text::Document for_create(const Kind& kind, const Value& object) {
  text::Editor edit;
  Value out = fresh_status(kind, object, edit);
  for (const std::string_view field :
       {"deletionTimestamp", "deletionGracePeriodSeconds", "generation"}) {
    out = edit.without_at(out, "metadata", field);
  }
  if (has_generation(kind)) out = edit.with_at(out, "metadata.generation", edit.number(1));
  if (kind.group == "batch" && kind.kind == "Job") out = job_selector(out, edit);
  if (kind.finalize && at(object, "spec.finalizers").size() == 0) {
    const Value finalizers[] = {edit.string("kubernetes")};
    out = edit.with_at(out, "spec.finalizers", edit.array(finalizers));
  }
  return text::Editor::finish(out);
}

text::Document for_update(const Kind& kind, const Value& live, const Value& object,
                          std::string_view subresource) {
  text::Editor edit;
  const bool signing = !kind.custom && kind.kind == "CertificateSigningRequest";
  if (subresource == "approval") {
    const Value out = fixed_metadata(live, object, edit);
    return text::Editor::finish(signing_request_for_update(live, out, subresource, edit));
  }
  if (subresource == "status") {
    Value out = live;
    const Value* status = object.find("status");
    out = status != nullptr ? edit.with(out, "status", *status) : edit.without(out, "status");
    for (const std::string_view field : {"managedFields", "resourceVersion"}) {
      const Value* given = at(object, "metadata").find(field);
      if (given != nullptr) out = edit.with_at(out, "metadata", field, *given);
    }
    // Built-in kinds take labels and annotations as well.
    for (const std::string_view field : {"labels", "annotations"}) {
      if (kind.custom) break;
      const Value* given = at(object, "metadata").find(field);
      out = given != nullptr ? edit.with_at(out, "metadata", field, *given)
                             : edit.without_at(out, "metadata", field);
    }
    if (signing) out = signing_request_for_update(live, out, subresource, edit);
    return text::Editor::finish(out);
  }
  Value out = fixed_metadata(live, object, edit);
  if (signing) out = signing_request_for_update(live, out, subresource, edit);
  if (kind.status) {
    const Value* status = live.find("status");
    out = status != nullptr ? edit.with(out, "status", *status) : edit.without(out, "status");
  }
  if (has_generation(kind) && spec_changed(kind, live, out)) {
    const std::int64_t next = at(live, "metadata.generation").as_int64().value_or(0) + 1;
    out = edit.with_at(out, "metadata.generation", edit.number(next));
  }
  return text::Editor::finish(out);
}

}  // namespace berth::sim
