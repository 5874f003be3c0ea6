// Reading an object into its kind: unknown fields out, defaults in, texts in canonical form.
#include "kinds/schema/normalize.h"

#include <algorithm>
#include <optional>
#include <set>

#include "text/members.h"
#include "text/quantity.h"
#include "text/rfc3339.h"

namespace berth::sim {
namespace {

using Type = Schema::Type;
using Format = Schema::Format;

std::string_view json_kind(const Value& value) {
  switch (value.kind()) {
    case text::Kind::kBool:
      return "bool";
    case text::Kind::kNumber:
      return "number";
    case text::Kind::kString:
      return "string";
    case text::Kind::kArray:
      return "array";
    default:
      return "object";
  }
}

// Go's name of a type, as decoding errors show it.
std::string go_type(const Schema& schema) {
  switch (schema.type) {
    case Type::kObject:
      if (schema.is_map()) {
        return "map[string]" + (schema.additional ? go_type(*schema.additional) : "interface {}");
      }
      return "v1." + std::string(schema.name);
    case Type::kArray:
      return "[]" + (schema.items ? go_type(*schema.items) : "interface {}");
    case Type::kInteger:
      return schema.format == Format::kInt64 ? "int64" : "int32";
    case Type::kNumber:
      return "float64";
    case Type::kBoolean:
      return "bool";
    default:
      return schema.format == Format::kByte ? "[]uint8" : "string";
  }
}

// Where Go finds that a text is not base64; nothing when it is. Line breaks are skipped.
std::optional<std::size_t> bad_base64_at(std::string_view text) {
  const auto is_break = [](char c) { return c == '\n' || c == '\r'; };
  std::size_t in_group = 0;
  std::size_t i = 0;
  for (; i < text.size() && text[i] != '='; ++i) {
    const char c = text[i];
    if (is_break(c)) continue;
    const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (!letter && c != '+' && c != '/') return i;
    in_group = (in_group + 1) % 4;
  }
  if (i == text.size()) {
    return in_group == 0 ? std::nullopt : std::optional(i - std::min(i, in_group));
  }
  if (in_group < 2) return i;
  ++i;
  for (std::size_t wanted = 3 - in_group; wanted > 0; --wanted) {
    while (i < text.size() && is_break(text[i])) ++i;
    if (i == text.size()) return i;
    if (text[i++] != '=') return i - 1;
  }
  while (i < text.size() && is_break(text[i])) ++i;
  return i == text.size() ? std::nullopt : std::optional(i);
}

bool small_whole(std::string_view text) {  // its own canonical quantity
  return !text.empty() && text.size() <= 3 && (text[0] != '0' || text.size() == 1) &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "2024-02-29T10:30:00Z": nothing to do.
bool plain_time(std::string_view text) { return text.size() == 20 && text.back() == 'Z'; }

class Normalizer {
 public:
  Normalizer(const Kind& kind, const NormalizeOptions& options)
      : kind_(kind), options_(options), strict_(!kind.custom), go_struct_(kind.kind) {
    place_.in_pod = !kind.custom && kind.group.empty() && kind.kind == "Pod";
    place_.in_job = kind.group == "batch" && kind.kind == "Job";
  }

  Result<Normalized> run(const Value& object) {
    if (!object.is_object()) {
      return invalid("json: cannot unmarshal " + std::string(json_kind(object)) +
                     " into Go value of type v1." + kind_.kind);
    }
    Value root = top(object);
    if (!error_.empty()) return invalid(error_);
    if (!kind_.custom && options_.defaults) root = kind_defaults(kind_, root, edit_);
    std::sort(unknown_.begin(), unknown_.end());
    return Normalized{edit_.own(root), std::move(unknown_)};
  }

 private:
  // The object itself: what every kind has, then its own fields.
  Value top(const Value& object) {
    const std::size_t from = members_.size();
    members_.push_back({"apiVersion", edit_.string(kind_.api_version())});
    members_.push_back({"kind", edit_.string(kind_.kind)});
    const Schema& schema = *kind_.schema;
    for (const Member& member : object.members()) {
      if (member.key == "apiVersion" || member.key == "kind") continue;
      const Path::Mark mark = path_.mark();
      if (member.key == "metadata") {
        metadata(member.value);
      } else {
        field(schema, member);
      }
      path_.back(mark);
    }
    if (options_.defaults) fill(schema, from);
    if (strict_) fill_zeros(schema, from);
    return end_object(from);
  }

  void metadata(const Value& value) {
    if (value.is_null()) return;
    path_.child("metadata");
    const bool was = strict_;
    strict_ = true;  // metadata is decoded by Go for custom kinds as well
    go_path_ = "metadata";
    members_.push_back({"metadata", walk(object_meta(), value)});
    strict_ = was;
    go_path_.clear();
  }

  void field(const Schema& schema, const Member& member) {
    const Schema::Property* property = schema.find(member.key);
    const Schema* inner = nullptr;
    if (property != nullptr) {
      inner = property->schema;
    } else if (schema.has_additional) {
      inner = schema.additional;
    } else if (!schema.preserve_unknown) {
      unknown(member);
      if (options_.prune) return;
    }
    const std::size_t go_size = go_path_.size();
    path_.child(member.key);
    if (property != nullptr && strict_) {
      if (!go_path_.empty()) go_path_ += '.';
      go_path_ += member.key;
    }
    value(property, inner, member);
    go_path_.resize(go_size);
  }

  void value(const Schema::Property* property, const Schema* inner, const Member& member) {
    const Value* from = &member.value;
    const Value* fallback = property != nullptr && options_.defaults ? property->fallback : nullptr;
    if (strict_ && inner != nullptr) {
      if (from->is_null() && property != nullptr && inner->type != Type::kAny) return;
      if (fallback != nullptr && counts_as_absent(*from, *inner)) from = fallback;
    } else if (from->is_null() && inner != nullptr && !inner->nullable) {
      if (fallback == nullptr && inner->type != Type::kAny) return;
      if (fallback != nullptr) from = fallback;
    }
    if (strict_ && property != nullptr && left_out(*property, *from)) return;
    const std::string_view key = edit_.copy(member.key);
    const Value made = inner == nullptr ? edit_.copy(*from) : walk(*inner, *from);
    members_.push_back({key, made});
  }

  // Go cannot tell the zero of a plain field from its absence; pointers (bool, most numbers) can.
  bool counts_as_absent(const Value& value, const Schema& schema) const {
    if (value.is_string()) return value.string().empty() && schema.type == Type::kString;
    return value.is_number() && in_probe_ && value.number_text() == "0";
  }

  // What Go would not write.
  static bool left_out(const Schema::Property& property, const Value& value) {
    if (property.always) return false;
    if (value.is_array()) return value.size() == 0 && property.schema->type == Type::kArray;
    if (value.is_object()) return value.size() == 0 && property.schema->is_map();
    if (!property.omit_zero) return false;
    if (value.is_bool()) return !value.as_bool();
    if (value.is_number()) return value.number_text() == "0";
    return value.is_string() && value.string().empty();
  }

  // What Go writes even when nobody set it; a null where it would write one is left out.
  void fill_zeros(const Schema& schema, std::size_t from) {
    const Names names(members_, from, schema.properties.size());
    for (const Schema::Property& property : schema.properties) {
      if (!property.always || property.schema->type == Type::kArray || property.schema->is_map()) {
        continue;
      }
      if (names.has(property.name)) continue;
      const Value made = property.schema->type == Type::kObject
                             ? object(*property.schema, Value::make_object({}, 0))
                             : zero(*property.schema);
      if (!made.is_null()) members_.push_back({property.name, made});
    }
  }

  // Whether the members from there on have a name; for the many names of a large schema and the
  // many members of a wide object there is an index.
  class Names {
   public:
    Names(const std::vector<Member>& members, std::size_t from, std::size_t asked)
        : members_(members), from_(from) {
      if (asked <= text::kFewMembers || members.size() - from <= text::kFewMembers) return;
      for (std::size_t i = from; i < members.size(); ++i) names_.insert(members[i].key);
    }
    bool has(std::string_view name) const {
      if (!names_.empty()) return names_.contains(name);
      for (std::size_t i = from_; i < members_.size(); ++i) {
        if (members_[i].key == name) return true;
      }
      return false;
    }

   private:
    const std::vector<Member>& members_;
    std::size_t from_;
    std::set<std::string_view> names_;
  };

  void unknown(const Member& member) {
    if (unknown_.size() >= 100) return;
    unknown_.push_back("unknown field \"" + path_.with(member.key) + "\"");
  }

  // Defaults of absent fields.
  void fill(const Schema& schema, std::size_t from) {
    const Names names(members_, from, schema.properties.size());
    for (const Schema::Property& property : schema.properties) {
      if (property.fallback == nullptr) continue;
      if (names.has(property.name)) continue;
      const Path::Mark mark = path_.mark();
      path_.child(property.name);
      const Value made = walk(*property.schema, *property.fallback);
      members_.push_back({edit_.copy(property.name), made});
      path_.back(mark);
    }
  }

  Value end_object(std::size_t from) {
    const Value made = edit_.object(std::span(members_).subspan(from));
    members_.resize(from);
    return made;
  }

  Value walk(const Schema& schema, const Value& value) {
    if (strict_ && value.is_null()) return zero(schema);
    switch (schema.type) {
      case Type::kObject:
        if (!value.is_object()) return mismatch(schema, value);
        return object(schema, value);
      case Type::kArray:
        if (!value.is_array()) return mismatch(schema, value);
        return array(schema, value);
      case Type::kAny:
        if (schema.properties.empty() && !schema.has_additional) return edit_.copy(value);
        return value.is_object() ? object(schema, value) : edit_.copy(value);
      default:
        return strict_ ? scalar(schema, value) : edit_.copy(value);
    }
  }

  Value object(const Schema& schema, const Value& value) {
    const std::size_t from = members_.size();
    const bool was_probe = in_probe_;
    const std::string_view was_struct = go_struct_;
    in_probe_ = strict_ && schema.name == "Probe";
    if (!schema.name.empty()) go_struct_ = schema.name;
    for (const Member& member : value.members()) {
      const Path::Mark mark = path_.mark();
      if (schema.embedded_resource && embedded(schema, member)) continue;
      field(schema, member);
      path_.back(mark);
    }
    if (options_.defaults) fill(schema, from);
    if (strict_ && !schema.name.empty()) fill_zeros(schema, from);
    if (options_.defaults && schema.hook != Schema::Hook::kNone) {
      Fields fields(members_, from);
      hook_defaults(schema, fields, place_, edit_);
    }
    in_probe_ = was_probe;
    go_struct_ = was_struct;
    return end_object(from);
  }

  // apiVersion, kind and metadata belong to every embedded resource.
  bool embedded(const Schema& schema, const Member& member) {
    if (schema.find(member.key) != nullptr) return false;
    if (member.key != "apiVersion" && member.key != "kind" && member.key != "metadata") {
      return false;
    }
    const std::string_view key = edit_.copy(member.key);
    members_.push_back({key, edit_.copy(member.value)});
    return true;
  }

  Value array(const Schema& schema, const Value& value) {
    const std::size_t from = items_.size();
    for (std::size_t i = 0; const Value& item : value.items()) {
      const Path::Mark mark = path_.mark();
      path_.index(i++);
      const Value made = schema.items == nullptr ? edit_.copy(item) : walk(*schema.items, item);
      items_.push_back(made);
      path_.back(mark);
    }
    const Value made = edit_.array(std::span(items_).subspan(from));
    items_.resize(from);
    return made;
  }

  Value zero(const Schema& schema) {
    switch (schema.type) {
      case Type::kObject:
        return edit_.object({});
      case Type::kArray:
        return edit_.array({});
      case Type::kString:
        return schema.format == Format::kTime || schema.format == Format::kMicroTime
                   ? Value()
                   : edit_.string(schema.format == Format::kQuantity ? "0" : "");
      case Type::kBoolean:
        return text::Editor::boolean(false);
      case Type::kInteger:
      case Type::kNumber:
      case Type::kIntOrString:
        return edit_.number(0);
      default:
        return {};
    }
  }

  Value mismatch(const Schema& schema, const Value& value) {
    if (!strict_) return edit_.copy(value);  // validate() will say so
    std::string what(json_kind(value));
    if (value.is_number() && schema.type == Type::kInteger) {
      what += " " + std::string(value.number_text().substr(0, 40));
    }
    fail("json: cannot unmarshal " + what + " into Go struct field " + std::string(go_struct_) +
         "." + go_path_ + " of type " + go_type(schema));
    return {};
  }

  void fail(std::string what) {
    if (error_.empty()) error_ = std::move(what);
  }

  Value scalar(const Schema& schema, const Value& value) {
    switch (schema.type) {
      case Type::kBoolean:
        return value.is_bool() ? text::Editor::boolean(value.as_bool()) : mismatch(schema, value);
      case Type::kInteger:
        return integer(schema, value);
      case Type::kNumber:
        return value.is_number() ? edit_.copy(value) : mismatch(schema, value);
      case Type::kIntOrString:
        if (value.is_string()) return edit_.copy(value);
        return integer(schema, value);
      default:
        return string(schema, value);
    }
  }

  Value integer(const Schema& schema, const Value& value) {
    const auto whole = value.as_int64();
    const bool plain = value.number_text().find_first_of(".eE") == std::string_view::npos;
    const bool wide = schema.format == Format::kInt64;
    if (!whole || !plain || (!wide && (*whole > INT32_MAX || *whole < INT32_MIN))) {
      return mismatch(schema, value);
    }
    return edit_.copy(value);
  }

  Value string(const Schema& schema, const Value& value) {
    if (schema.format == Format::kQuantity) return quantity(value);
    if (!value.is_string()) return mismatch(schema, value);
    const std::string_view text = value.string();
    if (schema.format == Format::kTime && !plain_time(text)) return time(text, false);
    if (schema.format == Format::kMicroTime) return time(text, true);
    if (schema.format == Format::kByte) return bytes(text);
    return edit_.string(text);
  }

  Value bytes(std::string_view text) {
    if (const auto wrong = bad_base64_at(text)) {
      fail("illegal base64 data at input byte " + std::to_string(*wrong));
      return {};
    }
    std::string plain(text);
    std::erase_if(plain, [](char c) { return c == '\n' || c == '\r'; });
    return edit_.string(plain);
  }

  Value quantity(const Value& value) {
    if (!value.is_string() && !value.is_number()) {
      fail("json: cannot unmarshal " + std::string(json_kind(value)) + " into Go struct field " +
           std::string(go_struct_) + "." + go_path_ + " of type resource.Quantity");
      return {};
    }
    const std::string_view text = value.is_string() ? value.string() : value.number_text();
    if (small_whole(text)) return edit_.string(text);
    if (text.empty()) return edit_.string("0");
    const auto parsed = text::parse_quantity(text);
    if (!parsed.ok()) {
      fail(
          "quantities must match the regular expression "
          "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
      return {};
    }
    return edit_.string(parsed->to_string());
  }

  Value time(std::string_view text, bool micro) {
    const auto parsed = text::parse_rfc3339(text);
    // Go wants six digits of a second where it writes six.
    if (micro && parsed.ok() && (text.size() < 27 || text[19] != '.' || is_digit(text[26]))) {
      fail("parsing time " + go_quote(text.substr(0, 100)) +
           " as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse " +
           go_quote(text.substr(std::min<std::size_t>(19, text.size()), 100)) + " as \".000000\"");
      return {};
    }
    if (!parsed.ok()) {
      fail("parsing time " + go_quote(text.substr(0, 100)) +
           " as \"2006-01-02T15:04:05Z07:00\": cannot parse");
      return {};
    }
    const std::int64_t ns = *parsed;
    const std::int64_t below = ((ns % 1'000'000'000) + 1'000'000'000) % 1'000'000'000;
    std::string out = text::format_rfc3339(ns - below);
    if (micro) {
      std::string digits = std::to_string(below / 1000);
      digits.insert(0, 6 - digits.size(), '0');
      out.insert(out.size() - 1, "." + digits);
    }
    return edit_.string(out);
  }

  const Kind& kind_;
  const NormalizeOptions& options_;
  bool strict_;
  bool in_probe_ = false;
  Place place_;
  Path path_;
  std::string go_path_;
  std::string_view go_struct_;
  std::string error_;
  std::vector<Member> members_;
  std::vector<Value> items_;
  std::vector<std::string> unknown_;
  text::Editor edit_;
};

}  // namespace

Result<Normalized> normalize(const Kind& kind, const text::Value& object,
                             const NormalizeOptions& options) {
  return Normalizer(kind, options).run(object);
}

const Value* Fields::get(std::string_view key) const {
  for (std::size_t i = from_; i < all_.size(); ++i) {
    if (all_[i].key == key) return &all_[i].value;
  }
  return nullptr;
}

std::string_view Fields::text(std::string_view key) const {
  const Value* found = get(key);
  return found == nullptr ? std::string_view{} : found->string();
}

void Fields::set(std::string_view key, const Value& value) {
  for (std::size_t i = from_; i < all_.size(); ++i) {
    if (all_[i].key == key) {
      all_[i].value = value;
      return;
    }
  }
  all_.push_back({key, value});
}

void Fields::remove(std::string_view key) {
  for (std::size_t i = from_; i < all_.size(); ++i) {
    if (all_[i].key == key) {
      all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }
}

}  // namespace berth::sim
