// What happened in the last day, bounded: how long workloads waited in their queues, which GPUs and
// nodes left service and came back, how full and how busy the fleet was.
//
// For people who look at a page, not for decisions: nothing here outlives the process. Fed with
// samples on one thread; times are wall time in nanoseconds. Old entries go when new ones come.
// Cost: waits O(log n) a note, health O(GPUs) a sample, the trend O(1).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::account {

inline constexpr std::int64_t kDayNs = 86'400'000'000'000;

// Waits of workloads that queues let in during the last day. An admission counts once, however
// often it is noted. Bounded: kMostWaits a queue, the latest ones; kMostQueues queues.
class WaitLog {
 public:
  static constexpr std::size_t kMostWaits = 1'000, kMostQueues = 1'000;
  struct Summary {
    std::size_t count = 0;
    std::int64_t p50_ns = 0, p95_ns = 0;  // nearest rank
  };

  void note(const std::string& queue, std::string_view workload, std::int64_t since_ns,
            std::int64_t admitted_ns, std::int64_t now_ns);
  std::map<std::string, Summary> summaries(std::int64_t now_ns) const;

 private:
  using Admission = std::pair<std::int64_t, std::string>;  // when, who
  std::map<std::string, std::map<Admission, std::int64_t>> waits_;
};

// GPUs and nodes that left service or came back. What is out when the first sample comes, or comes
// with a new node, is no event. Bounded: kMostEvents, the latest ones.
class HealthLog {
 public:
  static constexpr std::size_t kMostEvents = 500;
  struct Standing {
    std::string node;
    int gpu = -1;  // -1: the node itself
    bool in_service = true;
    std::string reason = {};
  };
  struct Event {
    std::int64_t at_ns = 0;
    Standing standing;
  };

  void note(std::int64_t now_ns, const std::vector<Standing>& all);
  std::vector<Event> events(std::int64_t now_ns) const;  // the latest first

 private:
  std::map<std::pair<std::string, int>, bool> known_;  // in service?
  std::deque<Event> events_;
};

// How full the fleet was, in steps of five minutes over the last day; each is the mean of its
// samples.
class FleetTrend {
 public:
  static constexpr std::int64_t kStepNs = 300'000'000'000;
  static constexpr std::size_t kMostSteps = kDayNs / kStepNs;
  struct Sample {
    std::int64_t used_milli = 0, free_milli = 0, out_milli = 0;
    std::int64_t busy_sum = 0, busy_count = 0;  // per cent, of GPUs that somebody measures
  };
  struct Step {
    std::int64_t at_ns = 0;
    double used = 0, free = 0, out = 0;  // GPUs
    int busy = -1;                       // per cent; -1: nobody measured
  };

  void note(std::int64_t now_ns, const Sample& sample);
  std::vector<Step> steps(std::int64_t now_ns) const;  // the oldest first

 private:
  struct Sum {
    std::int64_t at_ns = 0, samples = 0;
    Sample sum;
  };
  std::deque<Sum> sums_;
};

// A gauge of DCGM's by GPU index, of a page of metrics: the largest of the lines of a GPU. -1: the
// page does not say, or it is not in 0..most. Lines of MIG instances are left out: they are parts
// of a GPU. At most kMostGpus.
inline constexpr std::size_t kMostGpus = 64;
std::vector<int> gauge_of_metrics(std::string_view page, std::string_view name, int most);
std::vector<int> busy_of_metrics(std::string_view page);  // per cent

}  // namespace berth::account
