#include <algorithm>
#include <cstdlib>

#include "people/lint/checks.h"
#include "people/lint/shapes.h"
#include "text/nearest.h"

namespace berth::lint {

namespace {

using text::YamlPath;

struct Field {
  std::string_view name;
  bool required = false;
  char type = ' ';
};

std::vector<Field> fields_of(std::string_view text) {
  std::vector<Field> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    Field field;
    if (const std::size_t colon = word.find(':'); colon != std::string_view::npos) {
      field.type = word[colon + 1];
      word = word.substr(0, colon);
    }
    if (word.ends_with('!')) {
      field.required = true;
      word.remove_suffix(1);
    }
    field.name = word;
    if (!word.empty()) out.push_back(field);
  }
  return out;
}

bool fits(const text::Value& value, char type) {
  switch (type) {
    case 's':
      return value.is_string();
    case 'i':
      return value.as_int64().has_value();
    case 'b':
      return value.is_bool();
    case 'l':
      return value.is_array();
    case 'm':
      return value.is_object();
    default:
      return true;
  }
}

const char* type_name(char type) {
  switch (type) {
    case 's':
      return "a string";
    case 'i':
      return "a whole number";
    case 'b':
      return "true or false";
    case 'l':
      return "a list";
    default:
      return "a mapping";
  }
}

void unknown_field(const Place& place, const std::string& nearest, Reporter& out) {
  std::string what = "found the field " + place.key() + ", which is not known here";
  std::optional<Fix> edit;
  std::string fix = "remove it, or look at its name and where it stands";
  if (!nearest.empty() && place && nearest != place.key()) {
    what += "; did you mean " + nearest + "?";
    fix = "write " + nearest;
    edit = one_change(rename_key(place.path(), nearest));
  }
  out.add("field-unknown", place, std::move(what), std::move(fix), std::move(edit));
}

void check_fields(const Place& place, const std::vector<Field>& fields, Reporter& out) {
  if (!place.value().is_object()) return;
  for (const Field& field : fields) {
    const Place member = place[field.name];
    if (out.claimed(member.path())) continue;
    if (!member && field.required) {
      out.add("field-missing", member, std::string(field.name) + " is missing",
              "add " + std::string(field.name));
    } else if (member && !member.value().is_null() && !fits(member.value(), field.type)) {
      std::string found(name(member.value().kind()));
      out.add(
          "field-type", member,
          "found " + found + " for " + std::string(field.name) + ", want " + type_name(field.type),
          std::string("write ") + type_name(field.type));
    }
  }
  for (const Place& member : place.members()) {
    const auto known = [&](const Field& field) { return field.name == member.key(); };
    if (std::any_of(fields.begin(), fields.end(), known) || out.claimed(member.path())) continue;
    std::string nearest;
    std::size_t least = 3;
    for (const Field& field : fields) {
      const std::size_t far = text::edits_between(field.name, member.key(), 2);
      if (far < least && !place.has(field.name)) {
        least = far;
        nearest = field.name;
      }
    }
    unknown_field(member, nearest, out);
  }
}

// Every place that a pattern of the table names.
void visit_shape(const Place& from, std::string_view path, const std::vector<Field>& fields,
                 Reporter& out) {
  if (path.empty()) return check_fields(from, fields, out);
  if (path.starts_with("[]")) {
    path.remove_prefix(2);
    if (path.starts_with('.')) path.remove_prefix(1);
    for (const Place& item : from.items()) visit_shape(item, path, fields, out);
    return;
  }
  const std::size_t end = std::min(path.find_first_of(".["), path.size());
  const Place next = from[path.substr(0, end)];
  path.remove_prefix(end);
  if (path.starts_with('.')) path.remove_prefix(1);
  if (next) visit_shape(next, path, fields, out);
}

// "spec.containers[0].image", "metadata.labels[a.b/c]".
YamlPath path_of(std::string_view field) {
  YamlPath out;
  std::string step;
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '.' || field[i] == '[') {
      if (!step.empty()) out.push_back(std::move(step));
      step.clear();
      if (field[i] != '[') continue;
      const std::size_t close = std::min(field.find(']', i), field.size());
      std::string_view inside = field.substr(i + 1, close - i - 1);
      if (inside.size() >= 2 && inside.front() == '"') inside = inside.substr(1, inside.size() - 2);
      out.emplace_back(inside);
      i = close;
    } else {
      step += field[i];
    }
  }
  if (!step.empty()) out.push_back(std::move(step));
  return out;
}

