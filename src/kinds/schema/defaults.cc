// Defaults of built-in types that depend on other fields; the rest stands in the table.
#include <algorithm>
#include <map>

#include "kinds/schema/normalize.h"
#include "text/base64.h"
#include "text/members.h"
#include "text/path.h"

namespace berth::sim {
namespace {

// The tag decides: "latest", also when there is neither tag nor digest, is always pulled.
bool image_is_latest(std::string_view image) {
  const std::size_t digest = image.find('@');
  const std::string_view named = image.substr(0, digest);
  const std::size_t slash = named.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? named : named.substr(slash + 1);
  const std::size_t colon = last.find(':');
  if (colon != std::string_view::npos) return last.substr(colon + 1) == "latest";
  return digest == std::string_view::npos;
}

void container_defaults(Fields& fields, text::Editor& edit) {
  if (fields.text("imagePullPolicy").empty()) {
    const bool latest = image_is_latest(fields.text("image"));
    fields.set("imagePullPolicy", edit.string(latest ? "Always" : "IfNotPresent"));
  }
}

// Only of pods: a limit without a request is requested.
void resource_defaults(Fields& fields, const Place& place, text::Editor& edit) {
  const Value* limits = fields.get("limits");
  if (!place.in_pod || limits == nullptr || limits->size() == 0) return;
  const Value* requests = fields.get("requests");
  std::vector<Member> all;
  if (requests != nullptr) all.assign(requests->members().begin(), requests->members().end());
  const std::size_t given = all.size();
  text::MemberIndex asked(requests == nullptr ? Value() : *requests);
  for (const Member& limit : limits->members()) {
    if (asked.find(limit.key) == nullptr) all.push_back(limit);
  }
  if (all.size() != given || requests == nullptr) fields.set("requests", edit.object(all));
}

// Host networking: a container's port is the host's as well.
Value host_ports(const Value& containers, text::Editor& edit) {
  std::vector<Value> out;
  for (const Value& container : containers.items()) {
    std::vector<Value> ports;
    for (const Value& port : at(container, "ports").items()) {
      const bool unset = at(port, "hostPort").as_int64().value_or(0) == 0;
      ports.push_back(unset ? edit.with(port, "hostPort", at(port, "containerPort")) : port);
    }
    out.push_back(ports.empty() ? container : edit.with(container, "ports", edit.array(ports)));
  }
  return edit.array(out);
}

void pod_spec_defaults(Fields& fields, const Place& place, text::Editor& edit) {
  std::string_view account = fields.text("serviceAccountName");
  if (account.empty()) account = fields.text("serviceAccount");
  if (!account.empty()) {
    const Value name = edit.string(account);
    fields.set("serviceAccountName", name);
    fields.set("serviceAccount", name);
  }
  if (!place.in_pod) return;
  if (!fields.has("enableServiceLinks"))
    fields.set("enableServiceLinks", text::Editor::boolean(true));
  const Value* grace = fields.get("terminationGracePeriodSeconds");
  if (grace != nullptr && grace->as_int64().value_or(0) < 0) {
    fields.set("terminationGracePeriodSeconds", edit.number(1));
  }
  const Value* host = fields.get("hostNetwork");
  if (host == nullptr || !host->as_bool()) return;
  for (const std::string_view list : {"containers", "initContainers"}) {
    const Value* containers = fields.get(list);
    if (containers != nullptr) fields.set(list, host_ports(*containers, edit));
  }
}

void job_spec_defaults(Fields& fields, const Place& place, text::Editor& edit) {
  if (!place.in_job) return;
  if (!fields.has("suspend")) fields.set("suspend", text::Editor::boolean(false));
  if (!fields.has("manualSelector")) fields.set("manualSelector", text::Editor::boolean(false));
  if (!fields.has("completionMode")) fields.set("completionMode", edit.string("NonIndexed"));
  if (!fields.has("completions") && !fields.has("parallelism")) {
    fields.set("completions", edit.number(1));
  }
  if (!fields.has("parallelism")) fields.set("parallelism", edit.number(1));
  if (!fields.has("backoffLimit")) {
    fields.set("backoffLimit", edit.number(fields.has("backoffLimitPerIndex") ? INT32_MAX : 6));
  }
  if (!fields.has("podReplacementPolicy")) {
    const bool failed = fields.has("podFailurePolicy");
    fields.set("podReplacementPolicy", edit.string(failed ? "Failed" : "TerminatingOrFailed"));
  }
}

// rollingUpdate with its two amounts, where the strategy is a rolling one.
void rolling_defaults(Fields& fields, text::Editor& edit, const Value& unavailable,
                      const Value& surge) {
  if (fields.text("type") != "RollingUpdate") return;
  const Value* given = fields.get("rollingUpdate");
  Value rolling = given == nullptr ? edit.object({}) : *given;
  if (!surge.is_null() && rolling.find("maxSurge") == nullptr) {
    rolling = edit.with(rolling, "maxSurge", surge);
  }
  if (rolling.find("maxUnavailable") == nullptr) {
    rolling = edit.with(rolling, "maxUnavailable", unavailable);
  }
  fields.set("rollingUpdate", rolling);
}

void stateful_defaults(Fields& fields, text::Editor& edit) {
  if (fields.text("type") != "RollingUpdate") return;
  const Value* given = fields.get("rollingUpdate");
  Value rolling = given == nullptr ? edit.object({}) : *given;
  if (rolling.find("partition") == nullptr) {
    rolling = edit.with(rolling, "partition", edit.number(0));
  }
  if (rolling.find("maxUnavailable") == nullptr) {
    rolling = edit.with(rolling, "maxUnavailable", edit.number(1));
  }
  fields.set("rollingUpdate", rolling);
}

void service_defaults(Fields& fields, text::Editor& edit) {
  const std::string_view type = fields.text("type");
  const bool inside = type == "ClusterIP" || type == "NodePort" || type == "LoadBalancer";
  if (inside && !fields.has("internalTrafficPolicy")) {
    fields.set("internalTrafficPolicy", edit.string("Cluster"));
  }
  const bool outside = type == "NodePort" || type == "LoadBalancer";
  if (outside && fields.text("externalTrafficPolicy").empty()) {
    fields.set("externalTrafficPolicy", edit.string("Cluster"));
  }
  if (type == "LoadBalancer" && !fields.has("allocateLoadBalancerNodePorts")) {
    fields.set("allocateLoadBalancerNodePorts", text::Editor::boolean(true));
  }
  if (fields.text("sessionAffinity") == "None") fields.remove("sessionAffinityConfig");
  const Value* ports = fields.get("ports");
  if (ports == nullptr) return;
  std::vector<Value> out;
  for (const Value& port : ports->items()) {
    const Value* target = port.find("targetPort");
    const bool unset = target == nullptr || target->as_int64() == 0 ||
                       (target->is_string() && target->string().empty());
    out.push_back(unset ? edit.with(port, "targetPort", at(port, "port")) : port);
  }
  fields.set("ports", edit.array(out));
}

void volume_defaults(Fields& fields, const Schema& schema, text::Editor& edit) {
  for (const Schema::Property& source : schema.properties) {
    if (source.name != "name" && fields.has(source.name)) return;
  }
  fields.set("emptyDir", edit.object({}));
}

void autoscaler_defaults(Fields& fields, const Schema& schema, text::Editor& edit) {
  if (schema.find("metrics") == nullptr) return;  // v1: its conversion says what there is
  const Value* metrics = fields.get("metrics");
  if (metrics != nullptr && metrics->size() > 0) return;
  const Member target[] = {{"type", edit.string("Utilization")},
                           {"averageUtilization", edit.number(80)}};
  const Member resource[] = {{"name", edit.string("cpu")}, {"target", edit.object(target)}};
  const Member metric[] = {{"type", edit.string("Resource")}, {"resource", edit.object(resource)}};
  const Value items[] = {edit.object(metric)};
  fields.set("metrics", edit.array(items));
}

void crd_name_defaults(Fields& fields, text::Editor& edit) {
  const std::string kind(fields.text("kind"));
  if (kind.empty()) return;
  if (fields.text("singular").empty()) {
    std::string lower = kind;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    });
    fields.set("singular", edit.string(lower));
  }
  if (fields.text("listKind").empty()) fields.set("listKind", edit.string(kind + "List"));
}

