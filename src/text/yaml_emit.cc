#include "text/yaml_emit.h"

#include <algorithm>

#include "text/json_writer.h"
#include "text/yaml_scalar.h"

namespace berth::text {

namespace {

bool may_be_plain(std::string_view text, YamlPlace place) {
  if (place == YamlPlace::kJson || text.empty() || text == "<<" || text == "=") return false;
  if (resolve_plain_scalar(text).type != YamlScalar::kString) return false;
  const bool option = text.front() == '-' && text.size() > 1 && text[1] != ' ';  // "--flag"
  if (!option &&
      std::string_view("-?:,[]{}#&*!|>'\"%@` ").find(text.front()) != std::string_view::npos) {
    return false;
  }
  if (text.back() == ' ' || text.back() == ':' || text.starts_with("---")) return false;
  if (text.find(": ") != std::string_view::npos || text.find(" #") != std::string_view::npos) {
    return false;
  }
  if (place == YamlPlace::kFlow && text.find_first_of(",[]{}") != std::string_view::npos) {
    return false;
  }
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

std::string scalar_text(const Value& value, YamlPlace place) {
  if (value.is_string()) return yaml_string(value.string(), place);
  return to_json(value);
}

bool on_one_line(const Value& value) {
  return (!value.is_object() && !value.is_array()) || value.size() == 0;
}

}  // namespace

std::string yaml_string(std::string_view text, YamlPlace place) {
  if (may_be_plain(text, place)) return std::string(text);
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string yaml_flow(const Value& value, YamlPlace place) {
  std::string out;
  if (value.is_object()) {
    for (const Member& member : value.members()) {
      out += (out.empty() ? "" : ", ") + yaml_string(member.key, place) + ": " +
             yaml_flow(member.value, place);
    }
    return "{" + out + "}";
  }
  if (value.is_array()) {
    for (const Value& item : value.items()) {
      out += (out.empty() ? "" : ", ") + yaml_flow(item, place);
    }
    return "[" + out + "]";
  }
  return scalar_text(value, place);
}

std::string yaml_block_member(std::string_view key, const Value& value, std::size_t indent) {
  return yaml_string(key, YamlPlace::kBlock) + ":" + yaml_block_value(value, indent + 2);
}

std::string yaml_block_value(const Value& value, std::size_t indent) {
  if (on_one_line(value)) return " " + yaml_flow(value, YamlPlace::kBlock);
  const std::string pad = "\n" + std::string(indent, ' ');
  std::string out;
  for (const Member& member : value.members()) {
    out += pad + yaml_block_member(member.key, member.value, indent);
  }
  for (const Value& item : value.items()) {
    out += pad + "-";
    std::string lines = yaml_block_value(item, indent + 2);
    // "- key: value": the first line of an item stands beside its dash.
    if (lines.starts_with("\n")) lines = " " + lines.substr(1 + indent + 2);
    out += lines;
  }
  return out;
}

}  // namespace berth::text
