// Leader election on a thread of its own: the lease is renewed however long the program's loop is
// busy, so that nothing which makes a decision slow costs the lead.
//
// A loop that does not move at all is another matter: after still_ns without a beat of it the lease
// is not renewed any more, and another replica may lead. leading() looks at the clock and is for
// any thread; calls come on the home loop. The rest on the home loop's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "base/loop.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/run_loop.h"
#include "edge/kube/elector.h"
#include "edge/kube/transport.h"

namespace berth::kube {

class LeaseThread {
 public:
  // Called on the thread, with its loop: the transport lives there.
  using MakeTransport = std::function<std::unique_ptr<Transport>(Loop&)>;

  LeaseThread(Loop& home, MakeTransport make, Random random, ElectorOptions options,
              ElectorCalls calls, MetricsRegistry* metrics = nullptr,
              std::int64_t still_ns = 60'000'000'000);
  ~LeaseThread();  // the lease is left to run out, unless stop() gave it back
  LeaseThread(const LeaseThread&) = delete;
  LeaseThread& operator=(const LeaseThread&) = delete;

  void start();
  void stop(std::function<void()> done);  // as Elector::stop
  bool leading() const;

 private:
  struct Kept;  // what lives on the thread
  void run(const MakeTransport& make, Random random, ElectorOptions options,
           MetricsRegistry* metrics);
  void beat();
  void at_home(std::function<void()> work);

  Loop& home_;
  RunLoop loop_;
  const ElectorCalls calls_;
  const std::int64_t still_ns_;
  std::atomic<std::int64_t> leads_until_ = INT64_MIN;  // ticks
  std::atomic<std::int64_t> moved_;                    // when the home loop last did
  Loop::Timer beat_timer_ = 0;
  Kept* kept_ = nullptr;                                       // the thread's
  std::shared_ptr<bool> here_ = std::make_shared<bool>(true);  // for work that comes home late
  std::thread thread_;
};

}  // namespace berth::kube
