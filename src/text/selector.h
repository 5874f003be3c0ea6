// Label, node and field selectors: lists of requirements that must all hold.
//
// Absent keys: In, Exists, Gt and Lt never match one; NotIn (so !=) and DoesNotExist always do.
// Gt and Lt compare 64-bit integers; anything that is not one never matches. An empty selector
// matches everything. Parsers check the syntax of Kubernetes, so a Selector from here is valid;
// one that was filled by hand goes through validate().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/decode.h"

namespace berth::text {

enum class Operator : std::uint8_t { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };

std::string_view name(Operator op);  // "In", "NotIn", ...

struct Requirement {
  std::string key;
  Operator op = Operator::kExists;
  std::vector<std::string> values;
  friend bool operator==(const Requirement&, const Requirement&) = default;
};

using Selector = std::vector<Requirement>;

enum class SelectorKind : std::uint8_t {
  kLabel,  // In NotIn Exists DoesNotExist
  kNode,   // also Gt and Lt
  kField,  // = and != on field paths; values are free text
};

// "a=b,c!=d,e in (x,y),!f,g notin (z),h>1"; "" selects everything. Gt and Lt need kNode.
Result<Selector> parse_label_selector(std::string_view text,
                                      SelectorKind kind = SelectorKind::kLabel);

// "metadata.name=x,status.phase!=Running"; a backslash escapes , = and itself in values.
Result<Selector> parse_field_selector(std::string_view text);

// {matchLabels: {...}, matchExpressions: [{key, operator, values}]}, as in LabelSelector.
void decode_label_selector(const Value& v, Selector& out, Decoder& d);
// A list of {key, operator, values}, as matchExpressions and matchFields of a node selector term.
void decode_requirements(const Value& v, SelectorKind kind, Selector& out, Decoder& d);

Status validate(const Requirement& requirement, SelectorKind kind);
Status validate(const Selector& selector, SelectorKind kind);

// Label syntax: an optional DNS prefix and '/', then at most 63 of [A-Za-z0-9._-], first and last
// alphanumeric. A value may also be empty.
Status validate_label_key(std::string_view key);
Status validate_label_value(std::string_view value);

// The string form; a valid selector parses back to the same one, its values sorted.
std::string print_label_selector(const Selector& selector);
std::string print_field_selector(const Selector& selector);

bool matches_value(const Requirement& requirement, std::optional<std::string_view> value);

// get(key) -> std::optional<std::string_view>.
template <class Get>
bool matches(const Selector& selector, const Get& get) {
  for (const Requirement& requirement : selector) {
    if (!matches_value(requirement, get(std::string_view(requirement.key)))) return false;
  }
  return true;
}

}  // namespace berth::text
