// Kueue's kinds between their versions, as shipped: each client sees its own fields.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "embedded/api/world_for_test.h"
#include "text/yaml.h"

namespace berth::sim {
namespace {

constexpr const char* kCrdsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

std::string queue_path(int version, const std::string& name = {}) {
  return "/apis/kueue.x-k8s.io/v1beta" + std::to_string(version) + "/clusterqueues" +
         (name.empty() ? "" : "/" + name);
}
std::string queue_body(int version, const std::string& name, const std::string& spec) {
  return R"({"apiVersion":"kueue.x-k8s.io/v1beta)" + std::to_string(version) +
         R"(","kind":"ClusterQueue","metadata":{"name":")" + name + R"("},"spec":{)" + spec + "}}";
}

struct KueueWorld : TestWorld {
  KueueWorld() {
    std::ifstream file(BERTH_CRD_DIR "/kueue.yaml");
    std::stringstream text;
    text << file.rdbuf();
    const auto kinds = text::parse_yaml(text.str());
    EXPECT_TRUE(kinds.ok());
    for (const text::Document& kind : *kinds) {
      EXPECT_EQ(post(kCrdsPath, text::to_json(kind.root())).status, 201);
    }
    loop.run_ready();
  }
  TestAnswer apply(int version, const std::string& name, const std::string& manager,
                   const std::string& spec, bool force = false) {
    return call("PATCH",
                queue_path(version, name) + "?fieldManager=" + manager + (force ? "&force=1" : ""),
                queue_body(version, name, spec), "application/apply-patch+yaml");
  }
};

TEST(ApiConversion, EveryReadIsInItsVersion) {
  KueueWorld world;
  const TestAnswer made = world.post(queue_path(1), queue_body(1, "q", R"("cohort":"a")"));
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.at("spec.cohort"), "a");
  EXPECT_EQ(made.at("spec.cohortName"), "");
  EXPECT_EQ(world.get(queue_path(2, "q")).at("spec.cohortName"), "a");
  EXPECT_EQ(world.get(queue_path(2, "q")).at("spec.cohort"), "");
  EXPECT_NE(world.get(queue_path(1)).body.find(R"("cohort":"a")"), std::string::npos);
  EXPECT_NE(world.get(queue_path(2)).body.find(R"("cohortName":"a")"), std::string::npos);
  const TestAnswer table = world.call("GET", queue_path(1, "q"), "", "application/json",
                                      "application/json;as=Table;v=v1;g=meta.k8s.io");
  EXPECT_NE(table.body.find("\"a\""), std::string::npos) << table.body;
}

TEST(ApiConversion, EveryWriteIsSeenInTheOther) {
  KueueWorld world;
  world.post(queue_path(2), queue_body(2, "q", R"("cohortName":"a")"));
  const auto watch = world.watch(queue_path(1) + "?watch=1&resourceVersion=0");
  EXPECT_EQ(world.merge(queue_path(1, "q"), R"({"spec":{"cohort":"b"}})").status, 200);
  EXPECT_EQ(world.get(queue_path(2, "q")).at("spec.cohortName"), "b");
  EXPECT_EQ(world.merge(queue_path(2, "q"), R"({"spec":{"cohortName":"c"}})").status, 200);
  world.loop.run_ready();
  EXPECT_NE(watch->bytes.find(R"("cohort":"a")"), std::string::npos) << watch->bytes;
  EXPECT_NE(watch->bytes.find(R"("cohort":"c")"), std::string::npos) << watch->bytes;
  EXPECT_EQ(watch->bytes.find("cohortName\":\""), std::string::npos) << watch->bytes;
  const TestAnswer json = world.call("PATCH", queue_path(1, "q"),
                                     R"([{"op":"test","path":"/spec/cohort","value":"c"},)"
                                     R"({"op":"remove","path":"/spec/cohort"}])",
                                     "application/json-patch+json");
  EXPECT_EQ(json.status, 200) << json.body;
  EXPECT_EQ(world.get(queue_path(2, "q")).at("spec.cohortName"), "");
}

TEST(ApiConversion, ManagersAreFoundAcrossVersions) {
  KueueWorld world;
  EXPECT_EQ(world.apply(1, "q", "a", R"("cohort":"x")").status, 201);
  EXPECT_EQ(world.apply(2, "q", "b", R"("cohortName":"x")").status, 200);
  const TestAnswer clash = world.apply(2, "q", "b", R"("cohortName":"y")");
  EXPECT_EQ(clash.status, 409);
  EXPECT_NE(clash.body.find(R"(conflict with \"a\": .spec.cohort)"), std::string::npos)
      << clash.body;
  EXPECT_EQ(world.apply(2, "q", "b", R"("cohortName":"y")", true).status, 200);
  EXPECT_EQ(world.get(queue_path(1, "q")).at("spec.cohort"), "y");
  const std::string held = world.get(queue_path(2, "q")).at("metadata.managedFields");
  EXPECT_EQ(held.find("f:cohort\":"), std::string::npos) << held;  // a's is gone
  EXPECT_NE(held.find("f:cohortName\":"), std::string::npos) << held;
  // The same manager in the other version, without the field: it goes.
  EXPECT_EQ(world.apply(1, "q", "b", R"("stopPolicy":"None")").status, 200);
  EXPECT_EQ(world.get(queue_path(2, "q")).at("spec.cohortName"), "");
}

TEST(ApiConversion, AnUpdateTakesFieldsFromManagersOfTheOtherVersion) {
  KueueWorld world;
  EXPECT_EQ(world.apply(1, "q", "a", R"("cohort":"x","stopPolicy":"Hold")").status, 201);
  world.merge(queue_path(2, "q"), R"({"spec":{"cohortName":"z"}})");
  const std::string held = world.get(queue_path(2, "q")).at("metadata.managedFields");
  EXPECT_EQ(held.find("f:cohort\":"), std::string::npos) << held;
  EXPECT_NE(held.find("f:stopPolicy"), std::string::npos) << held;
  // What it did not touch stays with who applied it.
  EXPECT_EQ(world.apply(2, "q", "c", R"("stopPolicy":"None")").status, 409);
}

TEST(ApiConversion, OnlyTheKindsThatAreConvertedHereMayAskForIt) {
  KueueWorld world;
  const std::string webhook =
      R"({"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],)"
      R"("clientConfig":{"url":"https://127.0.0.1/convert"}}}}})";
  const std::string queues = std::string(kCrdsPath) + "/clusterqueues.kueue.x-k8s.io";
  EXPECT_EQ(world.merge(queues, webhook).status, 200);
  world.loop.run_ready();
  world.post(queue_path(1), queue_body(1, "q", R"("cohort":"a")"));
  EXPECT_EQ(world.get(queue_path(2, "q")).at("spec.cohortName"), "a");
}

}  // namespace
}  // namespace berth::sim
