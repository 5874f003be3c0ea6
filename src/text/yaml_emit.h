// Values as YAML text, to be put into a text that somebody wrote.
//
// The shortest spelling that parse_yaml() reads back as the same value: plain where that is safe,
// else in double quotes. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "text/value.h"

namespace berth::text {

enum class YamlPlace : unsigned char { kBlock, kFlow, kJson };  // kJson: everything is quoted

// A string; plain only where it reads back as this string.
std::string yaml_string(std::string_view text, YamlPlace place);
// On one line: {a: b, c: [1, 2]}.
std::string yaml_flow(const Value& value, YamlPlace place);
// What follows "key:" or "-" at an indentation: " value" on the same line, or "\n" and lines
// that are indented by indent. No line's end at the end.
std::string yaml_block_value(const Value& value, std::size_t indent);
// "key: value", "key:\n  lines"; the first line is not indented, the others by indent and more.
std::string yaml_block_member(std::string_view key, const Value& value, std::size_t indent);

}  // namespace berth::text
