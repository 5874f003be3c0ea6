#include "text/rfc3339.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace berth::text {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(Rfc3339, Reads) {
  const std::pair<const char*, std::int64_t> cases[] = {
      {"1970-01-01T00:00:00Z", 0},
      {"1970-01-01T00:00:00.000000001Z", 1},
      {"1969-12-31T23:59:59.999999999Z", -1},
      {"2001-09-09T01:46:40Z", 1'000'000'000 * kSecond},
      {"2024-02-29T12:30:00.5+02:00", 1'709'202'600 * kSecond + kSecond / 2},
      {"2024-02-29T10:30:00.5Z", 1'709'202'600 * kSecond + kSecond / 2},
      {"2000-02-29T00:00:00z", 951'782'400 * kSecond},
      {"1970-01-01t00:00:00-00:00", 0},
      {"1970-01-01T05:30:00+05:30", 0},
      {"1969-12-31T16:00:00-08:00", 0},
      {"1970-01-01T00:00:00.1234567899Z", 123'456'789},
      {"2262-04-11T23:47:16.854775807Z", std::numeric_limits<std::int64_t>::max()},
      {"1677-09-21T00:12:43.145224192Z", std::numeric_limits<std::int64_t>::min()},
  };
  for (const auto& [text, want] : cases) {
    auto got = parse_rfc3339(text);
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    EXPECT_EQ(*got, want) << text;
  }
}

TEST(Rfc3339, Refuses) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "year"},
      {"2024", "'-'"},
      {"24-01-01T00:00:00Z", "year"},
      {"2024-13-01T00:00:00Z", "the month is not 1..12"},
      {"2024-00-01T00:00:00Z", "month"},
      {"2024-04-31T00:00:00Z", "the day is not 1..30"},
      {"2023-02-29T00:00:00Z", "the day is not 1..28"},
      {"1900-02-29T00:00:00Z", "1..28"},
      {"2024-01-01 00:00:00Z", "'T'"},
      {"2024-01-01T24:00:00Z", "hour"},
      {"2024-01-01T00:60:00Z", "minute"},
      {"2024-01-01T00:00:61Z", "second"},
      {"2016-12-31T23:59:60Z", "leap"},
      {"2024-01-01T00:00:00", "Z or an offset"},
      {"2024-01-01T00:00:00.Z", "digit"},
      {"2024-01-01T00:00:00+24:00", "offset"},
      {"2024-01-01T00:00:00+0200", "':'"},
      {"2024-01-01T00:00:00Zx", "more text"},
      {"2262-04-11T23:47:16.854775808Z", "2262"},
      {"0001-01-01T00:00:00Z", "1677"},
      {"-024-01-01T00:00:00Z", "digits"},
  };
  for (const auto& [text, part] : cases) {
    auto got = parse_rfc3339(text);
    ASSERT_FALSE(got.ok()) << text;
    EXPECT_NE(got.error().message().find(part), std::string::npos) << got.error().message();
  }
}

TEST(Rfc3339, PrintsWhatItReads) {
  EXPECT_EQ(format_rfc3339(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(format_rfc3339(-1), "1969-12-31T23:59:59.999999999Z");
  EXPECT_EQ(format_rfc3339(1'500'000'000), "1970-01-01T00:00:01.5Z");
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const auto ns = static_cast<std::int64_t>(random());
    auto back = parse_rfc3339(format_rfc3339(ns));
    ASSERT_TRUE(back.ok()) << format_rfc3339(ns);
    EXPECT_EQ(*back, ns);
  }
  // Every day of the range once: the calendar has no holes.
  std::string last;
  for (std::int64_t day = -100'000; day <= 100'000; ++day) {
    const std::string text = format_rfc3339(day * 86'400 * kSecond);
    EXPECT_LT(last, text);
    EXPECT_EQ(*parse_rfc3339(text), day * 86'400 * kSecond);
    last = text;
  }
}

TEST(GoDuration, ReadsAndPrints) {
  const std::tuple<const char*, std::int64_t, const char*> cases[] = {
      {"0", 0, "0s"},
      {"0s", 0, "0s"},
      {"300ms", 300'000'000, "300ms"},
      {"1h30m", 5400 * kSecond, "1h30m0s"},
      {"-1.5s", -1'500'000'000, "-1.5s"},
      {"+5s", 5 * kSecond, "5s"},
      {"1.5h", 5400 * kSecond, "1h30m0s"},
      {".5s", 500'000'000, "500ms"},
      {"1.s", kSecond, "1s"},
      {"1us", 1'000, "1\u00b5s"},
      {"1\u00b5s", 1'000, "1\u00b5s"},
      {"1\u03bcs", 1'000, "1\u00b5s"},
      {"1ns", 1, "1ns"},
      {"1h1ns", 3600 * kSecond + 1, "1h0m0.000000001s"},
      {"90s", 90 * kSecond, "1m30s"},
      {"9223372036854775807ns", std::numeric_limits<std::int64_t>::max(),
       "2562047h47m16.854775807s"},
      {"-9223372036854775808ns", std::numeric_limits<std::int64_t>::min(),
       "-2562047h47m16.854775808s"},

  };
  for (const auto& [text, want, printed] : cases) {
    auto got = parse_go_duration(text);
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    EXPECT_EQ(*got, want) << text;
    EXPECT_EQ(format_go_duration(*got), printed) << text;
  }
  for (const char* bad : {"", "-", "1", "1x", "s", ".s", "1h-2m", "1 h", "1h ", "--1s", "3000000h",
                          "9223372036854775808ns", "99999999999999999999999999s", "00", "1.1.1s"}) {
    EXPECT_FALSE(parse_go_duration(bad).ok()) << bad;
  }
}

TEST(GoDuration, PrintedComesBack) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100'000; ++i) {
    const auto ns = static_cast<std::int64_t>(random()) >> (random() % 63);
    auto back = parse_go_duration(format_go_duration(ns));
    ASSERT_TRUE(back.ok()) << format_go_duration(ns);
    EXPECT_EQ(*back, ns);
  }
}

}  // namespace
}  // namespace berth::text
