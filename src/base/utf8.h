// One character at a time out of bytes that may be anything.
//
// For readers, and for writers that must not let a stranger's bytes break their output (log lines,
// metric labels). Pure functions. Accepts exactly the well-formed UTF-8 of RFC 3629: no surrogates,
// no overlong forms, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace berth {

struct Utf8Char {
  char32_t code = 0;     // U+FFFD when not valid
  std::size_t size = 1;  // bytes it takes; 1 when not valid
  bool valid = false;
};

Utf8Char decode_utf8(std::string_view text);  // the first character; text is not empty

// True for what a terminal or a viewer acts on instead of showing: control characters, line and
// paragraph separators, marks that change the direction of writing.
bool is_unprintable(char32_t code);

bool is_utf8(std::string_view text);

// code must be a Unicode scalar value.
void append_utf8(std::string& out, char32_t code);

// Appends text with every byte that is no UTF-8 replaced by U+FFFD.
void append_valid_utf8(std::string& out, std::string_view text);

}  // namespace berth
