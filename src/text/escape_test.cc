#include "text/escape.h"

#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"

namespace berth::text {
namespace {

TEST(TerminalSafe, ShowsWhatATerminalWouldActOn) {
  const std::pair<std::string, std::string> cases[] = {
      {"plain text", "plain text"},
      {"\x1b[31mred", "\\x1b[31mred"},
      {"a\nb\tc\rd", "a\\nb\\tc\\rd"},
      {"\x7f", "\\x7f"},
      {std::string("\0", 1), "\\x00"},
      {"\u009b31m", "\\u009b31m"},
      {"\u202eevil\u202c", "\\u202eevil\\u202c"},
      {"\u2066x\u2069\u200f\u200b\ufeff", "\\u2066x\\u2069\\u200f\\u200b\\ufeff"},
      {"\U000E0041", "\\U000e0041"},
      {"\xff\xc0\x80", "\\xff\\xc0\\x80"},
      {"\u00e9\u20ac\U0001F600", "\u00e9\u20ac\U0001F600"},
      {"back\\slash", "back\\slash"},
  };
  for (const auto& [in, want] : cases) EXPECT_EQ(terminal_safe(in), want);
}

TEST(TerminalSafe, TwiceIsOnceAndTheResultIsUtf8) {
  std::mt19937 random(5);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random() % 16, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % 256);
    const std::string once = terminal_safe(bytes);
    EXPECT_TRUE(is_utf8(once));
    EXPECT_EQ(terminal_safe(once), once);
  }
}

TEST(ElideMiddle, KeepsBothEnds) {
  EXPECT_EQ(elide_middle("short", 5), "short");
  EXPECT_EQ(elide_middle("abcdefghij", 5), "ab\u2026ij");
  EXPECT_EQ(elide_middle("abcdefghij", 4), "ab\u2026j");
  EXPECT_EQ(elide_middle("abcdefghij", 1), "\u2026");
  EXPECT_EQ(elide_middle("abcdefghij", 0), "");
  EXPECT_EQ(elide_middle("\u00e9\u00e9\u00e9\u00e9", 4), "\u00e9\u00e9\u00e9\u00e9");
  EXPECT_EQ(elide_middle("\u00e9\u00e9\u00e9\u00e9", 3), "\u00e9\u2026\u00e9");
}

TEST(Utf8, EveryScalarValueComesBackAndNothingElse) {
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string text;
    append_utf8(text, c);
    const Utf8Char back = decode_utf8(text);
    ASSERT_TRUE(back.valid && back.code == c && back.size == text.size());
  }
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf",
                          "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe2\x82", "\xc3"}) {
    EXPECT_FALSE(decode_utf8(bad).valid);
    EXPECT_FALSE(is_utf8(std::string("0123456789") + bad));
  }
}

}  // namespace
}  // namespace berth::text
