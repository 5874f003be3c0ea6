#include "text/utf8.h"

#include <cstring>

namespace berth::text {

namespace {

constexpr Utf8Char kBadUtf8{U'\uFFFD', 1, false};

bool continues(std::string_view text, std::size_t i) {
  return i < text.size() && (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80;
}

char32_t low6(char c) { return static_cast<char32_t>(static_cast<unsigned char>(c) & 0x3f); }

}  // namespace

Utf8Char decode_utf8(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {first, 1, true};
  if (first < 0xc2 || first > 0xf4 || !continues(text, 1)) return kBadUtf8;
  if (first < 0xe0) return {(first & 0x1fu) << 6 | low6(text[1]), 2, true};
  if (!continues(text, 2)) return kBadUtf8;
  if (first < 0xf0) {
    const char32_t code = (first & 0x0fu) << 12 | low6(text[1]) << 6 | low6(text[2]);
    if (code < 0x800 || (code >= 0xd800 && code < 0xe000)) return kBadUtf8;
    return {code, 3, true};
  }
  if (!continues(text, 3)) return kBadUtf8;
  const char32_t code =
      (first & 0x07u) << 18 | low6(text[1]) << 12 | low6(text[2]) << 6 | low6(text[3]);
  if (code < 0x10000 || code > 0x10ffff) return kBadUtf8;
  return {code, 4, true};
}

bool is_utf8(std::string_view text) {
  constexpr std::uint64_t kHigh = 0x8080808080808080u;
  while (!text.empty()) {
    std::uint64_t word = 0;
    if (text.size() >= sizeof(word)) {
      std::memcpy(&word, text.data(), sizeof(word));
      if ((word & kHigh) == 0) {
        text.remove_prefix(sizeof(word));
        continue;
      }
    }
    const Utf8Char c = decode_utf8(text);
    if (!c.valid) return false;
    text.remove_prefix(c.length);
  }
  return true;
}

void append_utf8(std::string& out, char32_t code) {
  const auto put = [&out](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

}  // namespace berth::text
