#include "text/value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "text/builder.h"
#include "text/json.h"

namespace berth::text {
namespace {

TEST(Value, AccessorsAreTotal) {
  const Value null;
  EXPECT_EQ(null.kind(), Kind::kNull);
  EXPECT_FALSE(null.as_bool());
  EXPECT_EQ(null.string(), "");
  EXPECT_EQ(null.number_text(), "");
  EXPECT_FALSE(null.as_int64());
  EXPECT_EQ(null.as_double(), 0);
  EXPECT_TRUE(null.items().empty());
  EXPECT_TRUE(null.members().empty());
  EXPECT_EQ(null.find("x"), nullptr);
  auto text = parse_json(R"("3")");
  EXPECT_FALSE(text->root().as_int64());
  EXPECT_EQ(text->root().size(), 0u);
  auto number = parse_json("3");
  EXPECT_EQ(number->root().string(), "");
}

TEST(Value, IntegersAreExact) {
  const std::pair<const char*, std::optional<std::int64_t>> cases[] = {
      {"0", 0},
      {"-0", 0},
      {"3.0", 3},
      {"3.000e0", 3},
      {"3e2", 300},
      {"300e-2", 3},
      {"3.5", std::nullopt},
      {"35e-1", std::nullopt},
      {"1.5e1", 15},
      {"9223372036854775807", std::numeric_limits<std::int64_t>::max()},
      {"9223372036854775807.0", std::numeric_limits<std::int64_t>::max()},
      {"9223372036854775808", std::nullopt},
      {"-9223372036854775808", std::numeric_limits<std::int64_t>::min()},
      {"-9223372036854775808.000", std::numeric_limits<std::int64_t>::min()},
      {"-9223372036854775809", std::nullopt},
      {"1e18", 1'000'000'000'000'000'000},
      {"1e19", std::nullopt},
      {"1e999999999999999999999", std::nullopt},
      {"0e999999999999999999999", 0},
      {"1e-999999999999999999999", std::nullopt},
      {"0.0000", 0},
  };
  for (const auto& [text, want] : cases)
    EXPECT_EQ(parse_json(text)->root().as_int64(), want) << text;
}

TEST(Value, DoublesAreNearest) {
  EXPECT_EQ(parse_json("0.1")->root().as_double(), 0.1);
  EXPECT_EQ(parse_json("1e400")->root().as_double(), HUGE_VAL);
  EXPECT_EQ(parse_json("-1e400")->root().as_double(), -HUGE_VAL);
  EXPECT_EQ(parse_json("1e-400")->root().as_double(), 0);
  EXPECT_EQ(parse_json("12345678901234567890")->root().as_double(), 12345678901234567890.0);
}

TEST(Value, EqualityIgnoresOrderAndSpelling) {
  const auto same = [](const char* a, const char* b) {
    return equal(parse_json(a)->root(), parse_json(b)->root());
  };
  EXPECT_TRUE(same("1", "1.0"));
  EXPECT_TRUE(same("100", "1e2"));
  EXPECT_TRUE(same("-0", "0"));
  EXPECT_FALSE(same("1", "1.0000000000000000000001"));
  EXPECT_FALSE(same("1", "\"1\""));
  EXPECT_TRUE(same(R"({"a":1,"b":[2]})", R"({"b":[2.0],"a":1})"));
  EXPECT_FALSE(same(R"({"a":1,"b":2})", R"({"a":1,"c":2})"));
  EXPECT_FALSE(same(R"({"a":1})", R"({"a":1,"b":2})"));
  EXPECT_FALSE(same("[1,2]", "[2,1]"));
  EXPECT_FALSE(same("[1,2]", "[1,2,3]"));
}

TEST(Document, MovesKeepValues) {
  auto parsed = parse_json(R"({"a":["b"]})");
  Document first = std::move(*parsed);
  const Value& a = first.root().find("a")->items()[0];
  Document second = std::move(first);
  EXPECT_EQ(a.string(), "b");
  EXPECT_TRUE(first.root().is_null());  // NOLINT: the moved-from state is promised
  EXPECT_EQ(to_json(second.root()), R"({"a":["b"]})");
}

TEST(Builder, BuildsAndCopies) {
  Builder builder{Limits{}};
  builder.begin_object(1);
  builder.key("list", 1);
  builder.begin_array(2);
  builder.number("1", 2);
  builder.boolean(true, 3);
  builder.end();
  builder.key("copy", 4);
  builder.deep_copy(parse_json(R"([{"x":"y"},null])")->root());
  builder.end();
  ASSERT_FALSE(builder.failed());
  const Document doc = std::move(builder).finish();
  EXPECT_EQ(to_json(doc.root()), R"({"list":[1,true],"copy":[{"x":"y"},null]})");
}

TEST(Builder, StopsAtItsLimits) {
  Builder builder{Limits{.max_nodes = 10}};
  builder.begin_array(1);
  for (int i = 0; i < 100; ++i) builder.null(1);
  EXPECT_TRUE(builder.failed());
  EXPECT_EQ(builder.error().code(), Code::kExhausted);
}

}  // namespace
}  // namespace berth::text
