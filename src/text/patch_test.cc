#include "text/patch.h"

#include <gtest/gtest.h>

#include "text/json.h"

namespace berth::text {
namespace {

std::string patched(std::string_view target, std::string_view patch) {
  auto t = parse_json(target);
  auto p = parse_json(patch);
  EXPECT_TRUE(t.ok() && p.ok()) << target << " " << patch;
  auto out = apply_json_patch(t->root(), p->root());
  if (!out.ok()) return std::string(name(out.error().code())) + ": " + out.error().to_string();
  return to_json(out->root());
}

TEST(JsonPatch, ExamplesOfTheRfc) {
  struct Case {
    const char* target;
    const char* patch;
    const char* want;
  };
  const Case cases[] = {
      // RFC 6902 appendix A
      {R"({"foo":"bar"})", R"([{"op":"add","path":"/baz","value":"qux"}])",
       R"({"foo":"bar","baz":"qux"})"},
      {R"({"foo":["bar","baz"]})", R"([{"op":"add","path":"/foo/1","value":"qux"}])",
       R"({"foo":["bar","qux","baz"]})"},
      {R"({"baz":"qux","foo":"bar"})", R"([{"op":"remove","path":"/baz"}])", R"({"foo":"bar"})"},
      {R"({"foo":["bar","qux","baz"]})", R"([{"op":"remove","path":"/foo/1"}])",
       R"({"foo":["bar","baz"]})"},
      {R"({"baz":"qux","foo":"bar"})", R"([{"op":"replace","path":"/baz","value":"boo"}])",
       R"({"baz":"boo","foo":"bar"})"},
      {R"({"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}})",
       R"([{"op":"move","from":"/foo/waldo","path":"/qux/thud"}])",
       R"({"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}})"},
      {R"({"foo":["all","grass","cows","eat"]})",
       R"([{"op":"move","from":"/foo/1","path":"/foo/3"}])",
       R"({"foo":["all","cows","eat","grass"]})"},
      {R"({"baz":"qux","foo":["a",2,"c"]})",
       R"([{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}])",
       R"({"baz":"qux","foo":["a",2,"c"]})"},
      {R"({"foo":"bar"})", R"([{"op":"add","path":"/child","value":{"grandchild":{}}}])",
       R"({"foo":"bar","child":{"grandchild":{}}})"},
      {R"({"foo":"bar"})", R"([{"op":"add","path":"/baz","value":"qux","xyz":123}])",
       R"({"foo":"bar","baz":"qux"})"},
      {R"({"/":9,"~1":10})", R"([{"op":"test","path":"/~01","value":10}])", R"({"/":9,"~1":10})"},
      {R"({"foo":["bar"]})", R"([{"op":"add","path":"/foo/-","value":["abc","def"]}])",
       R"({"foo":["bar",["abc","def"]]})"},
      // beyond the appendix
      {"1", R"([{"op":"replace","path":"","value":[2]}])", "[2]"},
      {R"({"a":1})", R"([{"op":"add","path":"/a","value":2}])", R"({"a":2})"},
      {R"({"a":{"b":1}})", R"([{"op":"copy","from":"/a","path":"/c"},
        {"op":"replace","path":"/c/b","value":2}])",
       R"({"a":{"b":1},"c":{"b":2}})"},
      {R"({"a":1})", R"([{"op":"move","from":"/a","path":"/a"}])", R"({"a":1})"},
      {R"({"":1})", R"([{"op":"replace","path":"/","value":2}])", R"({"":2})"},
      {R"({"a":[]})", R"([{"op":"add","path":"/a/0","value":1}])", R"({"a":[1]})"},
      {R"({"a":1.0})", R"([{"op":"test","path":"/a","value":1}])", R"({"a":1.0})"},
      {R"({"a":{"x":1,"y":2}})", R"([{"op":"test","path":"/a","value":{"y":2,"x":1}}])",
       R"({"a":{"x":1,"y":2}})"},
      {"{}", "[]", "{}"},
      {R"({"a":null})", R"([{"op":"test","path":"/a","value":null},{"op":"remove","path":"/a"}])",
       "{}"},
  };
  for (const Case& c : cases) EXPECT_EQ(patched(c.target, c.patch), c.want) << c.patch;
}

