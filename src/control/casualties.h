// Workloads that lose what they run on start over: a GPU broke under a pod
// (plans/react/sick_gpus.h), or a cloud takes the node back and says so by a taint
// (schedule::is_notice_taint).
//
// A workload of a queue is told to the World, and its queue evicts it: it holds its quota until its
// pods are gone, and waits its turn again. Members of a gang, and single pods, are sent away; their
// owner makes them again. So are those of queues that Kueue manages: their workload stays admitted
// and keeps its quota for the pods that come. A pod that nobody would make again stays, with an
// event that says so. Pods of other schedulers are left alone.
//
// A GPU that broke gives a grace and leaves a pod alone whose annotation berth.dev/on-gpu-failure
// is "keep". A notice is minutes long, and all ranks of a gang have to save together: they are told
// in the same second, wherever they run. Of a Job that is no gang its pods there are, and come
// again within its quota. It is for work that ends: replicas of a service are left to whoever
// drains the node, and pods that tolerate the taint stay.
//
// On the loop's thread. A tick costs the pods of nodes in trouble.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "control/notices.h"
#include "control/world.h"
#include "plans/react/sick_gpus.h"
#include "text/value.h"

namespace berth::control {

inline constexpr std::string_view kOnGpuFailure = "berth.dev/on-gpu-failure";

class Casualties {
 public:
  using SendAway = std::function<bool(const std::string& pod, std::string_view reason,
                                      const std::string& message)>;
  struct Policy {
    react::SickGpuPolicy gpus;
    bool heed_notices = true;
  };

  Casualties(Loop& loop, World& world, Notices& notices, const Logger& log,
             MetricsRegistry& metrics, Policy policy, SendAway send_away,
             std::function<bool()> queues_are_ours);

  void agent_changed(const std::string& node, const text::Value* gpu_node);  // null: it is gone
  // True: a notice came, and is due at once.
  bool node_changed(const std::string& node, const text::Value* object);
  // Acts on what is due. True: queues have something to decide.
  bool tick();
  void clear();  // the lead is lost

 private:
  struct Victim {
    std::string pod;
    model::Loss why;
    std::string event;  // its reason, for a pod that nobody would make again
    bool bounded;       // counts against what may be ended in a minute
  };
  std::vector<Victim> on_broken_gpus();
  void add_on_leaving_nodes(std::vector<Victim>& out) const;
  bool ends(const Victim& victim, const kinds::LivePod& live, std::set<std::string>& wanted);
  bool end_gang(const std::string& gang, const model::Loss& why);  // false: nobody was told

  Loop& loop_;
  World& world_;
  Notices& notices_;
  const Logger& log_;
  react::SickGpus react_;
  bool heed_notices_;
  std::map<std::string, model::Taint> leaving_;  // nodes with a notice
  SendAway send_away_;
  std::function<bool()> queues_are_ours_;
  Counter ended_metric_, reclaimed_metric_;
  Gauge affected_metric_;
};

}  // namespace berth::control
