// Leader election by a Lease: at most one of those who ask leads at any time.
//
// Expiry is judged by our own monotonic clock since the record last changed before our eyes, never
// by timestamps in it: clocks of machines differ. Who leads stops leading `renew_ns` after the
// sending of its last renewal that succeeded, which is before anybody else may take the lease
// (`lease_ns` after they saw it). leading() itself looks at the clock, so that a thread which was
// held up does not act on an old truth; ask it before every write. After it was lost the Elector
// goes on asking: started() may come again. A process that cannot stop what it is doing at once
// should end instead.
//
// The lease is written with PUT and its resourceVersion; fields of others in it are kept. Calls are
// urgent: our own rate limit does not hold them back. On the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "base/random.h"
#include "edge/kube/client.h"

namespace berth::kube {

struct LeaseRecord {
  std::string holder;
  std::int64_t duration_s = 0;
  std::int64_t transitions = 0;
  std::string acquire_time, renew_time;
  friend bool operator==(const LeaseRecord&, const LeaseRecord&) = default;
};
LeaseRecord read_lease(const text::Value& lease);

// Whether somebody holds a lease, by our own clock. Also for leases that are not ours to take:
// give it what a GET or an informer brings, however often.
class LeaseJudge {
 public:
  void observe(const LeaseRecord& record, std::int64_t ticks) {
    if (seen_ && record == record_) return;
    record_ = record;
    changed_ = ticks;
    seen_ = true;
  }
  void forget() { seen_ = false; }  // it was deleted
  bool live(std::int64_t ticks) const {
    return seen_ && !record_.holder.empty() &&
           ticks < changed_ + record_.duration_s * 1'000'000'000;
  }
  const LeaseRecord& record() const { return record_; }

 private:
  LeaseRecord record_;
  std::int64_t changed_ = 0;
  bool seen_ = false;
};

struct ElectorOptions {
  std::string ns = "default", name = "berth";
  std::string identity;  // unique among those who ask
  std::int64_t lease_ns = 15'000'000'000;
  std::int64_t renew_ns = 10'000'000'000;  // less than lease_ns
  std::int64_t retry_ns = 2'000'000'000;   // less than renew_ns
};

struct ElectorCalls {
  std::function<void()> started;                            // leading now
  std::function<void(const std::string& why)> stopped;      // leading no more; not after stop()
  std::function<void(const std::string& holder)> observed;  // another holder than before
  std::function<void(std::int64_t until)> renewed = {};     // ours until these ticks, as things are
  std::function<bool()> alive = {};  // false: the lease is neither taken nor renewed for now
};

class Elector {
 public:
  Elector(Client& client, Random random, ElectorOptions options, ElectorCalls calls,
          MetricsRegistry* metrics = nullptr);
  ~Elector();
  Elector(const Elector&) = delete;
  Elector& operator=(const Elector&) = delete;

  void start();
  // Stops leading at once and gives the lease back, if it is ours; then calls done, also when that
  // failed.
  void stop(std::function<void()> done);
  bool leading() const;
  const std::string& holder() const;  // as last seen; may be us

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// A MicroTime of the API: always six digits after the point.
std::string micro_time(std::int64_t wall_ns);

}  // namespace berth::kube
