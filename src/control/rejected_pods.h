// Carries out plans/react/rejected_pods.h on a cluster: refused pods are deleted, nodes that keep
// refusing are tainted and released, and both are told by events.
//
// A node counts as tainted from the moment it is decided (World::avoid), so that nothing is sent
// there while the write is under way. Nodes are not kept in memory: one is read, changed and
// written under its resourceVersion. On the loop's thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "control/binder.h"
#include "control/part.h"
#include "plans/react/rejected_pods.h"

namespace berth::control {

// A pod whose kubelet would not start it, and did not.
bool refused_by_node(const text::Value& pod);

class RejectedPods final : public Part {
 public:
  RejectedPods(const Common& common, Binder& binder);

  bool changed(const Change& change) override;
  bool tick(std::int64_t now) override;
  void clear() override;

 private:
  bool pod_changed(const Change& change);
  // A pod that was seen to wait got a node: somebody with the right to bind put it there, as its
  // author cannot. What of it speaks for or against a node is believed from here on.
  void pod_placed(const std::string& name, const text::Value& pod);
  // A refused pod of ours. seen: it was there before, and well.
  void pod_refused(const std::string& name, const text::Value& pod, bool seen);
  void node_changed(const std::string& name, const text::Value* node);  // null: it is gone
  bool believe();  // tells the World; true: something changed
  void remove(const react::PodToDelete& pod);
  void taint(const std::string& node, bool on, int level);
  void write_taints(const std::string& node, const text::Value& object, bool on, int level);

  const Common& common_;
  Binder& binder_;
  react::RejectedPods react_;
  // UID by ns/name of pods with GPUs that were placed while we looked. Those placed before are not
  // believed: nothing that the API keeps of a pod tells who chose its node. An entry a pod.
  std::map<std::string, std::string, std::less<>> placed_;
  Counter deleted_metric_, avoided_metric_;
  Gauge kept_metric_, spared_metric_;
  bool said_spared_ = false;
};

}  // namespace berth::control
