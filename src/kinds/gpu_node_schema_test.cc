// deploy/crds/gpunodes.yaml against the codec: a GpuNode with every field set has exactly the
// properties of the schema, and its values are within the bounds.
#include <fstream>
#include <iterator>

#include "kinds/gpu_node.h"
#include "kinds/read_for_test.h"
#include "text/json.h"
#include "text/path.h"

namespace berth::kinds {
namespace {

using text::Value;

GpuNode with_everything() {
  GpuNode node;
  node.name = "n1";
  node.uid = "u";
  node.reserved_gpus = {0};
  node.driver_version = "580";
  node.cuda_version = "13.0";
  node.nics = {{"mlx5_0", 0, 255}};
  GpuNodeGpu g;
  g.gpu = {0, "GPU-a", "NVIDIA-H200", 143771, 0, 0, 0, model::Health::kUnknown, "why", true, {}};
  g.gpu.mig = {{"nvidia.com/mig-1g.18gb", 7}};
  g.shares = model::kMaxSharesPerGpu;
  g.holders = {"u1"};
  node.gpus = {g};
  return node;
}

void check(const Value& value, const Value& schema, const std::string& path) {
  const Value* type = schema.find("type");
  ASSERT_NE(type, nullptr) << path;
  if (type->string() == "object") {
    const Value* properties = schema.find("properties");
    if (properties == nullptr) return;  // metadata
    ASSERT_TRUE(value.is_object()) << path;
    for (const text::Member& m : value.members()) {
      const Value* of = properties->find(m.key);
      ASSERT_NE(of, nullptr) << path << "." << m.key << " is not in the schema";
      check(m.value, *of, path + "." + std::string(m.key));
    }
    for (const text::Member& m : properties->members()) {
      EXPECT_NE(value.find(m.key), nullptr) << path << "." << m.key << " is not written";
    }
  } else if (type->string() == "array") {
    ASSERT_TRUE(value.is_array() && value.size() > 0) << path;
    EXPECT_NE(schema.find("maxItems"), nullptr) << path << " has no bound";
    check(value.items()[0], *schema.find("items"), path + "[]");
  } else if (type->string() == "integer") {
    ASSERT_TRUE(value.as_int64().has_value()) << path;
    EXPECT_GE(*value.as_int64(), schema.find("minimum")->as_int64().value_or(99)) << path;
    EXPECT_LE(*value.as_int64(), schema.find("maximum")->as_int64().value_or(-1)) << path;
  } else {
    EXPECT_TRUE(value.is_string()) << path;
    const Value* words = schema.find("enum");
    if (words == nullptr) return;
    bool found = false;
    for (const Value& word : words->items()) found = found || word.string() == value.string();
    EXPECT_TRUE(found) << path;
  }
}

TEST(GpuNodeSchema, MatchesTheCodec) {
  std::ifstream file(BERTH_CRD_DIR "/gpunodes.yaml");
  const std::string yaml{std::istreambuf_iterator<char>(file), {}};
  auto crd = text::parse_yaml(yaml);
  ASSERT_TRUE(crd.ok()) << crd.error().to_string();
  const Value* versions = find(crd->at(0).root(), "spec.versions");
  ASSERT_NE(versions, nullptr);
  const Value* schema = find(versions->items()[0], "schema.openAPIV3Schema");
  ASSERT_NE(schema, nullptr);
  text::JsonWriter out;
  encode(with_everything(), out);
  auto json = text::parse_json(out.text());
  ASSERT_TRUE(json.ok());
  check(json->root(), *schema, "");
}

}  // namespace
}  // namespace berth::kinds
