#include "app/page/agent_loads.h"

#include <gtest/gtest.h>

#include "edge/kube/script_transport_for_test.h"
#include "text/json.h"

namespace berth::app {
namespace {

TEST(NodeAddresses, OfNodesWithGpusAlone) {
  const auto list = text::parse_json(R"({"items":[
    {"metadata":{"name":"a"},"status":{"capacity":{"nvidia.com/gpu":"8"},
     "addresses":[{"type":"Hostname","address":"a"},{"type":"InternalIP","address":"10.0.0.1"}]}},
    {"metadata":{"name":"six"},"status":{"capacity":{"nvidia.com/mig-1g.10gb":"7"},
     "addresses":[{"type":"InternalIP","address":"fd00::1"}]}},
    {"metadata":{"name":"cpu"},"status":{"capacity":{"cpu":"8"},
     "addresses":[{"type":"InternalIP","address":"10.0.0.2"}]}},
    {"metadata":{"name":"evil"},"status":{"capacity":{"nvidia.com/gpu":"8"},
     "addresses":[{"type":"InternalIP","address":"10.0.0.3/x?@y"}]}},
    {"metadata":{"name":"none"},"status":{"capacity":{"nvidia.com/gpu":"8"}}}, 7, {}]})");
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(node_addresses(list->root()),
            (std::map<std::string, std::string>{{"a", "10.0.0.1"}, {"six", "[fd00::1]"}}));
}

constexpr std::int64_t kSecondOfLoads = 1'000'000'000;

std::string node_json(const std::string& name, const std::string& address) {
  return R"({"metadata":{"name":")" + name +
         R"("},"status":{"capacity":{"nvidia.com/gpu":"2"},"addresses":[{"type":"InternalIP",)" +
         R"("address":")" + address + R"("}]}})";
}

std::string agent_json(const std::string& node, const std::string& phase,
                       const std::string& address, const std::string& ns = "berth-system",
                       const std::string& account = "berth-agent") {
  return R"({"metadata":{"namespace":")" + ns + R"("},"spec":{"nodeName":")" + node +
         R"(","serviceAccountName":")" + account + R"("},"status":{"phase":")" + phase +
         R"(","podIP":")" + address + R"("}})";
}

// A tenant's pod with the agents' labels would be asked from inside the cluster, and believed.
TEST(AgentAddresses, OfBerthsOwnNamespaceAndAccountAlone) {
  const auto list =
      text::parse_json(R"({"items":[)" + agent_json("a", "Running", "10.1.0.1", "team") + "," +
                       agent_json("b", "Running", "10.1.0.2", "berth-system", "default") + "," +
                       agent_json("c", "Running", "10.1.0.3", "berth-system", "") + "," +
                       agent_json("d", "Running", "10.1.0.4") + "]}");
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(agent_addresses(list->root(), "berth-system"),
            (std::map<std::string, std::string>{{"d", "10.1.0.4"}}));
  EXPECT_EQ(agent_addresses(list->root(), "team"),
            (std::map<std::string, std::string>{{"a", "10.1.0.1"}}));
}

// Two nodes in two pages of the list; one agent answers, the other never does.
TEST(AgentLoads, AsksEveryNodeAndForgetsWhatIsOld) {
  FakeClock clock(1'700'000'000 * kSecondOfLoads);
  SteppedLoop loop(clock);
  kube::ScriptTransport transport(loop);
  kube::Client client(transport, loop, Random(1));
  std::vector<std::pair<std::string, std::function<void(Result<std::string>)>>> asked;
  bool answers = true;
  AgentLoads loads(
      client,
      [&](std::string url, std::function<void(Result<std::string>)> done) {
        if (url == "http://10.0.0.1:9400/metrics" && answers) {
          loop.post([done] { done(std::string("DCGM_FI_DEV_GPU_UTIL{gpu=\"1\"} 42\n")); });
        }
        asked.emplace_back(std::move(url), std::move(done));
      },
      {});
  loads.start();
  loop.run_ready();
  ASSERT_EQ(transport.asked.size(), 1u);
  EXPECT_EQ(transport.asked[0].query("labelSelector"), kAgentPods);
  transport.answer(0, 403, R"({"kind":"Status","code":403})");  // then the nodes' addresses do
  loop.run_ready();
  ASSERT_EQ(transport.asked.size(), 2u);
  transport.answer(1, 200,
                   R"({"metadata":{"continue":"x"},"items":[)" + node_json("a", "10.0.0.1") + "]}");
  loop.run_ready();
  ASSERT_EQ(transport.asked.size(), 3u);
  EXPECT_EQ(transport.asked[2].query("continue"), "x");
  EXPECT_TRUE(asked.empty());
  transport.answer(2, 200, R"({"metadata":{},"items":[)" + node_json("b", "10.0.0.2") + "]}");
  loop.run_ready();
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[1].first, "http://10.0.0.2:9400/metrics");
  EXPECT_EQ(loads.readings().loads, (PageFactsKeeper::Loads{{"a", {-1, 42}}}));
  EXPECT_EQ(loads.readings().silent_nodes, 1u);
  EXPECT_EQ(loads.readings().oldest_ns, clock.now_ns());

  // The one that owes an answer is not asked again.
  loop.run_for(31 * kSecondOfLoads);
  EXPECT_EQ(asked.size(), 3u);
  asked[1].second(Error(Code::kUnavailable, "refused"));
  answers = false;
  loop.run_for(30 * kSecondOfLoads);
  EXPECT_EQ(asked.size(), 5u);
  EXPECT_EQ(loads.readings().loads.size(), 1u);
  loop.run_for(121 * kSecondOfLoads);
  EXPECT_TRUE(loads.readings().loads.empty());
  EXPECT_EQ(loads.readings().silent_nodes, 2u);
  EXPECT_EQ(loads.readings().oldest_ns, 0);
}

// An agent in a pod listens on the pod's address; agents on nodes without GPUs are not asked.
TEST(AgentLoads, AsksTheAgentsPodWhereThereIsOne) {
  FakeClock clock(1'700'000'000 * kSecondOfLoads);
  SteppedLoop loop(clock);
  kube::ScriptTransport transport(loop);
  kube::Client client(transport, loop, Random(1));
  std::vector<std::string> asked;
  AgentLoads loads(client, [&](std::string url, const auto&) { asked.push_back(std::move(url)); },
                   {});
  loads.start();
  loop.run_ready();
  EXPECT_EQ(transport.asked[0].path(), "/api/v1/namespaces/berth-system/pods");
  transport.answer(0, 200,
                   R"({"items":[)" + agent_json("a", "Failed", "10.1.0.9") + "," +
                       agent_json("a", "Running", "10.1.0.1") + "," +
                       agent_json("cpu", "Running", "10.1.0.2") + "," +
                       agent_json("b", "Running", "10.1.0.3/x?") + ", 7, {}]}");
  loop.run_ready();
  transport.answer(
      1, 200,
      R"({"items":[)" + node_json("a", "10.0.0.1") + "," + node_json("b", "10.0.0.2") + "]}");
  loop.run_ready();
  EXPECT_EQ(asked, (std::vector<std::string>{"http://10.1.0.1:9400/metrics",
                                             "http://10.0.0.2:9400/metrics"}));
  loop.run_for(301 * kSecondOfLoads);
  ASSERT_EQ(transport.asked.size(), 3u);
  EXPECT_EQ(transport.asked[2].query("labelSelector"), kAgentPods) << "both are listed anew";
}

}  // namespace
}  // namespace berth::app
