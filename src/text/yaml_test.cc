#include "text/yaml.h"

#include <gtest/gtest.h>

#include "text/json.h"
#include "text/yaml_scalar.h"

namespace berth::text {
namespace {

std::string as_json(std::string_view yaml) {
  auto docs = parse_yaml(yaml);
  if (!docs.ok()) return "error: " + docs.error().to_string();
  std::string out;
  for (const Document& doc : *docs) out += (out.empty() ? "" : " ") + to_json(doc.root());
  return out;
}

TEST(Yaml, ScalarsReadAsGoYamlReadsThem) {
  const std::pair<const char*, const char*> cases[] = {
      {"true", "true"},
      {"True", "true"},
      {"TRUE", "true"},
      {"tRUE", "\"tRUE\""},
      {"yes", "true"},
      {"Yes", "true"},
      {"YES", "true"},
      {"on", "true"},
      {"On", "true"},
      {"no", "false"},
      {"No", "false"},
      {"NO", "false"},
      {"off", "false"},
      {"OFF", "false"},
      {"y", "true"},
      {"Y", "true"},
      {"n", "false"},
      {"N", "false"},
      {"~", "null"},
      {"null", "null"},
      {"Null", "null"},
      {"NULL", "null"},
      {"nULL", "\"nULL\""},
      {"0", "0"},
      {"12", "12"},
      {"-12", "-12"},
      {"+12", "12"},
      {"0x1F", "31"},
      {"-0x10", "-16"},
      {"0o17", "15"},
      {"017", "15"},
      {"0b11", "3"},
      {"-0b11", "-3"},
      {"1_000", "1000"},
      {"08", "8"},
      {"09.5", "9.5"},
      {"-0", "0"},
      {"0x", "\"0x\""},
      {"0xg", "\"0xg\""},
      {"9223372036854775807", "9223372036854775807"},
      {"18446744073709551615", "18446744073709551615"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"1.5", "1.5"},
      {".5", "0.5"},
      {"-.5", "-0.5"},
      {"5.", "5"},
      {"1e3", "1000"},
      {"1E-2", "0.01"},
      {"1.0", "1"},
      {"1e400", "\"1e400\""},
      {"1e21", "1e+21"},
      {"1e-7", "1e-07"},
      {"+.5", "0.5"},
      {"1e", "\"1e\""},
      {"1.2.3", "\"1.2.3\""},
      {".", "\".\""},
      {"-", "[null]"},
      {"+", "\"+\""},
      {"1:30", "\"1:30\""},
      {"0.1Gi", "\"0.1Gi\""},
      {"100m", "\"100m\""},
      {"2001-01-01", "\"2001-01-01\""},
      {"2001-12-14t21:59:43.10-05:00", "\"2001-12-14t21:59:43.10-05:00\""},
      {"\"true\"", "\"true\""},
      {"'12'", "\"12\""},
      {"'~'", "\"~\""},
      {"plain text", "\"plain text\""},
      {"!!str 12", "\"12\""},
      {"!!int \"12\"", "12"},
      {"!!float 1", "1"},
      {"!!bool \"yes\"", "true"},
      {"!!null \"\"", "null"},
      {"! 12", "\"12\""},
      {"!!timestamp 2001-01-01", "\"2001-01-01\""},
  };
  for (const auto& [yaml, want] : cases) {
    EXPECT_EQ(as_json(std::string("v: ") + (yaml[0] == '-' && yaml[1] == 0 ? "\n -" : yaml)),
              "{\"v\":" + std::string(want) + "}")
        << yaml;
  }
  EXPECT_EQ(as_json("v:"), R"({"v":null})");
}

TEST(Yaml, Structures) {
  const std::pair<const char*, const char*> cases[] = {
      {"a: 1\nb:\n  - x\n  - w: z\n", R"({"a":1,"b":["x",{"w":"z"}]})"},
      {"{a: [1, 2], b: {}}", R"({"a":[1,2],"b":{}})"},
      {"a: |\n  one\n  two\nb: >-\n  folded\n  text\n", R"({"a":"one\ntwo\n","b":"folded text"})"},
      {"---\na: 1\n---\n---\n# only a comment\n---\nnull\n---\nb: 2\n...\n", R"({"a":1} {"b":2})"},
      {"", ""},
      {"# nothing\n", ""},
      {"a: &x {k: 1}\nb: *x\n", R"({"a":{"k":1},"b":{"k":1}})"},
      {"- &a 1\n- &a 2\n- *a\n", "[1,2,2]"},
      {"base: &b {x: 1, w: 2}\nc:\n  <<: *b\n  w: 3\n",
       R"({"base":{"x":1,"w":2},"c":{"w":3,"x":1}})"},
      {"c:\n  w: 3\n  <<: {w: 4, z: 5}\n", R"({"c":{"w":3,"z":5}})"},
      {"c:\n  <<: [{a: 1}, {a: 2, b: 3}]\n", R"({"c":{"a":1,"b":3}})"},
      {"\"<<\": 1", R"({"<<":1})"},
      {"1: a\ntrue: b\n1.5: c\n0x10: d\n1e6: e\n",
       R"({"1":"a","true":"b","1.5":"c","16":"d","1e+06":"e"})"},
      {"yes: 1", R"({"true":1})"},
      {"{\"a\": 1, \"b\": [true, null]}", R"({"a":1,"b":[true,null]})"},
      {"a: \"\\u00e9\\x41\"", "{\"a\":\"\u00e9A\"}"},
      {"&k a: 1\nb: *k\n", R"({"a":1,"b":"a"})"},
      {"\xef\xbb\xbf"
       "a: 1",
       R"({"a":1})"},
      {"a: \"x\\0y\"", R"({"a":"x\u0000y"})"},
  };
  for (const auto& [yaml, want] : cases) EXPECT_EQ(as_json(yaml), want) << yaml;
}

TEST(Yaml, RefusesWithTheLine) {
  const std::pair<std::string, const char*> cases[] = {
      {"a: 1\nb: 2\na: 3\n", "line 3: key \"a\" occurs twice"},
      {"1: a\n\"1\": b\n", "line 2: key \"1\" occurs twice"},
      {"a: .inf\n", "line 1: found .inf, which JSON cannot hold"},
      {"a: .nan", "JSON cannot hold"},
      {"a:\n\t- b\n", "line 2"},
      {"a: [1, 2\nb: 3", "line 2"},
      {"a: *nope", "line 1: found alias *nope, want an anchor"},
      {"a: &x [*x]", "inside the value it names"},
      {"~: 1", "null as a key"},
      {"? [a]\n: 1", "a list or a mapping as a key"},
      {"a: !!binary aGVsbG8=", "found tag tag:yaml.org,2002:binary"},
      {"a: !Ref x", "found tag !Ref"},
      {"a: !!int x", "with the tag !!int"},
      {"a: !foo {}", "found tag !foo"},
      {"<<: 1", "for the merge key"},
      {"a: \xff\xfe", "not text, want UTF-8"},
      {"a: 1\nb: \x01", "line 2: found bytes that are not text"},
      {"a: 'x", "line 1"},
      {"a: b: c", "line 1"},
      {"%YAML 3.0\n---\na", "line 1"},
      {"a: 0xfffffffffffffffff", "more than 64 bits"},
  };
  for (const auto& [yaml, part] : cases) {
    const std::string got = as_json(yaml);
    EXPECT_TRUE(got.starts_with("error: ")) << yaml << " gave " << got;
    EXPECT_NE(got.find(part), std::string::npos) << yaml << " gave " << got;
  }
}

TEST(Yaml, BombsAreRefused) {
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c <= 'i'; ++c) {
    const char p = static_cast<char>(c - 1);
    bomb += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 10; ++i) bomb += std::string(i ? "," : "") + "*" + p;
    bomb += "]\n";
  }
  auto docs = parse_yaml(bomb);
  ASSERT_FALSE(docs.ok());
  EXPECT_EQ(docs.error().code(), Code::kExhausted);
  EXPECT_NE(docs.error().message().find("aliases add more than 100000 values"), std::string::npos);
  std::string merges = "a: &a {x: 1, y: 1}\nb:\n";
  for (int i = 0; i < 1000; ++i) merges += " - <<: *a\n";
  EXPECT_FALSE(parse_yaml(merges, {.max_alias_nodes = 500}).ok());
  EXPECT_TRUE(parse_yaml(merges).ok());
}

