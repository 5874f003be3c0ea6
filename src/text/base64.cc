#include "text/base64.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace berth::text {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> make_base64_values() {
  std::array<std::int8_t, 256> values{};
  for (auto& value : values) value = -1;
  for (std::size_t i = 0; i < kBase64.size(); ++i) {
    values[static_cast<unsigned char>(kBase64[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}
constexpr std::array<std::int8_t, 256> kBase64Values = make_base64_values();

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t have = bytes.size() - i < 3 ? bytes.size() - i : 3;
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < have ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out += k <= have ? kBase64[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

Result<std::string> base64_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  int digits = 0, padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    const int value = kBase64Values[static_cast<unsigned char>(c)];
    if (c == '=' && digits + padding < 4 && digits >= 2) {
      ++padding;
    } else if (value < 0) {
      return invalid("not base64: a character outside of the alphabet");
    } else if (padding > 0) {
      return invalid("not base64: bytes after the padding");
    } else {
      group = group << 6 | static_cast<std::uint32_t>(value);
      ++digits;
    }
    if (digits + padding < 4) continue;
    group <<= 6 * padding;
    for (int k = 0; k < 3 - padding; ++k) out += static_cast<char>(group >> (16 - 8 * k) & 0xff);
    if (padding > 0) {
      digits = 0;
      continue;  // only line breaks may follow: padding stays
    }
    group = 0;
    digits = 0;
  }
  if (digits != 0) return invalid("not base64: it ends too early");
  return out;
}

}  // namespace berth::text
