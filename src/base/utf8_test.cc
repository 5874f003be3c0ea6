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
  for (std::uint32_t code :
       {0x00U, 0x0AU, 0x1BU, 0x7FU, 0x85U, 0x9BU, 0x2028U, 0x202EU, 0x2066U, 0xFEFFU}) {
    EXPECT_TRUE(is_unprintable(code)) << code;
  }
  for (std::uint32_t code : {0x20U, 0x41U, 0xA0U, 0xE9U, 0x20ACU, 0x1F6A2U}) {
    EXPECT_FALSE(is_unprintable(code)) << code;
  }
}

TEST(Utf8, ReplacesBadBytesAndKeepsTheRest) {
  std::string out = "<";
  append_valid_utf8(out, "a\xFF\xC3\xA9");
  EXPECT_EQ(out, "<a\xEF\xBF\xBD\xC3\xA9");
}

}  // namespace
}  // namespace berth
