#include "text/selector.h"

#include <algorithm>
#include <charconv>

#include "text/escape.h"

namespace berth::text {

namespace {

constexpr std::pair<std::string_view, Operator> kOperators[] = {
    {"In", Operator::kIn},         {"NotIn", Operator::kNotIn},
    {"Exists", Operator::kExists}, {"DoesNotExist", Operator::kDoesNotExist},
    {"Gt", Operator::kGt},         {"Lt", Operator::kLt},
};

std::optional<std::int64_t> selector_int(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end || text.empty()) return std::nullopt;
  return value;
}

bool label_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// [A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?
bool label_word(std::string_view text) {
  if (text.empty() || !label_alnum(text.front()) || !label_alnum(text.back())) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return label_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

// Lower case words of [a-z0-9-] joined by dots.
bool dns_subdomain(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  bool at_start = true;
  char last = '.';
  for (const char c : text) {
    const bool alnum = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (c == '.') {
      if (at_start || last == '-') return false;
      at_start = true;
    } else {
      if (!alnum && (c != '-' || at_start)) return false;
      at_start = false;
    }
    last = c;
  }
  return last != '.' && last != '-';
}

std::string shown_label(std::string_view text) {
  return "\"" + elide_middle(terminal_safe(text.substr(0, 256)), 60) + "\"";
}

Status validate_field_path(std::string_view path) {
  const bool plain = !path.empty() && std::all_of(path.begin(), path.end(), [](char c) {
    return label_alnum(c) || c == '.' || c == '-' || c == '_' || c == '/' || c == '[' || c == ']' ||
           c == '\'';
  });
  if (plain) return {};
  return invalid("found field " + shown_label(path) + ", want a path such as metadata.name");
}

Status validate_count(const Requirement& r) {
  const std::string op(name(r.op));
  switch (r.op) {
    case Operator::kIn:
    case Operator::kNotIn:
      if (r.values.empty()) return invalid("found operator " + op + " without values, want some");
      return {};
    case Operator::kExists:
    case Operator::kDoesNotExist:
      if (!r.values.empty()) return invalid("found values for operator " + op + ", want none");
      return {};
    case Operator::kGt:
    case Operator::kLt:
      break;
  }
  if (r.values.size() == 1 && selector_int(r.values[0])) return {};
  return invalid("found " + (r.values.empty() ? "no value" : shown_label(r.values[0])) +
                 " for operator " + op + ", want exactly one integer");
}

std::string escaped_field(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == ',' || c == '=') out += '\\';
    out += c;
  }
  return out;
}

struct RequirementFields {
  Requirement requirement;
};

void read_key(const Value& v, RequirementFields& out, Decoder& d) {
  decode(v, out.requirement.key, d);
}
void read_operator(const Value& v, RequirementFields& out, Decoder& d) {
  decode_word<Operator>(v, kOperators, out.requirement.op, d);
}
void read_values(const Value& v, RequirementFields& out, Decoder& d) {
  decode(v, out.requirement.values, d);
}

constexpr Field<RequirementFields> kRequirementFields[] = {
    required(custom<RequirementFields>("key", read_key)),
    required(custom<RequirementFields>("operator", read_operator)),
    custom<RequirementFields>("values", read_values),
};

struct LabelSelectorFields {
  std::map<std::string, std::string> match_labels;
  Selector expressions;
};

constexpr Field<LabelSelectorFields> kLabelSelectorFields[] = {
    field<&LabelSelectorFields::match_labels>("matchLabels"),
    custom<LabelSelectorFields>("matchExpressions",
                                [](const Value& v, LabelSelectorFields& out, Decoder& d) {
                                  decode_requirements(v, SelectorKind::kLabel, out.expressions, d);
                                }),
};

}  // namespace

std::string_view name(Operator op) {
  for (const auto& [text, known] : kOperators) {
    if (known == op) return text;
  }
  return "unknown";
}

Status validate_label_key(std::string_view key) {
  const std::size_t slash = key.find('/');
  const bool prefixed = slash != std::string_view::npos;
  const std::string_view word = prefixed ? key.substr(slash + 1) : key;
  if (word.size() <= 63 && label_word(word) && (!prefixed || dns_subdomain(key.substr(0, slash)))) {
    return {};
  }
  return invalid("found label key " + shown_label(key) +
                 ", want an optional DNS prefix and '/', then 1..63 of [A-Za-z0-9._-], first and "
                 "last a letter or a digit");
}

Status validate_label_value(std::string_view value) {
  if (value.empty() || (value.size() <= 63 && label_word(value))) return {};
  return invalid("found label value " + shown_label(value) +
                 ", want at most 63 of [A-Za-z0-9._-], first and last a letter or a digit");
}

