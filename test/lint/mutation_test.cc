// Rules look at meaning: other names, another order, other quotes, another indentation and more
// neighbours change nothing.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/random.h"
#include "lint/cases.h"
#include "text/json.h"
#include "text/yaml.h"
#include "text/yaml_emit.h"

#ifndef BERTH_LINT_SEEDS
#define BERTH_LINT_SEEDS 12
#endif

namespace berth::lint_test {
namespace {

using text::Value;
using text::YamlPlace;

// The same value, written differently.
class Writer {
 public:
  explicit Writer(Random& random) : random_(random), step_(2 + random.below(3)) {}

  std::string block(const Value& value, std::size_t indent) {
    if (!value.is_object() && !value.is_array()) return " " + scalar(value) + comment() + "\n";
    if (value.size() == 0) return value.is_object() ? " {}\n" : " []\n";
    if (random_.below(6) == 0)
      return " " + text::yaml_flow(value, YamlPlace::kFlow) + comment() + "\n";
    std::string out = comment() + "\n";
    std::vector<text::Member> members(value.members().begin(), value.members().end());
    random_.shuffle(members);
    for (const text::Member& member : members) {
      out += std::string(indent, ' ') + key(member.key) + ":" + block(member.value, indent + step_);
    }
    for (const Value& item : value.items()) {
      out += std::string(indent, ' ') + "-" + block(item, indent + step_);
    }
    return out;
  }

 private:
  std::string comment() {
    return random_.below(5) == 0 ? " # " + std::to_string(random_.below(99)) : "";
  }
  std::string key(std::string_view text) {
    return random_.below(3) == 0 ? text::yaml_string(text, YamlPlace::kJson)
                                 : text::yaml_string(text, YamlPlace::kBlock);
  }
  std::string scalar(const Value& value) {
    if (!value.is_string()) return text::to_json(value);
    const std::string_view text = value.string();
    if (random_.below(3) == 0 && text.find_first_of("'\n\\") == std::string_view::npos &&
        !text.empty()) {
      return "'" + std::string(text) + "'";
    }
    return text::yaml_string(text, random_.below(2) == 0 ? YamlPlace::kJson : YamlPlace::kBlock);
  }

