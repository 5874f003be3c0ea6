// How busy the GPUs of a cluster are, from the agents' own pages of metrics: no Prometheus needed.
//
// Every interval_ns each node that has an address is asked once (http://ADDRESS:PORT/metrics, as
// `berth agent` and dcgm-exporter serve it); the fetcher bounds how many at once, how long and how
// much. Addresses are listed anew every nodes_ns: that of the agent's pod where berth's chart runs
// it, else the Node's InternalIP. Anybody can label a pod: an agent's is one of berth's own
// namespace, where tenants make none, with the agents' account; others are neither asked nor
// believed. A reading older than stale_ns counts as none. On the loop's thread. Memory: a number a
// GPU, an address a node; max_nodes nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/page/page_facts.h"
#include "base/loop.h"
#include "edge/kube/client.h"

namespace berth::app {

struct AgentLoadsOptions {
  std::string ns = "berth-system";  // where the agents run
  std::uint16_t port = 9400;
  std::int64_t interval_ns = 30'000'000'000;
  std::int64_t stale_ns = 120'000'000'000;
  std::int64_t nodes_ns = 300'000'000'000;
  std::size_t max_nodes = 20'000;
  int list_limit = 500;  // nodes a call
};

class AgentLoads {
 public:
  // Asks for a page; answers later, on the loop (edge/kube/http_fetch.h).
  using Fetch = std::function<void(std::string url, std::function<void(Result<std::string>)>)>;

  AgentLoads(kube::Client& client, Fetch fetch, AgentLoadsOptions options);
  ~AgentLoads();
  AgentLoads(const AgentLoads&) = delete;
  AgentLoads& operator=(const AgentLoads&) = delete;

  void start();
  PageFactsKeeper::Readings readings() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Names and addresses of the nodes of a NodeList that have GPUs; those without an InternalIP are
// left out. An IPv6 address comes in brackets.
std::map<std::string, std::string> node_addresses(const text::Value& list);
// The same of the agents' pods that run in that namespace, by the name of their node.
std::map<std::string, std::string> agent_addresses(const text::Value& list, std::string_view ns);

// Labels and the account that berth's chart gives them.
inline constexpr const char* kAgentPods =
    "app.kubernetes.io/name=berth,app.kubernetes.io/component=agent";
inline constexpr std::string_view kAgentAccount = "berth-agent";

}  // namespace berth::app
