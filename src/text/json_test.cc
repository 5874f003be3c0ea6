#include "text/json.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <random>
#include <string>

#include "text/json_writer.h"

namespace berth::text {
namespace {

std::string round_trip(std::string_view json) {
  auto doc = parse_json(json);
  return doc.ok() ? to_json(doc->root()) : "error: " + doc.error().to_string();
}

TEST(Json, ReadsEveryKind) {
  const std::pair<const char*, const char*> cases[] = {
      {"null", "null"},
      {" true ", "true"},
      {"false\n", "false"},
      {"0", "0"},
      {"-0", "-0"},
      {"-12.50e+03", "-12.50e+03"},
      {"1E5", "1E5"},
      {R"("")", R"("")"},
      {R"("plain")", R"("plain")"},
      {R"("a\"b\\c\/d\b\f\n\r\t")", R"("a\"b\\c/d\b\f\n\r\t")"},
      {R"("\u0041\u00e9\u20ac\ud83d\ude00")", "\"A\u00e9\u20ac\U0001F600\""},
      {"\"\u00e9\u20ac\U0001F600\"", "\"\u00e9\u20ac\U0001F600\""},
      {R"("\u0000")", R"("\u0000")"},
      {"[]", "[]"},
      {"[ ]", "[]"},
      {"{}", "{}"},
      {"[1,[2,[3]],{}]", "[1,[2,[3]],{}]"},
      {R"( { "b" : 1 , "a" : [ true , null ] } )", R"({"b":1,"a":[true,null]})"},
  };
  for (const auto& [in, want] : cases) EXPECT_EQ(round_trip(in), want) << in;
}

TEST(Json, RefusesWithPlace) {
  struct Case {
    std::string in;
    const char* place;
    const char* part;
  };
  const Case cases[] = {
      {"", "line 1 column 1", "no value"},
      {"  \n ", "line 2 column 2", "no value"},
      {"nul", "line 1 column 1", "not a JSON value"},
      {"tru\n", "line 1 column 1", "not a JSON value"},
      {"1 2", "line 1 column 3", "after the value"},
      {"01", "line 1 column 1", "starts with 0"},
      {"-", "line 1 column 2", "digit"},
      {"+1", "line 1 column 1", "'+'"},
      {"1.", "line 1 column 3", "after '.'"},
      {".5", "line 1 column 1", "'.'"},
      {"1e", "line 1 column 3", "exponent"},
      {"[1,]", "line 1 column 4", "']'"},
      {"[1\n 2]", "line 2 column 2", "want ',' or ']'"},
      {"[", "line 1 column 2", "the end of the text"},
      {"{\"a\":1,}", "line 1 column 8", "a key in double quotes"},
      {"{\"a\" 1}", "line 1 column 6", "':'"},
      {"{\"a\":}", "line 1 column 6", "'}'"},
      {"{a:1}", "line 1 column 2", "a key"},
      {"\"abc", "line 1 column 5", "inside a string"},
      {"\"a\tb\"", "line 1 column 3", "control character byte 0x09"},
      {"\"a\nb\"", "line 1 column 3", "control character"},
      {"\"\\x\"", "line 1 column 3", "after a backslash"},
      {"\"\\u12g4\"", "line 1 column 6", "hexadecimal"},
      {"\"\\ud800\"", "line 1 column 2", "surrogate"},
      {"\"\\ud800\\u0041\"", "line 1 column 2", "surrogate"},
      {"\"\\udc00\\ud800\"", "line 1 column 2", "surrogate"},
      {"\"\xff\"", "line 1 column 2", "UTF-8"},
      {"\"\xc0\x80\"", "line 1 column 2", "UTF-8"},
      {"\"\xed\xa0\x80\"", "line 1 column 2", "UTF-8"},
      {"\"\xe2\x82\"", "line 1 column 2", "UTF-8"},
      {"\xef\xbb\xbf{}", "line 1 column 1", "0xef"},
      {std::string("\"a\0b\"", 5), "line 1 column 3", "byte 0x00"},
      {std::string("1\0", 2), "line 1 column 2", "byte 0x00"},
      {"{\"a\":1,\n \"b\":2,\n  \"a\":3}", "line 3 column 3", "key \"a\" occurs twice"},
      {"{\"a\":1,\"\\u0061\":2}", "line 1 column 8", "occurs twice"},
      {"// x\n1", "line 1 column 1", "'/'"},
      {"NaN", "line 1 column 1", "'N'"},
  };
  for (const Case& c : cases) {
    auto doc = parse_json(c.in);
    ASSERT_FALSE(doc.ok()) << c.in;
    EXPECT_EQ(doc.error().code(), Code::kInvalid) << c.in;
    EXPECT_NE(doc.error().message().find(c.place), std::string::npos) << doc.error().message();
    EXPECT_NE(doc.error().message().find(c.part), std::string::npos) << doc.error().message();
  }
}

TEST(Json, KnowsLinesOfValues) {
  auto doc = parse_json("{\n  \"a\": [\n    1,\n            2\n  ],\n\n  \"b\": {}\n}");
  ASSERT_TRUE(doc.ok());
  EXPECT_EQ(doc->root().line(), 1);
  EXPECT_EQ(doc->root().find("a")->line(), 2);
  EXPECT_EQ(doc->root().find("a")->items()[0].line(), 3);
  EXPECT_EQ(doc->root().find("a")->items()[1].line(), 4);
  EXPECT_EQ(doc->root().find("b")->line(), 7);
  EXPECT_EQ(parse_json("\n1", {.first_line = 10})->root().line(), 11);
}

TEST(Json, BoundsAreErrorsOfTheirOwn) {
  const auto code = [](std::string_view text, Limits limits) {
    auto doc = parse_json(text, {.limits = limits});
    return doc.ok() ? Code::kInternal : doc.error().code();
  };
  EXPECT_EQ(code(std::string(100, '[') + std::string(100, ']'), {}), Code::kInternal);
  EXPECT_EQ(code(std::string(101, '[') + std::string(101, ']'), {}), Code::kExhausted);
  EXPECT_EQ(code(std::string(1'000'000, '['), {.max_depth = 1'000'000}), Code::kExhausted);
  EXPECT_EQ(code("[1,2,3]", {.max_nodes = 4}), Code::kInternal);
  EXPECT_EQ(code("[1,2,3,4]", {.max_nodes = 4}), Code::kExhausted);
  EXPECT_EQ(code("[1,2]", {.max_bytes = 5}), Code::kInternal);
  EXPECT_EQ(code("[1,2,3]", {.max_bytes = 5}), Code::kExhausted);
}

TEST(Json, FindsDuplicatesInWideObjects) {
  std::string wide = "{";
  for (int i = 0; i < 1000; ++i) wide += "\"key" + std::to_string(i) + "\":" + "0,";
  EXPECT_TRUE(parse_json(wide + "\"last\":1}").ok());
  auto twice = parse_json(wide + "\"key500\":1}");
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(twice.error().message().find("\"key500\" occurs twice"), std::string::npos);
}

TEST(Json, DuplicateKeysAreShownSafely) {
  auto twice = parse_json(R"({"\u001b[31m":1,"\u001b[31m":2})");
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().message(),
            "line 1 column 17: key \"\\x1b[31m\" occurs twice in one object");
}

TEST(Json, StringsOfEveryLengthAroundAWord) {
  for (std::size_t n = 0; n < 40; ++n) {
    for (std::size_t at = 0; at <= n; ++at) {
      for (const std::string& odd : {std::string("\\n"), std::string("\u00e9"), std::string()}) {
        std::string body(n, 'x');
        body.insert(at, odd);
        auto doc = parse_json("[\"" + body + "\",1]");
        ASSERT_TRUE(doc.ok()) << body;
        std::string want(n, 'x');
        want.insert(at, odd == "\\n" ? "\n" : odd);
        EXPECT_EQ(doc->root().items()[0].string(), want);
      }
      std::string bad(n + 1, 'x');
      bad[at] = '\x1f';
      EXPECT_FALSE(parse_json("[\"" + bad + "\",1]").ok());
    }
  }
}

// Boost.JSON is the judge: what it takes we take, and the other way round.
// What escapes stand for is written over them, so neighbours must stay as they are.
TEST(Json, ReadsInPlaceWhatItReadsFromACopy) {
  for (const char* text : {R"({"a\u003cb":"\u003c\u003c tail","n":-1.5e3,"o":{"":""},"next":[)"
                           R"("\\\"\/\b\f\n\r\t","\ud83d\ude00é\u00e9","plain"]})",
                           R"("\u003c")", "[]", "7"}) {
    std::string bytes = text;
    const auto copied = parse_json(text);
    const auto placed = parse_json_in_place(bytes);
    ASSERT_TRUE(copied.ok() && placed.ok()) << text;
    EXPECT_TRUE(equal(copied->root(), placed->root())) << text;
    EXPECT_EQ(to_json(copied->root()), to_json(placed->root()));
  }
  std::string large = "[\"" + std::string(2'000'000, 'x') + "\\n\"]";
  large.reserve(large.size() + 64);
  const auto document = parse_json_in_place(large);
  ASSERT_TRUE(document.ok());
  EXPECT_LT(document->memory_bytes(), 100'000u) << "it is held once";
  EXPECT_EQ(document->root().items()[0].string().size(), 2'000'001u);
  std::string bad = R"({"a":"\u003c","a":1})";
  const auto twice = parse_json_in_place(bad);
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().message(), parse_json(R"({"a":"\u003c","a":1})").error().message());
}

TEST(Json, AgreesWithBoostOnMutatedText) {
  const std::string seed =
      R"({"a":[1,-2.5e3,"x\u00e9\n",true,null],"b":{"c":"d","e":{}},"f":[[],""]})";
  std::mt19937 random(7);
  int accepted = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text = seed;
    const int edits = 1 + static_cast<int>(random() % 3);
    for (int e = 0; e < edits; ++e) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(seed[random() % seed.size()]);
          break;
        case 1:
          text.erase(at, 1 + random() % 3);
          break;
        default:
          text.insert(at, 1, static_cast<char>(random() % 128));
      }
      if (text.empty()) text = " ";
    }
    auto ours = parse_json(text);
    boost::json::error_code ec;
    boost::json::parse(text, ec);
    if (!ours.ok() && ours.error().message().find("twice") != std::string::npos) continue;
    EXPECT_EQ(ours.ok(), !ec) << text << (ours.ok() ? "" : ours.error().message());
    accepted += ours.ok();
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace berth::text
