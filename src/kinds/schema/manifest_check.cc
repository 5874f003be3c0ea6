#include "kinds/schema/manifest_check.h"

#include <algorithm>

#include "kinds/schema/node.h"
#include "text/json_writer.h"
#include "text/nearest.h"
#include "text/path.h"
#include "text/yaml.h"

namespace berth::sim {

namespace {

using lint::Complaint;

// Where a field's path leads in a schema, up to its last step, which goes to last.
const Schema* parent_schema(const Schema& root, std::string_view field, std::string& last) {
  const Schema* at = &root;
  while (!field.empty()) {
    const std::size_t end = std::min(field.find_first_of(".["), field.size());
    const std::string_view step = field.substr(0, end);
    field.remove_prefix(end);
    if (field.empty()) {
      last = step;
      return at;
    }
    if (!step.empty()) {
      const Schema::Property* property = at->find(step);
      at = property != nullptr ? property->schema : at->additional;
    }
    if (at != nullptr && field.front() == '[') {
      field.remove_prefix(std::min(field.find(']'), field.size() - 1) + 1);
      at = at->items != nullptr ? at->items : at->additional;
    }
    if (!field.empty() && field.front() == '.') field.remove_prefix(1);
    if (at == nullptr) return nullptr;
  }
  return nullptr;
}

std::string nearest_field(const Schema& root, std::string_view field) {
  std::string last, best;
  const Schema* parent = parent_schema(root, field, last);
  if (parent == nullptr || last.size() > 64) return {};
  std::size_t least = 3;  // further away it is a guess
  for (const Schema::Property& property : parent->properties) {
    const std::size_t far = text::edits_between(last, property.name, least);
    if (far < least) {
      least = far;
      best = property.name;
    }
  }
  return best;
}

// 'unknown field "spec.foo"'.
std::string_view quoted_part(std::string_view text) {
  const std::size_t open = text.find('"');
  if (open == std::string_view::npos || text.size() < open + 2) return {};
  return text.substr(open + 1, text.size() - open - 2);
}

std::vector<Complaint> complaints_of(const Kind& kind, const text::Value& object) {
  std::vector<Complaint> out;
  const auto made = normalize(kind, object);
  if (!made.ok()) {
    Complaint one;
    one.message = made.error().message();
    out.push_back(std::move(one));
    return out;
  }
  for (const std::string& unknown : made->unknown) {
    Complaint one;
    one.kind = Complaint::Kind::kUnknownField;
    one.field = quoted_part(unknown);
    one.message = unknown;
    one.nearest = nearest_field(*kind.schema, one.field);
    out.push_back(std::move(one));
  }
  for (const Cause& cause : validate(kind, made->object.root())) {
    // Names are made by the server, or asked for elsewhere; a Job's selector is made by it too.
    if (cause.field == "metadata.name" || cause.field == "metadata.namespace") continue;
    if (kind.group == "batch" && cause.field.ends_with("spec.selector")) continue;
    Complaint one;
    const bool missing = cause.reason == "FieldValueRequired";
    one.kind = missing ? Complaint::Kind::kMissing : Complaint::Kind::kInvalid;
    one.field = cause.field;
    one.message = cause.message;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

Result<std::unique_ptr<ManifestCheck>> ManifestCheck::make(std::string_view crds) {
  auto out = std::make_unique<ManifestCheck>();
  out->kinds_ = builtin_kinds();
  BERTH_TRY(const std::vector<text::Document> documents, text::parse_yaml(crds));
  for (const text::Document& document : documents) {
    BERTH_TRY(std::vector<KindPtr> kinds, read_crd(document.root()));
    for (KindPtr& kind : kinds) out->kinds_.push_back(std::move(kind));
  }
  return out;
}

const Kind* ManifestCheck::find(std::string_view api_version, std::string_view kind) const {
  for (const KindPtr& known : kinds_) {
    if (known->kind == kind && known->served && known->api_version() == api_version) {
      return known.get();
    }
  }
  return nullptr;
}

std::optional<std::vector<Complaint>> ManifestCheck::check(const text::Value& object) const {
  const Kind* kind = find(text_at(object, "apiVersion"), text_at(object, "kind"));
  if (kind == nullptr) return std::nullopt;
  return complaints_of(*kind, object);
}

std::vector<Complaint> ManifestCheck::check_template(const text::Value& pod_template) const {
  const Kind* kind = find("v1", "PodTemplate");
  if (kind == nullptr) return {};
  text::JsonWriter json;
  json.object([&] {
    json.field("apiVersion", "v1");
    json.field("kind", "PodTemplate");
    json.object("metadata", [&] { json.field("name", "template"); });
    json.field("template", pod_template);
  });
  const auto wrapped = parse_body(std::move(json).take());
  if (!wrapped.ok()) return {};
  std::vector<Complaint> out = complaints_of(*kind, wrapped->object.root());
  for (Complaint& one : out) {
    if (one.field.starts_with("template.")) one.field.erase(0, 9);
  }
  return out;
}

std::vector<std::string> ManifestCheck::versions(std::string_view group,
                                                 std::string_view kind) const {
  std::vector<std::string> out;
  for (const KindPtr& known : kinds_) {
    if (known->kind == kind && known->group == group && known->served) {
      out.push_back(known->api_version());
    }
  }
  return out;
}

std::vector<std::string> ManifestCheck::groups(std::string_view kind) const {
  std::vector<std::string> out;
  for (const KindPtr& known : kinds_) {
    if (known->kind != kind) continue;
    if (std::find(out.begin(), out.end(), known->group) == out.end()) out.push_back(known->group);
  }
  return out;
}

}  // namespace berth::sim
