// Writes on their way to the API server: so many at once, bindings first, namespaces in turn, none
// without the lead.
//
// Each write is asked for leadership right before it is sent; what waits when the lead is lost is
// dropped. Answers come to done(), unless the Writer is gone. On the loop's thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <string_view>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/round_robin.h"
#include "edge/kube/client.h"

namespace berth::control {

enum class WriteClass : std::uint8_t {
  kBind,
  kAct,     // deletes, suspends, starts
  kStatus,  // of our objects
  kTell,    // events and conditions for people
  kCount,
};

class Writer {
 public:
  using Done = kube::Client::Done;
  using Send = std::function<kube::Call(kube::Client&, Done)>;

  Writer(const MonotonicClock& clock, kube::Client& client, std::function<bool()> leading,
         std::size_t max_at_once, MetricsRegistry& metrics);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // ns: whose object it is; "" of the cluster's own.
  void add(WriteClass kind, std::string_view ns, Send send, Done done);
  void clear();  // what waits is dropped; what is sent is answered

  // Of what is only for people more is not taken on; everything else is at most a write an object.
  static constexpr std::size_t kMostTold = 1'000;
  bool may_tell() const { return waiting(WriteClass::kTell) < kMostTold; }

  std::size_t waiting() const;
  std::size_t waiting(WriteClass kind) const { return queues_[index(kind)].size(); }
  std::size_t in_flight() const { return calls_.size(); }
  std::size_t most_in_flight() const { return max_at_once_; }
  std::uint64_t failed() const { return failed_; }
  // How long the server takes to answer a write, over the last few; 0: not known yet.
  std::int64_t answer_ns() const { return answer_ns_; }
  // Answers in a row that were none: the server is away.
  int silent() const { return silent_; }

 private:
  struct Write {
    Send send;
    Done done;
  };
  static constexpr std::size_t kKinds = static_cast<std::size_t>(WriteClass::kCount);
  static std::size_t index(WriteClass kind) { return static_cast<std::size_t>(kind); }
  void pump();
  void start(std::size_t kind, Write write);

  const MonotonicClock& clock_;
  kube::Client& client_;
  std::function<bool()> leading_;
  std::size_t max_at_once_;
  std::array<RoundRobin<Write>, kKinds> queues_;
  std::array<std::size_t, kKinds> under_way_{};
  std::array<Counter, kKinds> sent_;
  Counter failures_;
  std::set<kube::Call> calls_;
  std::uint64_t failed_ = 0;
  std::int64_t answer_ns_ = 0;
  int silent_ = 0;
  bool pumping_ = false;
};

}  // namespace berth::control
