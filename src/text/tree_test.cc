#include "text/tree.h"

#include <gtest/gtest.h>

#include "text/json.h"
#include "text/patch.h"

namespace berth::text {
namespace {

Tree tree_of(const std::string& json) {
  const auto document = parse_json(json);
  return Tree(document->root());
}

std::string json_of(const Tree& tree) {
  JsonWriter out;
  tree.write(out);
  return std::move(out).take();
}

std::string patch_of(const Tree& before, const Tree& after) {
  JsonWriter out;
  write_patch(out, before, after);
  return std::move(out).take();
}

TEST(Tree, EditsAreToldAsAPatchThatMakesThem) {
  const std::string cases[][2] = {
      {R"({"a":1})", R"({"a":1})"},
      {R"({"a":{"b/c":"x","~":1}})", R"({"a":{"~":2},"d":[1]})"},
      {R"({"l":[1,2,3]})", R"({"l":[1,3]})"},
      {R"({"l":[1]})", R"({"l":[1,{"k":true},null]})"},
      {R"({"l":[1,2]})", R"({"l":[]})"},
      {R"({"l":[{"n":"a","v":1},{"n":"b","v":2}]})", R"({"l":[{"n":"a","v":1},{"n":"b","v":3}]})"},
      {R"({"l":[1,2,3]})", R"({"l":[3,1]})"},
      {R"({"a":"1"})", R"({"a":{"b":1}})"},
  };
  for (const auto& [before, after] : cases) {
    const std::string patch = patch_of(tree_of(before), tree_of(after));
    const auto target = parse_json(before);
    const auto operations = parse_json(patch);
    ASSERT_TRUE(operations.ok()) << patch;
    const auto made = text::apply_json_patch(target->root(), operations->root());
    ASSERT_TRUE(made.ok()) << patch << ": " << made.error().to_string();
    EXPECT_TRUE(text::equal(made->root(), parse_json(after)->root())) << patch;
  }
  EXPECT_EQ(patch_of(tree_of("{\"a\":1}"), tree_of("{\"a\":1}")), "[]");
}

TEST(Tree, MembersAreMadeWhereThereAreNone) {
  Tree tree = tree_of("{}");
  tree["spec"]["tolerations"].items().push_back(Tree::of_text("x"));
  tree["spec"]["count"] = Tree::of_number(3);
  tree["spec"]["on"] = Tree::of_bool(true);
  EXPECT_EQ(json_of(tree), R"({"spec":{"tolerations":["x"],"count":3,"on":true}})");
  EXPECT_TRUE(tree["spec"].erase("count"));
  EXPECT_EQ(json_of(tree), R"({"spec":{"tolerations":["x"],"on":true}})");
}

}  // namespace
}  // namespace berth::text
