// The syntax of names, labels and causes, in the words of Kubernetes.
#include <algorithm>
#include <utility>

#include "kinds/schema/node.h"
#include "text/json_writer.h"

namespace berth::sim {
namespace {

constexpr std::string_view kLabelRegex = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
constexpr std::string_view kQualifiedRegex = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
constexpr std::string_view kQualifiedMessage =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character";

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_number(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_lower(c) || is_number(c) || (c >= 'A' && c <= 'Z'); }

bool label_syntax(std::string_view text) {
  const auto inner = [](char c) { return is_lower(c) || is_number(c) || c == '-'; };
  return !text.empty() && std::all_of(text.begin(), text.end(), inner) && text.front() != '-' &&
         text.back() != '-';
}

bool subdomain_syntax(std::string_view text) {
  while (true) {
    const std::size_t dot = text.find('.');
    if (!label_syntax(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool qualified_syntax(std::string_view text) {
  const auto inner = [](char c) { return is_word(c) || c == '-' || c == '_' || c == '.'; };
  return !text.empty() && std::all_of(text.begin(), text.end(), inner) && is_word(text.front()) &&
         is_word(text.back());
}

std::string regex_error(std::string_view message, std::string_view regex,
                        std::initializer_list<std::string_view> examples) {
  std::string out(message);
  out += " (e.g. ";
  for (bool first = true; const std::string_view example : examples) {
    if (!first) out += " or ";
    first = false;
    out += "'" + std::string(example) + "', ";
  }
  return out + "regex used for validation is '" + std::string(regex) + "')";
}

std::string longer_than(std::size_t most) {
  return "must be no more than " + std::to_string(most) + " bytes";
}

}  // namespace

std::string check_dns1123_label(std::string_view name) {
  if (name.size() > 63) return longer_than(63);
  if (label_syntax(name)) return {};
  if (subdomain_syntax(name)) return "must not contain dots";
  return regex_error(
      "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
      "must start and end with an alphanumeric character",
      kLabelRegex, {"my-name", "123-abc"});
}

std::string check_dns1123_subdomain(std::string_view name) {
  if (name.size() > 253) return longer_than(253);
  if (subdomain_syntax(name)) return {};
  return regex_error(
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
      "'.', and must start and end with an alphanumeric character",
      std::string(kLabelRegex) + "(\\." + std::string(kLabelRegex) + ")*", {"example.com"});
}

std::string check_dns1035_label(std::string_view name) {
  if (name.size() > 63) return longer_than(63);
  if (label_syntax(name) && is_lower(name.front())) return {};
  return regex_error(
      "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
      "alphabetic character, and end with an alphanumeric character",
      "[a-z]([-a-z0-9]*[a-z0-9])?", {"my-name", "abc-123"});
}

std::string check_path_segment(std::string_view name) {
  if (name == "." || name == "..") return "may not be '" + std::string(name) + "'";
  for (const char bad : {'/', '%'}) {
    if (name.find(bad) != std::string_view::npos) {
      return std::string("may not contain '") + bad + "'";
    }
  }
  return {};
}

std::string check_label_key(std::string_view key) {
  const std::size_t slash = key.find('/');
  std::string_view part = key;
  if (slash != std::string_view::npos) {
    if (key.find('/', slash + 1) != std::string_view::npos) {
      return "a valid label key " +
             regex_error(kQualifiedMessage, kQualifiedRegex, {"MyName", "my.name", "123-abc"}) +
             " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
    }
    const std::string_view prefix = key.substr(0, slash);
    if (prefix.empty()) return "prefix part must be non-empty";
    if (const std::string wrong = check_dns1123_subdomain(prefix); !wrong.empty()) {
      return "prefix part " + wrong;
    }
    part = key.substr(slash + 1);
  }
  if (part.empty()) return "name part must be non-empty";
  if (part.size() > 63) return "name part " + longer_than(63);
  if (qualified_syntax(part)) return {};
  return "name part " +
         regex_error(kQualifiedMessage, kQualifiedRegex, {"MyName", "my.name", "123-abc"});
}

std::string check_label_value(std::string_view value) {
  if (value.size() > 63) return longer_than(63);
  if (value.empty() || qualified_syntax(value)) return {};
  return regex_error(
      "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
      "'.', and must start and end with an alphanumeric character",
      "(" + std::string(kQualifiedRegex) + ")?", {"MyValue", "my_value", "12345"});
}

std::string go_quote(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

namespace {

constexpr std::size_t kLongestShown = 2'000;  // a whole pod spec in a message helps nobody

// As JSON, and no further than a little past what is shown: a value is shown once for each fault.
void append_shown(std::string& out, const text::Value& value) {
  if (value.is_object() || value.is_array()) {
    const bool object = value.is_object();
    out += object ? '{' : '[';
    bool first = true;
    const auto next = [&] {
      if (!std::exchange(first, false)) out += ',';
      return out.size() <= kLongestShown;
    };
    for (const text::Member& member : value.members()) {
      if (!next()) return;
      text::append_json_string(out, member.key);
      out += ':';
      append_shown(out, member.value);
    }
    for (const text::Value& item : value.items()) {
      if (!next()) return;
      append_shown(out, item);
    }
    out += object ? '}' : ']';
  } else if (value.is_string()) {
    text::append_json_string(out, value.string().substr(0, 2 * kLongestShown));
  } else {
    out += text::to_json(value);
  }
}

}  // namespace

std::string show_value(const text::Value& value) {
  if (value.is_string()) return go_quote(value.string().substr(0, kLongestShown));
  std::string json;
  append_shown(json, value);
  if (json.size() > kLongestShown) json = json.substr(0, kLongestShown) + "...";
  return json;
}

Cause invalid_value(std::string field, const text::Value& value, std::string_view detail) {
  return {"FieldValueInvalid", std::move(field),
          "Invalid value: " + show_value(value) + ": " + std::string(detail)};
}
Cause invalid_text(std::string field, std::string_view value, std::string_view detail) {
  return {"FieldValueInvalid", std::move(field),
          "Invalid value: " + go_quote(value) + ": " + std::string(detail)};
}
Cause required_value(std::string field, std::string_view detail) {
  std::string message = "Required value";
  if (!detail.empty()) message += ": " + std::string(detail);
  return {"FieldValueRequired", std::move(field), std::move(message)};
}
Cause forbidden_value(std::string field, std::string_view detail) {
  return {"FieldValueForbidden", std::move(field), "Forbidden: " + std::string(detail)};
}
Cause duplicate_value(std::string field, const text::Value& value) {
  return {"FieldValueDuplicate", std::move(field), "Duplicate value: " + show_value(value)};
}
Cause not_supported(std::string field, const text::Value& value,
                    const std::vector<std::string>& allowed) {
  std::string message = "Unsupported value: " + show_value(value);
  for (bool first = true; const std::string& one : allowed) {
    message += first ? ": supported values: " : ", ";
    message += go_quote(one);
    first = false;
  }
  return {"FieldValueNotSupported", std::move(field), std::move(message)};
}
Cause too_long(std::string field, std::int64_t max_bytes) {
  return {"FieldValueTooLong", std::move(field),
          "Too long: may not be more than " + std::to_string(max_bytes) +
              (max_bytes == 1 ? " byte" : " bytes")};
}
Cause too_many(std::string field, std::size_t found, std::int64_t max) {
  return {"FieldValueTooMany", std::move(field),
          "Too many: " + std::to_string(found) + ": must have at most " + std::to_string(max) +
              (max == 1 ? " item" : " items")};
}

std::string invalid_message(const Kind& kind, std::string_view name,
                            std::span<const Cause> causes) {
  std::string out = kind.group_kind() + " " + go_quote(name) + " is invalid";
  std::vector<std::string> all;
  for (const Cause& cause : causes) {
    std::string one = cause.field + ": " + cause.message;
    if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(std::move(one));
  }
  if (all.empty()) return out;
  if (all.size() == 1) return out + ": " + all.front();
  out += ": [";
  for (std::size_t i = 0; i < all.size(); ++i) out += (i == 0 ? "" : ", ") + all[i];
  return out + "]";
}

}  // namespace berth::sim
