#include "text/patch.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "base/growth_for_test.h"
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

// Every operation against a target that grows with their number.
TEST(JsonPatch, OperationsDoNotCostTheWholeDocument) {
  struct Case {
    const char* name;
    std::function<std::string(int)> operation;
  };
  const Case cases[] = {
      {"insert", [](int) { return R"({"op":"add","path":"/list/0","value":1})"; }},
      {"remove", [](int) { return R"({"op":"remove","path":"/list/7"})"; }},
      {"replace", [](int) { return R"({"op":"replace","path":"/list/7","value":1})"; }},
      {"member",
       [](int i) {
         return R"({"op":"add","path":"/map/n)" + std::to_string(i) + R"(","value":1})";
       }},
      {"unmember",
       [](int i) { return R"({"op":"remove","path":"/map/k)" + std::to_string(i) + "\"}"; }},
      {"test",
       [](int i) {
         return R"({"op":"test","path":"/map/k)" + std::to_string(i) + R"(","value":1})";
       }},
      {"move",
       [](int i) {
         return i % 2 == 0 ? R"({"op":"move","from":"/list","path":"/other"})"
                           : R"({"op":"move","from":"/other","path":"/list"})";
       }},
      {"copy",
       [](int i) {
         return R"({"op":"copy","from":"/map/k1","path":"/map/c)" + std::to_string(i) + "\"}";
       }},
  };
  for (const Case& c : cases) {
    const double growth = growth_of(300, [&](int n) {
      std::string target = R"({"list":[0)", map = "\"k\":1", patch = "[";
      for (int i = 0; i < 20 * n; ++i) target += ",1";
      for (int i = 0; i < 5 * n; ++i) map += ",\"k" + std::to_string(i) + "\":1";
      for (int i = 0; i < n; ++i) patch += c.operation(i) + ",";
      patch.back() = ']';
      auto t =
          std::make_shared<Document>(std::move(*parse_json(target + "],\"map\":{" + map + "}}")));
      auto p = std::make_shared<Document>(std::move(*parse_json(patch)));
      return [t, p, &c] {
        const auto out = apply_json_patch(t->root(), p->root());
        EXPECT_TRUE(out.ok()) << c.name << ": " << out.error().to_string();
      };
    });
    EXPECT_LT(growth, kNotQuadratic) << c.name;
  }
}

// Against a plain model: the order of members, items in the middle, values that move and come back.
TEST(JsonPatch, ManyOperationsGiveWhatOneByOneGives) {
  std::string target = R"({"list":[)", patch = "[";
  for (int i = 0; i < 3'000; ++i) target += std::to_string(i) + ",";
  target.back() = ']';
  std::vector<int> list(3'000);
  for (int i = 0; i < 3'000; ++i) list[static_cast<std::size_t>(i)] = i;
  std::uint32_t seed = 7;
  for (int i = 0; i < 4'000; ++i) {
    seed = seed * 1'664'525 + 1'013'904'223;
    const std::size_t at = (seed >> 8) % list.size();
    const std::string path = "\"path\":\"/list/" + std::to_string(at) + "\"";
    const auto place = list.begin() + static_cast<std::ptrdiff_t>(at);
    switch (seed % 4) {
      case 0:
        list.erase(place);
        patch += "{\"op\":\"remove\"," + path + "},";
        break;
      case 1:
        *place = -i;
        patch += "{\"op\":\"replace\"," + path + ",\"value\":" + std::to_string(-i) + "},";
        break;
      default:
        list.insert(place, i);
        patch += "{\"op\":\"add\"," + path + ",\"value\":" + std::to_string(i) + "},";
    }
  }
  patch.back() = ']';
  std::string want = R"({"list":[)";
  for (const int one : list) want += std::to_string(one) + ",";
  want.back() = ']';
  EXPECT_EQ(patched((target + "}").c_str(), patch.c_str()), want + "}");
}

TEST(JsonPatch, CopiesAreBoundedInBytes) {
  const std::string target = R"({"a":")" + std::string(1'000, 'x') + "\"}";
  std::string patch = "[";
  for (int i = 0; i < 9; ++i) {
    patch += R"({"op":"copy","from":"/a","path":"/a)" + std::to_string(i) + R"("},)";
  }
  patch.back() = ']';
  const auto run = [&](std::size_t most) {
    return apply_json_patch(parse_json(target)->root(), parse_json(patch)->root(),
                            {.max_copied_bytes = most});
  };
  EXPECT_TRUE(run(10'000).ok());
  const auto refused = run(8'000);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kExhausted);
  EXPECT_NE(refused.error().to_string().find("8000 bytes"), std::string::npos)
      << refused.error().to_string();
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
