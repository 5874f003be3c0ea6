// Carries out react/sick_gpus.h on a cluster: workloads of pods whose GPU broke start over.
//
// A workload of a queue is told to the World, and its queue evicts it: it holds its quota until its
// pods are gone, and waits its turn again. Members of a gang, and single pods, are sent away; their
// owner makes them again. So are those of queues that Kueue manages: their workload stays admitted
// and keeps its quota for the pods that come. A pod that nobody would make again stays, with an
// event that says so, and so does one whose annotation berth.dev/on-gpu-failure is "keep". Pods of
// other schedulers are left alone. On the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "control/notices.h"
#include "control/world.h"
#include "react/sick_gpus.h"
#include "text/value.h"

namespace berth::control {

inline constexpr std::string_view kOnGpuFailure = "berth.dev/on-gpu-failure";

class Casualties {
 public:
  using SendAway = std::function<bool(const std::string& pod, std::string_view reason,
                                      const std::string& message)>;

  Casualties(Loop& loop, World& world, Notices& notices, const Logger& log,
             MetricsRegistry& metrics, react::SickGpuPolicy policy, SendAway send_away,
             std::function<bool()> queues_are_ours);

  void agent_changed(const std::string& node, const text::Value* gpu_node);  // null: it is gone
  // Acts on what is due. True: queues have something to decide.
  bool tick();
  void clear();  // the lead is lost

 private:
  bool ends(const std::string& pod, const objects::LivePod& live, const react::Casualty& why,
            std::set<std::string>& wanted);
  void end_gang(const std::string& gang, const std::string& message);

  Loop& loop_;
  World& world_;
  Notices& notices_;
  const Logger& log_;
  react::SickGpus react_;
  SendAway send_away_;
  std::function<bool()> queues_are_ours_;
  Counter ended_metric_;
  Gauge affected_metric_;
};

}  // namespace berth::control
