// What the web page shows, as one JSON text: fleet, queues, what waits and why, what runs, usage.
//
// Pure: of the inputs, the plan and views made of them, and what the process knows beside them. The
// revision and the time are the caller's; everything else is the same bytes for the same facts.
// docs/page.md names the fields. Lists are bounded (kMaxPageWorkloads; counts tell the rest).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "people/view/fleet.h"
#include "people/view/queue_view.h"

namespace berth::people {

inline constexpr std::size_t kMaxPageWorkloads = 5'000;

struct PageHours {
  std::string team;
  double held = 0, busy = 0, idle = 0, unknown = 0;
};

// Of the last day.
struct PageWaits {
  std::string queue;
  std::size_t count = 0;
  double p50_seconds = 0, p95_seconds = 0;
};
struct PageHealthEvent {
  std::int64_t at_ns = 0;
  std::string node;
  int gpu = -1;  // -1: the node itself
  bool in_service = false;
  std::string reason;
};
struct PageTrendStep {
  std::int64_t at_ns = 0;
  double used = 0, free = 0, out = 0;  // GPUs
  int busy = -1;                       // per cent; -1: nobody measured
};

struct PageFacts {
  std::string cluster;  // what to call it
  std::string trouble;  // why nothing is decided, or empty
  bool leading = false;
  std::uint64_t cycles = 0, bound = 0, evicted = 0, failed_writes = 0;
  std::int64_t last_decision_ns = 0;  // 0: none yet
  // How busy a GPU is, per cent; -1: nobody measures.
  std::function<int(std::string_view node, int gpu)> busy;
  std::size_t measured_nodes = 0, silent_nodes = 0;  // nodes that tell it, and that should
  std::int64_t measured_ns = 0;                      // the oldest reading; 0: there is none
  std::vector<PageWaits> waits;                      // by queue
  std::vector<PageHealthEvent> health_events;        // the latest first
  std::vector<PageTrendStep> trend;                  // the oldest first
  std::int64_t usage_since_ns = 0;
  std::vector<PageHours> teams;  // by name
  PageHours all_teams;
  double free_hours = 0, out_hours = 0;
};

// Members of the page's object, without braces, revision and time.
struct PageMembers {
  std::string facts;   // a change of these is news
  std::string counts;  // control and usage: they grow by themselves
};
PageMembers page_members(const kinds::Inputs& inputs, const PlanResult& plan,
                         const PageFacts& facts, std::int64_t now_ns);

}  // namespace berth::people
