#include "sim/workloads/pod_template.h"

#include "sim/workloads/read.h"

namespace berth::sim {

namespace {

using text::JsonWriter;
using text::Value;

constexpr const char* kIndexEnv = "JOB_COMPLETION_INDEX";

void put_index_env(JsonWriter& out) {
  out.begin_object();
  out.field("name", kIndexEnv);
  out.key("valueFrom");
  out.begin_object();
  out.key("fieldRef");
  out.begin_object();
  out.field("fieldPath", "metadata.labels['batch.kubernetes.io/job-completion-index']");
  out.end_object();
  out.end_object();
  out.end_object();
}

void put_container_with_index(JsonWriter& out, const Value& container) {
  bool has = false;
  for (const Value& env : value_at(container, {"env"}).items()) {
    has |= text_at(env, {"name"}) == kIndexEnv;
  }
  if (has) return out.value(container);
  out.begin_object();
  for (const text::Member& member : container.members()) {
    if (member.key != "env") out.field(member.key, member.value);
  }
  out.key("env");
  out.begin_array();
  for (const Value& env : value_at(container, {"env"}).items()) out.value(env);
  put_index_env(out);
  out.end_array();
  out.end_object();
}

void put_pod_spec(JsonWriter& out, const Value& spec, const PodDetails& details) {
  if (details.hostname.empty() && !details.with_index) return out.value(spec);
  out.begin_object();
  bool hostname = false;
  for (const text::Member& member : spec.members()) {
    hostname |= member.key == "hostname";
    if (!details.with_index || (member.key != "containers" && member.key != "initContainers")) {
      out.field(member.key, member.value);
      continue;
    }
    out.key(member.key);
    out.begin_array();
    for (const Value& container : member.value.items()) put_container_with_index(out, container);
    out.end_array();
  }
  if (!hostname && !details.hostname.empty()) out.field("hostname", details.hostname);
  out.end_object();
}

}  // namespace

void put_string_map(JsonWriter& out, const Value& base,
                    const std::map<std::string, std::string>& over) {
  out.begin_object();
  for (const text::Member& member : base.members()) {
    if (!over.contains(std::string(member.key))) out.field(member.key, member.value);
  }
  for (const auto& [key, value] : over) out.field(key, value);
  out.end_object();
}

void put_controller_reference(JsonWriter& out, const PodOwner& owner) {
  out.key("ownerReferences");
  out.begin_array();
  out.begin_object();
  out.field("apiVersion", owner.api_version);
  out.field("kind", owner.kind);
  out.field("name", owner.name);
  out.field("uid", owner.uid);
  out.field("controller", true);
  out.field("blockOwnerDeletion", true);
  out.end_object();
  out.end_array();
}

std::string pod_from_template(const Value& pod_template, const PodDetails& details) {
  JsonWriter out;
  out.begin_object();
  out.field("apiVersion", "v1");
  out.field("kind", "Pod");
  out.key("metadata");
  out.begin_object();
  out.field("name", details.name);
  out.field("namespace", details.ns);
  out.field("generateName", details.owner.name + "-");
  const Value& meta = value_at(pod_template, {"metadata"});
  out.key("labels");
  put_string_map(out, value_at(meta, {"labels"}), details.labels);
  out.key("annotations");
  put_string_map(out, value_at(meta, {"annotations"}), details.annotations);
  put_controller_reference(out, details.owner);
  if (!details.finalizers.empty()) {
    out.key("finalizers");
    out.begin_array();
    for (const Value& f : value_at(meta, {"finalizers"}).items()) out.value(f);
    for (const std::string& f : details.finalizers) out.value(f);
    out.end_array();
  }
  out.end_object();
  out.key("spec");
  put_pod_spec(out, value_at(pod_template, {"spec"}), details);
  out.end_object();
  return std::move(out).take();
}

}  // namespace berth::sim
