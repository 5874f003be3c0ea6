// Which GPUs the node has: the driver's list, asked for again from time to time and when something
// changed, and what the host says of where they sit.
//
// A GPU that the driver no longer lists is lost, not gone: it stays for forget_ns. A driver that
// does not answer leaves the list before it. On the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/loop.h"
#include "model/device.h"
#include "node/discover/gpu_source.h"

namespace berth::agent {

struct InventoryOptions {
  std::string host_root = "/";
  bool simulated = false;
  std::int64_t again_ns = 60'000'000'000, forget_ns = 600'000'000'000;
};

class GpuInventoryKeeper {
 public:
  struct Came {
    bool failed = false, changed = false;
  };
  // came: after each time that the driver was asked.
  GpuInventoryKeeper(Loop& loop, discover::GpuSource& source, InventoryOptions options,
                     const Logger& log, std::function<void(Came)> came);
  ~GpuInventoryKeeper();

  void take();  // now; once more afterwards where one is under way

  const std::optional<model::GpuInventory>& gpus() const { return gpus_; }  // with what vanished
  const model::HostFacts& host() const { return host_; }
  bool vanished(const std::string& uuid) const { return vanished_.contains(uuid); }
  const std::string& problem() const { return problem_; }  // of the driver; empty: it answers
  int gpus_on_bus() const;                                 // -1: not known

 private:
  void came(Result<model::GpuInventory> found);
  void fail(const Error& error);
  void keep_vanished(model::GpuInventory& found);

  Loop& loop_;
  discover::GpuSource& source_;
  InventoryOptions options_;
  const Logger& log_;
  std::function<void(Came)> tell_;
  std::optional<model::GpuInventory> gpus_;
  model::HostFacts host_;
  std::map<std::string, std::int64_t> vanished_;  // UUID -> since, monotonic
  std::string problem_;
  bool asking_ = false, ask_again_ = false;
  Loop::Timer timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for answers on their way
};

}  // namespace berth::agent
