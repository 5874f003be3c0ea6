// What is written of pods is what is read of them.
#include "kinds/pod_writes.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "kinds/object_set.h"
#include "text/json.h"
#include "text/patch.h"
#include "text/path.h"

namespace berth::kinds::pod_writes_test {
namespace {

text::Document json_of(std::string_view json) {
  auto out = text::parse_json(json);
  EXPECT_TRUE(out.ok()) << json;
  return std::move(*out);
}

// A server gives the pod the annotations and the node of its Binding.
TEST(PodWrites, ABindingIsReadFromThePod) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<int> gpus;
    for (int i = 0; i < 16; ++i) {
      if (random.chance(1, 3)) gpus.push_back(i);
    }
    const std::string node = "n" + std::to_string(random.below(100));
    const std::string charged = random.chance(1, 2) ? "kueue/cq" : "";
    const text::Document binding = json_of(binding_body("team", "p", {"u", node, charged, gpus}));
    text::Document pod = json_of(
        R"({"metadata":{"namespace":"team","name":"p","uid":"u"},"spec":{"containers":[]}})");
    auto bound = text::apply_merge_patch(
        pod.root(),
        json_of(R"({"spec":{"nodeName":")" + std::string(text_at(binding.root(), "target.name")) +
                R"("},"metadata":{"annotations":)" +
                text::to_json(at(binding.root(), "metadata.annotations")) + "}}")
            .root());
    ASSERT_TRUE(bound.ok());
    const LivePod live = read_live_pod(bound->root());
    EXPECT_EQ(live.node, node);
    EXPECT_EQ(live.gpus, gpus_text(gpus));
    EXPECT_EQ(live.charged, charged);
    EXPECT_EQ(text_at(binding.root(), "metadata.uid"), "u");
  }
}

TEST(PodWrites, AGatedPodIsLetGoToItsFlavors) {
  model::FlavorSpec flavor;
  flavor.name = "f";
  flavor.node_labels = {{"tier", "train"}};
  EXPECT_EQ(pod_start_patch({&flavor}),
            R"({"spec":{"schedulingGates":[{"$patch":"delete","name":"kueue.x-k8s.io/admission"},)"
            R"({"$patch":"delete","name":"kueue.x-k8s.io/topology"}],"nodeSelector":)"
            R"({"tier":"train"}}})");
  flavor.node_labels.clear();
  EXPECT_EQ(pod_start_patch({&flavor}).find("nodeSelector"), std::string::npos);
}

}  // namespace
}  // namespace berth::kinds::pod_writes_test