// Limits of containers: the most is the default limit, and that the default request.
void limit_range_defaults(Fields& fields, text::Editor& edit) {
  if (fields.text("type") != "Container") return;
  const auto fill = [&](std::string_view to, std::string_view from) {
    const Value* source = fields.get(from);
    if (source == nullptr) return;
    const Value* given = fields.get(to);
    Value out = given == nullptr ? edit.object({}) : *given;
    for (const Member& member : source->members()) {
      if (out.find(member.key) == nullptr) out = edit.with(out, member.key, member.value);
    }
    fields.set(to, out);
  };
  fill("default", "max");
  fill("defaultRequest", "default");
  fill("defaultRequest", "min");
}

// Claims in the template of a StatefulSet say what they are.
void claim_defaults(Fields& fields, text::Editor& edit) {
  fields.set("apiVersion", edit.string("v1"));
  fields.set("kind", edit.string("PersistentVolumeClaim"));
  const Value* status = fields.get("status");
  if (status == nullptr || text_at(*status, "phase").empty()) {
    const Value given = status == nullptr ? edit.object({}) : *status;
    fields.set("status", edit.with(given, "phase", edit.string("Pending")));
  }
}

// Labels of a Job come from its template when it has none of its own.
Value labels_from_template(const Value& object, text::Editor& edit) {
  if (at(object, "metadata.labels").size() > 0) return object;
  const Value& labels = at(object, "spec.template.metadata.labels");
  if (labels.size() == 0) return object;
  return edit.with_at(object, "metadata.labels", labels);
}

