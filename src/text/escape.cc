#include "text/escape.h"

#include "base/utf8.h"
#include "text/columns.h"

namespace berth::text {

namespace {

bool unsafe_to_show(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) ||        // C0, DEL, C1
         c == 0xad || c == 0x61c || c == 0x180e ||     // soft hyphen, Arabic and Mongolian marks
         c == 0x200b || c == 0x200e || c == 0x200f ||  // zero width space, direction marks
         (c >= 0x2028 && c <= 0x202e) ||               // line ends, embeddings and overrides
         (c >= 0x2060 && c <= 0x206f) ||               // isolates and invisible operators
         c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
         (c >= 0xe0000 && c <= 0xe0fff);  // tags: invisible text
}

void append_hex(std::string& out, char32_t code, int digits) {
  constexpr char kHex[] = "0123456789abcdef";
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) out += kHex[code >> shift & 0xf];
}

void append_visible(std::string& out, char32_t code) {
  if (code == '\n') {
    out += "\\n";
  } else if (code == '\r') {
    out += "\\r";
  } else if (code == '\t') {
    out += "\\t";
  } else if (code < 0x80) {
    out += "\\x";
    append_hex(out, code, 2);
  } else if (code < 0x10000) {
    out += "\\u";
    append_hex(out, code, 4);
  } else {
    out += "\\U";
    append_hex(out, code, 8);
  }
}

}  // namespace

std::string terminal_safe(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    if (!c.valid) {
      out += "\\x";
      append_hex(out, static_cast<unsigned char>(text[0]), 2);
    } else if (unsafe_to_show(c.code)) {
      append_visible(out, c.code);
    } else {
      out.append(text.substr(0, c.size));
    }
    text.remove_prefix(c.size);
  }
  return out;
}

std::string elide_middle(std::string_view text, std::size_t width) {
  if (columns_of(text) <= width) return std::string(text);
  if (width == 0) return {};
  const std::size_t head = width / 2;
  std::string out(first_columns(text, head));
  out += "\u2026";
  return out.append(last_columns(text, width - 1 - head));
}

}  // namespace berth::text
