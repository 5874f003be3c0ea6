// What the page of a running control plane shows beside the objects: the controller's counts, how
// busy GPUs are, who held them since the start, and what happened in the last day.
//
// Samples holdings every kSampleNs, and whenever the page asks. On the loop's thread; the source it
// gives is for a PageServer that ends before it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/page/page_server.h"
#include "base/loop.h"
#include "control/controller.h"
#include "plans/account/history.h"
#include "plans/account/usage.h"

namespace berth::app {

class PageFactsKeeper {
 public:
  static constexpr std::int64_t kSampleNs = 15'000'000'000;
  // Per cent, by node and index; nodes that nobody measures are left out.
  using Loads = std::map<std::string, std::vector<int>, std::less<>>;

  struct Readings {
    Readings() = default;
    Readings(Loads of_now) : loads(std::move(of_now)) {}  // NOLINT: loads are readings
    Loads loads;
    std::size_t silent_nodes = 0;  // should tell, and do not
    std::int64_t oldest_ns = 0;    // wall time of the oldest of these; 0: they are of now
  };

  // readings: may be absent, then nobody measures.
  PageFactsKeeper(Loop& loop, const control::Controller& controller, std::string cluster,
                  std::function<Readings()> readings);
  ~PageFactsKeeper();
  PageFactsKeeper(const PageFactsKeeper&) = delete;
  PageFactsKeeper& operator=(const PageFactsKeeper&) = delete;

  void start();
  PageSource source();

 private:
  void tick();
  void sample(const kinds::Inputs& inputs);
  void note_history(const kinds::Inputs& inputs, const account::UsageSample& sample);
  people::PageFacts facts() const;

  Loop& loop_;
  const control::Controller& controller_;
  std::string cluster_;
  std::function<Readings()> readings_;
  account::UsageLedger usage_;
  account::WaitLog waits_;
  account::HealthLog health_;
  account::FleetTrend trend_;
  std::int64_t since_ns_ = 0;
  Loop::Timer timer_ = 0;
};

}  // namespace berth::app
