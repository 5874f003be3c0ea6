// The agent's side of the API server: what it says about its node, and what it reads of it.
//
// Reads two things and no more: its own Node, and the pods bound to it. Writes labels (server-side
// apply, one manager for what the PCI bus says and one for what the driver says, so that a silent
// driver takes no label away), conditions, the GpuNode object and its status, Events; and takes the
// startup taint away. Each is written when it differs from what was written or from what is there,
// one call at a time, again with back-off. An API server that is away costs nothing else.
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
#include "base/metrics.h"
#include "base/random.h"
#include "edge/kube/client.h"
#include "kinds/gpu_node.h"
#include "node/allocate/ledger.h"

namespace berth::agent {

inline constexpr const char* kStartupTaint = "berth.dev/agent-not-ready";

struct NodeCondition {
  std::string type;    // "GpuReady"
  std::string status;  // "True", "False", "Unknown"
  std::string reason, message;
  friend bool operator==(const NodeCondition&, const NodeCondition&) = default;
};

class NodeLink {
 public:
  // changed: the Node or its pods differ from before. Never inside a call.
  NodeLink(kube::Client& client, Random random, std::string node, std::function<void()> changed,
           const Logger& log, MetricsRegistry& metrics);
  ~NodeLink();

  // What is to be true. An empty map of labels, or no conditions: nothing is said.
  void want_host_labels(const std::map<std::string, std::string>& labels);
  void want_gpu_labels(const std::map<std::string, std::string>& labels);
  void want_mig_labels(const std::map<std::string, std::string>& labels);  // none: taken back
  void want_conditions(const std::vector<NodeCondition>& conditions);
  void want_gpu_node(const kinds::GpuNode& node);
  void want_no_startup_taint();
  void tell(bool warning, const std::string& reason, const std::string& note);

  bool heard() const;                                              // the Node was seen
  const std::map<std::string, std::int64_t>& allocatable() const;  // extended resources of the Node
  const std::map<std::string, std::string>& labels() const;        // of the Node, all
  const std::map<std::string, allocate::NodePod>& pods() const;    // by uid

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::agent
