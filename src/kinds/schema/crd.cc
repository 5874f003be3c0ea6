// CustomResourceDefinitions: the rules of structural schemas, and kinds out of them.
#include <algorithm>
#include <map>
#include <set>

#include "kinds/schema/node.h"
#include "text/editor.h"
#include "text/path.h"

namespace berth::sim {
namespace {

using Type = Schema::Type;
using Format = Schema::Format;

Type read_type(std::string_view name) {
  static constexpr std::pair<std::string_view, Type> kTypes[] = {
      {"object", Type::kObject},   {"array", Type::kArray},   {"string", Type::kString},
      {"integer", Type::kInteger}, {"number", Type::kNumber}, {"boolean", Type::kBoolean},
  };
  for (const auto& [word, type] : kTypes) {
    if (word == name) return type;
  }
  return Type::kAny;
}

Format read_format(std::string_view name) {
  static constexpr std::pair<std::string_view, Format> kFormats[] = {
      {"int32", Format::kInt32},       {"int64", Format::kInt64}, {"double", Format::kDouble},
      {"float", Format::kDouble},      {"byte", Format::kByte},   {"date-time", Format::kTime},
      {"duration", Format::kDuration}, {"date", Format::kDate},   {"", Format::kNone},
  };
  for (const auto& [word, format] : kFormats) {
    if (word == name) return format;
  }
  return Format::kOther;
}

class StructuralReader {
 public:
  StructuralReader(SchemaOwner& owner, std::vector<Cause>& causes)
      : owner_(owner), causes_(causes) {}

  const Schema* read(const Value& source, Path& path, bool value_only, std::string_view what) {
    Schema& out = *owner_.make();
    if (++depth_ > kDeepest || owner_.nodes.size() > kMostNodes) {
      add(forbidden_value(path.text(), "the schema is too large"));
      --depth_;
      return &out;
    }
    types(source, out, path, value_only, what);
    extensions(source, out, path);
    refused(source, path, value_only);
    rules(source, out, path);
    properties(source, out, path, value_only);
    additional(source, out, path, value_only);
    items(source, out, path, value_only);
    --depth_;
    return &out;
  }

 private:
  static constexpr int kDeepest = 60;
  static constexpr std::size_t kMostNodes = 100'000;

  void add(Cause cause) {
    if (causes_.size() < Causes::kMost) causes_.push_back(std::move(cause));
  }

  void types(const Value& source, Schema& out, Path& path, bool value_only, std::string_view what) {
    const std::string_view type = text_at(source, "type");
    out.type = read_type(type);
    out.format_name = text_at(source, "format");
    out.format = read_format(out.format_name);
    out.description = text_at(source, "description");
    out.nullable = at(source, "nullable").as_bool();
    out.preserve_unknown = at(source, "x-kubernetes-preserve-unknown-fields").as_bool();
    const bool either = at(source, "x-kubernetes-int-or-string").as_bool();
    if (either) out.type = Type::kIntOrString;
    if (value_only) return;
    if (type.empty()) {
      if (!either && !out.preserve_unknown) {
        add(required_value(path.with("type"), "must not be empty for " + std::string(what)));
      }
    } else if (out.type == Type::kAny) {
      add(not_supported(path.with("type"), at(source, "type"),
                        {"array", "boolean", "integer", "number", "object", "string"}));
    } else if (either) {
      add(invalid_text(path.with("type"), type,
                       "must be empty if x-kubernetes-int-or-string is true"));
    }
  }

  void extensions(const Value& source, Schema& out, Path& path) {
    out.embedded_resource = at(source, "x-kubernetes-embedded-resource").as_bool();
    out.atomic_map = text_at(source, "x-kubernetes-map-type") == "atomic";
    const std::string_view list = text_at(source, "x-kubernetes-list-type");
    if (list == "map") out.list = Schema::List::kMap;
    if (list == "set") out.list = Schema::List::kSet;
    for (const Value& key : at(source, "x-kubernetes-list-map-keys").items()) {
      out.map_keys.push_back(key.string());
    }
    if (!list.empty() && out.type != Type::kArray) {
      add(invalid_text(path.with("type"), text_at(source, "type"),
                       "must be array if x-kubernetes-list-type is specified"));
    }
    if (list == "map" && out.map_keys.empty()) {
      add(required_value(path.with("x-kubernetes-list-map-keys"),
                         "must not be empty if x-kubernetes-list-type is map"));
    }
    if (!list.empty() && list != "map" && list != "set" && list != "atomic") {
      add(not_supported(path.with("x-kubernetes-list-type"), at(source, "x-kubernetes-list-type"),
                        {"atomic", "map", "set"}));
    }
  }

