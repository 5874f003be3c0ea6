// OpenAPI documents of the kinds that are served: enough for kubectl explain, apply and create.
#include <algorithm>
#include <map>
#include <set>

#include "kinds/schema/columns.h"
#include "kinds/schema/node.h"

namespace berth::sim {
namespace {

using Type = Schema::Type;
using Format = Schema::Format;
using text::JsonWriter;

constexpr std::string_view kQuantity = "io.k8s.apimachinery.pkg.api.resource.Quantity";
constexpr std::string_view kIntOrString = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
constexpr std::string_view kTime = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
constexpr std::string_view kMicroTime = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
constexpr std::string_view kObjectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
constexpr std::string_view kListMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
constexpr std::string_view kDeleteOptions = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
constexpr std::string_view kStatus = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

// "com.example.stable.v1.CronTab" for a custom kind.
std::string definition_name(const Kind& kind) {
  if (!kind.schema->full_name.empty()) return std::string(kind.schema->full_name);
  std::string out;
  std::string_view rest = kind.group;
  while (!rest.empty()) {
    const std::size_t dot = rest.rfind('.');
    const std::string_view part = dot == std::string_view::npos ? rest : rest.substr(dot + 1);
    out += std::string(part) + ".";
    rest = dot == std::string_view::npos ? std::string_view{} : rest.substr(0, dot);
  }
  return out + kind.version + "." + kind.kind;
}

std::string list_definition_name(const Kind& kind) {
  const std::string name = definition_name(kind);
  return name.substr(0, name.size() - kind.kind.size()) + kind.list_kind;
}

class OpenApiWriter {
 public:
  OpenApiWriter(JsonWriter& out, bool v3) : out_(out), v3_(v3) {}

  void definitions(std::span<const KindPtr> kinds) {
    std::map<std::string, const Kind*> roots;
    for (const KindPtr& kind : kinds) {
      roots.emplace(definition_name(*kind), kind.get());
      if (!kind->schema->full_name.empty()) collect(*kind->schema);
    }
    for (const std::string_view name : {kObjectMeta, kListMeta, kDeleteOptions, kStatus}) {
      if (const Schema* type = builtin_type(name); type != nullptr) collect(*type);
    }
    out_.object([&] {
      for (const auto& [name, type] : types_) {
        if (roots.contains(std::string(name))) continue;
        out_.key(name);
        struct_type(*type, nullptr);
      }
      for (const auto& [name, kind] : roots) {
        out_.key(name);
        struct_type(*kind->schema, kind);
        list_type(*kind);
      }
      leaf(kQuantity, "string", "");
      leaf(kIntOrString, "string", "int-or-string");
      leaf(kTime, "string", "date-time");
      leaf(kMicroTime, "string", "date-time");
    });
  }

  std::string reference(std::string_view name) const {
    return (v3_ ? "#/components/schemas/" : "#/definitions/") + std::string(name);
  }

 private:
  // Every named type below a type, once.
  void collect(const Schema& schema) {
    if (!schema.full_name.empty() && !types_.emplace(schema.full_name, &schema).second) return;
    for (const Schema::Property& property : schema.properties) collect(*property.schema);
    if (schema.items != nullptr) collect(*schema.items);
    if (schema.additional != nullptr) collect(*schema.additional);
  }

  void leaf(std::string_view name, std::string_view type, std::string_view format) {
    out_.object(name, [&] {
      if (v3_ && name == kQuantity) {
        out_.array("oneOf", [&] {
          for (const std::string_view one : {"string", "number"}) {
            out_.object([&] { out_.field("type", one); });
          }
        });
      } else {
        out_.field("type", type);
      }
      if (!format.empty()) out_.field("format", format);
    });
  }

  void group_version_kind(const Kind& kind, std::string_view name) {
    out_.array("x-kubernetes-group-version-kind", [&] {
      out_.object([&] {
        out_.field("group", kind.group);
        out_.field("kind", name);
        out_.field("version", kind.version);
      });
    });
  }

  void struct_type(const Schema& schema, const Kind* kind) {
    out_.object([&] {
      out_.field("type", "object");
      if (!schema.description.empty()) out_.field("description", schema.description);
      object_parts(schema, kind != nullptr && kind->custom);
      if (kind != nullptr) group_version_kind(*kind, kind->kind);
    });
  }

