#include "text/yaml_edit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "text/json.h"
#include "text/yaml.h"
#include "text/yaml_emit.h"

namespace berth::text {
namespace {

using EditKind = YamlChange::Kind;

std::string edited(std::string_view source, const YamlChange& change) {
  const auto made = edit_yaml(source, {&change, 1});
  return made.ok() ? *made : "error: " + made.error().to_string();
}

YamlChange change_of(EditKind kind, YamlPath at, std::string json = {}, std::string key = {}) {
  YamlChange out{.kind = kind, .at = std::move(at)};
  out.json = std::move(json);
  out.key = std::move(key);
  return out;
}

std::string json_of_yaml(std::string_view yaml) {
  const auto read = parse_yaml(yaml);
  return read.ok() && !read->empty() ? to_json(read->front().root()) : "-";
}

TEST(YamlEdit, SetsScalarsAndKeepsQuotesAndComments) {
  const std::string source =
      "# head\na: one # why\nb: 'two'\nc: \"three\"\nd: |\n  four\n  five\n# tail\n";
  EXPECT_EQ(edited(source, change_of(EditKind::kSet, {"a"}, "\"x: y\"")),
            "# head\na: \"x: y\" # why\nb: 'two'\nc: \"three\"\nd: |\n  four\n  five\n# tail\n");
  EXPECT_EQ(edited(source, change_of(EditKind::kSet, {"b"}, "\"it's\"")),
            "# head\na: one # why\nb: 'it''s'\nc: \"three\"\nd: |\n  four\n  five\n# tail\n");
  EXPECT_EQ(edited(source, change_of(EditKind::kSet, {"c"}, "7")),
            "# head\na: one # why\nb: 'two'\nc: 7\nd: |\n  four\n  five\n# tail\n");
  EXPECT_EQ(edited(source, change_of(EditKind::kSet, {"d"}, "\"six\\n\\nseven\\n\"")),
            "# head\na: one # why\nb: 'two'\nc: \"three\"\nd: |\n  six\n\n  seven\n# tail\n");
  EXPECT_EQ(edited("a:\nb: 1\n", change_of(EditKind::kSet, {"a"}, "\"x\"")), "a: x\nb: 1\n");
  EXPECT_EQ(edited("{a, b: }\n", change_of(EditKind::kSet, {"a"}, "\"x\"")), "{a: x, b: }\n");
  EXPECT_EQ(edited("{a, b: }\n", change_of(EditKind::kSet, {"b"}, "\"x\"")), "{a, b: x }\n");
}

TEST(YamlEdit, RemovesWholeLinesAndNothingElse) {
  EXPECT_EQ(edited("a: 1\nb:  # of b\n  c: 2\n# next\nd: 3\n", change_of(EditKind::kRemove, {"b"})),
            "a: 1\n# next\nd: 3\n");
  EXPECT_EQ(edited("l:\n- a: 1\n  b: 2\n- c: 3\n", change_of(EditKind::kRemove, {"l", "0", "a"})),
            "l:\n- b: 2\n- c: 3\n");
  EXPECT_EQ(
      edited("l:\n- a: 1\n  # b matters\n  b: 2\n", change_of(EditKind::kRemove, {"l", "0", "a"})),
      "l:\n- \n  # b matters\n  b: 2\n");
  EXPECT_EQ(edited("l:\n- x\n- y # keep\n- z\n", change_of(EditKind::kRemove, {"l", "2"})),
            "l:\n- x\n- y # keep\n");
  EXPECT_EQ(json_of_yaml(edited("l:\n- x\nm: 1\n", change_of(EditKind::kRemove, {"l", "0"}))),
            "{\"l\":[],\"m\":1}");
  EXPECT_EQ(edited("{a: 1, b: 2, c: 3}\n", change_of(EditKind::kRemove, {"c"})), "{a: 1, b: 2}\n");
  EXPECT_EQ(edited("{a: 1, b: 2}\n", change_of(EditKind::kRemove, {"a"})), "{b: 2}\n");
}

TEST(YamlEdit, PutsMembersWhereTheirNeighboursAre) {
  EXPECT_EQ(edited("s:\n    a: 1\n    b: |\n      t\nz: 9\n",
                   change_of(EditKind::kPut, {"s", "c"}, "{\"k\":[1,{\"x\":\"v\",\"w\":2}]}")),
            "s:\n    a: 1\n    b: |\n      t\n    c:\n      k:\n        - 1\n        - x: v\n"
            "          w: 2\nz: 9\n");
  EXPECT_EQ(edited("s: {a: 1}", change_of(EditKind::kPut, {"s", "b"}, "\"x,y\"")),
            "s: {a: 1, b: \"x,y\"}");
  EXPECT_EQ(edited("s: {}\n", change_of(EditKind::kPut, {"s", "b"}, "true")), "s: {b: true}\n");
  EXPECT_EQ(edited("s:\n", change_of(EditKind::kPut, {"s", "b"}, "1")), "s: {b: 1}\n");
  EXPECT_EQ(edited("l:\n  - a\nm: 1", change_of(EditKind::kPut, {"l", "-"}, "{\"x\":1,\"w\":2}")),
            "l:\n  - a\n  - x: 1\n    w: 2\nm: 1");
  YamlChange before = change_of(EditKind::kPut, {"a"}, "1");
  before.before = "b";
  EXPECT_EQ(edited("b: 2 # b\n", before), "a: 1\nb: 2 # b\n");
}

TEST(YamlEdit, JsonStaysJson) {
  const std::string out = edited("{\n  \"a\": {\"b\": \"c\"}\n}\n",
                                 change_of(EditKind::kPut, {"a", "n"}, "{\"x\":[\"y\"]}"));
  EXPECT_EQ(out, "{\n  \"a\": {\"b\": \"c\", \"n\": {\"x\": [\"y\"]}}\n}\n");
  EXPECT_TRUE(parse_json(out).ok());
}

TEST(YamlEdit, MovesMembersWithTheirComments) {
  YamlChange move = change_of(EditKind::kMove, {"from", "x"});
  move.to = {"to", "deep"};
  EXPECT_EQ(edited("to:\n  deep:\n    a: 1\nfrom:\n  x: # of x\n    - 1\n    # inside\n    - 2\n"
                   "  y: 3\n",
                   move),
            "to:\n  deep:\n    a: 1\n    x: # of x\n      - 1\n      # inside\n      - 2\nfrom:\n"
            "  y: 3\n");
  EXPECT_EQ(edited("to: {deep: {a: 1}}\nfrom:\n  x: [1]\n  y: 3\n", move),
            "to: {deep: {a: 1, x: [1]}}\nfrom:\n  y: 3\n");
}

TEST(YamlEdit, WrapsAndUnwraps) {
  YamlChange wrap = change_of(EditKind::kWrap, {"l", "0"}, {}, "exactly");
  wrap.members = {"class", "count"};
  EXPECT_EQ(
      edited("l:\n  - name: a\n    class: c # c\n    # about count\n    count: 2\n", wrap),
      "l:\n  - name: a\n    exactly:\n      class: c # c\n      # about count\n      count: 2\n");
  EXPECT_EQ(edited("l:\n  - class: c\n    name: a\n    count: 2\n", wrap),
            "l:\n  - exactly:\n      class: c\n      count: 2\n    name: a\n");
  EXPECT_EQ(edited("l: [{class: c, name: a, count: 2}]\n", wrap),
            "l: [{exactly: {class: c, count: 2}, name: a}]\n");
  EXPECT_EQ(edited("a: 1\ns: # gone\n  # kept\n  v: 1\n  w:\n    x: 2\nb: 3\n",
                   change_of(EditKind::kUnwrap, {"s"})),
            "a: 1\n# gone\n# kept\nv: 1\nw:\n  x: 2\nb: 3\n");
  EXPECT_EQ(edited("a: 1\ns: {v: 1, w: 2}\n", change_of(EditKind::kUnwrap, {"s"})),
            "a: 1\nv: 1\nw: 2\n");
}

TEST(YamlEdit, ReplacesPartsOfFoldedAndQuotedText) {
  YamlChange change = change_of(EditKind::kReplace, {"e"});
  change.parts.push_back({4, 7, "CAP"});
  EXPECT_EQ(edited("e: >\n  dev\n  att\n  end\n", change), "e: >\n  dev\n  CAP\n  end\n");
  EXPECT_EQ(edited("e: 'dev att end'\n", change), "e: 'dev CAP end'\n");
  EXPECT_EQ(edited("e: \"dev att\\tend\"\n", change), "e: \"dev CAP\\tend\"\n");
}

TEST(YamlEdit, KeepsLineEndsAndCharactersThatAreNotAscii) {
  EXPECT_EQ(
      edited("a: 1\r\nb:\r\n  c: \xc2\xb0\x43\r\n", change_of(EditKind::kPut, {"b", "d"}, "2")),
      "a: 1\r\nb:\r\n  c: \xc2\xb0\x43\r\n  d: 2\r\n");
  EXPECT_EQ(edited("\xef\xbb\xbfk\xc3\xa9: x\nb: 1\n", change_of(EditKind::kSet, {"b"}, "2")),
            "\xef\xbb\xbfk\xc3\xa9: x\nb: 2\n");
}

TEST(YamlEdit, RefusesWhatItCannotName) {
  for (const YamlPath& path : {YamlPath{"x"}, YamlPath{"b", "c"}, YamlPath{"l", "7"}, YamlPath{}}) {
    EXPECT_TRUE(edited("a: &m {c: 1}\nb: *m\nl: [1]\n", change_of(EditKind::kRemove, path))
                    .starts_with("error"));
  }
  EXPECT_TRUE(edited("a: &m 1\nb: *m\n", change_of(EditKind::kRemove, {"a"})).starts_with("error"))
      << "the alias would name nothing";
  EXPECT_TRUE(edited("a: 1\n", change_of(EditKind::kPut, {"a"}, "2")).starts_with("error"));
}

TEST(YamlSource, DocumentsBeginWhereTheirTextDoes) {
  const std::string stream = "# c\n---\n---\na: 1\n---\nb: 2\n...\n---\nc: 3\n";
  const auto starts = yaml_document_starts(stream);
  ASSERT_TRUE(starts.ok());
  ASSERT_EQ(starts->size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t end = i + 1 < 3 ? (*starts)[i + 1] : stream.size();
    const auto read =
        YamlSource::read(std::string_view(stream).substr((*starts)[i], end - (*starts)[i]));
    ASSERT_TRUE(read.ok());
    ASSERT_FALSE(read->empty());
    EXPECT_EQ(read->node(read->root().children[0].key).text,
              std::string(1, static_cast<char>('a' + i)));
  }
}

// ---- properties ------------------------------------------------------------------------------

// A random tree as JSON, with a comment for every line when it is printed as YAML.
std::string random_tree(Random& random, int depth) {
  const std::uint64_t pick = random.below(depth > 3 ? 3 : 6);
  if (pick == 0) return std::to_string(random.below(1000));
  if (pick == 1)
    return random.below(2) == 0 ? "true" : "\"t" + std::to_string(random.below(9)) + "\"";
  if (pick == 2) return "\"a: b #" + std::to_string(random.below(9)) + "\"";
  std::string out;
  const std::uint64_t size = 1 + random.below(4);
  for (std::uint64_t i = 0; i < size; ++i) {
    out += (i == 0 ? "" : ",") + (pick == 3 ? "" : "\"k" + std::to_string(i) + "\":") +
           random_tree(random, depth + 1);
  }
  return pick == 3 ? "[" + out + "]" : "{" + out + "}";
}

std::string commented(std::string_view yaml, std::size_t& comments) {
  std::string out;
  for (std::size_t at = 0; at < yaml.size();) {
    const std::size_t end = std::min(yaml.find('\n', at), yaml.size());
    out += "# comment " + std::to_string(comments++) + "\n" +
           std::string(yaml.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return out;
}

void all_paths(const Value& value, const YamlPath& path, std::vector<YamlPath>& out) {
  if (!path.empty()) out.push_back(path);
  for (const Member& member : value.members()) {
    YamlPath next = path;
    next.emplace_back(member.key);
    all_paths(member.value, next, out);
  }
  for (std::size_t i = 0; i < value.items().size(); ++i) {
    YamlPath next = path;
    next.push_back(std::to_string(i));
    all_paths(value.items()[i], next, out);
  }
}

// The same change made on the tree: set or remove.
std::string changed_tree(const Value& value, const YamlPath& path, std::size_t step,
                         const char* set) {
  if (step == path.size()) return set;
  std::string out;
  std::size_t i = 0;
  for (const Value& item : value.items()) {
    const bool here = std::to_string(i++) == path[step];
    if (here && set == nullptr && step + 1 == path.size()) continue;
    out +=
        (out.empty() ? "" : ",") + (here ? changed_tree(item, path, step + 1, set) : to_json(item));
  }
  for (const Member& member : value.members()) {
    const bool here = member.key == path[step];
    if (here && set == nullptr && step + 1 == path.size()) continue;
    out += (out.empty() ? "" : ",") + ("\"" + std::string(member.key) + "\":") +
           (here ? changed_tree(member.value, path, step + 1, set) : to_json(member.value));
  }
  return value.is_array() ? "[" + out + "]" : "{" + out + "}";
}

TEST(YamlEdit, EditsAreEditsOfTheTreeAndKeepEveryCommentOutsideOfThem) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const std::string json = "{\"a\":" + random_tree(random, 0) + ",\"z\":1}";
    const auto tree = parse_json(json);
    ASSERT_TRUE(tree.ok()) << json;
    std::string yaml;
    for (const Member& member : tree->root().members()) {
      yaml += yaml_block_member(member.key, member.value, 0) + "\n";
    }
    ASSERT_EQ(json_of_yaml(yaml), json);
    std::size_t comments = 0;
    yaml = commented(yaml, comments);
    ASSERT_EQ(json_of_yaml(yaml), json);
    std::vector<YamlPath> paths;
    all_paths(tree->root(), {}, paths);
    const YamlPath path = paths[random.below(paths.size())];
    const bool remove = random.below(2) == 0;
    const std::string out = edited(yaml, remove ? change_of(EditKind::kRemove, path)
                                                : change_of(EditKind::kSet, path, "\"new\""));
    const std::string want = changed_tree(tree->root(), path, 0, remove ? nullptr : "\"new\"");
    EXPECT_EQ(json_of_yaml(out), want) << "seed " << seed << "\n" << yaml << "\n->\n" << out;
    // Comments before the place and after its end stay.
    EXPECT_NE(out.find("# comment 0\n"), std::string::npos) << "seed " << seed;
    if (path != YamlPath{"z"}) {
      EXPECT_NE(out.find("# comment " + std::to_string(comments - 1) + "\n"), std::string::npos)
          << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace berth::text