Value phase_default(const Value& object, std::string_view phase, text::Editor& edit) {
  if (!text_at(object, "status.phase").empty()) return object;
  return edit.with_at(object, "status.phase", edit.string(phase));
}

Value namespace_defaults(const Value& object, text::Editor& edit) {
  Value out = phase_default(object, "Active", edit);
  const std::string_view name = text_at(object, "metadata.name");
  if (name.empty()) return out;
  return edit.with_at(out, "metadata.labels[kubernetes.io/metadata.name]", edit.string(name));
}

// What is written as plain text is kept as bytes.
Value string_data_as_data(const Value& object, text::Editor& edit) {
  if (object.find("stringData") == nullptr) return object;
  std::map<std::string_view, Value> data;
  for (const Member& member : at(object, "data").members()) data[member.key] = member.value;
  for (const Member& member : at(object, "stringData").members()) {
    data[member.key] = edit.string(text::base64_encode(member.value.string()));
  }
  std::vector<Member> members;
  members.reserve(data.size());
  for (const auto& [key, value] : data) members.push_back({key, value});
  return edit.with(edit.without(object, "stringData"), "data", edit.object(members));
}

}  // namespace

void hook_defaults(const Schema& schema, Fields& fields, const Place& place, text::Editor& edit) {
  using Hook = Schema::Hook;
  switch (schema.hook) {
    case Hook::kContainer:
      return container_defaults(fields, edit);
    case Hook::kResources:
      return resource_defaults(fields, place, edit);
    case Hook::kPodSpec:
      return pod_spec_defaults(fields, place, edit);
    case Hook::kJobSpec:
      return job_spec_defaults(fields, place, edit);
    case Hook::kDeploymentStrategy:
      return rolling_defaults(fields, edit, edit.string("25%"), edit.string("25%"));
    case Hook::kDaemonStrategy:
      return rolling_defaults(fields, edit, edit.number(1), edit.number(0));
    case Hook::kStatefulStrategy:
      return stateful_defaults(fields, edit);
    case Hook::kServiceSpec:
      return service_defaults(fields, edit);
    case Hook::kNodeStatus:
      if (!fields.has("allocatable") && fields.has("capacity")) {
        const Value capacity = *fields.get("capacity");
        fields.set("allocatable", capacity);
      }
      return;
    case Hook::kDeviceRequest:
      if (fields.text("allocationMode") == "ExactCount" && !fields.has("count")) {
        fields.set("count", edit.number(1));
      }
      return;
    case Hook::kVolume:
      return volume_defaults(fields, schema, edit);
    case Hook::kAutoscalerSpec:
      return autoscaler_defaults(fields, schema, edit);
    case Hook::kSubject:
      if (schema.find("apiGroup") == nullptr) return;  // flowcontrol's
      if (fields.text("kind") == "User" || fields.text("kind") == "Group") {
        if (fields.text("apiGroup").empty()) {
          fields.set("apiGroup", edit.string("rbac.authorization.k8s.io"));
        }
      }
      return;
    case Hook::kLimitRangeItem:
      return limit_range_defaults(fields, edit);
    case Hook::kVolumeClaim:
      return claim_defaults(fields, edit);
    case Hook::kCrdNames:
      return crd_name_defaults(fields, edit);
    default:
      return;
  }
}

Value kind_defaults(const Kind& kind, const Value& object, text::Editor& edit) {
  if (kind.group.empty()) {
    if (kind.kind == "Secret") return string_data_as_data(object, edit);
    if (kind.kind == "Namespace") return namespace_defaults(object, edit);
    if (kind.kind == "PersistentVolume" || kind.kind == "PersistentVolumeClaim") {
      return phase_default(object, "Pending", edit);
    }
    if (kind.kind == "ReplicationController") {
      Value out = labels_from_template(object, edit);
      const Value& labels = at(object, "spec.template.metadata.labels");
      if (labels.size() > 0 && at(object, "spec.selector").size() == 0) {
        out = edit.with_at(out, "spec.selector", labels);
      }
      return out;
    }
  }
  if (kind.group == "batch" && kind.kind == "Job") return labels_from_template(object, edit);
  return object;
}

}  // namespace berth::sim
