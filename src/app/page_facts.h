// What the page of a running control plane shows beside the objects: the controller's counts, how
// busy GPUs are, and who held them since the start.
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

#include "account/usage.h"
#include "app/page_server.h"
#include "base/loop.h"
#include "control/controller.h"

namespace berth::app {

class PageFactsKeeper {
 public:
  static constexpr std::int64_t kSampleNs = 15'000'000'000;
  // Per cent, by node and index; nodes that nobody measures are left out.
  using Loads = std::map<std::string, std::vector<int>, std::less<>>;

  PageFactsKeeper(Loop& loop, const control::Controller& controller, std::string cluster,
                  std::function<Loads()> loads);
  ~PageFactsKeeper();
  PageFactsKeeper(const PageFactsKeeper&) = delete;
  PageFactsKeeper& operator=(const PageFactsKeeper&) = delete;

  void start();
  PageSource source();

 private:
  void tick();
  void sample(const objects::Inputs& inputs);
  explain::PageFacts facts() const;

  Loop& loop_;
  const control::Controller& controller_;
  std::string cluster_;
  std::function<Loads()> loads_;
  account::UsageLedger usage_;
  std::int64_t since_ns_ = 0;
  Loop::Timer timer_ = 0;
};

}  // namespace berth::app