TEST(JsonPatch, RefusesAndNamesTheOperation) {
  struct Case {
    const char* target;
    const char* patch;
    const char* want;
  };
  const Case cases[] = {
      {R"({"baz":"qux"})", R"([{"op":"test","path":"/baz","value":"bar"}])",
       "operation 0 (test /baz): found string \"qux\", want string \"bar\""},
      {R"({"foo":"bar"})", R"([{"op":"add","path":"/baz/bat","value":"qux"}])",
       "operation 0 (add /baz/bat): there is no \"baz\""},
      {R"({"/":9,"~1":10})", R"([{"op":"test","path":"/~01","value":"10"}])",
       "found number 10, want string \"10\""},
      {"{}", "{}", "want an array of operations"},
      {"{}", "[1]", "operation 0: found number 1, want an object"},
      {"{}", R"([{"path":""}])", "\"op\" is missing"},
      {"{}", R"([{"op":"add","value":1}])", "\"path\" is missing"},
      {"{}", R"([{"op":"add","path":"/a"}])", "\"value\" is missing"},
      {"{}", R"([{"op":"move","path":"/a"}])", "\"from\" is missing"},
      {"{}", R"([{"op":"frob","path":"/a"}])", "want add, remove, replace, move, copy or test"},
      {"{}", R"([{"op":"add","path":"a","value":1}])", "starting with /"},
      {"{}", R"([{"op":"add","path":"/~2","value":1}])", "~0 or ~1"},
      {"{}", R"([{"op":"add","path":"/~","value":1}])", "~0 or ~1"},
      {"{}", R"([{"op":"remove","path":"/a"}])", "no member \"a\""},
      {"{}", R"([{"op":"replace","path":"/a","value":1}])", "no member \"a\""},
      {"[]", R"([{"op":"add","path":"/1","value":1}])", "index 1 is past an array of 0"},
      {"[1]", R"([{"op":"remove","path":"/-"}])", "want an index"},
      {"[1]", R"([{"op":"add","path":"/00","value":1}])", "want an index or -"},
      {"[1]", R"([{"op":"add","path":"/x","value":1}])", "want an index or -"},
      {"[1]", R"([{"op":"add","path":"/-1","value":1}])", "want an index or -"},
      {"[1]", R"([{"op":"test","path":"/1","value":1}])", "nothing is there"},
      {R"({"a":{"b":1}})", R"([{"op":"move","from":"/a","path":"/a/b"}])", "into itself"},
      {R"({"a":"s"})", R"([{"op":"add","path":"/a/b","value":1}])", "in a string"},
      {R"({"a":1})", R"([{"op":"remove","path":"/a"},{"op":"remove","path":"/a"}])",
       "operation 1 (remove /a)"},
      {"{}", R"([{"op":"copy","from":"/x","path":"/a"}])", "nothing at \"/x\""},
  };
  for (const Case& c : cases) {
    EXPECT_NE(patched(c.target, c.patch).find(c.want), std::string::npos)
        << patched(c.target, c.patch) << "\n"
        << c.patch;
  }
}

TEST(JsonPatch, CopiesOfCopiesAreBounded) {
  std::string patch = "[";
  for (int i = 0; i < 60; ++i) {
    patch += R"({"op":"copy","from":"","path":"/a)" + std::to_string(i) + R"("},)";
  }
  patch += R"({"op":"test","path":"","value":1}])";
  auto target = parse_json("{}");
  auto parsed = parse_json(patch);
  auto out = apply_json_patch(target->root(), parsed->root(), {.limits = {.max_nodes = 10'000}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.error().code(), Code::kExhausted) << out.error().to_string();
}

TEST(JsonPatch, DepthOfTheResultIsBounded) {
  std::string patch = "[";
  std::string path;
  for (int i = 0; i < 12; ++i) {  // each doubles the depth
    patch += R"({"op":"copy","from":"","path":")" + path + R"(/a"},)";
    const std::string twice = path + "/a" + path;
    path = twice;
  }
  patch.back() = ']';
  auto target = parse_json("{}");
  auto parsed = parse_json(patch);
  ASSERT_TRUE(parsed.ok());
  auto out = apply_json_patch(target->root(), parsed->root());
  ASSERT_FALSE(out.ok());
}

TEST(MergePatch, ExamplesOfTheRfc) {
  struct Case {
    const char* target;
    const char* patch;
    const char* want;
  };
  const Case cases[] = {
      // RFC 7386 appendix A
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b"})", R"({"a":null})", "{}"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"(["a","b"])", R"(["c","d"])", R"(["c","d"])"},
      {R"({"a":"b"})", R"(["c"])", R"(["c"])"},
      {R"({"a":"foo"})", "null", "null"},
      {R"({"a":"foo"})", R"("bar")", R"("bar")"},
      {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
      {"[1,2]", R"({"a":"b","c":null})", R"({"a":"b"})"},
      {"{}", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
  };
  for (const Case& c : cases) {
    auto t = parse_json(c.target);
    auto p = parse_json(c.patch);
    auto out = apply_merge_patch(t->root(), p->root());
    ASSERT_TRUE(out.ok());
    EXPECT_EQ(to_json(out->root()), c.want) << c.patch;
  }
}

TEST(MergePatch, WideObjectsAreNotQuadratic) {
  std::string wide = "{";
  for (int i = 0; i < 100'000; ++i) wide += "\"k" + std::to_string(i) + "\":1,";
  wide.back() = '}';
  auto t = parse_json(wide);
  auto out = apply_merge_patch(t->root(), t->root());
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->root().size(), 100'000u);
}

TEST(Pointer, PrintsWhatItParses) {
  for (const char* text : {"", "/", "/a", "/a~1b/~0c", "//", "/0/-", "/~01"}) {
    auto tokens = parse_pointer(text);
    ASSERT_TRUE(tokens.ok()) << text;
    EXPECT_EQ(print_pointer(*tokens), text);
  }
  EXPECT_EQ((*parse_pointer("/~01"))[0], "~1");
}

}  // namespace
}  // namespace berth::text
