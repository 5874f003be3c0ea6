#include "kinds/kind_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "text/path.h"
#include "text/yaml.h"

namespace berth::kinds {
namespace {

using text::Value;

std::vector<text::Document> yaml_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  const std::string all((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  auto parsed = text::parse_yaml(all);
  EXPECT_TRUE(parsed.ok()) << file;
  return parsed.ok() ? std::move(*parsed) : std::vector<text::Document>();
}

TEST(KindTable, EveryKindIsThereOnceAndCanBeAskedFor) {
  std::set<std::string> seen;
  for (const KindRow& row : kind_table()) {
    const std::string name = std::string(row.group) + '/' + std::string(row.kind);
    EXPECT_TRUE(seen.insert(name).second) << name << " twice";
    EXPECT_FALSE(row.read().empty()) << name;
    EXPECT_EQ(row.plural.empty(), row.group == "config.kueue.x-k8s.io") << name;
    EXPECT_EQ(find_kind(row.group, row.kind), &row) << name;
    // What a decision is made of is read, and kept.
    if (row.is_asked(asked::kDecided)) {
      EXPECT_NE(row.versions[0].take, nullptr) << name;
    }
    if (row.versions[0].take != nullptr && row.is_asked(asked::kDecided)) {
      EXPECT_EQ(row.shelf == nullptr, row.kind == "Pod") << name;
    }
    if (row.is_asked(asked::kWhole)) {
      EXPECT_TRUE(row.is_asked(asked::kDecided)) << name;
    }
    if (row.maker == nullptr) continue;
    EXPECT_EQ(row.maker->ended == nullptr, row.maker->ready == nullptr) << name;
    EXPECT_EQ(row.maker->ended == nullptr, row.maker->active == nullptr) << name;
    if (row.maker->queued()) {
      EXPECT_TRUE(row.maker->suspend && row.is_asked(asked::kWhole)) << name;
    }
  }
  EXPECT_EQ(find_kind("", "Nothing"), nullptr);
  EXPECT_EQ(find_kind_of("batch.volcano.sh/v1alpha1", "Job")->maker, &kVolcanoJobMaker);
  EXPECT_EQ(find_maker("v1", "JobSet"), &kJobSetMaker) << "of whatever group";
}

// Definitions that are shipped: their kinds are those of the table.
TEST(KindTable, AgreesWithTheDefinitionsThatAreShipped) {
  std::size_t found = 0;
  for (const auto& file : std::filesystem::directory_iterator(BERTH_CRD_DIR)) {
    for (const text::Document& document : yaml_of(file.path())) {
      const Value& spec = at(document.root(), "spec");
      const KindRow* row = find_kind(text_at(spec, "group"), text_at(spec, "names.kind"));
      if (row == nullptr) continue;  // a kind that berth only stores
      ++found;
      const std::string name(text_at(document.root(), "metadata.name"));
      EXPECT_EQ(text_at(spec, "names.plural"), row->plural) << name;
      EXPECT_EQ(text_at(spec, "scope"), row->namespaced ? "Namespaced" : "Cluster") << name;
      std::map<std::string, bool> served;
      for (const Value& version : at(spec, "versions").items()) {
        served[std::string(text_at(version, "name"))] = true_at(version, "served");
      }
      EXPECT_TRUE(served[std::string(row->versions[0].version)])
          << name << ": the version that is asked for is served";
    }
  }
  EXPECT_GE(found, 20u);
}

// Whoever follows a kind must be allowed to.
TEST(KindTable, TheControllerMayReadWhatItFollows) {
  std::set<std::string> readable;  // group/plural
  for (const text::Document& document : yaml_of(BERTH_CONTROLLER_RBAC)) {
    if (text_at(document.root(), "kind") != "ClusterRole") continue;
    for (const Value& rule : at(document.root(), "rules").items()) {
      std::set<std::string_view> verbs;
      for (const Value& verb : at(rule, "verbs").items()) verbs.insert(verb.string());
      if (!verbs.contains("list") || !verbs.contains("watch")) continue;
      for (const Value& group : at(rule, "apiGroups").items()) {
        for (const Value& plural : at(rule, "resources").items()) {
          readable.insert(std::string(group.string()) + '/' + std::string(plural.string()));
        }
      }
    }
  }
  for (const KindRow& row : kind_table()) {
    if (!row.is_asked(asked::kDecided)) continue;
    const std::string name = std::string(row.group) + '/' + std::string(row.plural);
    EXPECT_TRUE(readable.contains(name)) << name << " is followed and may not be read";
  }
}

}  // namespace
}  // namespace berth::kinds
