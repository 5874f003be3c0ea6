// Which GPUs may take pods, and why not: verdicts from events and readings.
//
// One verdict for each physical GPU; it covers all its replicas and MIG instances. Application
// errors never take a GPU away. Every verdict names the probe that ends it; time alone never does:
// the probe must pass on clean_readings readings in a row. A GPU that went bad flap_limit times
// within flap_window stays out until an operator says so (forgive()). Repeats of an event cost
// nothing. Deterministic: what it knows of time is passed in. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/device.h"
#include "model/gpu_reading.h"

namespace berth::monitor {

enum class Severity : std::uint8_t { kFine, kInfo, kDegraded, kFatal };
std::string_view name(Severity severity);

// What must be seen for the GPU to come back.
enum class Probe : std::uint8_t {
  kNone,
  kAnswers,     // the driver answers for it
  kNoRecovery,  // the driver recommends nothing any more
  kNoPendingRemap,
  kLinksUp,
  kCool,
  kReset,  // it was reset: the recovery action went to none, or it was gone and came back
  kOperator,
};
std::string_view name(Probe probe);  // "driver-answers", "no-pending-remap", ...

struct Verdict {
  bool healthy = true;
  bool known = true;  // false: the driver does not answer for it; healthy is false then
  Severity severity = Severity::kFine;
  std::string
      code;  // "Xid79", "GpuLost", "RowRemapFailed", "NvLinkDown", "DriverSilent", "Flapping", ...
  std::string action;  // what to do: "reset the GPU"
  std::string text;    // one sentence for people
  Probe heals = Probe::kNone;
  std::int64_t since_ns = 0;  // wall time; 0 while nothing is wrong
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

struct HealthOptions {
  int clean_readings = 3;
  int flap_limit = 3;
  std::int64_t flap_window_ns = 3'600'000'000'000;
  std::set<int> ignored_xids;  // DP_DISABLE_HEALTHCHECKS
  std::set<int> fatal_xids;    // DP_ENABLE_HEALTHCHECKS: beats ignored
  bool xids_off = false;       // DP_DISABLE_HEALTHCHECKS=all or xids
};
// The plugin's two environment variables; unknown words are an error.
Result<HealthOptions> health_options(std::string_view disable, std::string_view enable);

// An event as people and metrics see it, whether or not it changed a verdict.
struct Noted {
  std::string uuid;
  int xid = 0;  // 0: not an Xid
  std::string code, text;
  bool blames_job = false;
  int pid = 0;
};

class HealthBook {
 public:
  explicit HealthBook(HealthOptions options);

  // GPUs that are new start as healthy and known; those that left are forgotten after they were
  // gone for an hour (their flaps count if they return).
  void set_inventory(const model::GpuInventory& inventory, std::int64_t now_ns);
  // The machine's boot id: after a restore() with another one every GPU counts as reset.
  void set_boot(std::string_view boot_id);
  // These three give the UUIDs whose verdict changed since one was last asked, by index: changes by
  // set_inventory() and set_boot() are in the next answer.
  std::vector<std::string> event(const model::GpuEvent& event, std::int64_t now_ns);
  std::vector<std::string> readings(const std::vector<model::GpuReading>& readings,
                                    std::int64_t now_ns);
  // Ends what waits for a reset or an operator, and forgets the flaps. What readings show stays.
  std::vector<std::string> forgive(std::string_view uuid);

  const Verdict& verdict(std::string_view uuid) const;  // unknown UUIDs: not healthy, not known
  std::vector<Noted> take_noted();                      // since the last call; at most 1,000
  // Counts for metrics: (uuid, xid) -> how often; bounded to 64 codes a GPU. An Xid that comes both
  // from the driver and from the kernel log within five seconds counts once.
  const std::map<std::pair<std::string, int>, std::uint64_t>& xid_counts() const;
  int last_xid(std::string_view uuid) const;  // 0: none

  // What a restart must not forget: verdicts and flaps, as JSON. restore() of a damaged text is an
  // error and changes nothing.
  std::string save() const;
  Status restore(std::string_view text);

  // One thing that is wrong. The verdict is made from all of them.
  struct Cause {
    std::string code, action, text;
    Severity severity = Severity::kFatal;
    Probe probe = Probe::kReset;
    std::int64_t since_ns = 0;
    int clean = 0;               // readings in a row on which the probe passed
    bool advised = false;        // since then the driver recommended something
    bool reset_seen = false;     // and since that the GPU was reset
    bool driver_silent = false;  // nothing is known of the GPU; no flap
  };
  struct Sighting {  // of an Xid, to find repeats and doubles
    std::int64_t at_ns = 0;
    int pid = 0;
    std::string place;
  };
  struct Gpu {
    std::string uuid, pci_bus_id;
    int index = 0;
    bool mig_enabled = false;
    std::int64_t gone_since_ns = 0;                            // 0: it is there
    int links = 0;                                             // the most that were up
    int link_doubts = 0, error_doubts = 0, fabric_doubts = 0;  // bad readings in a row
    int link_faults = 0;                                       // harmless ones, see docs/health.md
    std::map<std::string, Cause> causes;                       // by code
    std::vector<std::int64_t> flaps;                           // when it went bad
    Verdict verdict;
    bool dirty = false;  // the verdict changed and was not told
    int last_xid = 0;
    std::int64_t last_remap_ns = 0, last_other_xid_ns = 0;  // 63 or 64; not 45
    std::map<int, std::vector<Sighting>> sightings;         // 13 and 31
    std::map<int, std::int64_t> from_driver, from_log;      // last time by code
  };

 private:
  using Gpus = std::map<std::string, Gpu, std::less<>>;

  std::vector<Gpu*> targets(const model::GpuEvent& event);
  void xid(Gpu& gpu, const model::GpuEvent& event, std::int64_t now_ns);
  void follow_driver(Gpu& gpu, std::string_view detail, std::int64_t now_ns);
  void other(Gpu& gpu, const model::GpuEvent& event, std::int64_t now_ns);
  bool count_xid(Gpu& gpu, const model::GpuEvent& event, std::int64_t now_ns);
  void reading(Gpu& gpu, const model::GpuReading& reading, std::int64_t now_ns);
  void judge_condition(Gpu& gpu, const model::GpuCondition& condition, std::int64_t now_ns);
  void judge_links(Gpu& gpu, const model::GpuCondition& condition, std::int64_t now_ns);
  void judge_probes(Gpu& gpu, const model::GpuReading& reading);
  void open(Gpu& gpu, Cause cause, std::int64_t now_ns);
  void note(Noted noted);
  void settle(Gpu& gpu);
  std::vector<std::string> changed();

  HealthOptions options_;
  Gpus gpus_;
  std::string boot_;
  std::vector<Noted> noted_;
  std::map<std::pair<std::string, int>, std::uint64_t> counts_;
  Verdict stranger_;
};

}  // namespace berth::monitor