  void list_type(const Kind& kind) {
    out_.object(list_definition_name(kind), [&] {
      out_.field("type", "object");
      out_.field("description", kind.list_kind + " is a list of " + kind.kind + ".");
      out_.array("required", [&] { out_.value("items"); });
      out_.object("properties", [&] {
        for (const std::string_view name : {"apiVersion", "kind"}) {
          out_.object(name, [&] { out_.field("type", "string"); });
        }
        out_.object("items", [&] {
          out_.field("type", "array");
          out_.key("items");
          ref(definition_name(kind));
        });
        out_.key("metadata");
        ref(kListMeta);
      });
      group_version_kind(kind, kind.list_kind);
    });
  }

  void ref(std::string_view name) {
    out_.object([&] { out_.field("$ref", reference(name)); });
  }

  void object_parts(const Schema& schema, bool custom_root) {
    if (!schema.properties.empty()) {
      out_.object("properties", [&] {
        for (const Schema::Property& property : schema.properties) {
          out_.key(property.name);
          if (custom_root && property.name == "metadata") {
            ref(kObjectMeta);
          } else {
            node(*property.schema, &property);
          }
        }
      });
      required(schema);
    }
    if (schema.has_additional) {
      out_.key("additionalProperties");
      if (schema.additional == nullptr) {
        out_.value(true);
      } else {
        node(*schema.additional, nullptr);
      }
    }
    if (schema.atomic_map) out_.field("x-kubernetes-map-type", "atomic");
    if (schema.preserve_unknown && schema.type == Type::kObject) {
      out_.field("x-kubernetes-preserve-unknown-fields", true);
    }
    if (schema.embedded_resource) out_.field("x-kubernetes-embedded-resource", true);
  }

  void required(const Schema& schema) {
    bool any = false;
    for (const Schema::Property& property : schema.properties) any = any || property.required;
    if (!any) return;
    out_.array("required", [&] {
      for (const Schema::Property& property : schema.properties) {
        if (property.required) out_.value(property.name);
      }
    });
  }

  // A name to refer to, or "" when the node is written where it stands.
  static std::string_view referred(const Schema& schema) {
    if (!schema.full_name.empty()) return schema.full_name;
    if (schema.format == Format::kQuantity) return kQuantity;
    return {};
  }

  void node(const Schema& schema, const Schema::Property* property) {
    std::string_view name = referred(schema);
    const bool builtin = property != nullptr && schema.format_name.empty();
    if (builtin && schema.rules == nullptr && schema.type == Type::kString) {
      if (schema.format == Format::kTime) name = kTime;
      if (schema.format == Format::kMicroTime) name = kMicroTime;
    }
    out_.object([&] {
      const std::string_view words = property != nullptr && !property->description.empty()
                                         ? property->description
                                         : schema.description;
      if (!words.empty()) out_.field("description", words);
      if (property != nullptr && property->fallback != nullptr) {
        out_.field("default", *property->fallback);
      }
      if (!name.empty()) {
        if (v3_ && (!words.empty() || (property != nullptr && property->fallback != nullptr))) {
          out_.array("allOf", [&] { ref(name); });
        } else {
          out_.field("$ref", reference(name));
        }
        if (property != nullptr && property->retain_keys) {
          out_.field("x-kubernetes-patch-strategy", "retainKeys");
        }
      } else {
        inline_node(schema, property);
      }
    });
  }

  void inline_node(const Schema& schema, const Schema::Property* property) {
    switch (schema.type) {
      case Type::kAny:
        if (schema.preserve_unknown) out_.field("type", "object");
        object_parts(schema, false);
        break;
      case Type::kObject:
        out_.field("type", "object");
        object_parts(schema, false);
        break;
      case Type::kArray:
        array(schema, property);
        break;
      case Type::kIntOrString:
        if (!v3_) out_.field("type", "string");
        if (!v3_) out_.field("format", "int-or-string");
        out_.field("x-kubernetes-int-or-string", true);
        break;
      default:
        scalar(schema);
    }
    if (schema.nullable && v3_) out_.field("nullable", true);
    if (schema.rules) rules(*schema.rules);
  }

