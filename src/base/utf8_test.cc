#include "base/utf8.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(Utf8, DecodesEveryLength) {
  EXPECT_EQ(decode_utf8("A").code, U'A');
  EXPECT_EQ(decode_utf8("\xC3\xA9").code, 0xE9U);
  EXPECT_EQ(decode_utf8("\xE2\x82\xAC").code, 0x20ACU);
  EXPECT_EQ(decode_utf8("\xF0\x9F\x9A\xA2").code, 0x1F6A2U);
  EXPECT_EQ(decode_utf8("\xF0\x9F\x9A\xA2").size, 4U);
}

TEST(Utf8, RefusesWhatIsNotWellFormed) {
  for (std::string_view bad : {"\x80", "\xC3", "\xC3(", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80",
                               "\xF4\x90\x80\x80", "\xFF", "\xF0\x9F\x9A"}) {
    Utf8Char got = decode_utf8(bad);
    EXPECT_FALSE(got.valid);
    EXPECT_EQ(got.size, 1U);
    EXPECT_EQ(got.code, 0xFFFDU);
  }
}

TEST(Utf8, KnowsWhatATerminalActsOn) {
  for (char32_t code : {0x00, 0x0A, 0x1B, 0x7F, 0x85, 0x9B, 0x2028, 0x202E, 0x2066, 0xFEFF}) {
    EXPECT_TRUE(is_unprintable(code)) << static_cast<unsigned>(code);
  }
  for (char32_t code : {0x20, 0x41, 0xA0, 0xE9, 0x20AC, 0x1F6A2}) {
    EXPECT_FALSE(is_unprintable(code)) << static_cast<unsigned>(code);
  }
}

TEST(Utf8, ReplacesBadBytesAndKeepsTheRest) {
  std::string out = "<";
  append_valid_utf8(out, "a\xFF\xC3\xA9");
  EXPECT_EQ(out, "<a\xEF\xBF\xBD\xC3\xA9");
}

}  // namespace
}  // namespace berth
