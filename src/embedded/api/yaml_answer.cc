#include "embedded/api/yaml_answer.h"

#include <algorithm>
#include <vector>

#include "text/json.h"
#include "text/json_writer.h"

namespace berth::sim::api {

namespace {

using text::Member;
using text::Value;

// Letters first, then letters, digits and a few marks that mean nothing inside a plain scalar.
bool plain_scalar(std::string_view text) {
  if (text.empty() || text.size() > 200) return false;
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (!letter(text.front())) return false;
  for (const char c : text) {
    if (!letter(c) && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '/' && c != '-') {
      return false;
    }
  }
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (const std::string_view word :
       {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}) {
    if (lower == word) return false;
  }
  return true;
}

void append_scalar(std::string& out, std::string_view text) {
  if (plain_scalar(text)) {
    out += text;
  } else {
    text::append_json_string(out, text);
  }
}

void append_yaml(std::string& out, const Value& value, std::size_t indent);

void append_members(std::string& out, const Value& value, std::size_t indent, bool first_inline) {
  std::vector<const Member*> members;
  for (const Member& member : value.members()) members.push_back(&member);
  std::sort(members.begin(), members.end(),
            [](const Member* a, const Member* b) { return a->key < b->key; });
  for (const Member* member : members) {
    if (!first_inline) out.append(indent, ' ');
    first_inline = false;
    append_scalar(out, member->key);
    out += ':';
    append_yaml(out, member->value, indent);
  }
}

// What follows "key:" or "-", with the line's end.
void append_yaml(std::string& out, const Value& value, std::size_t indent) {
  if (value.is_object() && value.size() > 0) {
    out += '\n';
    append_members(out, value, indent + 2, false);
  } else if (value.is_array() && value.size() > 0) {
    out += '\n';
    for (const Value& item : value.items()) {
      out.append(indent, ' ').append("-");
      if (item.is_object() && item.size() > 0) {
        out += ' ';
        append_members(out, item, indent + 2, true);
      } else {
        append_yaml(out, item, indent + 2);
      }
    }
  } else {
    out += ' ';
    if (value.is_string()) {
      append_scalar(out, value.string());
    } else {
      out += text::to_json(value);
    }
    out += '\n';
  }
}

}  // namespace

std::string yaml_of(std::string_view json) {
  const auto parsed = text::parse_json(json);
  if (!parsed.ok() || !parsed.value().root().is_object()) return std::string(json);
  std::string out;
  append_members(out, parsed.value().root(), 0, false);
  return out;
}

void append_yaml_item(std::string_view json, std::string& out) {
  const auto parsed = text::parse_json(json);
  if (!parsed.ok() || parsed.value().root().size() == 0) {
    out.append("- ").append(json).append("\n");  // JSON is YAML
    return;
  }
  out += "- ";
  append_members(out, parsed.value().root(), 2, true);
}

}  // namespace berth::sim::api
