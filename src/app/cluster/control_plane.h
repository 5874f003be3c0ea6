// A controller and the page over what it knows: the same two against a cluster (`berth controller`)
// and within `berth up`.
//
// On the loop's thread; nothing of it outlives it. The page ends before the controller.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/page/page_facts.h"
#include "app/page/page_server.h"
#include "control/controller.h"

namespace berth::app {

struct ControlPlaneOptions {
  control::ControllerOptions control;
  // Its policies and where objects are fetched from are the controller's; absent: no page.
  std::optional<PageOptions> page;
  bool page_or_any = false;  // another port where that one is taken
  std::string cluster;       // as the page calls it
  std::function<PageFactsKeeper::Readings()> readings;
  std::function<bool()> leading;
  control::DecisionLog* decisions = nullptr;
  control::WorldLog* inputs = nullptr;
};

class ControlPlane {
 public:
  ControlPlane(Loop& loop, kube::Client& client, const Random& random, ControlPlaneOptions options,
               const Logger& log, MetricsRegistry& metrics);
  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  // What it returns is the page's trouble; the controller runs on.
  Status start();

  control::Controller& controller() { return *controller_; }
  const control::Controller& controller() const { return *controller_; }
  PageServer* page() const { return page_.get(); }  // null: none

 private:
  Loop& loop_;
  kube::Client& client_;
  ControlPlaneOptions options_;
  MetricsRegistry& metrics_;
  std::unique_ptr<control::Controller> controller_;
  std::unique_ptr<PageFactsKeeper> facts_;
  std::unique_ptr<PageServer> page_;
};

}  // namespace berth::app