  void refused(const Value& source, Path& path, bool value_only) {
    for (const std::string_view key :
         {"$ref", "definitions", "dependencies", "id", "patternProperties", "additionalItems"}) {
      if (source.find(key) != nullptr) {
        add(forbidden_value(path.with(key), std::string(key) + " is not supported"));
      }
    }
    if (at(source, "uniqueItems").as_bool()) {
      add(forbidden_value(path.with("uniqueItems"),
                          "uniqueItems cannot be set to true since the runtime complexity becomes "
                          "quadratic"));
    }
    if (!value_only) return;
    for (const std::string_view key :
         {"type", "default", "description", "title", "nullable", "additionalProperties",
          "x-kubernetes-preserve-unknown-fields"}) {
      if (source.find(key) == nullptr) continue;
      // type is allowed where it repeats int-or-string, as controller-gen writes it.
      if (key == "type") continue;
      add(forbidden_value(path.with(key), "must be undefined to be structural"));
    }
  }

  static std::optional<double> number_at(const Value& source, std::string_view key) {
    const Value* found = source.find(key);
    if (found == nullptr || !found->is_number()) return std::nullopt;
    return found->as_double();
  }

  void rules(const Value& source, Schema& out, Path& path) {
    auto made = std::make_unique<Rules>();
    Rules& r = *made;
    for (const Value& one : at(source, "enum").items()) r.enums.push_back(one);
    r.minimum = number_at(source, "minimum");
    r.maximum = number_at(source, "maximum");
    r.multiple_of = number_at(source, "multipleOf");
    if (r.multiple_of && *r.multiple_of <= 0) {
      add(invalid_value(path.with("multipleOf"), at(source, "multipleOf"), "must be positive"));
      r.multiple_of.reset();
    }
    r.exclusive_minimum = at(source, "exclusiveMinimum").as_bool();
    r.exclusive_maximum = at(source, "exclusiveMaximum").as_bool();
    r.min_length = at(source, "minLength").as_int64();
    r.max_length = at(source, "maxLength").as_int64();
    r.min_items = at(source, "minItems").as_int64();
    r.max_items = at(source, "maxItems").as_int64();
    r.min_properties = at(source, "minProperties").as_int64();
    r.max_properties = at(source, "maxProperties").as_int64();
    r.cel = at(source, "x-kubernetes-validations");
    pattern(source, r, path);
    junctors(source, r, path);
    const bool any = !r.enums.empty() || r.minimum || r.maximum || r.multiple_of || r.min_length ||
                     r.max_length || r.min_items || r.max_items || r.min_properties ||
                     r.max_properties || r.pattern || !r.all_of.empty() || !r.any_of.empty() ||
                     !r.one_of.empty() || r.negated != nullptr || !r.cel.is_null();
    if (any) out.rules = std::move(made);
  }

  void pattern(const Value& source, Rules& r, Path& path) {
    const Value* given = source.find("pattern");
    if (given == nullptr) return;
    r.pattern_text = given->string();
    // Definitions say the same of many fields: a quantity's pattern a thousand times.
    if (const auto known = patterns_.find(r.pattern_text); known != patterns_.end()) {
      r.pattern = known->second;
      return;
    }
    auto compiled = Regex::compile(r.pattern_text, pattern_work_);
    if (compiled.ok()) {
      r.pattern = std::move(compiled).value();
      patterns_.emplace(r.pattern_text, *r.pattern);
    } else {
      add(invalid_value(path.with("pattern"), *given, compiled.error().message()));
    }
  }

  void junctors(const Value& source, Rules& r, Path& path) {
    const auto list = [&](std::string_view key, std::vector<const Schema*>& to) {
      for (std::size_t i = 0; const Value& one : source[key].items()) {
        const Path::Mark mark = path.mark();
        path.child(key);
        path.index(i++);
        to.push_back(read(one, path, true, ""));
        path.back(mark);
      }
    };
    list("allOf", r.all_of);
    list("anyOf", r.any_of);
    list("oneOf", r.one_of);
    if (const Value* negated = source.find("not"); negated != nullptr && negated->is_object()) {
      const Path::Mark mark = path.mark();
      path.child("not");
      r.negated = read(*negated, path, true, "");
      path.back(mark);
    }
  }

