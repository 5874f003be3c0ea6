#include "embedded/api/render.h"

#include "embedded/api/autoscaler_forms.h"
#include "embedded/api/event_forms.h"
#include "embedded/api/yaml_answer.h"
#include "kinds/kueue_convert.h"
#include "text/json.h"
#include "text/json_writer.h"
#include "text/path.h"

namespace berth::sim::api {

namespace {

// Whether objects that become one of that kind differ in more than apiVersion.
bool is_converted(const Kind& kind) {
  if (!kind.custom) return kind.kind == "HorizontalPodAutoscaler";
  return kinds::kueue_versions_differ(kind.kind) && kinds::kueue_version(kind.api_version());
}

Value in_version_of(const Kind& kind, text::Editor& edit, const Value& object) {
  if (is_converted(kind) && kind.custom) {
    const auto read =
        edit.parse(kinds::convert_kueue(object, *kinds::kueue_version(kind.api_version())));
    if (read.ok()) return read.value();
  } else if (is_converted(kind)) {
    return kind.version == "v1" ? autoscaler_to_v1(edit, object) : autoscaler_to_v2(edit, object);
  }
  return edit.with(object, "apiVersion", edit.string(kind.api_version()));
}

}  // namespace

OtherVersions other_versions(const Registry& registry, const Type& type) {
  if (!is_converted(*type.kind)) return {};
  return [&registry, group = type.kind->group, plural = type.kind->plural](
             std::string_view api_version, const Value& object) -> std::optional<OtherVersion> {
    const std::size_t slash = api_version.find('/');
    const TypePtr other = registry.find(
        group, slash == std::string_view::npos ? api_version : api_version.substr(slash + 1),
        plural);
    if (!other || !is_converted(*other->kind) || other->kind->api_version() != api_version) {
      return std::nullopt;
    }
    text::Editor edit;
    return OtherVersion{other->kind,
                        text::Editor::finish(in_version_of(*other->kind, edit, object))};
  };
}

Value to_served(const Type& type, text::Editor& edit, const Value& stored) {
  if (type.events_api) return event_from_core(edit, stored);
  if (type.shelf == nullptr || type.kind == type.shelf->kind) return stored;
  return in_version_of(*type.kind, edit, stored);
}

Value to_stored(const Type& type, text::Editor& edit, const Value& served) {
  if (type.events_api) return event_to_core(edit, served);
  if (type.shelf == nullptr || type.kind == type.shelf->kind) return served;
  return in_version_of(*type.shelf->kind, edit, served);
}

std::string render_object(const Type& type, const Object& object) {
  if (type.kind == type.shelf->kind) return object.json;
  text::Editor edit;
  const auto parsed = edit.parse(object.json);
  if (!parsed.ok()) return object.json;
  return print_object(type.kind->kind, type.kind->api_version(),
                      to_served(type, edit, parsed.value()));
}

namespace {

void write_partial(const Request& request, const Value& root, text::JsonWriter& out) {
  out.object([&] {
    out.field("kind", "PartialObjectMetadata");
    out.field("apiVersion", "meta.k8s.io/" + request.table_version);
    out.key("metadata");
    const Value* meta = find(root, "metadata");
    out.value(meta ? *meta : Value());
  });
}

void write_row(const Request& request, const Value& root, std::int64_t now_ns,
               text::JsonWriter& out) {
  out.object([&] {
    out.key("cells");
    write_cells(*request.type->kind, root, now_ns, out);
    if (request.include_object == "Object") {
      out.field("object", root);
    } else {
      out.key("object");
      if (request.include_object == "None") {
        out.null();
      } else {
        write_partial(request, root, out);
      }
    }
  });
}

void write_table_head(const Request& request, text::JsonWriter& out) {
  out.field("kind", "Table");
  out.field("apiVersion", "meta.k8s.io/" + request.table_version);
}

void write_columns_of(const Request& request, bool columns, text::JsonWriter& out) {
  out.key("columnDefinitions");
  if (columns) {
    write_columns(*request.type->kind, out);
  } else {
    out.null();
  }
}

// Calls with the object in the served version, parsed.
template <class Use>
void with_value(const Type& type, const Object& object, const Use& use) {
  text::Editor edit;
  const auto parsed = edit.parse(object.json);
  if (!parsed.ok()) return;
  use(to_served(type, edit, parsed.value()));
}

std::string table_of_one(const Request& request, const Value& root, std::int64_t now_ns,
                         bool columns) {
  text::JsonWriter out;
  out.object([&] {
    write_table_head(request, out);
    out.object("metadata",
               [&] { out.field("resourceVersion", text_at(root, "metadata.resourceVersion")); });
    write_columns_of(request, columns, out);
    out.array("rows", [&] { write_row(request, root, now_ns, out); });
  });
  return std::move(out).take();
}

std::string value_in_shape(const Request& request, const Value& root, std::int64_t now_ns,
                           bool columns) {
  if (request.shape == Shape::kTable) return table_of_one(request, root, now_ns, columns);
  if (request.shape == Shape::kPartial) {
    text::JsonWriter out;
    write_partial(request, root, out);
    return std::move(out).take();
  }
  return print_object(text_at(root, "kind"), text_at(root, "apiVersion"), root);
}

void append_list_meta(const ListAnswer& meta, std::string& out) {
  out += "\"metadata\":{\"resourceVersion\":\"" + std::to_string(meta.version) + "\"";
  if (!meta.next.empty()) {
    out += ",\"continue\":\"" + meta.next + "\"";
    if (meta.remain > 0) out += ",\"remainingItemCount\":" + std::to_string(meta.remain);
  }
  out += "}";
}

}  // namespace

std::string render_for(const Request& request, const Object& object, std::int64_t now_ns,
                       bool columns) {
  if (request.shape == Shape::kObject) return render_object(*request.type, object);
  std::string out;
  with_value(*request.type, object,
             [&](const Value& root) { out = value_in_shape(request, root, now_ns, columns); });
  return out;
}

std::string render_value_for(const Request& request, const Value& served, std::int64_t now_ns) {
  if (text_at(served, "kind") != request.type->kind->kind) {
    return print_object(text_at(served, "kind"), text_at(served, "apiVersion"), served);
  }
  return value_in_shape(request, served, now_ns, true);
}

std::string list_head(const Request& request, const ListAnswer& meta) {
  const bool table = request.shape == Shape::kTable, partial = request.shape == Shape::kPartial;
  const Kind& kind = *request.type->kind;
  const std::string version =
      table || partial ? "meta.k8s.io/" + request.table_version : kind.api_version();
  if (request.yaml) return "apiVersion: " + version + "\nitems:\n";
  std::string out = "{\"kind\":";
  text::append_json_string(out, table     ? "Table"
                                : partial ? "PartialObjectMetadataList"
                                          : kind.list_kind);
  out += ",\"apiVersion\":";
  text::append_json_string(out, version);
  out += ',';
  append_list_meta(meta, out);
  if (!table) return out + ",\"items\":[";
  text::JsonWriter columns;
  write_columns(kind, columns);
  return out + ",\"columnDefinitions\":" + columns.text() + ",\"rows\":[";
}

void append_list_item(const Request& request, const Object& object, bool first, std::int64_t now_ns,
                      std::string& out) {
  const Type& type = *request.type;
  if (!first && !request.yaml) out += ',';
  if (request.shape != Shape::kObject) {
    with_value(type, object, [&](const Value& root) {
      text::JsonWriter item;
      if (request.shape == Shape::kPartial) {
        write_partial(request, root, item);
      } else {
        write_row(request, root, now_ns, item);
      }
      out += item.text();
    });
    return;
  }
  std::string item;
  std::string& to = request.yaml ? item : out;
  if (type.kind != type.shelf->kind) {
    to += render_object(type, object);
  } else if (type.kind->custom) {
    to += object.json;
  } else {
    to += '{';  // built-in lists say the kind of their items once, at the top
    to.append(object.json, object.head);
  }
  if (request.yaml) append_yaml_item(item, out);
}

std::string list_tail(const Request& request, const ListAnswer& meta) {
  if (!request.yaml) return "]}\n";
  std::string rest = "{\"kind\":";
  text::append_json_string(rest, request.type->kind->list_kind);
  rest += ',';
  append_list_meta(meta, rest);
  return yaml_of(rest + "}");
}

std::string render_bookmark(const Request& request, std::uint64_t version, bool initial_end) {
  text::JsonWriter out;
  out.object([&] {
    if (request.shape == Shape::kTable) {
      write_table_head(request, out);
    } else {
      const bool partial = request.shape == Shape::kPartial;
      out.field("kind", partial ? "PartialObjectMetadata" : request.type->kind->kind);
      out.field("apiVersion", partial ? "meta.k8s.io/v1" : request.type->kind->api_version());
    }
    out.object("metadata", [&] {
      out.field("resourceVersion", std::to_string(version));
      if (initial_end && request.shape != Shape::kTable) {
        out.object("annotations", [&] { out.field("k8s.io/initial-events-end", "true"); });
      }
    });
    if (request.shape == Shape::kTable) {
      write_columns_of(request, false, out);
      out.array("rows", [&] {});
    }
  });
  return std::move(out).take();
}

}  // namespace berth::sim::api
