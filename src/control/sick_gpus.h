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
#include <map>
#include <set>
#include <string>
#include <vector>

#include "control/binder.h"
#include "control/part.h"
#include "plans/react/sick_gpus.h"

namespace berth::control {

inline constexpr std::string_view kOnGpuFailure = "berth.dev/on-gpu-failure";

class SickGpus final : public Part {
 public:
  struct Policy {
    react::SickGpuPolicy gpus;
    bool heed_notices = true;
  };

  SickGpus(const Common& common, Binder& binder, Policy policy);

  bool changed(const Change& change) override;  // a notice is acted on at once
  bool tick(std::int64_t now) override;
  void clear() override { react_.keep({}); }

 private:
  struct Victim {
    std::string pod;
    model::Loss why;
    std::string event;  // its reason, for a pod that nobody would make again
    bool bounded;       // counts against what may be ended in a minute
  };
  bool is_new_notice(const Change& node);
  std::vector<Victim> on_broken_gpus();
  void add_on_leaving_nodes(std::vector<Victim>& out) const;
  bool ends(const Victim& victim, const kinds::LivePod& live, std::set<std::string>& wanted);
  bool end_gang(const std::string& gang, const model::Loss& why);  // false: nobody was told

  const Common& common_;
  Binder& binder_;
  react::SickGpus react_;
  bool heed_notices_;
  std::map<std::string, model::Taint> leaving_;  // nodes with a notice
  Counter ended_metric_, reclaimed_metric_;
  Gauge affected_metric_;
};

}  // namespace berth::control
