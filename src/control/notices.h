// What people are told: events, and PodScheduled=False with our reason on pods that wait.
//
// Told once and again only when the reason changes, or the words do after a while; at a bounded
// rate, below every other write. A pod that is placed gets no write beyond its binding: Scheduled
// is told of gangs, and of single pods only while few of them come.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "base/loop.h"
#include "base/random.h"
#include "control/pace.h"
#include "control/writer.h"

namespace berth::control {

struct Regarding {
  std::string version, kind, ns, name, uid;
};
Regarding of_gang(const std::string& name);  // "ns/name"

class Notices {
 public:
  Notices(Loop& loop, Random random, Writer& writer);

  // type: Normal, Warning. The same words about the same object are told once in ten minutes.
  void event(const Regarding& about, std::string_view type, std::string_view reason,
             std::string_view action, std::string_view note);
  struct Wait {
    bool queued = false;  // for its turn: not a pod that autoscalers should make room for
    std::string_view reason;
    const std::string& message;
  };
  void waits(const std::string& pod, const std::string& uid, const Wait& why);
  void placed(const std::string& pod) { told_.erase(pod); }
  void forget(const std::string& pod) { told_.erase(pod); }
  void clear() { told_.clear(); }

  static constexpr std::size_t kMostRecent = 4'096;
  static constexpr std::size_t kMostTold = 200'000;
  std::size_t recent() const { return recent_order_.size(); }
  std::size_t told() const { return told_.size(); }

 private:
  struct Told {
    std::string uid, reason;
    bool queued = false;
    std::size_t message = 0;  // its hash
    std::int64_t at = 0;
  };

  Loop& loop_;
  Random random_;
  Writer& writer_;
  Pace events_{10, 50};
  Pace conditions_{20, 100};
  std::map<std::string, Told> told_;            // by pod
  std::map<std::string, std::int64_t> recent_;  // events by what they say
  std::deque<std::pair<std::int64_t, std::string>> recent_order_;
};

}  // namespace berth::control
