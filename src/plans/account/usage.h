// GPU-hours since a time: held, busy, idle and unknown per team, free and out of service of the
// rest.
//
// Fed with samples of who holds what; the time between two samples counts as the earlier one said.
// A gap longer than max_gap_ns is not counted at all, and told: nobody knows what happened in it.
// Held = busy + idle + unknown, and held + free + out of service is all GPUs times all time
// counted, exactly, in GPU-milli nanoseconds. Bounded: teams beyond max_teams are one, "others". On
// one thread; O(teams) a sample.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::account {

struct Holding {
  std::string team;
  int milli = 0;                     // of GPUs
  std::optional<int> busy_per_cent;  // absent: nobody measures
};

struct UsageSample {
  std::vector<Holding> holdings;
  std::int64_t free_milli = 0, out_milli = 0;  // GPUs that nobody holds: usable, and not
};

struct Hours {
  double held = 0, busy = 0, idle = 0, unknown = 0;  // GPU-hours
};

class UsageLedger {
 public:
  explicit UsageLedger(std::int64_t max_gap_ns = 300'000'000'000, std::size_t max_teams = 1'000)
      : max_gap_ns_(max_gap_ns), max_teams_(max_teams) {}

  // ticks: monotonic. Samples out of order are dropped.
  void note(std::int64_t ticks_ns, const UsageSample& sample);

  std::map<std::string, Hours> teams() const;
  Hours total() const;
  double free_hours() const;
  double out_hours() const;
  double missed_seconds() const { return static_cast<double>(missed_ns_) / 1e9; }

 private:
  __extension__ using Sum = __int128;  // GPU-milli nanoseconds
  struct Team {
    Sum busy = 0, idle = 0, unknown = 0;
  };
  struct Rate {  // GPU-milli, in hundredths for busy and idle
    std::int64_t busy = 0, idle = 0, unknown = 0;
  };
  Team& team(const std::string& name);
  static Hours hours_of(const Team& team);

  std::int64_t max_gap_ns_;
  std::size_t max_teams_;
  std::map<std::string, Team> teams_;
  std::map<std::string, Rate> now_;  // of the last sample
  std::int64_t free_now_ = 0, out_now_ = 0;
  Sum free_ = 0, out_ = 0;
  std::int64_t missed_ns_ = 0;
  std::optional<std::int64_t> last_;
};

}  // namespace berth::account