  void properties(const Value& source, Schema& out, Path& path, bool value_only) {
    std::set<std::string_view> required;
    for (const Value& name : at(source, "required").items()) required.insert(name.string());
    for (const Member& member : at(source, "properties").members()) {
      const Path::Mark mark = path.mark();
      path.child("properties");
      path.key(member.key);
      Schema::Property property;
      property.name = member.key;
      property.schema = read(member.value, path, value_only, "specified object fields");
      property.required = required.erase(member.key) > 0;
      property.fallback = member.value.find("default");
      property.description = property.schema->description;
      out.properties.push_back(property);
      path.back(mark);
    }
    // A required field that no property describes is required all the same.
    for (const std::string_view name : required) {
      Schema& any = *owner_.make();
      any.preserve_unknown = true;
      Schema::Property property;
      property.name = name;
      property.schema = &any;
      property.required = true;
      out.properties.push_back(property);
    }
    std::sort(out.properties.begin(), out.properties.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
  }

  void additional(const Value& source, Schema& out, Path& path, bool value_only) {
    const Value* given = source.find("additionalProperties");
    if (given == nullptr || value_only) return;
    if (given->is_bool()) {
      if (given->as_bool()) {
        out.has_additional = true;
        return;
      }
      add(forbidden_value(path.with("additionalProperties"), "must not be false"));
      return;
    }
    if (at(source, "properties").size() > 0) {
      add(forbidden_value(path.with("additionalProperties"),
                          "additionalProperties and properties are mutual exclusive"));
    }
    out.has_additional = true;
    const Path::Mark mark = path.mark();
    path.child("additionalProperties");
    out.additional = read(*given, path, false, "specified object fields");
    path.back(mark);
  }

  void items(const Value& source, Schema& out, Path& path, bool value_only) {
    const Value* given = source.find("items");
    if (given == nullptr) {
      if (out.type == Type::kArray && !value_only) {
        add(required_value(path.with("items"), "must be specified"));
      }
      return;
    }
    const Path::Mark mark = path.mark();
    path.child("items");
    out.items = read(*given, path, value_only, "specified array items");
    path.back(mark);
    for (const std::string_view key : out.map_keys) {
      const Schema::Property* property = out.items->find(key);
      if (property == nullptr) {
        add(invalid_text(path.with("x-kubernetes-list-map-keys"), key,
                         "entries must all be names of item properties"));
      } else if (!property->required && property->fallback == nullptr) {
        add(required_value(path.with("items.properties[" + std::string(key) + "].default"),
                           "this property is in x-kubernetes-list-map-keys, so it must have a "
                           "default or be a required property"));
      }
    }
  }

  SchemaOwner& owner_;
  std::vector<Cause>& causes_;
  int depth_ = 0;
  std::map<std::string_view, Regex> patterns_;
  std::int64_t pattern_work_ = Regex::kCompileWork;  // and with it the memory of all patterns
};

// What every custom object has, whether its schema says so or not.
void complete_root(Schema& root, SchemaOwner& owner) {
  for (const std::string_view name : {"apiVersion", "kind", "metadata"}) {
    if (root.find(name) != nullptr) continue;
    Schema& schema = *owner.make();
    schema.type = name == "metadata" ? Type::kObject : Type::kString;
    schema.preserve_unknown = true;
    Schema::Property property;
    property.name = name;
    property.schema = &schema;
    root.properties.push_back(property);
    std::sort(root.properties.begin(), root.properties.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
  }
}

// Defaults must themselves be valid.
void check_defaults(const Schema& schema, Path& path, Causes& out, int depth) {
  if (depth > 60) return;
  for (const Schema::Property& property : schema.properties) {
    const Path::Mark mark = path.mark();
    path.child("properties");
    path.key(property.name);
    if (property.fallback != nullptr) {
      Path inner;
      Causes wrong;
      validate_schema(*property.schema, *property.fallback, inner, true, wrong);
      if (!wrong.list().empty()) {
        const Cause& first = wrong.list().front();
        out.add(invalid_value(
            path.with("default"), *property.fallback,
            first.field.empty() ? first.message : first.field + ": " + first.message));
      }
    }
    check_defaults(*property.schema, path, out, depth + 1);
    path.back(mark);
  }
  if (schema.items != nullptr) check_defaults(*schema.items, path, out, depth + 1);
  if (schema.additional != nullptr) check_defaults(*schema.additional, path, out, depth + 1);
}

void check_version_schema(const Value& version, Path& path, Causes& out) {
  path.child("schema.openAPIV3Schema");
  const Value& source = at(version, "schema.openAPIV3Schema");
  if (!source.is_object()) {
    out.add(required_value(path.text(), "schemas are required"));
    return;
  }
  SchemaOwner owner;
  std::vector<Cause> causes;
  StructuralReader reader(owner, causes);
  const Schema* root = reader.read(source, path, false, "the root");
  for (Cause& cause : causes) out.add(std::move(cause));
  if (root->type != Type::kObject) {
    out.add(invalid_text(path.with("type"), text_at(source, "type"), "must be object at the root"));
  }
  check_defaults(*root, path, out, 0);
}

void check_names(const Value& spec, Causes& out) {
  const Value& names = at(spec, "names");
  const auto label = [&](std::string_view field, std::string_view text) {
    std::string lower(text);
    for (char& c : lower) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
    }
    const std::string wrong = check_dns1035_label(lower);
    if (!text.empty() && !wrong.empty()) {
      out.add(invalid_text("spec.names." + std::string(field), text, wrong));
    }
  };
  label("plural", text_at(names, "plural"));
  label("singular", text_at(names, "singular"));
  label("kind", text_at(names, "kind"));
  label("listKind", text_at(names, "listKind"));
  if (!text_at(names, "kind").empty() && text_at(names, "kind") == text_at(names, "listKind")) {
    out.add(invalid_text("spec.names.listKind", text_at(names, "listKind"),
                         "kind and listKind may not be the same"));
  }
}

void check_versions(const Value& spec, Causes& out) {
  std::size_t stored = 0;
  std::set<std::string_view> seen;
  for (std::size_t i = 0; const Value& version : at(spec, "versions").items()) {
    Path path;
    path.child("spec.versions");
    path.index(i++);
    stored += at(version, "storage").as_bool() ? 1 : 0;
    const std::string_view name = text_at(version, "name");
    if (const std::string wrong = check_dns1035_label(name); !name.empty() && !wrong.empty()) {
      out.add(invalid_text(path.with("name"), name, wrong));
    }
    if (!seen.insert(name).second) {
      out.add(invalid_text(path.with("name"), name, "must not be the same as another version"));
    }
    check_version_schema(version, path, out);
  }
  if (stored != 1) {
    out.add(invalid_value("spec.versions", Value::make_string("", 0),
                          "must have exactly one version marked as storage version"));
  }
}

std::vector<Column> read_printer_columns(const Value& version) {
  std::vector<Column> out;
  out.push_back({"Name", "string", "name", "", 0, ""});
  for (const Value& given : at(version, "additionalPrinterColumns").items()) {
    Column column;
    column.name = text_at(given, "name");
    column.type = text_at(given, "type");
    column.format = text_at(given, "format");
    column.description = text_at(given, "description");
    column.priority = static_cast<int>(at(given, "priority").as_int64().value_or(0));
    column.json_path = text_at(given, "jsonPath");
    out.push_back(std::move(column));
  }
  if (out.size() == 1) {
    out.push_back({"Age", "date", "", "", 0, ".metadata.creationTimestamp"});
  }
  return out;
}

std::vector<std::string> texts_of(const Value& list) {
  std::vector<std::string> out;
  for (const Value& item : list.items()) out.emplace_back(item.string());
  return out;
}

Result<KindPtr> read_version(const Value& spec, const Value& version) {
  auto owner = std::make_shared<SchemaOwner>();
  owner->source = text::Editor::finish(at(version, "schema.openAPIV3Schema"));
  std::vector<Cause> causes;
  Path path;
  StructuralReader reader(*owner, causes);
  const Schema* root = reader.read(owner->source.root(), path, false, "the root");
  if (!causes.empty()) {
    return invalid("schema of version " + std::string(text_at(version, "name")) + ": " +
                   causes.front().field + ": " + causes.front().message);
  }
  complete_root(owner->nodes.front(), *owner);
  auto kind = std::make_shared<Kind>();
  const Value& names = at(spec, "names");
  kind->group = text_at(spec, "group");
  kind->version = text_at(version, "name");
  kind->kind = text_at(names, "kind");
  kind->plural = text_at(names, "plural");
  kind->singular = text_at(names, "singular");
  kind->list_kind = text_at(names, "listKind");
  if (kind->list_kind.empty()) kind->list_kind = kind->kind + "List";
  kind->short_names = texts_of(at(names, "shortNames"));
  kind->categories = texts_of(at(names, "categories"));
  kind->namespaced = text_at(spec, "scope") == "Namespaced";
  kind->custom = true;
  kind->served = at(version, "served").as_bool();
  kind->storage = at(version, "storage").as_bool();
  kind->deprecated = at(version, "deprecated").as_bool();
  kind->deprecation_warning = text_at(version, "deprecationWarning");
  const Value& sub = at(version, "subresources");
  kind->status = sub.find("status") != nullptr && !at(sub, "status").is_null();
  const Value& scale = at(sub, "scale");
  kind->scale = {std::string(text_at(scale, "specReplicasPath")),
                 std::string(text_at(scale, "statusReplicasPath")),
                 std::string(text_at(scale, "labelSelectorPath"))};
  kind->columns = read_printer_columns(version);
  for (const Value& field : at(version, "selectableFields").items()) {
    std::string_view json_path = text_at(field, "jsonPath");
    if (json_path.starts_with('.')) json_path.remove_prefix(1);
    kind->selectable_fields.emplace_back(json_path);
  }
  kind->schema = std::shared_ptr<const Schema>(owner, root);
  return KindPtr(std::move(kind));
}

}  // namespace

const Schema* read_structural(const Value& source, SchemaOwner& owner, const std::string& prefix,
                              std::vector<Cause>& causes) {
  Path path;
  path.child(prefix);
  return StructuralReader(owner, causes).read(source, path, false, "the root");
}

void validate_crd(const Value& crd, Causes& out) {
  const Value& spec = at(crd, "spec");
  const std::string_view group = text_at(spec, "group");
  const std::string wanted = std::string(text_at(spec, "names.plural")) + "." + std::string(group);
  if (text_at(crd, "metadata.name") != wanted) {
    out.add(invalid_text("metadata.name", text_at(crd, "metadata.name"),
                         "must be spec.names.plural+\".\"+spec.group"));
  }
  if (!group.empty()) {
    if (const std::string wrong = check_dns1123_subdomain(group); !wrong.empty()) {
      out.add(invalid_text("spec.group", group, wrong));
    } else if (group.find('.') == std::string_view::npos) {
      out.add(invalid_text("spec.group", group, "should be a domain with at least one dot"));
    }
  }
  const bool owned = group == "k8s.io" || group == "kubernetes.io" || group.ends_with(".k8s.io") ||
                     group.ends_with(".kubernetes.io");
  constexpr std::string_view kApproved = "api-approved.kubernetes.io";
  if (owned && at(crd, "metadata.annotations")[kApproved].string().empty()) {
    out.add(required_value("metadata.annotations[api-approved.kubernetes.io]",
                           "protected groups must have approval annotation "
                           "\"api-approved.kubernetes.io\", see "
                           "https://github.com/kubernetes/enhancements/pull/1111"));
  }
  if (at(spec, "preserveUnknownFields").as_bool()) {
    out.add(invalid_value("spec.preserveUnknownFields", at(spec, "preserveUnknownFields"),
                          "cannot set to true, set x-kubernetes-preserve-unknown-fields to true "
                          "in spec.versions[*].schema instead"));
  }
  if (text_at(spec, "conversion.strategy") == "Webhook" &&
      text_at(spec, "group") != "kueue.x-k8s.io") {
    out.add(forbidden_value("spec.conversion.strategy",
                            "conversion webhooks are not called by this server; use None"));
  }
  check_names(spec, out);
  check_versions(spec, out);
}

Result<std::vector<KindPtr>> read_crd(const Value& crd) {
  const Value& spec = at(crd, "spec");
  for (const std::string_view field : {"group", "scope"}) {
    if (spec[field].string().empty()) return invalid("spec." + std::string(field) + ": missing");
  }
  for (const std::string_view field : {"plural", "kind"}) {
    if (at(spec, "names")[field].string().empty()) {
      return invalid("spec.names." + std::string(field) + ": missing");
    }
  }
  std::vector<KindPtr> out;
  for (const Value& version : at(spec, "versions").items()) {
    if (text_at(version, "name").empty()) return invalid("spec.versions: a version has no name");
    BERTH_TRY(KindPtr kind, read_version(spec, version));
    out.push_back(std::move(kind));
  }
  if (out.empty()) return invalid("spec.versions: there is none");
  return out;
}

}  // namespace berth::sim