  Random& random_;
  std::size_t step_;
};

std::string rewritten(const std::vector<text::Document>& documents, Random& random) {
  std::string out;
  if (random.below(3) == 0) {
    out += "apiVersion: v1\nkind: Namespace\nmetadata: {name: neighbour-" +
           std::to_string(random.below(1000)) + "}\n";
  }
  for (const text::Document& document : documents) {
    Writer writer(random);
    std::string body = writer.block(document.root(), 0);
    out += "---" + body;
  }
  return out;
}

// The same documents as kubectl prints them: one List, as JSON. Nothing when one is no object of
// Kubernetes.
std::string as_list(const std::vector<text::Document>& documents, Random& random) {
  std::vector<std::string> items;
  for (const text::Document& document : documents) {
    if (document.root().find("kind") == nullptr) return {};
    items.push_back(text::to_json(document.root()));
  }
  random.shuffle(items);
  std::string out = R"({"kind":"List","apiVersion":"v1","items":[)";
  for (std::size_t i = 0; i < items.size(); ++i) out += (i == 0 ? "" : ",\n") + items[i];
  return out + "]}\n";
}

bool is_yaml(const lint::File& file) { return file.name.ends_with(".yaml"); }

TEST(LintMutations, TheSameMeaningGivesTheSameFindings) {
  for (const Case& one : cases()) {
    if (!is_yaml(one.bad) || one.rule == "document-type") continue;
    if (one.rule == "comment-threshold") continue;  // of a comment, which is written anew here
    for (std::uint64_t seed = 1; seed <= BERTH_LINT_SEEDS; ++seed) {
      Random random(seed);
      for (const lint::File* file : {&one.bad, &one.good}) {
        const auto documents = text::parse_yaml(file->bytes);
        ASSERT_TRUE(documents.ok());
        const std::string bytes = rewritten(*documents, random);
        const lint::Report plain = lint::lint({*file}, &schemas());
        const lint::Report other = lint::lint({{file->name, bytes}}, &schemas());
        ASSERT_TRUE(other.unreadable.empty())
            << one.file << " seed " << seed << ": " << other.unreadable[0].message << "\n"
            << bytes;
        EXPECT_EQ(count_rule(other, one.rule), count_rule(plain, one.rule))
            << one.file << " seed " << seed << "\n"
            << bytes << words_of(other.findings);
        const auto made = lint::convert({file->name, bytes}, &schemas());
        ASSERT_TRUE(made.ok()) << one.file << " seed " << seed;
        const auto again = lint::convert({file->name, made->bytes}, &schemas());
        ASSERT_TRUE(again.ok()) << one.file << " seed " << seed << "\n" << made->bytes;
        EXPECT_EQ(again->bytes, made->bytes) << one.file << " seed " << seed << "\n" << bytes;
      }
    }
  }
}

TEST(LintMutations, ListsOfJsonAndAnotherOrderGiveTheSameFindings) {
  for (const Case& one : cases()) {
    if (!is_yaml(one.bad) || one.rule == "document-type" || one.rule == "object-type") continue;
    if (one.rule == "comment-threshold") continue;
    Random random(7);
    for (const lint::File* file : {&one.bad, &one.good}) {
      const auto documents = text::parse_yaml(file->bytes);
      ASSERT_TRUE(documents.ok());
      const std::string list = as_list(*documents, random);
      if (list.empty()) continue;
      const lint::Report plain = lint::lint({*file}, &schemas());
      for (const char* name : {"x.json", "x.yaml"}) {
        const lint::Report other = lint::lint({{name, list}}, &schemas());
        EXPECT_EQ(count_rule(other, one.rule), count_rule(plain, one.rule))
            << one.file << " as " << name << "\n"
            << list << words_of(other.findings);
        const auto made = lint::convert({name, list}, &schemas());
        ASSERT_TRUE(made.ok()) << one.file << "\n" << list;
        EXPECT_TRUE(lint::lint({{name, made->bytes}}, &schemas()).unreadable.empty())
            << one.file << "\n"
            << made->bytes;
        const auto again = lint::convert({name, made->bytes}, &schemas());
        ASSERT_TRUE(again.ok()) << one.file << "\n" << made->bytes;
        EXPECT_EQ(again->bytes, made->bytes) << one.file << "\n" << list;
      }
    }
  }
}

// Bytes that are cut, doubled and swapped: convert ends, and what it gives it takes again.
TEST(LintMutations, DamagedManifestsAreRefusedOrConvertedForGood) {
  const int rounds = std::getenv("BERTH_SOAK") != nullptr ? 300 : 6;
  Random random(11);
  std::size_t converted = 0;
  for (const Case& one : cases()) {
    for (int round = 0; round < rounds; ++round) {
      std::string bytes = one.bad.bytes;
      for (std::uint64_t hits = 1 + random.below(3); hits > 0 && !bytes.empty(); --hits) {
        const std::size_t at = random.below(bytes.size());
        const std::size_t size = 1 + random.below(12);
        switch (random.below(3)) {
          case 0:
            bytes.erase(at, size);
            break;
          case 1:
            bytes.insert(at, bytes.substr(random.below(bytes.size()), size));
            break;
          default:
            bytes[at] = " :-#'\"{}[],\n&*|>%"[random.below(17)];
        }
      }
      const auto made = lint::convert({one.bad.name, bytes}, &schemas());
      if (!made.ok()) continue;
      ++converted;
      const auto again = lint::convert({one.bad.name, made->bytes}, &schemas());
      ASSERT_TRUE(again.ok()) << one.file << "\n" << bytes << "=>\n" << made->bytes;
      EXPECT_EQ(again->bytes, made->bytes) << one.file << "\n" << bytes;
      for (const lint::Finding& left : made->left) {
        EXPECT_FALSE(left.edit.has_value()) << one.file << "\n" << bytes << words_of({left});
      }
    }
  }
  EXPECT_GE(converted, 200u);
}

TEST(LintMutations, OneAmongManyContainersIsFound) {
  for (std::size_t at = 0; at < 5; ++at) {
    std::string pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n";
    for (const char* list : {"initContainers", "containers"}) {
      pod += std::string("  ") + list + ":\n";
      for (std::size_t i = 0; i < 5; ++i) {
        const bool wrong = i == at;
        pod += "    - name: " + std::string(list, 1) + std::to_string(i) +
               "\n      image: i\n      resources: {limits: {nvidia.com/gpu: " +
               (wrong ? "0.5" : "1") + "}}\n";
      }
    }
    const lint::Report report = lint::lint({{"p.yaml", pod}}, nullptr);
    EXPECT_EQ(count_rule(report, "resource-fraction"), 2u) << at;
  }
}

}  // namespace
}  // namespace berth::lint_test
