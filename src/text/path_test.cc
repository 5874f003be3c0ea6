#include "text/path.h"

#include <gtest/gtest.h>

#include <string>

#include "text/json.h"

namespace berth::text {
namespace {

Document sample() {
  auto read = parse_json(
      R"({"metadata": {"name": "p", "labels": {"a.b/c": "x", "0": "zero"}},)"
      R"( "spec": {"containers": [{"name": "one", "ports": [{"p": 1}, {"p": 2}]},)"
      R"( {"name": "two"}, {"name": 3, "ports": [{"p": 4}]}], "hostNetwork": true, "n": "7",)"
      R"( "none": null, "deep": [[1, 2], [3]]}, "status": {"at": "1970-01-01T00:00:01Z",)"
      R"( "conditions": [{"type": "Ready", "status": "True"}, 5, {"type": "Other"}]}})");
  EXPECT_TRUE(read.ok());
  return read.ok() ? std::move(*read) : Document();
}

TEST(Path, WhatStandsThere) {
  const Document document = sample();
  const Value& v = document.root();
  EXPECT_EQ(text_at(v, "metadata.name"), "p");
  EXPECT_EQ(text_at(v, "metadata.labels[a.b/c]"), "x");
  EXPECT_EQ(text_at(v, "metadata.labels['a.b/c']"), "x");
  EXPECT_EQ(text_at(v, "metadata.labels[0]"), "zero") << "a key of an object";
  EXPECT_EQ(text_at(v, "spec.containers[1].name"), "two");
  EXPECT_EQ(at(v, "spec.containers").size(), 3u);
  EXPECT_TRUE(true_at(v, "spec.hostNetwork"));
  EXPECT_EQ(int_at(v, "spec.containers[2].name"), 3);
  EXPECT_EQ(time_at(v, "status.at"), 1'000'000'000);
  EXPECT_EQ(text_at(find_type(at(v, "status.conditions"), "Ready"), "status"), "True");
}

TEST(Path, WhatDoesNot) {
  const Document document = sample();
  const Value& v = document.root();
  EXPECT_EQ(find(v, "metadata.nobody"), nullptr);
  EXPECT_EQ(find(v, "metadata.name.below"), nullptr);
  EXPECT_EQ(find(v, "spec.containers[3]"), nullptr);
  EXPECT_EQ(find(v, "spec.containers[-1]"), nullptr);
  EXPECT_EQ(find(v, "spec.containers.name"), nullptr);
  EXPECT_EQ(find(v, "spec.none"), nullptr) << "a null says nothing";
  EXPECT_TRUE(at(v, "metadata.nobody.knows").is_null());
  EXPECT_EQ(int_at(v, "spec.n", 9), 9) << "a string";
  EXPECT_FALSE(true_at(v, "spec.n"));
  EXPECT_EQ(time_at(v, "metadata.name"), 0);
  const Value* nothing = nullptr;
  EXPECT_EQ(find(nothing, "a"), nullptr);
  EXPECT_EQ(text_at(nothing, "a"), "");
  EXPECT_EQ(find_type(v, "Ready"), nullptr);
}

TEST(Path, EveryItem) {
  const Document document = sample();
  std::string seen;
  const auto see = [&](const Value& value) { seen += to_json(value) + ' '; };
  for_each(document.root(), "spec.containers[*].ports[*].p", see);
  for_each(document.root(), "spec.deep[*][*]", see);
  for_each(document.root(), "spec.containers[0].name", see);
  for_each(document.root(), "spec.nothing[*].p", see);
  EXPECT_EQ(seen, "1 2 4 1 2 3 \"one\" ");
}

TEST(Path, TextsOfOthersAreChecked) {
  for (const char* text : {"a", "a.b", "a[b.c]", "a[0].b", "[a]", "a[*].b[*]"}) {
    EXPECT_TRUE(Path::parse(text)) << text;
  }
  for (const char* text : {"", ".", "a.", ".a", "a..b", "a[", "a[]", "a]b[", "[a]b", "a[''].b"}) {
    EXPECT_FALSE(Path::parse(text)) << text;
  }
  EXPECT_FALSE(Path::parse("a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q")) << "seventeen steps";
  EXPECT_FALSE(Path::parse(std::string(70'000, 'a')));
}

}  // namespace
}  // namespace berth::text
