// The tree of types behind a Kind: what may stand where.
//
// Only for the files of this folder. A Schema is immutable once its owner (the built-in table or a
// CRD) is complete; pointers and views stay valid while the owner lives, which Kind::schema keeps.
// Built-in types refer to one another and may be recursive (JSONSchemaProps); a walk is bounded by
// the depth of the value, never by the schema.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kinds/schema/regex.h"
#include "kinds/schema/schema.h"
#include "text/value.h"

namespace berth::sim {

using text::Member;
using text::Value;

struct Schema;

// What a value must be beside its type; few nodes have any.
struct Rules {
  std::vector<text::Value> enums;
  std::string_view pattern_text;
  std::optional<Regex> pattern;
  std::optional<double> minimum, maximum, multiple_of;
  bool exclusive_minimum = false, exclusive_maximum = false, unique = false;
  std::optional<std::int64_t> min_length, max_length, min_items, max_items;
  std::optional<std::int64_t> min_properties, max_properties;
  std::vector<const Schema*> all_of, any_of, one_of;
  const Schema* negated = nullptr;
  text::Value cel;  // x-kubernetes-validations: kept, not evaluated
};

struct Schema {
  enum class Type : std::uint8_t {
    kAny,  // whatever it is, it is kept as it is
    kObject,
    kArray,
    kString,
    kInteger,
    kNumber,
    kBoolean,
    kIntOrString,
  };
  enum class Format : std::uint8_t {
    kNone,
    kInt32,
    kInt64,
    kDouble,
    kByte,
    kTime,
    kMicroTime,
    kQuantity,
    kDuration,
    kDate,
    kOther,  // format_name says which; not checked
  };
  enum class List : std::uint8_t { kAtomic, kSet, kMap };
  // Built-in types whose defaults or rules need code.
  enum class Hook : std::uint8_t {
    kNone,
    kContainer,
    kResources,
    kPodSpec,
    kJobSpec,
    kDeploymentStrategy,
    kDaemonStrategy,
    kStatefulStrategy,
    kServiceSpec,
    kNodeStatus,
    kDeviceRequest,
    kVolume,
    kAutoscalerSpec,
    kSubject,
    kLimitRangeItem,
    kVolumeClaim,
    kCrdNames,
  };
  struct Property {
    std::string_view name;
    const Schema* schema = nullptr;
    bool required = false;
    bool retain_keys = false;
    bool always = false;                    // Go writes it even when it is empty
    bool omit_zero = false;                 // Go does not write its zero
    const text::Value* fallback = nullptr;  // the default
    std::string_view description;
  };

  Type type = Type::kAny;
  Format format = Format::kNone;
  List list = List::kAtomic;
  Hook hook = Hook::kNone;
  bool nullable = false;
  bool preserve_unknown = false;
  bool embedded_resource = false;
  bool atomic_map = false;      // apply: objects as a whole
  bool merge_list = false;      // strategic merge: lists by key, or as a set
  bool retain_keys = false;     // strategic merge: members are replaced as a whole
  bool has_additional = false;  // additionalProperties is there (a map)
  std::string_view merge_key;   // strategic merge; empty: a set of primitives
  std::vector<std::string_view> map_keys;
  std::vector<Property> properties;  // sorted by name
  const Schema* items = nullptr;
  const Schema* additional = nullptr;  // nullptr with has_additional: anything
  std::unique_ptr<Rules> rules;
  std::string_view name;       // Go's name of the type: "PodSpec"
  std::string_view full_name;  // io.k8s.api.core.v1.PodSpec; empty for CRDs
  std::string_view format_name;
  std::string_view description;

  const Property* find(std::string_view key) const;
  bool is_map() const { return has_additional; }
};

// Where a CRD's nodes live.
struct SchemaOwner {
  std::deque<Schema> nodes;
  text::Document source;
  Schema* make() { return &nodes.emplace_back(); }
};

// A built-in type by its full name; nullptr when unknown.
const Schema* builtin_type(std::string_view full_name);
const Schema& object_meta();

// Reads an OpenAPI v3 schema, structural rules included. Causes name fields under prefix.
const Schema* read_structural(const text::Value& source, SchemaOwner& owner,
                              const std::string& prefix, std::vector<Cause>& causes);

// Causes as Kubernetes words them.
Cause invalid_value(std::string field, const text::Value& value, std::string_view detail);
Cause invalid_text(std::string field, std::string_view value, std::string_view detail);
Cause required_value(std::string field, std::string_view detail = {});
Cause forbidden_value(std::string field, std::string_view detail);
Cause duplicate_value(std::string field, const text::Value& value);
Cause not_supported(std::string field, const text::Value& value,
                    const std::vector<std::string>& allowed);
Cause too_long(std::string field, std::int64_t max_bytes);
Cause too_many(std::string field, std::size_t found, std::int64_t max);
std::string go_quote(std::string_view text);  // as Go's %q
std::string show_value(const text::Value& value);

// Paths of fields while one walks: "spec.containers[0].name", `metadata.labels[a/b]`.
class Path {
 public:
  struct Mark {
    std::size_t size;
  };
  Mark mark() const { return {text_.size()}; }
  void back(Mark m) { text_.resize(m.size); }
  void child(std::string_view name) {
    if (!text_.empty()) text_ += '.';
    text_ += name;
  }
  void key(std::string_view name) {
    text_ += '[';
    text_ += name;
    text_ += ']';
  }
  void index(std::size_t i) { key(std::to_string(i)); }
  const std::string& text() const { return text_; }
  std::string with(std::string_view name) const {
    return text_.empty() ? std::string(name) : text_ + "." + std::string(name);
  }

 private:
  std::string text_;
};

// Causes up to a bound.
class Causes {
 public:
  static constexpr std::size_t kMost = 100;
  void add(Cause cause) {
    if (list_.size() < kMost) list_.push_back(std::move(cause));
  }
  bool full() const { return list_.size() >= kMost; }
  std::vector<Cause>& list() { return list_; }

 private:
  std::vector<Cause> list_;
};

// A value against its schema: types, required fields, enums, bounds, list types.
// strict_types: as for CRDs; otherwise types were checked by normalize().
// old: what stood there before an update; what is unchanged in it is let be, however wrong. A
// member is told by its key, an item by the keys of its list; items of other lists go with their
// list.
void validate_schema(const Schema& schema, const text::Value& value, Path& path, bool custom,
                     Causes& out, const text::Value* old = nullptr);
// metadata of an object.
void validate_metadata(const Kind& kind, const text::Value& object, Causes& out);
void validate_labels(const text::Value& labels, Path& path, Causes& out);
// Rules of built-in kinds that a schema cannot say.
void validate_builtin(const Kind& kind, const text::Value& object, Causes& out);
void validate_builtin_update(const Kind& kind, const text::Value& live, const text::Value& object,
                             Causes& out);
void validate_pod_spec(const text::Value& spec, Path& path, Causes& out);
void validate_crd(const text::Value& crd, Causes& out);

// Equal as Go compares them: an empty text, list or object, false and an absent field are the same.
bool same_meaning(const text::Value& a, const text::Value& b);

}  // namespace berth::sim