  void array(const Schema& schema, const Schema::Property* property) {
    out_.field("type", "array");
    out_.key("items");
    if (schema.items == nullptr) {
      out_.object([&] {});
    } else {
      node(*schema.items, nullptr);
    }
    const std::string_view kind = schema.list == Schema::List::kMap   ? "map"
                                  : schema.list == Schema::List::kSet ? "set"
                                                                      : "atomic";
    out_.field("x-kubernetes-list-type", kind);
    if (!schema.map_keys.empty()) {
      out_.list("x-kubernetes-list-map-keys", schema.map_keys);
    }
    if (!schema.merge_list) return;
    const bool retain = property != nullptr && property->retain_keys;
    out_.field("x-kubernetes-patch-strategy", retain ? "merge,retainKeys" : "merge");
    if (!schema.merge_key.empty()) out_.field("x-kubernetes-patch-merge-key", schema.merge_key);
  }

  void scalar(const Schema& schema) {
    const std::string_view type = schema.type == Type::kString    ? "string"
                                  : schema.type == Type::kInteger ? "integer"
                                  : schema.type == Type::kNumber  ? "number"
                                                                  : "boolean";
    out_.field("type", type);
    std::string_view format = schema.format_name;
    if (format.empty()) {
      if (schema.format == Format::kInt32) format = "int32";
      if (schema.format == Format::kInt64) format = "int64";
      if (schema.format == Format::kDouble) format = "double";
      if (schema.format == Format::kByte) format = "byte";
      if (schema.format == Format::kTime || schema.format == Format::kMicroTime) {
        format = "date-time";
      }
    }
    if (!format.empty()) out_.field("format", format);
  }

  void rules(const Rules& rules) {
    if (!rules.enums.empty()) {
      out_.array("enum", [&] {
        for (const text::Value& one : rules.enums) out_.value(one);
      });
    }
    if (!rules.pattern_text.empty()) out_.field("pattern", rules.pattern_text);
    const auto number = [&](std::string_view key, const auto& value) {
      if (value) out_.field(key, *value);
    };
    number("minimum", rules.minimum);
    number("maximum", rules.maximum);
    number("multipleOf", rules.multiple_of);
    number("minLength", rules.min_length);
    number("maxLength", rules.max_length);
    number("minItems", rules.min_items);
    number("maxItems", rules.max_items);
    number("minProperties", rules.min_properties);
    number("maxProperties", rules.max_properties);
    if (!rules.cel.is_null()) out_.field("x-kubernetes-validations", rules.cel);
  }

  JsonWriter& out_;
  bool v3_;
  std::map<std::string_view, const Schema*> types_;
};

class PathWriter {
 public:
  PathWriter(JsonWriter& out, bool v3) : out_(out), v3_(v3) {}

  void kind(const Kind& kind) {
    const std::string root =
        kind.group.empty() ? "/api/" + kind.version : "/apis/" + kind.group + "/" + kind.version;
    const std::string base = kind.namespaced ? root + "/namespaces/{namespace}/" + kind.plural
                                             : root + "/" + kind.plural;
    if (kind.plural == "bindings") {
      path(base, kind, {{"post", "post"}});
      return;
    }
    if (kind.namespaced) path(root + "/" + kind.plural, kind, {{"get", "list"}});
    path(base, kind, {{"get", "list"}, {"post", "post"}, {"delete", "deletecollection"}});
    path(base + "/{name}", kind,
         {{"get", "get"}, {"put", "put"}, {"patch", "patch"}, {"delete", "delete"}});
    if (kind.status) {
      path(base + "/{name}/status", kind, {{"get", "get"}, {"put", "put"}, {"patch", "patch"}});
    }
  }

 private:
  using Verbs = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  void path(const std::string& text, const Kind& kind, Verbs verbs) {
    out_.object(text, [&] {
      for (const auto& [method, action] : verbs) operation(text, kind, method, action);
    });
  }

