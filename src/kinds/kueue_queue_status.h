// The status of ClusterQueues and LocalQueues (v1beta2) as it is written. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/queue.h"
#include "text/value.h"

namespace berth::kinds {

struct QueueCounts {
  int pending = 0, reserving = 0, admitted = 0;
  std::optional<std::int64_t> weighted_share;  // where queues share fairly
  // flavor -> resource -> {reserved, used}
  std::map<std::string, std::map<std::string, std::pair<std::int64_t, std::int64_t>>> use;
  friend bool operator==(const QueueCounts&, const QueueCounts&) = default;
};
// A merge patch of a ClusterQueue's or LocalQueue's status; empty: it says so already. groups: the
// flavors of the ClusterQueue.
std::string queue_status_patch(const text::Value& queue, const QueueCounts& counts,
                               const std::vector<model::ResourceGroup>& groups, bool cluster_queue,
                               std::string_view inactive, std::int64_t now_ns);

}  // namespace berth::kinds
