#include "text/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "text/json.h"

namespace berth::text {
namespace {

TEST(JsonWriter, Compact) {
  JsonWriter out;
  out.object([&] {
    out.field("s", "x");
    out.field("i", -3);
    out.field("u", std::numeric_limits<std::uint64_t>::max());
    out.field("d", 0.1);
    out.field("b", true);
    out.key("n");
    out.null();
    out.array("a", [&] {
      out.value(1);
      out.object([] {});
      out.list(std::vector<int>{});
    });
    out.list("l", std::vector<std::string>{"x", "y"});
    EXPECT_FALSE(out.complete());
  });
  EXPECT_TRUE(out.complete());
  EXPECT_EQ(out.text(), R"({"s":"x","i":-3,"u":18446744073709551615,"d":0.1,"b":true,"n":null,)"
                        R"("a":[1,{},[]],"l":["x","y"]})");
}

TEST(JsonWriter, AScopeThatFailsSaysSo) {
  JsonWriter out;
  const Status status = out.object([&] {
    return out.array("b", [&]() -> Status {
      out.object([&] { out.field("c", 1); });
      return invalid("no");
    });
  });
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(out.complete());
  JsonWriter fine;
  EXPECT_TRUE(fine.object([]() -> Status { return {}; }).ok());
  EXPECT_EQ(fine.text(), "{}");
}

TEST(JsonWriter, Indented) {
  JsonWriter out({.indent = 2});
  out.value(parse_json(R"({"a":[1,{"b":2}],"c":{},"d":[]})")->root());
  EXPECT_EQ(
      out.text(),
      "{\n  \"a\": [\n    1,\n    {\n      \"b\": 2\n    }\n  ],\n  \"c\": {},\n  \"d\": []\n}");
}

TEST(JsonWriter, AnyBytesGiveValidJson) {
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random() % 24, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % 256);
    JsonWriter out;
    out.value(bytes);
    auto back = parse_json(out.text());
    ASSERT_TRUE(back.ok()) << out.text();
  }
  std::string text;
  append_json_string(text, "a\x01\x7f\"\\\n\xff\u00e9\u2028");
  EXPECT_EQ(text, "\"a\\u0001\\u007f\\\"\\\\\\n\uFFFD\u00e9\\u2028\"");
}

TEST(JsonWriter, DoublesComeBack) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t bits = random();
    double v = 0;
    std::memcpy(&v, &bits, sizeof(v));
    if (!std::isfinite(v)) continue;
    JsonWriter out;
    out.value(v);
    EXPECT_EQ(parse_json(out.text())->root().as_double(), v) << out.text();
  }
}

TEST(JsonWriterDeathTest, MisuseAborts) {
  EXPECT_DEATH(
      {
        JsonWriter out;
        out.value(std::nan(""));
      },
      "not finite");
  EXPECT_DEATH(
      {
        JsonWriter out;
        out.object([&] { out.value(1); });
      },
      "without a key");
  EXPECT_DEATH(
      {
        JsonWriter out;
        out.value(1);
        out.value(1);
      },
      "second value");
  EXPECT_DEATH(
      {
        JsonWriter out;
        out.object([&] { out.key("a"); });
      },
      "without a value");
}

}  // namespace
}  // namespace berth::text
