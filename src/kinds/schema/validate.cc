// A value against its schema, and what every object's metadata must be.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "kinds/schema/node.h"
#include "text/base64.h"
#include "text/members.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::sim {
namespace {

using text::Member;
using text::Value;
using Type = Schema::Type;
using Format = Schema::Format;

std::string_view type_name(Type type) {
  switch (type) {
    case Type::kObject:
      return "object";
    case Type::kArray:
      return "array";
    case Type::kString:
      return "string";
    case Type::kInteger:
      return "integer";
    case Type::kNumber:
      return "number";
    case Type::kBoolean:
      return "boolean";
    case Type::kIntOrString:
      return "integer,string";
    default:
      return "";
  }
}

std::string_view found_type(const Value& value) {
  switch (value.kind()) {
    case text::Kind::kNull:
      return "null";
    case text::Kind::kBool:
      return "boolean";
    case text::Kind::kNumber:
      return value.as_int64() ? "integer" : "number";
    case text::Kind::kString:
      return "string";
    case text::Kind::kArray:
      return "array";
    default:
      return "object";
  }
}

bool has_type(const Schema& schema, const Value& value) {
  switch (schema.type) {
    case Type::kAny:
      return true;
    case Type::kObject:
      return value.is_object();
    case Type::kArray:
      return value.is_array();
    case Type::kString:
      return value.is_string();
    case Type::kInteger:
      return value.as_int64().has_value();
    case Type::kNumber:
      return value.is_number();
    case Type::kBoolean:
      return value.is_bool();
    case Type::kIntOrString:
      return value.is_string() || value.as_int64().has_value();
  }
  return true;
}

std::string show_number(double value) {
  if (std::nearbyint(value) == value && std::fabs(value) < 1e15) {
    return std::to_string(static_cast<std::int64_t>(value));
  }
  text::JsonWriter out;
  out.value(value);
  return std::move(out).take();
}

std::int64_t count_runes(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

// The key of an item in a list of type map, as JSON; "" where a key is missing.
std::string item_key(const Schema& list, const Value& item) {
  std::string out = "{";
  for (const std::string_view name : list.map_keys) {
    const Value* key = item.find(name);
    if (key == nullptr && list.items != nullptr) {
      const Schema::Property* property = list.items->find(name);
      if (property != nullptr) key = property->fallback;
    }
    if (out.size() > 1) out += ",";
    text::append_json_string(out, name);
    out += ":" + (key == nullptr ? "null" : text::to_json(*key));
  }
  return out + "}";
}

class SchemaWalk {
 public:
  // work: of patterns, for the whole object.
  SchemaWalk(Path& path, bool custom, std::int64_t& work, Causes& out)
      : path_(path), custom_(custom), work_(work), out_(out) {}

  // What is as it was in old, and can be told to be the same, is let be whatever it is.
  void update(const Schema& schema, const Value& value, const Value& old) {
    beside(&old, value, [&] { this->value(schema, value); });
  }

  void value(const Schema& schema, const Value& value) {
    if (out_.full()) return;
    if (value.is_null()) {
      if (custom_ && !schema.nullable && schema.type != Type::kAny) wrong_type(schema, value);
      return;
    }
    if (custom_ && !has_type(schema, value)) return wrong_type(schema, value);
    if (schema.rules) rules(schema, *schema.rules, value);
    if (value.is_object()) object(schema, value);
    if (value.is_array()) array(schema, value);
    if (custom_ && value.is_string()) format(schema, value);
    if (custom_ && value.is_number()) integer_format(schema, value);
  }

 private:
  std::string in_body(std::string_view rest) const {
    return path_.text() + " in body " + std::string(rest);
  }
  // A value and the one that stood in its place, where that can be told; the items of a list
  // without keys have that of their list.
  struct Pair {
    const Value* now = nullptr;
    const Value* old = nullptr;
    std::optional<bool> same = std::nullopt;  // once it was asked for
    int depth = 0;
  };

  template <class Walk>
  void beside(const Value* old, const Value& now, const Walk& walk) {
    constexpr int kDeepest = 16;  // each is compared as a whole: below, their parent's counts
    const bool known = pair_.same.value_or(false);
    if (known || pair_.depth >= kDeepest) return walk();
    const Pair outer = std::exchange(pair_, Pair{&now, old, std::nullopt, pair_.depth + 1});
    walk();
    pair_ = outer;
  }
  bool unchanged() {
    if (pair_.old == nullptr) return false;
    if (!pair_.same) pair_.same = text::equal(*pair_.now, *pair_.old);
    return *pair_.same;
  }
  void say(Cause cause) {
    if (!unchanged()) out_.add(std::move(cause));
  }

  void bad(const Value& value, std::string_view rest) {
    say(invalid_value(path_.text(), value, in_body(rest)));
  }

  void wrong_type(const Schema& schema, const Value& value) {
    const std::string found(found_type(value));
    const std::string want = "must be of type " + std::string(type_name(schema.type));
    say({"FieldValueTypeInvalid", path_.text(),
         "Invalid value: " + go_quote(found) + ": " + in_body(want) + ": " + go_quote(found)});
  }

  void object(const Schema& schema, const Value& value) {
    std::optional<text::MemberIndex> index;  // most schemas require nothing
    for (const Schema::Property& property : schema.properties) {
      if (!property.required) continue;
      if (!index) index.emplace(value);
      const Value* member = index->find(property.name);
      if (custom_ ? member == nullptr : empty(member, property)) {
        say(required_value(path_.with(property.name),
                           custom_ ? std::string_view() : what_is_wanted(property.name)));
      }
    }
    std::optional<text::MemberIndex> before;
    if (pair_.old != nullptr && pair_.now == &value) before.emplace(*pair_.old);
    for (const Member& member : value.members()) {
      const Schema::Property* property = schema.find(member.key);
      const Schema* inner = property != nullptr ? property->schema : schema.additional;
      if (inner == nullptr) continue;
      // What a status says is the business of those who write it.
      if (!custom_ && path_.text().empty() && (member.key == "status" || member.key == "metadata"))
        continue;
      const Path::Mark mark = path_.mark();
      path_.child(member.key);
      if (before) {
        update_at(*inner, member.value, before->find(member.key));
      } else {
        this->value(*inner, member.value);
      }
      path_.back(mark);
    }
  }

  // Words that Kubernetes adds to some required fields.
  static std::string_view what_is_wanted(std::string_view field) {
    if (field == "topologyKey") return "can not be empty";
    if (field == "sideEffects") return "must specify one of None, NoneOnDryRun";
    if (field == "admissionReviewVersions") return "must specify one of v1, v1beta1";
    return {};
  }

  // In Go an empty text or list counts as none; numbers and objects are always there.
  static bool empty(const Value* member, const Schema::Property& property) {
    const Schema& schema = *property.schema;
    if (property.name == "drivers") return false;  // of a CSINode: none yet
    if (schema.type == Type::kString && schema.format == Format::kNone) {
      return member == nullptr || (member->is_string() && member->string().empty());
    }
    if (schema.type == Type::kArray) return member == nullptr || member->size() == 0;
    return false;
  }

  void array(const Schema& schema, const Value& value) {
    if (schema.list == Schema::List::kSet) set_items(value);
    if (schema.list == Schema::List::kMap) map_items(schema, value);
    if (schema.items == nullptr) return;
    std::map<std::string, const Value*> before;
    const bool keyed =
        schema.list == Schema::List::kMap && pair_.old != nullptr && pair_.now == &value;
    if (keyed) {
      for (const Value& item : pair_.old->items()) before.emplace(item_key(schema, item), &item);
    }
    for (std::size_t i = 0; const Value& item : value.items()) {
      const Path::Mark mark = path_.mark();
      path_.index(i++);
      if (keyed) {
        const auto old = before.find(item_key(schema, item));
        update_at(*schema.items, item, old == before.end() ? nullptr : old->second);
      } else {
        this->value(*schema.items, item);
      }
      path_.back(mark);
    }
  }

  void update_at(const Schema& schema, const Value& value, const Value* old) {
    beside(old, value, [&] { this->value(schema, value); });
  }

  void set_items(const Value& value) {
    std::set<std::string> seen;
    for (std::size_t i = 0; const Value& item : value.items()) {
      if (!seen.insert(text::to_json(item)).second) {
        say(duplicate_value(path_.text() + "[" + std::to_string(i) + "]", item));
      }
      ++i;
    }
  }

  void map_items(const Schema& schema, const Value& value) {
    if (!custom_) return;  // the rules of built-in kinds say it by field
    std::set<std::string> seen;
    for (std::size_t i = 0; const Value& item : value.items()) {
      const std::string key = item_key(schema, item);
      if (!seen.insert(key).second) {
        say({"FieldValueDuplicate", path_.text() + "[" + std::to_string(i) + "]",
             "Duplicate value: " + key});
      }
      ++i;
    }
  }

  void rules(const Schema& schema, const Rules& rules, const Value& value) {
    if (!rules.enums.empty()) enums(rules, value);
    if (value.is_string()) strings(rules, value);
    if (value.is_number()) numbers(rules, value);
    const auto size = static_cast<std::int64_t>(value.size());
    if (value.is_array()) {
      if (rules.max_items && size > *rules.max_items) {
        say(too_many(path_.text(), value.size(), *rules.max_items));
      }
      if (rules.min_items && size < *rules.min_items) {
        bad_count(size, "should have at least " + std::to_string(*rules.min_items) + " items");
      }
    }
    if (value.is_object()) {
      if (rules.max_properties && size > *rules.max_properties) {
        say(too_many(path_.text(), value.size(), *rules.max_properties));
      }
      if (rules.min_properties && size < *rules.min_properties) {
        bad_count(size,
                  "should have at least " + std::to_string(*rules.min_properties) + " properties");
      }
    }
    combined(schema, rules, value);
  }

  void bad_count(std::int64_t count, std::string_view rest) {
    say({"FieldValueInvalid", path_.text(),
         "Invalid value: " + std::to_string(count) + ": " + in_body(rest)});
  }

  void enums(const Rules& rules, const Value& value) {
    if (!custom_ && value.is_string() && value.string().empty()) return;
    for (const Value& one : rules.enums) {
      if (text::equal(one, value)) return;
    }
    std::vector<std::string> allowed;
    for (const Value& one : rules.enums) {
      allowed.push_back(one.is_string() ? std::string(one.string()) : text::to_json(one));
    }
    say(not_supported(path_.text(), value, allowed));
  }

  void strings(const Rules& rules, const Value& value) {
    if (rules.max_length && count_runes(value.string()) > *rules.max_length) {
      say(too_long(path_.text(), *rules.max_length));
    }
    if (rules.min_length && count_runes(value.string()) < *rules.min_length) {
      bad(value, "should be at least " + std::to_string(*rules.min_length) + " chars long");
    }
    if (rules.pattern && !rules.pattern->matches(value.string(), work_)) {
      bad(value, "should match '" + std::string(rules.pattern_text) + "'");
    }
  }

  void numbers(const Rules& rules, const Value& value) {
    const double number = value.as_double();
    if (rules.minimum &&
        (rules.exclusive_minimum ? number <= *rules.minimum : number < *rules.minimum)) {
      bad(value, (rules.exclusive_minimum ? "should be greater than "
                                          : "should be greater than or equal to ") +
                     show_number(*rules.minimum));
    }
    if (rules.maximum &&
        (rules.exclusive_maximum ? number >= *rules.maximum : number > *rules.maximum)) {
      bad(value,
          (rules.exclusive_maximum ? "should be less than " : "should be less than or equal to ") +
              show_number(*rules.maximum));
    }
    if (rules.multiple_of) {
      const double times = number / *rules.multiple_of;
      if (std::nearbyint(times) != times) {
        bad(value, "should be a multiple of " + show_number(*rules.multiple_of));
      }
    }
  }

  bool holds(const Schema& schema, const Value& value) {
    Causes inner;
    SchemaWalk(path_, custom_, work_, inner).value(schema, value);
    return inner.list().empty();
  }

  void combined(const Schema&, const Rules& rules, const Value& value) {
    const auto must = [&](std::string_view rest) {
      say({"FieldValueInvalid", path_.text(),
           "Invalid value: " + show_value(value.is_string() ? value : Value::make_string("", 0)) +
               ": " + go_quote(path_.text()) + " must " + std::string(rest)});
    };
    for (const Schema* all : rules.all_of) this->value(*all, value);
    const auto good = [&](const Schema* one) { return holds(*one, value); };
    if (!rules.any_of.empty() && std::none_of(rules.any_of.begin(), rules.any_of.end(), good)) {
      must("validate at least one schema (anyOf)");
    }
    if (!rules.one_of.empty()) {
      const auto count = std::count_if(rules.one_of.begin(), rules.one_of.end(), good);
      if (count == 0) must("validate one and only one schema (oneOf). Found none valid");
      if (count > 1) {
        must("validate one and only one schema (oneOf). Found " + std::to_string(count) +
             " valid alternatives");
      }
    }
    if (rules.negated != nullptr && holds(*rules.negated, value)) {
      must("not validate the schema (not)");
    }
  }

  void format(const Schema& schema, const Value& value) {
    const std::string_view text = value.string();
    bool good = true;
    switch (schema.format) {
      case Format::kTime:
        good = text::parse_rfc3339(text).ok();
        break;
      case Format::kDuration:
        good = text::parse_go_duration(text).ok();
        break;
      case Format::kByte:
        good = text::base64_decode(text).ok();
        break;
      case Format::kDate:
        good = text.size() == 10 && text::parse_rfc3339(std::string(text) + "T00:00:00Z").ok();
        break;
      default:
        break;
    }
    if (good) return;
    say({"FieldValueInvalid", path_.text(),
         "Invalid value: " + go_quote(text) + ": " +
             in_body("must be of type " + std::string(schema.format_name)) + ": " +
             go_quote(text)});
  }

  void integer_format(const Schema& schema, const Value& value) {
    if (schema.format != Format::kInt32) return;
    const auto whole = value.as_int64();
    if (whole && (*whole > INT32_MAX || *whole < INT32_MIN)) {
      bad(value, "must be of type int32: " + go_quote(value.number_text()));
    }
  }

  Path& path_;
  bool custom_;
  std::int64_t& work_;
  Causes& out_;
  Pair pair_;
};

std::string check_name(const Kind& kind, std::string_view name) {
  if (kind.group == "rbac.authorization.k8s.io" || kind.group == "certificates.k8s.io") {
    return check_path_segment(name);
  }
  if (kind.group.empty()) {
    if (kind.kind == "Namespace") return check_dns1123_label(name);
    if (kind.kind == "Service") return check_dns1123_label(name);
  }
  return check_dns1123_subdomain(name);
}

void validate_owner(const Value& owner, Path& path, Causes& out) {
  for (const std::string_view field : {"apiVersion", "kind", "name", "uid"}) {
    if (owner[field].string().empty()) {
      out.add(required_value(path.with(field), "must not be empty"));
    }
  }
  if (text_at(owner, "apiVersion") == "v1" && text_at(owner, "kind") == "Event") {
    out.add(invalid_value(path.text(), owner, "/v1, Kind=Event is disallowed from being an owner"));
  }
}

void validate_owners(const Value& owners, Path& path, Causes& out) {
  std::string controller;
  for (std::size_t i = 0; const Value& owner : owners.items()) {
    const Path::Mark mark = path.mark();
    path.index(i++);
    validate_owner(owner, path, out);
    path.back(mark);
    if (!at(owner, "controller").as_bool()) continue;
    const std::string name =
        std::string(text_at(owner, "kind")) + "/" + std::string(text_at(owner, "name"));
    if (controller.empty()) {
      controller = name;
    } else if (!out.full()) {
      out.add(invalid_value(path.text(), owners,
                            "Only one reference can have Controller set to true. Found \"true\" "
                            "in references for " +
                                controller + " and " + name));
    }
  }
}

void validate_annotations(const Value& annotations, Causes& out) {
  constexpr std::size_t kMostBytes = 256 * 1024;
  std::size_t total = 0;
  for (const Member& member : annotations.members()) {
    std::string lower(member.key);
    for (char& c : lower) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
    }
    if (const std::string wrong = check_label_key(lower); !wrong.empty()) {
      out.add(invalid_text("metadata.annotations", member.key, wrong));
    }
    total += member.key.size() + member.value.string().size();
  }
  if (total > kMostBytes) {
    out.add(too_long("metadata.annotations", static_cast<std::int64_t>(kMostBytes)));
  }
}

}  // namespace

