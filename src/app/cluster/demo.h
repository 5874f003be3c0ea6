// A dozen jobs of three teams on the embedded cluster: some run at once, some wait, one is too big.
#pragma once

#include <functional>
#include <memory>
#include <ostream>

#include "app/cluster/follow.h"
#include "base/loop.h"
#include "edge/kube/client.h"

namespace berth::app {

class Demo {
 public:
  // gpus: of the cluster, what the sizes are made for. done(all went well) comes once.
  Demo(kube::Client& client, Random random, int gpus, std::ostream& out,
       std::function<void(bool)> done);
  ~Demo();
  void start();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::app
