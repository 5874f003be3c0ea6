#include "base/utf8.h"

#include <cstring>

namespace berth {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

struct Utf8Lead {
  std::size_t size;
  char32_t bits;
  char32_t smallest;  // below it the form is overlong
};

Utf8Lead classify_lead(unsigned char lead) {
  if (lead < 0x80) return {1, lead, 0};
  if ((lead & 0xE0) == 0xC0) return {2, static_cast<char32_t>(lead & 0x1F), 0x80};
  if ((lead & 0xF0) == 0xE0) return {3, static_cast<char32_t>(lead & 0x0F), 0x800};
  if ((lead & 0xF8) == 0xF0) return {4, static_cast<char32_t>(lead & 0x07), 0x10000};
  return {0, 0, 0};
}

bool in_range(char32_t code, char32_t low, char32_t high) { return code >= low && code <= high; }

}  // namespace

Utf8Char decode_utf8(std::string_view text) {
  constexpr Utf8Char kInvalid{kReplacement, 1, false};
  Utf8Lead lead = classify_lead(static_cast<unsigned char>(text[0]));
  if (lead.size == 0 || lead.size > text.size()) return kInvalid;
  char32_t code = lead.bits;
  for (std::size_t i = 1; i < lead.size; ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return kInvalid;
    code = (code << 6) | (byte & 0x3FU);
  }
  if (code < lead.smallest || code > 0x10FFFF || in_range(code, 0xD800, 0xDFFF)) return kInvalid;
  return {code, lead.size, true};
}

bool is_unprintable(char32_t code) {
  return code < 0x20 || in_range(code, 0x7F, 0x9F) || code == 0x061C ||
         in_range(code, 0x200B, 0x200F) || in_range(code, 0x2028, 0x202E) ||
         in_range(code, 0x2066, 0x2069) || code == 0xFEFF;
}

void append_valid_utf8(std::string& out, std::string_view text) {
  while (!text.empty()) {
    Utf8Char next = decode_utf8(text);
    if (next.valid) {
      out.append(text.substr(0, next.size));
    } else {
      out += "\xEF\xBF\xBD";
    }
    text.remove_prefix(next.size);
  }
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
    text.remove_prefix(c.size);
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

}  // namespace berth