void validate_schema(const Schema& schema, const text::Value& value, Path& path, bool custom,
                     Causes& out, const text::Value* old) {
  std::int64_t work = Regex::kMatchWork;
  SchemaWalk walk(path, custom, work, out);
  if (old == nullptr) {
    walk.value(schema, value);
  } else {
    walk.update(schema, value, *old);
  }
  // Also where it was a rule inside "not": nothing is taken that was not looked at to its end.
  if (work < 0) out.add(forbidden_value(path.text(), "its texts are too long for their patterns"));
}

void validate_labels(const text::Value& labels, Path& path, Causes& out) {
  for (const Member& member : labels.members()) {
    if (const std::string wrong = check_label_key(member.key); !wrong.empty()) {
      out.add(invalid_text(path.text(), member.key, wrong));
    }
    if (const std::string wrong = check_label_value(member.value.string()); !wrong.empty()) {
      out.add(invalid_text(path.text(), member.value.string(), wrong));
    }
  }
}

void validate_metadata(const Kind& kind, const text::Value& object, Causes& out) {
  const Value& meta = at(object, "metadata");
  const std::string_view name = text_at(meta, "name");
  if (name.empty()) {
    out.add(required_value("metadata.name", "name or generateName is required"));
  } else if (const std::string wrong = check_name(kind, name); !wrong.empty()) {
    out.add(invalid_text("metadata.name", name, wrong));
  }
  const std::string_view space = text_at(meta, "namespace");
  if (!kind.namespaced && !space.empty()) {
    out.add(forbidden_value("metadata.namespace", "not allowed on this type"));
  } else if (kind.namespaced && space.empty()) {
    out.add(required_value("metadata.namespace"));
  } else if (kind.namespaced) {
    if (const std::string wrong = check_dns1123_label(space); !wrong.empty()) {
      out.add(invalid_text("metadata.namespace", space, wrong));
    }
  }
  Path path;
  path.child("metadata.labels");
  validate_labels(at(meta, "labels"), path, out);
  validate_annotations(at(meta, "annotations"), out);
  Path owners;
  owners.child("metadata.ownerReferences");
  validate_owners(at(meta, "ownerReferences"), owners, out);
  for (const Value& finalizer : at(meta, "finalizers").items()) {
    if (const std::string wrong = check_label_key(finalizer.string()); !wrong.empty()) {
      out.add(invalid_text("metadata.finalizers", finalizer.string(), wrong));
    }
  }
}

std::vector<Cause> validate(const Kind& kind, const text::Value& object) {
  Causes out;
  validate_metadata(kind, object, out);
  Path path;
  validate_schema(*kind.schema, object, path, kind.custom, out);
  if (!kind.custom) validate_builtin(kind, object, out);
  return std::move(out.list());
}

}  // namespace berth::sim
