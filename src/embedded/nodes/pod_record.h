// A pod on a simulated node: what is kept of it, and its status as a kubelet writes it.
//
// Small on purpose: ten thousand of them live in one process, and the informer keeps keys alone.
// Inside this folder; nodes_pods.cc moves them from stage to stage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/loop.h"
#include "edge/kube/client.h"
#include "embedded/nodes/machine.h"
#include "text/value.h"

namespace berth::sim {

enum class PodStage : std::uint8_t {
  kWaiting,   // bound to us, not admitted: its kubelet is away or not ready
  kStarting,  // admitted, its containers are being made
  kRunning,
  kBackoff,   // a container ended and starts again later
  kStopping,  // deleted, its containers still run
  kEnded,     // Succeeded, Failed or refused
};

struct PodContainer {
  std::string name, image;
  bool init = false;
  bool sidecar = false;          // an init container with restartPolicy Always
  std::string requests, limits;  // that its node gave it, as JSON; empty: none
};

// A pod that asks for other amounts while it runs (pods/resize).
struct PodResize {
  std::int64_t generation = 0;  // of the spec that was looked at last
  bool asked = false;           // ever: only then does the status say what containers have
  std::string reason, message;  // Deferred or Infeasible; empty: it has what it asks for
  std::int64_t since = 0;       // wall time of the refusal
  Needs needs;                  // of what is not granted
  std::vector<PodContainer> containers;
};

// What the object says, read once.
struct PodFacts {
  std::vector<PodContainer> containers;
  Needs needs;
  bool restarts_always = true, restarts_on_failure = false;
  bool has_scheduled_condition = false;
  std::int64_t run_ns = 0;  // 0: until deleted
  std::int64_t ready_ns = 0, stop_ns = 0, extra_start_ns = 0;
  std::int64_t deadline_ns = 0;  // activeDeadlineSeconds; 0: none
  std::vector<int> exit_codes;   // of the runs, the last one for all later ones
  int utilization = 90;          // of its GPUs, in percent
};

struct PodRecord {
  kube::Key key;
  std::string uid;
  int node = -1;
  PodFacts facts;
  Held held;
  PodStage stage = PodStage::kWaiting;
  bool ready = false;
  bool tracked = false;       // has finalizers: its last status counts for somebody
  bool deleting = false;      // has a deletionTimestamp
  bool grace_over = false;    // and a grace period of 0: only finalizers keep it
  bool told_running = false;  // the API has seen it run
  int restarts = 0;
  int exit_code = 0;
  PodResize resize;
  int ip_slot = -1;
  std::int64_t grace_ns = 0;
  std::string reason, message;  // of the pod, when it ended early

  // Wall time, for the status; 0: not yet.
  std::int64_t admitted_at = 0, started_at = 0, ready_at = 0, finished_at = 0;
  // Ticks of what comes next; 0: nothing.
  std::int64_t start_due = 0, run_due = 0, ready_due = 0, stop_due = 0, deadline_due = 0;
  Loop::Timer timer = 0;

  bool write_wanted = false, writing = false;
  bool delete_wanted = false, remove_sent = false;
  int write_failures = 0;

  bool uses_machine() const { return held.any; }
};

// The facts of a Pod object. Wrong annotations count as not there; their keys are named in wrong.
PodFacts read_pod_facts(const text::Value& pod, std::int64_t default_run_ns,
                        std::vector<std::string>& wrong);

// What the spec of a running pod asks for, whatever its status says that it has.
void read_wanted(const text::Value& pod, Needs& needs, std::vector<PodContainer>& containers);

// Fills the record's stage and times from the status of a pod that this node knew before.
void restore_pod(const text::Value& pod, std::int64_t wall_now, std::int64_t ticks_now,
                 PodRecord& out);

// A strategic merge patch of pods/status, with the UID as its precondition.
std::string pod_status_patch(const PodRecord& pod, const std::string& host_ip,
                             const std::string& pod_ip);

int exit_code_of_run(const PodFacts& facts, int run);  // 0 is the first

}  // namespace berth::sim