  void operation(const std::string& text, const Kind& kind, std::string_view method,
                 std::string_view action) {
    out_.object(method, [&] {
      out_.field("operationId", operation_id(text, kind, action));
      out_.array("parameters", [&] {
        const bool writes = method != "get";
        if (text.find("{namespace}") != std::string::npos) parameter("namespace", "path");
        if (text.find("{name}") != std::string::npos) parameter("name", "path");
        if (writes) parameter("dryRun", "query");
        if (writes && method != "delete") {
          parameter("fieldManager", "query");
          parameter("fieldValidation", "query");
        }
        if (method == "patch") parameter("force", "query");
      });
      out_.object("responses",
                  [&] { out_.object("200", [&] { out_.field("description", "OK"); }); });
      if (!v3_) list("consumes", {"application/json", "application/yaml"});
      if (!v3_) list("produces", {"application/json", "application/yaml"});
      out_.field("x-kubernetes-action", action);
      out_.object("x-kubernetes-group-version-kind", [&] {
        out_.field("group", kind.group);
        out_.field("kind", kind.kind);
        out_.field("version", kind.version);
      });
    });
  }

  void list(std::string_view key, std::initializer_list<std::string_view> words) {
    out_.list(key, words);
  }

  static std::string operation_id(const std::string& text, const Kind& kind,
                                  std::string_view action) {
    std::string out(action);
    for (const std::string_view part :
         {std::string_view(kind.group), std::string_view(kind.version),
          std::string_view(kind.kind)}) {
      bool upper = true;
      for (const char c : part) {
        if (c == '.' || c == '-') {
          upper = true;
          continue;
        }
        out += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - ('a' - 'A')) : c;
        upper = false;
      }
    }
    if (text.find("{namespace}") != std::string::npos) out += "Namespaced";
    if (text.ends_with("/status")) out += "Status";
    return out;
  }

  void parameter(std::string_view name, std::string_view where) {
    out_.object([&] {
      out_.field("name", name);
      out_.field("in", where);
      if (where == "path") out_.field("required", true);
      const std::string_view type = name == "force" ? "boolean" : "string";
      if (v3_) {
        out_.object("schema", [&] { out_.field("type", type); });
      } else {
        out_.field("type", type);
      }
    });
  }

  JsonWriter& out_;
  bool v3_;
};

void write_head(JsonWriter& out, std::string_view key, std::string_view format,
                std::string_view version) {
  out.field(key, format);
  out.object("info", [&] {
    out.field("title", "Kubernetes");
    out.field("version", version);
  });
}

std::string path_of_version(const Kind& kind) {
  return kind.group.empty() ? "api/" + kind.version : "apis/" + kind.group + "/" + kind.version;
}

}  // namespace

std::string openapi_v3(std::span<const KindPtr> kinds, std::string_view server_version) {
  JsonWriter out;
  out.object([&] {
    write_head(out, "openapi", "3.0.0", server_version);
    out.object("paths", [&] {
      PathWriter paths(out, true);
      for (const KindPtr& kind : kinds) paths.kind(*kind);
    });
    out.object("components", [&] {
      out.key("schemas");
      OpenApiWriter(out, true).definitions(kinds);
    });
  });
  return std::move(out).take();
}

std::string openapi_v3_index(std::span<const KindPtr> kinds,
                             const std::function<std::string(std::string_view)>& hash) {
  JsonWriter out;
  out.object([&] {
    out.object("paths", [&] {
      std::set<std::string> seen;
      for (const KindPtr& kind : kinds) {
        const std::string path = path_of_version(*kind);
        if (!seen.insert(path).second) continue;
        out.object(path, [&] {
          out.field("serverRelativeURL", "/openapi/v3/" + path + "?hash=" + hash(path));
        });
      }
    });
  });
  return std::move(out).take();
}

std::string openapi_v2(std::span<const KindPtr> kinds, std::string_view server_version) {
  JsonWriter out;
  out.object([&] {
    write_head(out, "swagger", "2.0", server_version);
    out.object("paths", [&] {
      PathWriter paths(out, false);
      for (const KindPtr& kind : kinds) paths.kind(*kind);
    });
    out.key("definitions");
    OpenApiWriter(out, false).definitions(kinds);
  });
  return std::move(out).take();
}

}  // namespace berth::sim
