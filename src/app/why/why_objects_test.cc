#include "app/why/why_objects.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "embedded/api/world_for_test.h"

namespace berth::app {
namespace {

struct FetchWorld {
  sim::TestWorld world;
  kube::Client client{*world.transport, world.loop, Random(5), {}};

  void make(const std::string& path, const std::string& body) {
    const sim::TestAnswer answer = world.post(path, body);
    EXPECT_EQ(answer.status, 201) << path << ' ' << answer.body;
  }
  void make_pods(int first, int end) {
    for (int i = first; i < end; ++i) {
      make("/api/v1/namespaces/team/pods", world.pod(fmt::format("p{:04}", i)));
    }
  }
  FetchedObjects fetch(const std::string& ns) {
    FetchedObjects out;
    fetch_why_objects(client, ns, [&out](FetchedObjects found) { out = std::move(found); });
    EXPECT_TRUE(world.loop.run_until([&out] { return out != nullptr; }, 60'000'000'000));
    return out;
  }
};

TEST(WhyObjects, OfTheNamespaceAndTheClasses) {
  FetchWorld w;
  for (const char* ns : {"team", "other"}) {
    w.make("/api/v1/namespaces", fmt::format(R"({{"metadata":{{"name":"{}"}}}})", ns));
    w.make(fmt::format("/api/v1/namespaces/{}/resourcequotas", ns),
           fmt::format(R"({{"metadata":{{"name":"of-{}"}},"spec":{{"hard":{{"pods":"9999"}}}}}})",
                       ns));
    w.make(fmt::format("/api/v1/namespaces/{}/serviceaccounts", ns),
           R"({"metadata":{"name":"trainer"}})");
  }
  w.make("/apis/node.k8s.io/v1/runtimeclasses",
         R"({"metadata":{"name":"nvidia"},"handler":"nvidia"})");
  w.make_pods(0, 501);  // one more than a page
  const FetchedObjects found = w.fetch("team");
  EXPECT_EQ(found->of_kind("Pod").size(), 501u);
  ASSERT_EQ(found->of_kind("ResourceQuota").size(), 1u);
  EXPECT_TRUE(found->find("ResourceQuota", "team", "of-team"));
  EXPECT_TRUE(found->find("ServiceAccount", "team", "trainer"));
  EXPECT_TRUE(found->find("RuntimeClass", "", "nvidia"));
  ASSERT_EQ(found->of_kind("Namespace").size(), 1u);
  EXPECT_TRUE(found->find("Namespace", "", "team"));
  EXPECT_TRUE(found->of_kind("Secret").empty());
}

TEST(WhyObjects, NoRuleIsReadFromAPart) {
  FetchWorld w;
  w.make("/api/v1/namespaces", R"({"metadata":{"name":"team"}})");
  w.make("/api/v1/namespaces/team/resourcequotas",
         R"({"metadata":{"name":"q"},"spec":{"hard":{"pods":"9999"}}})");
  w.make("/api/v1/namespaces/team/limitranges",
         R"({"metadata":{"name":"r"},"spec":{"limits":[{"type":"Container","max":{"cpu":"4"}}]}})");
  const int most = static_cast<int>(kMostFetched);
  w.make_pods(0, most);
  EXPECT_EQ(w.fetch("team")->of_kind("ResourceQuota").size(), 1u) << "all pods are known";
  w.make_pods(most, most + 1);
  const FetchedObjects found = w.fetch("team");
  EXPECT_EQ(found->of_kind("Pod").size(), kMostFetched);
  EXPECT_TRUE(found->of_kind("ResourceQuota").empty());
  EXPECT_EQ(found->of_kind("LimitRange").size(), 1u);
}

}  // namespace
}  // namespace berth::app
