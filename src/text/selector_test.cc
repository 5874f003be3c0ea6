#include "text/selector.h"

#include <gtest/gtest.h>

#include <map>

#include "text/json.h"

namespace berth::text {
namespace {

using Labels = std::map<std::string, std::string, std::less<>>;

bool selects(const Selector& selector, const Labels& labels) {
  return matches(selector, [&](std::string_view key) -> std::optional<std::string_view> {
    const auto found = labels.find(key);
    if (found == labels.end()) return std::nullopt;
    return found->second;
  });
}

TEST(LabelSelector, ParsesPrintsAndMatches) {
  struct Case {
    const char* text;
    const char* printed;
    std::vector<Labels> yes;
    std::vector<Labels> no;
  };
  const Case cases[] = {
      {"", "", {{}, {{"a", "b"}}}, {}},
      {"a=b", "a=b", {{{"a", "b"}}}, {{}, {{"a", "c"}}}},
      {"a==b", "a=b", {{{"a", "b"}}}, {{}}},
      {"a = b , c", "a=b,c", {{{"a", "b"}, {"c", ""}}}, {{{"a", "b"}}}},
      {"a!=b", "a!=b", {{}, {{"a", "c"}}}, {{{"a", "b"}}}},
      {"a in (x,y)", "a in (x,y)", {{{"a", "x"}}, {{"a", "y"}}}, {{}, {{"a", "z"}}}},
      {"a in ( y , x,x)", "a in (x,y)", {{{"a", "x"}}}, {{}}},
      {"a notin (x, y)", "a notin (x,y)", {{}, {{"a", "z"}}}, {{{"a", "x"}}}},
      {"a", "a", {{{"a", ""}}}, {{}}},
      {"!a", "!a", {{}}, {{{"a", ""}}}},
      {"! a", "!a", {{}}, {{{"a", ""}}}},
      {"a=", "a=", {{{"a", ""}}}, {{}, {{"a", "x"}}}},
      {"a in ()", "a=", {{{"a", ""}}}, {{}}},
      {"a in (,x)", "a in (,x)", {{{"a", ""}}, {{"a", "x"}}}, {{}}},
      {"in in (in)", "in=in", {{{"in", "in"}}}, {{}}},
      {"nvidia.com/gpu.product=H200",
       "nvidia.com/gpu.product=H200",
       {{{"nvidia.com/gpu.product", "H200"}}},
       {{}}},
      {"a=b,c!=d,e in (x,y),!f,g notin (z)",
       "a=b,c!=d,e in (x,y),!f,g!=z",
       {{{"a", "b"}, {"e", "x"}}},
       {{{"a", "b"}, {"e", "x"}, {"f", ""}}}},
  };
  for (const Case& c : cases) {
    auto selector = parse_label_selector(c.text);
    ASSERT_TRUE(selector.ok()) << c.text << ": " << selector.error().to_string();
    EXPECT_EQ(print_label_selector(*selector), c.printed);
    auto again = parse_label_selector(c.printed);
    ASSERT_TRUE(again.ok()) << c.printed;
    EXPECT_EQ(*again, *selector);
    for (const Labels& labels : c.yes) EXPECT_TRUE(selects(*selector, labels)) << c.text;
    for (const Labels& labels : c.no) EXPECT_FALSE(selects(*selector, labels)) << c.text;
  }
}

TEST(LabelSelector, Refuses) {
  for (const char* bad :
       {",",          "a,",      "a,,b",  "=b",   "a=b=c",   "a in",   "a in x", "a in (x",
        "a in (x y)", "a notin", "!",     "!a=b", "a!",      "a!b",    "a b",    "a=b c",
        "a in (x),",  "-a=b",    "a/=b",  "/a=b", "a/b/c=d", "A/b=c/", "a=-b",   "UP.com/x=y",
        "a..b/c=d",   "a=b)",    "(a=b)", "a>1",  "a<1",     "a=\xff", "\x1b=a"}) {
    EXPECT_FALSE(parse_label_selector(bad).ok()) << bad;
  }
  const std::string long_key(64, 'a');
  EXPECT_FALSE(parse_label_selector(long_key).ok());
  EXPECT_TRUE(parse_label_selector(long_key.substr(1)).ok());
  EXPECT_EQ(parse_label_selector("a in x").error().message(),
            "found \"x\", want '(' and the values");
}

TEST(NodeSelector, ComparesIntegers) {
  auto selector = parse_label_selector("n>5,m<-2", SelectorKind::kNode);
  ASSERT_TRUE(selector.ok()) << selector.error().to_string();
  EXPECT_EQ(print_label_selector(*selector), "n>5,m<-2");
  EXPECT_TRUE(selects(*selector, {{"n", "6"}, {"m", "-3"}}));
  EXPECT_FALSE(selects(*selector, {{"n", "5"}, {"m", "-3"}}));
  EXPECT_FALSE(selects(*selector, {{"n", "6"}}));
  EXPECT_FALSE(selects(*selector, {{"n", "6x"}, {"m", "-3"}}));
  EXPECT_FALSE(selects(*selector, {{"n", ""}, {"m", "-3"}}));
  EXPECT_FALSE(selects(*selector, {{"n", "99999999999999999999"}, {"m", "-3"}}));
  EXPECT_FALSE(parse_label_selector("n>x", SelectorKind::kNode).ok());
  EXPECT_FALSE(parse_label_selector("n>", SelectorKind::kNode).ok());
  EXPECT_FALSE(matches_value({"n", Operator::kGt, {}}, "1"));
  EXPECT_FALSE(validate(Requirement{"n", Operator::kGt, {"1", "2"}}, SelectorKind::kNode).ok());
  EXPECT_FALSE(validate(Requirement{"n", Operator::kIn, {}}, SelectorKind::kNode).ok());
  EXPECT_FALSE(validate(Requirement{"n", Operator::kExists, {"x"}}, SelectorKind::kNode).ok());
  EXPECT_TRUE(validate(Selector{{"n", Operator::kLt, {"1"}}}, SelectorKind::kNode).ok());
}

TEST(FieldSelector, ParsesPrintsAndMatches) {
  auto selector = parse_field_selector("metadata.name=x,status.phase!=Running");
  ASSERT_TRUE(selector.ok());
  EXPECT_EQ(print_field_selector(*selector), "metadata.name=x,status.phase!=Running");
  EXPECT_TRUE(selects(*selector, {{"metadata.name", "x"}, {"status.phase", "Pending"}}));
  EXPECT_FALSE(selects(*selector, {{"metadata.name", "x"}, {"status.phase", "Running"}}));
  auto escaped = parse_field_selector(R"(a==b\,c\=d\\e,)");
  ASSERT_TRUE(escaped.ok());
  EXPECT_EQ((*escaped)[0].values[0], R"(b,c=d\e)");
  EXPECT_EQ(print_field_selector(*escaped), R"(a=b\,c\=d\\e)");
  EXPECT_TRUE(parse_field_selector("")->empty());
  EXPECT_TRUE(parse_field_selector("a=")->at(0).values[0].empty());
  for (const char* bad : {"a", "=b", "a=b=c", "a!b", "a=b\\", "a=b\\x", "a b=c", "!a"}) {
    EXPECT_FALSE(parse_field_selector(bad).ok()) << bad;
  }
}

TEST(LabelSelector, DecodesObjects) {
  auto doc = parse_json(R"({"matchLabels": {"app": "x"}, "matchExpressions": [
    {"key": "tier", "operator": "NotIn", "values": ["db"]},
    {"key": "gone", "operator": "DoesNotExist"}]})");
  Selector selector;
  Decoder d;
  decode_label_selector(doc->root(), selector, d);
  ASSERT_TRUE(d.ok());
  EXPECT_EQ(print_label_selector(selector), "app=x,tier!=db,!gone");

  const std::pair<const char*, const char*> bad[] = {
      {R"({"matchLabels":{"a b":"c"}})", "matchLabels[\"a b\"]: found label key \"a b\", want"},
      {R"({"matchExpressions":[{"key":"a","operator":"In"}]})",
       "matchExpressions[0]: found operator In without values, want some"},
      {R"({"matchExpressions":[{"key":"a","operator":"Like"}]})",
       "matchExpressions[0].operator: found string \"Like\", want one of In, NotIn"},
      {R"({"matchExpressions":[{"operator":"Exists"}]})", "matchExpressions[0].key: found nothing"},
      {R"({"matchExpressions":[{"key":"a","operator":"Gt","values":["1"]}]})", "only for nodes"},
      {R"({"matchExpressions":{}})", "want an array"},
      {R"([])", "want an object"},
  };
  for (const auto& [json, part] : bad) {
    auto parsed = parse_json(json);
    Decoder issues;
    Selector out;
    decode_label_selector(parsed->root(), out, issues);
    ASSERT_FALSE(issues.ok()) << json;
    EXPECT_NE(issues.issues()[0].message().find(part), std::string::npos)
        << issues.issues()[0].message();
  }
}

}  // namespace
}  // namespace berth::text