TEST(Yaml, BoundsAreErrors) {
  EXPECT_EQ(parse_yaml(std::string(100'000, '[')).error().code(), Code::kExhausted);
  EXPECT_EQ(parse_yaml("[1,2,3]", {.limits = {.max_nodes = 2}}).error().code(), Code::kExhausted);
  EXPECT_EQ(parse_yaml("[1,2,3]", {.limits = {.max_bytes = 2}}).error().code(), Code::kExhausted);
  EXPECT_EQ(parse_yaml("--- 1\n--- 2\n--- 3", {.max_documents = 2}).error().code(),
            Code::kExhausted);
}

TEST(Yaml, KnowsLines) {
  auto docs = parse_yaml("# top\na: 1\nb:\n  - x\n  - y\n---\nc: 2\n");
  ASSERT_TRUE(docs.ok());
  ASSERT_EQ(docs->size(), 2u);
  EXPECT_EQ((*docs)[0].root().line(), 2);
  EXPECT_EQ((*docs)[0].root().find("b")->items()[1].line(), 5);
  EXPECT_EQ((*docs)[1].root().find("c")->line(), 7);
}

TEST(Yaml, AVisitorCanStop) {
  int seen = 0;
  const Status status = read_yaml("--- 1\n--- 2\n--- 3\n", [&](Document) -> Status {
    if (++seen == 2) return invalid("enough");
    return {};
  });
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(status.error().message(), "enough");
}

TEST(ParseAny, PicksJsonOrYaml) {
  const auto any = [](std::string_view text, std::string_view name) -> std::string {
    auto docs = parse_any(text, name);
    if (!docs.ok()) return "error: " + docs.error().to_string();
    return docs->size() == 1 ? to_json((*docs)[0].root()) : std::to_string(docs->size());
  };
  EXPECT_EQ(any("{\"a\": yes}", "x.yaml"), R"({"a":true})");
  EXPECT_EQ(any("{\"a\": 1.0}", "x.yaml"), R"({"a":1.0})");  // JSON keeps the spelling
  EXPECT_EQ(any("{a: 1}", ""), R"({"a":1})");
  EXPECT_TRUE(any("{a: 1}", "x.json").starts_with("error: line 1 column 2"));
  EXPECT_EQ(any("a: 1\n---\nb: 1", ""), "2");
  EXPECT_TRUE(any("a: 1", "x.json").starts_with("error"));
}

TEST(YamlScalar, FloatKeysPrintAsGoPrintsThem) {
  const std::pair<double, const char*> cases[] = {
      {1.5, "1.5"},
      {1000, "1000"},
      {1e5, "100000"},
      {1e6, "1e+06"},
      {123456789, "1.2345679e+08"},
      {0.0001, "0.0001"},
      {0.00001, "1e-05"},
      {0, "0"},
      {-2.5, "-2.5"},
      {1e20, "1e+20"},
  };
  for (const auto& [v, want] : cases) EXPECT_EQ(yaml_float_key(v), want);
}

// A view of nothing has no address, which libyaml aborts on.
TEST(Yaml, NothingAtAllIsAnEmptyStream) {
  const auto read = parse_yaml(std::string_view());
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->empty());
}

}  // namespace
}  // namespace berth::text
