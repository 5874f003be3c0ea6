// Carries out plans/react/rejected_pods.h on a cluster: refused pods are deleted, nodes that keep
// refusing are tainted and released, and both are told by events.
//
// A node counts as tainted from the moment it is decided (World::avoid), so that nothing is sent
// there while the write is under way. Nodes are not kept in memory: one is read, changed and
// written under its resourceVersion. On the loop's thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "control/notices.h"
#include "control/world.h"
#include "control/writer.h"
#include "plans/react/rejected_pods.h"
#include "text/value.h"

namespace berth::control {

// A pod whose kubelet would not start it, and did not.
bool refused_by_node(const text::Value& pod);

class Rejections {
 public:
  Rejections(Loop& loop, World& world, Writer& writer, Notices& notices, const Logger& log,
             MetricsRegistry& metrics);

  // A pod that was seen to wait got a node: somebody with the right to bind put it there, as its
  // author cannot. What of it speaks for or against a node is believed from here on.
  void pod_placed(const std::string& name, const text::Value& pod);
  // A refused pod of ours. seen: it was there before, and well. The owner that has to wait, because
  // it is refused wherever it goes, as ns/Kind/name; or "".
  std::string pod_refused(const std::string& name, const text::Value& pod, bool seen);
  void pod_gone(const std::string& name);
  void pod_started(const std::string& name, const std::string& node);
  void node_changed(const std::string& name, const text::Value* node);  // null: it is gone
  void agent_changed(const std::string& name, const text::Value* gpu_node);
  // Writes what is due. True: what may be placed where has changed.
  bool tick();
  bool believe();  // tells the World; true: something changed
  void clear();    // the lead is lost

 private:
  void remove(const react::PodToDelete& pod);
  void taint(const std::string& node, bool on, int level);
  void write_taints(const std::string& node, const text::Value& object, bool on, int level);
  std::int64_t now() const { return loop_.monotonic().ticks_ns(); }

  Loop& loop_;
  World& world_;
  Writer& writer_;
  Notices& notices_;
  const Logger& log_;
  react::RejectedPods react_;
  // UID by ns/name of pods with GPUs that were placed while we looked. Those placed before are not
  // believed: nothing that the API keeps of a pod tells who chose its node. An entry a pod.
  std::map<std::string, std::string, std::less<>> placed_;
  std::set<std::string> busy_;  // nodes being written
  Counter deleted_metric_, avoided_metric_;
  Gauge kept_metric_, spared_metric_;
  bool said_spared_ = false;
};

}  // namespace berth::control
