// The CRDs under deploy/crds are valid here, field by field.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "kinds/schema/schema_for_test.h"

namespace berth::sim {
namespace {

TEST(ShippedCrds, AreValidAndReadable) {
  const Kind& crds = builtin("CustomResourceDefinition");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(BERTH_CRD_DIR)) {
    if (entry.path().extension() != ".yaml") continue;
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    const auto documents = text::parse_yaml(text.str());
    ASSERT_TRUE(documents.ok()) << entry.path();
    for (const text::Document& document : *documents) {
      const auto made = normalize(crds, document.root());
      ASSERT_TRUE(made.ok()) << entry.path() << made.error().to_string();
      const std::string name = field_of(made->object.root(), "metadata.name");
      EXPECT_TRUE(made->unknown.empty()) << name << ": " << made->unknown.front();
      EXPECT_EQ(words_of(validate(crds, made->object.root())), "") << name;
      const auto kinds = read_crd(made->object.root());
      ASSERT_TRUE(kinds.ok()) << name << ": " << kinds.error().to_string();
      EXPECT_TRUE(names.insert(name).second) << name;
    }
  }
  EXPECT_GE(names.size(), 36u);
  for (const std::string_view name :
       {"clusterqueues.kueue.x-k8s.io", "podgroups.scheduling.volcano.sh",
        "pytorchjobs.kubeflow.org", "gpunodes.berth.dev"}) {
    EXPECT_TRUE(names.contains("\"" + std::string(name) + "\"")) << name;
  }
}

}  // namespace
}  // namespace berth::sim