Place place_at(const Place& root, const YamlPath& path) {
  Place at = root;
  for (const std::string& step : path) {
    if (at.value().is_array()) {
      at = at[static_cast<std::size_t>(std::strtoul(step.c_str(), nullptr, 10))];
    } else {
      at = at[step];
    }
  }
  return at;
}

bool has_sibling(const Object& object, text::YamlPath path, const std::string& name) {
  if (path.empty()) return false;
  path.pop_back();
  return place_at(object.root(), path).has(name);
}

// What a selector of a Deployment without one most likely is.
std::optional<Fix> selector_fix(const Object& object) {
  if (object.group != "apps" || object.name.empty()) return std::nullopt;
  const Place root = object.root();
  const Place spec = root["spec"];
  const Place labels = spec["template"]["metadata"]["labels"];
  if (spec.has("selector") || !spec["template"].value().is_object()) return std::nullopt;
  Fix out;
  std::string chosen = "{\"app\":" + json_text(object.name) + "}";
  if (labels.size() > 0) {
    chosen = text::to_json(labels.value());
  } else {
    YamlPath at = {"template", "metadata", "labels"};
    text::YamlChange put = put_value(spec, at, chosen);
    if (put.at.back() == "metadata") put.before = "spec";
    out.changes.push_back(std::move(put));
    out.assumes = "the pods are labelled app: " + object.name;
  }
  text::YamlChange put = put_value(spec, {"selector"}, "{\"matchLabels\":" + chosen + "}");
  put.before = "template";
  out.changes.push_back(std::move(put));
  return out;
}

void add_complaint(const Object& object, const Place& base, const Complaint& complaint,
                   Reporter& out) {
  YamlPath path = base.path();
  const YamlPath below = path_of(complaint.field);
  path.insert(path.end(), below.begin(), below.end());
  if (out.claimed(path)) return;
  const Place place = place_at(object.root(), path);
  const std::string field = below.empty() ? object.kind : below.back();
  switch (complaint.kind) {
    case Complaint::Kind::kUnknownField:
      // A name that is there already is not what was meant.
      unknown_field(place, has_sibling(object, path, complaint.nearest) ? "" : complaint.nearest,
                    out);
      break;
    case Complaint::Kind::kMissing: {
      std::optional<Fix> edit;
      if (complaint.field == "spec.selector") {
        edit = selector_fix(object);
        if (edit) out.claim({"spec", "template", "metadata", "labels"});
      }
      out.add("field-missing", place, field + " is missing", "add " + complaint.field,
              std::move(edit));
      break;
    }
    case Complaint::Kind::kInvalid:
      // Requests that are not written are taken from limits, where the same is said.
      if (!place && complaint.field.find(".resources.requests") != std::string::npos) break;
      out.add("field-value", place, field + ": " + complaint.message, "write what is allowed");
      break;
  }
}

}  // namespace

void check_shape(const Object& object, const Schemas* schemas, Reporter& out) {
  const Place root = object.root();
  if (object.kind.empty() || object.api.empty()) return;
  bool known = false;
  for (const Shape& shape : shapes()) {
    if (shape.kind != object.kind) continue;
    // A version that is gone has the fields of the one that replaced it.
    const bool old_pool = object.api == "karpenter.sh/v1beta1" && shape.api == "karpenter.sh/v1";
    const bool old_keda = object.group.ends_with("keda.sh") && shape.api == "keda.sh/v1alpha1";
    if (shape.api != object.api && !old_pool && !old_keda) continue;
    known = true;
    visit_shape(root, shape.path, fields_of(shape.fields), out);
  }
  if (known || schemas == nullptr) return;
  if (const auto complaints = schemas->check(root.value())) {
    for (const Complaint& complaint : *complaints) add_complaint(object, root, complaint, out);
    if (object.group.find('.') == std::string::npos || object.group.ends_with(".k8s.io")) return;
  } else {
    return;
  }
  // Pod templates of kinds that keep them as they are.
  walk(root["spec"], [&](const Place& place) {
    if (place.path().empty() || place.key() != "template") return true;
    if (!place["spec"]["containers"].value().is_array()) return true;
    for (const Complaint& complaint : schemas->check_template(place.value())) {
      add_complaint(object, place, complaint, out);
    }
    return false;
  });
}

}  // namespace berth::lint
