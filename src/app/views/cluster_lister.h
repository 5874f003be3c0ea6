// Lists what a cluster has, page by page, as far as the caller may see it.
//
// All kinds that kinds/manifest.h reads, and what doctor and preempted look at: events, leases,
// webhook configurations, CustomResourceDefinitions, the Services and EndpointSlices that webhooks
// name. Never a Secret. Blocks the calling thread and runs a loop of
// its own on it; says on a terminal what it does when that takes over a second. Pages are kept as
// they came; together they are bounded (kMaxListedBytes), and so are events, the newest of which
// need not be among them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/cli/cli.h"
#include "base/result.h"
#include "edge/kube/client.h"
#include "edge/kube/config.h"
#include "edge/kube/discovery.h"
#include "text/value.h"

namespace berth::app {

inline constexpr std::size_t kMaxListedBytes = std::size_t{3} << 30;  // of memory
inline constexpr std::size_t kMaxListedEvents = 20'000;

struct ListedPage {
  kube::Resource resource;
  std::shared_ptr<const text::Document> document;  // a typed List
};

struct Listed {
  std::vector<ListedPage> pages;    // by resource, in the order of the server
  std::vector<std::string> unseen;  // "pods in other namespaces", "workloads.kueue.x-k8s.io"
  std::vector<std::string> absent;  // kinds that this cluster does not have, as "plural.group"
  kube::ServerVersion version;
};

enum class ListExtent : std::uint8_t {
  kDecided,  // what decisions are made of
  kWhy,      // and what why reads beside: why_kinds.h; makers of pods in the namespace alone
  kWhole,    // the same in all namespaces
};

// ns: where to look when all namespaces are forbidden. Error: the server cannot be reached or does
// not know the caller.
Result<Listed> list_cluster(const kube::Config& config, const std::string& ns, Terminal& terminal,
                            ListExtent extent = ListExtent::kDecided);

// The server's version alone.
Result<kube::ServerVersion> version_of_server(const kube::Config& config, Terminal& terminal);

}  // namespace berth::app
