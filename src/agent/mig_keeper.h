// Keeps a node's GPUs cut as it is declared (docs/mig.md).
//
//   declared layout --> look --> plan --> intent file --> steps, one at a time --> look --> done
//                                  |                         |
//                               refusal                   failure: again, then back to what was
//
// Before the first step what is about to be done, and what was there, is written to
// STATE/mig-intent.json; the file goes after the last. One that is found at the start is a change
// that was cut off: it is carried on to the declared layout or, where that is refused, back to what
// was there. While a change is under way the devices of its GPUs are withheld, but those that stay.
//
// What somebody holds is not touched: who holds what is asked in the same turn in which the devices
// are withheld, so that no device is handed out in between.
//
// On the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "node/partition/mig_layout.h"

namespace berth::agent {

// What people see of it.
struct MigShown {
  std::string layout;  // declared; empty: none
  std::string state;   // "pending", "success", "failed" as the MIG manager says; empty: none
  std::string reason;  // "LayoutApplied", "MigInUse", "MigFailed"
  std::string text;
  friend bool operator==(const MigShown&, const MigShown&) = default;
};

struct MigKeeperOptions {
  std::string state_dir;  // empty: a change that is cut off is not remembered
  std::int64_t first_retry_ns = 1'000'000'000;
  int tries = 3;                              // of a plan, before going back
  std::int64_t give_up_ns = 600'000'000'000;  // until what failed is tried anew
};

// What it needs of the agent.
struct MigWorld {
  // Who holds what; nothing: not known yet.
  std::function<std::optional<partition::MigUse>()> use;
  std::function<void()> changed;     // shown() or withheld() differ
  std::function<void()> look_again;  // the inventory is out of date
  std::function<void(bool warning, const std::string& reason, const std::string& note)> tell;
};

class MigKeeper {
 public:
  MigKeeper(Loop& loop, partition::MigDriver& driver, MigKeeperOptions options, MigWorld world,
            const Logger& log, MetricsRegistry& metrics);
  ~MigKeeper();

  // Reads what an agent before it left behind, and begins.
  void start();
  // The name of the layout; empty: none, and the GPUs are left as they are.
  void declare(const std::string& layout);
  // The file's layouts; null: there is no file, and the usual names count (usual_layout).
  void set_config(std::shared_ptr<const partition::MigConfig> config);
  void set_config_problem(const std::string& problem);
  void inventory_came(const model::GpuInventory& inventory);
  void use_changed();  // who holds what may differ

  // A device of that GPU must not be handed out now.
  bool withheld(const std::string& gpu, const std::string& device) const;
  bool changing() const;
  const MigShown& shown() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::agent
