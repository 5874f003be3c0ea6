#include "text/columns.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cwchar>
#include <string>

#include "base/utf8.h"
#include "text/escape.h"

namespace berth::text {
namespace {

TEST(Columns, WideCharactersTakeTwoAndMarksNone) {
  EXPECT_EQ(columns_of(""), 0U);
  EXPECT_EQ(columns_of("node-1"), 6U);
  EXPECT_EQ(columns_of("\u00e9\u2026\u25a0\u00b7"), 4U);
  EXPECT_EQ(columns_of("\u8a13\u7df4"), 4U);    // two ideographs
  EXPECT_EQ(columns_of("\uff27\u30fc"), 4U);    // full width
  EXPECT_EQ(columns_of("\U0001F680"), 2U);      // emoji
  EXPECT_EQ(columns_of("e\u0301a\u0308"), 2U);  // combining
  EXPECT_EQ(columns_of("\xff\xfe"), 2U);
}

TEST(Columns, APileOfMarksTakesRoom) {
  std::string pile = "a";
  for (int i = 0; i < 100; ++i) pile += "\u0301";
  EXPECT_EQ(columns_of(pile), 97U);
  EXPECT_LT(elide_middle(pile, 10).size(), 100U);
}

TEST(Columns, StartsAndEnds) {
  EXPECT_EQ(first_columns("abc", 2), "ab");
  EXPECT_EQ(first_columns("abc", 9), "abc");
  EXPECT_EQ(first_columns("\u8a13\u7df4", 3), "\u8a13");
  EXPECT_EQ(first_columns("e\u0301a", 1), "e\u0301");
  EXPECT_EQ(first_columns("abc", 0), "");
  EXPECT_EQ(last_columns("abc", 2), "bc");
  EXPECT_EQ(last_columns("\u8a13\u7df4", 3), "\u7df4");
  EXPECT_EQ(last_columns("ae\u0301", 1), "e\u0301");
  EXPECT_EQ(last_columns("abc", 0), "");
  EXPECT_EQ(elide_middle("\u8a13\u7df4\u8a13\u7df4\u8a13", 7), "\u8a13\u2026\u8a13");
}

// Another's table: text is never wider there than told here.
TEST(Columns, NoCharacterIsWiderThanTheSystemSays) {
  const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (utf8 == nullptr) GTEST_SKIP() << "no locale C.UTF-8";
  const locale_t before = uselocale(utf8);
  int wider = 0;
  for (char32_t c = 0x20; c <= 0x10ffff; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string text;
    append_utf8(text, c);
    if (terminal_safe(text) != text) continue;
    const int width = wcwidth(static_cast<wchar_t>(c));
    if (width <= static_cast<int>(columns_of(text))) continue;
    if (++wider < 10) ADD_FAILURE() << std::hex << static_cast<unsigned>(c) << " is " << width;
  }
  EXPECT_EQ(wider, 0);
  uselocale(before);
  freelocale(utf8);
}

}  // namespace
}  // namespace berth::text
