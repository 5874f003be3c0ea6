#include "embedded/workloads/pod_template.h"

#include "embedded/workloads/read.h"
#include "text/path.h"

namespace berth::sim {

namespace {

using text::JsonWriter;
using text::Value;

constexpr const char* kIndexEnv = "JOB_COMPLETION_INDEX";

void put_index_env(JsonWriter& out) {
  out.object([&] {
    out.field("name", kIndexEnv);
    out.object("valueFrom", [&] {
      out.object("fieldRef", [&] {
        out.field("fieldPath", "metadata.labels['batch.kubernetes.io/job-completion-index']");
      });
    });
  });
}

void put_container_with_index(JsonWriter& out, const Value& container) {
  bool has = false;
  for (const Value& env : at(container, "env").items()) {
    has |= text_at(env, "name") == kIndexEnv;
  }
  if (has) return out.value(container);
  out.object([&] {
    for (const text::Member& member : container.members()) {
      if (member.key != "env") out.field(member.key, member.value);
    }
    out.array("env", [&] {
      for (const Value& env : at(container, "env").items()) out.value(env);
      put_index_env(out);
    });
  });
}

void put_pod_spec(JsonWriter& out, const Value& spec, const PodDetails& details) {
  if (details.hostname.empty() && !details.with_index) return out.value(spec);
  out.object([&] {
    bool hostname = false;
    for (const text::Member& member : spec.members()) {
      hostname |= member.key == "hostname";
      if (!details.with_index || (member.key != "containers" && member.key != "initContainers")) {
        out.field(member.key, member.value);
        continue;
      }
      out.array(member.key, [&] {
        for (const Value& container : member.value.items())
          put_container_with_index(out, container);
      });
    }
    if (!hostname && !details.hostname.empty()) out.field("hostname", details.hostname);
  });
}

}  // namespace

void put_string_map(JsonWriter& out, const Value& base,
                    const std::map<std::string, std::string>& over) {
  out.object([&] {
    for (const text::Member& member : base.members()) {
      if (!over.contains(std::string(member.key))) out.field(member.key, member.value);
    }
    for (const auto& [key, value] : over) out.field(key, value);
  });
}

void put_controller_reference(JsonWriter& out, const PodOwner& owner) {
  out.array("ownerReferences", [&] {
    out.object([&] {
      out.field("apiVersion", owner.api_version);
      out.field("kind", owner.kind);
      out.field("name", owner.name);
      out.field("uid", owner.uid);
      out.field("controller", true);
      out.field("blockOwnerDeletion", true);
    });
  });
}

std::string pod_from_template(const Value& pod_template, const PodDetails& details) {
  JsonWriter out;
  out.object([&] {
    out.field("apiVersion", "v1");
    out.field("kind", "Pod");
    out.object("metadata", [&] {
      out.field("name", details.name);
      out.field("namespace", details.ns);
      out.field("generateName", details.owner.name + "-");
      const Value& meta = at(pod_template, "metadata");
      out.key("labels");
      put_string_map(out, at(meta, "labels"), details.labels);
      out.key("annotations");
      put_string_map(out, at(meta, "annotations"), details.annotations);
      put_controller_reference(out, details.owner);
      if (!details.finalizers.empty()) {
        out.array("finalizers", [&] {
          for (const Value& f : at(meta, "finalizers").items()) out.value(f);
          for (const std::string& f : details.finalizers) out.value(f);
        });
      }
    });
    out.key("spec");
    put_pod_spec(out, at(pod_template, "spec"), details);
  });
  return std::move(out).take();
}

}  // namespace berth::sim
