// Follows Jobs until they end and says each thing that happens to them once, in a line.
//
// On the loop's thread; the caller runs the loop. What is followed: the Job, its pods, and its
// Workload where it waits in a queue.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/random.h"
#include "edge/kube/client.h"

namespace berth::app {

struct FollowedJob {
  std::string name;        // "ns/name"
  std::string where;       // "n0: 0-3 . n1: 0-3", where its pods run or ran
  std::string state;       // waiting, running, succeeded, failed, gone
  std::string why;         // it waits or failed
  int pods = 0, gpus = 0;  // gpus of all pods
  std::int64_t created_ns = 0, started_ns = 0, ended_ns = 0;  // wall clock; 0: not yet
  bool ended() const { return ended_ns != 0; }
};

class JobFollower {
 public:
  // say(job, line) for each change: "waits: Fragmented: ...", "runs on n0: 0-3", "succeeded".
  using Say = std::function<void(const FollowedJob& job, const std::string& line)>;

  JobFollower(kube::Client& client, Random random, std::string ns, Say say);
  ~JobFollower();
  void follow(const std::string& name);  // in the namespace; before or after it exists
  void start();
  std::vector<FollowedJob> jobs() const;  // by name
  bool all_ended() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::app