Status validate(const Requirement& r, SelectorKind kind) {
  const bool number = r.op == Operator::kGt || r.op == Operator::kLt;
  if (number && kind != SelectorKind::kNode) {
    return invalid("found operator " + std::string(name(r.op)) + ", want it only for nodes");
  }
  if (kind == SelectorKind::kField && r.op != Operator::kIn && r.op != Operator::kNotIn) {
    return invalid("found operator " + std::string(name(r.op)) + " on a field, want In or NotIn");
  }
  if (kind == SelectorKind::kField) {
    BERTH_CHECK(validate_field_path(r.key));
  } else {
    BERTH_CHECK(validate_label_key(r.key));
  }
  BERTH_CHECK(validate_count(r));
  if (kind == SelectorKind::kField) {
    if (r.values.size() == 1) return {};
    return invalid("found " + std::to_string(r.values.size()) + " values for a field, want one");
  }
  if (number) return {};
  for (const std::string& value : r.values) BERTH_CHECK(validate_label_value(value));
  return {};
}

Status validate(const Selector& selector, SelectorKind kind) {
  for (const Requirement& requirement : selector) BERTH_CHECK(validate(requirement, kind));
  return {};
}

void decode_requirements(const Value& v, SelectorKind kind, Selector& out, Decoder& d) {
  if (!v.is_array()) return d.mismatch(v, "an array");
  for (std::size_t i = 0; const Value& item : v.items()) {
    Decoder::Step step(d, i++);
    const std::size_t before = d.errors();
    RequirementFields fields;
    decode_object(item, kRequirementFields, fields, d);
    if (d.errors() != before) continue;
    if (Status valid = validate(fields.requirement, kind); !valid.ok()) {
      std::string_view message = valid.error().message();
      if (message.starts_with("found ")) message.remove_prefix(6);
      d.error(item, std::string(message), "");
      continue;
    }
    out.push_back(std::move(fields.requirement));
  }
}

void decode_label_selector(const Value& v, Selector& out, Decoder& d) {
  LabelSelectorFields fields;
  decode_object(v, kLabelSelectorFields, fields, d);
  for (auto& [key, value] : fields.match_labels) {
    Requirement one{key, Operator::kIn, {value}};
    if (Status valid = validate(one, SelectorKind::kLabel); !valid.ok()) {
      Decoder::Step labels(d, std::string_view("matchLabels"));
      Decoder::Step step(d, std::string_view(key));
      d.error(v, valid.error().message().substr(6), "");
      continue;
    }
    out.push_back(std::move(one));
  }
  std::move(fields.expressions.begin(), fields.expressions.end(), std::back_inserter(out));
}

bool matches_value(const Requirement& r, std::optional<std::string_view> value) {
  const auto listed = [&] {
    return std::find(r.values.begin(), r.values.end(), *value) != r.values.end();
  };
  switch (r.op) {
    case Operator::kIn:
      return value && listed();
    case Operator::kNotIn:
      return !value || !listed();
    case Operator::kExists:
      return value.has_value();
    case Operator::kDoesNotExist:
      return !value.has_value();
    case Operator::kGt:
    case Operator::kLt:
      break;
  }
  if (!value || r.values.size() != 1) return false;
  const std::optional<std::int64_t> have = selector_int(*value);
  const std::optional<std::int64_t> bound = selector_int(r.values[0]);
  if (!have || !bound) return false;
  return r.op == Operator::kGt ? *have > *bound : *have < *bound;
}

std::string print_label_selector(const Selector& selector) {
  std::string out;
  for (const Requirement& r : selector) {
    if (!out.empty()) out += ',';
    const std::string first = r.values.empty() ? "" : r.values[0];
    switch (r.op) {
      case Operator::kExists:
        out += r.key;
        continue;
      case Operator::kDoesNotExist:
        out += '!' + r.key;
        continue;
      case Operator::kGt:
        out += r.key + '>' + first;
        continue;
      case Operator::kLt:
        out += r.key + '<' + first;
        continue;
      case Operator::kIn:
      case Operator::kNotIn:
        break;
    }
    const bool in = r.op == Operator::kIn;
    if (r.values.size() == 1) {
      out += r.key + (in ? "=" : "!=") + first;
      continue;
    }
    out += r.key + (in ? " in (" : " notin (");
    for (std::size_t i = 0; i < r.values.size(); ++i) out += (i > 0 ? "," : "") + r.values[i];
    out += ')';
  }
  return out;
}

std::string print_field_selector(const Selector& selector) {
  std::string out;
  for (const Requirement& r : selector) {
    if (!out.empty()) out += ',';
    out += r.key + (r.op == Operator::kNotIn ? "!=" : "=");
    if (!r.values.empty()) out += escaped_field(r.values[0]);
  }
  return out;
}

}  // namespace berth::text
