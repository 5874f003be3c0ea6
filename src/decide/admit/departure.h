// When a workload that holds quota must leave although nobody asks for its room: its queue was
// stopped, an admission check failed, a GPU of it broke, its pods never came up, its time is over.
#pragma once

#include <optional>
#include <string>

#include "decide/admit/book.h"

namespace berth::admit {

struct Departure {
  std::string reason;  // of the condition Evicted: "PodsReadyTimeout", ...
  std::string message;
  bool deactivates = false;        // it does not come back by itself
  std::int64_t requeue_at_ns = 0;  // it comes back then; 0: at once
  bool orders_anew = false;        // its place in the queue counts from now
};

std::optional<Departure> departure_of(const Book& book, const model::WorkloadSpec& spec,
                                      QueueId queue, std::int64_t now_ns);

// When time alone makes it leave, by its status as it is; 0: never.
std::int64_t departs_at(const Book& book, const model::WorkloadSpec& spec);

// Seconds until the n-th try (n from 1) after timeouts: base x 2^(n-1), at most max.
std::int64_t backoff_s(const model::QueueConfig& config, int tries);

}  // namespace berth::admit
