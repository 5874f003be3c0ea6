// UTF-8, one character at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace berth::text {

struct Utf8Char {
  char32_t code = 0;       // U+FFFD when it is not valid
  std::size_t length = 0;  // bytes to go on by: at least 1
  bool valid = false;
};

// The character at the start of text, which must not be empty. Overlong forms, surrogates and
// codes past U+10FFFF are not valid; an invalid sequence has length 1.
Utf8Char decode_utf8(std::string_view text);

bool is_utf8(std::string_view text);

// code must be a Unicode scalar value.
void append_utf8(std::string& out, char32_t code);

}  // namespace berth::text
