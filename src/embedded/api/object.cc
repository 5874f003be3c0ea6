#include "embedded/api/object.h"

#include <algorithm>

#include "text/json.h"
#include "text/json_writer.h"
#include "text/path.h"

namespace berth::sim::api {

std::optional<std::string_view> Object::label(std::string_view key) const {
  const auto found = std::lower_bound(
      labels.begin(), labels.end(), key,
      [](const auto& label, std::string_view wanted) { return label.first < wanted; });
  if (found == labels.end() || found->first != key) return std::nullopt;
  return found->second;
}

std::string object_key(std::string_view ns, std::string_view name) {
  std::string key(ns);
  if (!ns.empty()) key += '/';
  key += name;
  return key;
}

std::string print_object(std::string_view kind, std::string_view api_version, const Value& root,
                         std::size_t* head) {
  std::string out = "{\"kind\":";
  text::append_json_string(out, kind);
  out += ",\"apiVersion\":";
  text::append_json_string(out, api_version);
  std::size_t cut = out.size();
  bool first = true;
  for (const Member& member : root.members()) {
    if (member.key == "kind" || member.key == "apiVersion") continue;
    out += ',';
    if (first) cut = out.size();
    first = false;
    text::append_json_string(out, member.key);
    out += ':';
    out += text::to_json(member.value);
  }
  out += '}';
  if (head != nullptr) *head = cut;
  return out;
}

namespace {

// Fields whose zero is not the empty text.
constexpr std::pair<std::string_view, std::string_view> kZeroFields[] = {
    {"spec.unschedulable", "false"},
    {"spec.hostNetwork", "false"},
    {"status.successful", "0"},
    {"status.replicas", "0"}};

std::string field_text(std::string_view path, const Value* value) {
  if (value == nullptr || value->is_null()) {
    for (const auto& [zero, text] : kZeroFields) {
      if (zero == path) return std::string(text);
    }
    return {};
  }
  if (value->is_string()) return std::string(value->string());
  if (value->is_bool()) return value->as_bool() ? "true" : "false";
  if (value->is_number()) return std::string(value->number_text());
  return {};
}

void read_facts(const Kind& kind, const Value& root, Object& out) {
  out.ns = text_at(root, "metadata.namespace");
  out.name = text_at(root, "metadata.name");
  out.uid = text_at(root, "metadata.uid");
  if (const Value* labels = find(root, "metadata.labels")) {
    for (const Member& label : labels->members()) {
      out.labels.emplace_back(label.key, label.value.string());
    }
    std::sort(out.labels.begin(), out.labels.end());
  }
  out.fields.reserve(kind.selectable_fields.size());
  for (const std::string& path : kind.selectable_fields) {
    out.fields.push_back(field_text(path, find_path(root, path)));
  }
  if (const Value* owners = find(root, "metadata.ownerReferences")) {
    for (const Value& owner : owners->items()) {
      out.owners.push_back({std::string(text_at(owner, "uid")), true_at(owner, "controller"),
                            true_at(owner, "blockOwnerDeletion")});
    }
  }
  out.terminating = find(root, "metadata.deletionTimestamp") != nullptr;
  const Value* finalizers = find(root, "metadata.finalizers");
  out.finalizers = finalizers != nullptr && finalizers->size() > 0;
}

}  // namespace

ObjectPtr make_object(const Kind& kind, text::Editor& edit, const Value& root,
                      std::uint64_t version) {
  auto object = std::make_shared<Object>();
  const Value whole = version == 0 ? edit.without_at(root, "metadata.resourceVersion")
                                   : edit.with_at(root, "metadata.resourceVersion",
                                                  edit.string(std::to_string(version)));
  read_facts(kind, whole, *object);
  object->version = version;
  object->json = print_object(kind.kind, kind.api_version(), whole, &object->head);
  return object;
}

Result<ObjectPtr> read_object(const Kind& kind, std::string_view json, std::uint64_t version) {
  BERTH_TRY(const text::Document document, text::parse_json(json));
  auto object = std::make_shared<Object>();
  read_facts(kind, document.root(), *object);
  if (object->name.empty()) return invalid("a stored object without a name");
  object->version = version;
  object->json = print_object(kind.kind, kind.api_version(), document.root(), &object->head);
  return ObjectPtr(std::move(object));
}

bool selects(const Selection& selection, const Kind& kind, const Object& object) {
  if (!selection.labels.empty() &&
      !text::matches(selection.labels, [&](std::string_view key) { return object.label(key); })) {
    return false;
  }
  if (selection.fields.empty()) return true;
  return text::matches(selection.fields,
                       [&](std::string_view path) -> std::optional<std::string_view> {
                         if (path == "metadata.name") return object.name;
                         if (path == "metadata.namespace") return object.ns;
                         for (std::size_t i = 0; i < kind.selectable_fields.size(); ++i) {
                           if (kind.selectable_fields[i] == path) return object.fields[i];
                         }
                         return std::nullopt;
                       });
}

}  // namespace berth::sim::api
