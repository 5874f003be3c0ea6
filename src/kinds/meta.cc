#include "kinds/meta.h"

#include <algorithm>

#include "kinds/names.h"
#include "text/path.h"

namespace berth::kinds {

namespace {

constexpr text::Field<Owner> kOwnerFields[] = {
    text::field<&Owner::api_version>("apiVersion"),
    text::skip<Owner>("blockOwnerDeletion"),
    text::field<&Owner::controller>("controller"),
    text::required(text::field<&Owner::kind>("kind")),
    text::required(text::field<&Owner::name>("name")),
    text::field<&Owner::uid>("uid"),
};
constexpr auto read_owner = object_of<kOwnerFields>;

void read_labels(const text::Value& v, model::Labels& out, text::Decoder& d) {
  decode(v, out, d);
  for (const text::Member& member : v.members()) {
    text::Decoder::Step step(d, member.key);
    const std::size_t before = d.errors();
    if (!is_qualified_name(member.key)) {
      d.error(member.value, "key " + quoted(member.key),
              "a label key: an optional DNS prefix and '/', then at most 63 of A-Z a-z 0-9 - _ .");
    }
    if (member.value.is_string() && !text::validate_label_value(member.value.string()).ok()) {
      d.mismatch(member.value, "a label value: at most 63 of A-Z a-z 0-9 - _ .");
    }
    const bool text = member.value.is_string() || member.value.is_null();
    if (d.errors() != before || !text) out.erase(std::string(member.key));
  }
}

constexpr text::Field<Meta> kMetaFields[] = {
    text::field<&Meta::annotations>("annotations"),
    text::field<&Meta::created_ns, text::read_time_ns>("creationTimestamp"),
    text::skip<Meta>("deletionGracePeriodSeconds"),
    text::field<&Meta::deleted, is_present>("deletionTimestamp"),
    text::skip<Meta>("finalizers"),
    text::field<&Meta::generate_name>("generateName"),
    text::skip<Meta>("generation"),
    text::field<&Meta::labels, read_labels>("labels"),
    text::skip<Meta>("managedFields"),
    text::field<&Meta::name>("name"),
    text::field<&Meta::ns>("namespace"),
    text::field<&Meta::owners, list_of<read_owner>>("ownerReferences"),
    text::skip<Meta>("resourceVersion"),
    text::skip<Meta>("selfLink"),
    text::field<&Meta::uid>("uid"),
    text::skip<Meta>("clusterName"),
};

const text::Value& at_annotation(const text::Value& object, std::string_view name) {
  const text::Value* found = at(object, "metadata.annotations").find(name);
  if (found == nullptr) found = at(object, "metadata.labels").find(name);
  return found == nullptr ? object : *found;
}

}  // namespace

const std::string* Meta::annotation(std::string_view key) const {
  const auto it = annotations.find(key);
  return it == annotations.end() ? nullptr : &it->second;
}

std::string_view Owner::group() const {
  const std::size_t slash = api_version.find('/');
  return slash == std::string::npos ? "" : std::string_view(api_version).substr(0, slash);
}

bool Owner::is(std::string_view of_group, std::string_view of_kind) const {
  return kind == of_kind && (api_version.empty() || group() == of_group);
}

std::string Owner::text() const {
  constexpr std::pair<std::string_view, std::string_view> kOfKubernetes[] = {
      {"", "Pod"},
      {"batch", "Job"},
      {"batch", "CronJob"},
      {"apps", "ReplicaSet"},
      {"apps", "Deployment"},
      {"apps", "StatefulSet"},
      {"apps", "DaemonSet"},
      {"", "ReplicationController"}};
  for (const auto& [own, known] : kOfKubernetes) {
    if (kind == known && !is(own, known)) return kind + '.' + std::string(group()) + '/' + name;
  }
  return kind + '/' + name;
}

bool is_uid_of(const Owner& owner, const Meta& object) {
  return owner.uid.empty() || object.uid.empty() || owner.uid == object.uid;
}

const Owner* Meta::controller() const {
  for (const Owner& owner : owners) {
    if (owner.controller) return &owner;
  }
  return nullptr;
}

void decode(const text::Value& v, Meta& out, text::Decoder& d) {
  decode_object(v, kMetaFields, out, d);
}

void read_meta(const text::Value& object, Scope scope, Meta& out, text::Decoder& d) {
  const text::Value* meta = object.find("metadata");
  text::Decoder::Step step(d, "metadata");
  if (meta == nullptr || meta->is_null()) return d.error(object, "nothing", "metadata.name");
  decode(*meta, out, d);
  const text::Value* name = meta->find("name");
  {
    text::Decoder::Step name_step(d, "name");
    if (name == nullptr || name->is_null() || (name->is_string() && name->string().empty())) {
      d.error(*meta, out.generate_name.empty() ? "nothing" : "only generateName",
              "a name (generateName is filled in by the API server only)");
    } else if (name->is_string() && !is_dns_subdomain(out.name)) {
      d.mismatch(*name, "a DNS name: at most 253 of a-z 0-9 - ., each part ending in a-z 0-9");
    }
  }
  text::Decoder::Step ns_step(d, "namespace");
  if (scope == Scope::kCluster) {
    if (!out.ns.empty()) d.warning(*meta, quoted(out.ns), "nothing: the kind has no namespace");
    out.ns.clear();
  } else if (out.ns.empty()) {
    out.ns = "default";
  } else if (!is_dns_label(out.ns)) {
    const text::Value* ns = meta->find("namespace");
    d.mismatch(ns == nullptr ? *meta : *ns, "a DNS label: at most 63 of a-z 0-9 -");
  }
}

void annotation_error(const text::Value& object, std::string_view key, std::string allowed,
                      text::Decoder& d) {
  text::Decoder::Step meta(d, "metadata");
  const bool label = at(object, "metadata.annotations").find(key) == nullptr;
  text::Decoder::Step kind(d, label ? "labels" : "annotations");
  text::Decoder::Step step(d, key);
  const text::Value& at = at_annotation(object, key);
  if (at.is_string() || at.is_object()) d.mismatch(at, std::move(allowed));  // else told already
}

void annotation_warning(const text::Value& object, std::string_view key, std::string allowed,
                        text::Decoder& d) {
  text::Decoder::Step meta(d, "metadata");
  text::Decoder::Step kind(d, "annotations");
  text::Decoder::Step step(d, key);
  const text::Value& at = at_annotation(object, key);
  d.warning(at, text::describe(at), std::move(allowed));
}

void warn_unknown_annotations(const text::Value& object, const Meta& meta, text::Decoder& d) {
  constexpr std::string_view kPrefix = "berth.dev/";
  constexpr std::string_view kKnown[] = {"gang", "gpu-memory-min",     "gpu-model",
                                         "gpus", "topology-preferred", "topology-required"};
  for (auto it = meta.annotations.lower_bound(kPrefix);
       it != meta.annotations.end() && it->first.starts_with(kPrefix); ++it) {
    const auto name = std::string_view(it->first).substr(kPrefix.size());
    if (std::find(std::begin(kKnown), std::end(kKnown), name) != std::end(kKnown)) continue;
    annotation_warning(object, it->first,
                       "an annotation that is read: berth.dev/ with gang, gpu-memory-min, "
                       "gpu-model, gpus, topology-preferred or topology-required",
                       d);
  }
}

}  // namespace berth::kinds
