// Writes on their way to the API server: so many at once, bindings first, namespaces in turn, none
// without the lead.
//
// Each write is asked for leadership right before it is sent; what waits when the lead is lost is
// dropped. A write that has a key is the only one of its key, and where one failed there is none
// for a while: whoever wants it compares again what is with what should be, and asks again.
// Answers come to done(), unless the Writer is gone. On the loop's thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/round_robin.h"
#include "edge/kube/client.h"
#include "edge/kube/informer.h"

namespace berth::control {

enum class WriteClass : std::uint8_t {
  kBind,
  kAct,     // deletes, suspends, starts
  kStatus,  // of our objects
  kTell,    // events and conditions for people
  kCount,
};

struct Write {
  WriteClass kind = WriteClass::kAct;
  std::string ns;  // whose object it is; "" of the cluster's own
  std::function<kube::Call(kube::Client&, kube::Client::Done)> send;
  kube::Client::Done done = {};    // where copy takes the object, without it
  std::string key = {};            // "": any number of them
  kube::Informer* copy = nullptr;  // takes the object that is answered
};

Write write_get(kube::Resource resource, kube::Key at);
Write write_create(kube::Resource resource, const std::string& ns, std::string body);
Write write_patch(kube::Resource resource, kube::Key at, kube::PatchType type, std::string patch,
                  std::string subresource = {});
Write write_post(kube::Resource resource, kube::Key at, std::string subresource, std::string body);
Write write_remove(kube::Resource resource, kube::Key at, std::string uid);

class Writer {
 public:
  Writer(const MonotonicClock& clock, kube::Client& client, std::function<bool()> leading,
         std::size_t max_at_once, MetricsRegistry& metrics);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  bool add(Write write);  // false: its key is not free
  void clear();           // what waits is dropped and every key free; what is sent is answered

  // Neither under way, nor to wait for after one that failed.
  bool is_free(const std::string& key) const;
  bool is_under_way(const std::string& key) const { return under_way_.contains(key); }
  // For what takes more than one request. False: it is not free. Ends with release() or failed().
  bool claim(const std::string& key);
  void release(const std::string& key) { under_way_.erase(key); }
  // Soon where what we knew was old, which watches mend; later where somebody says no.
  void failed(const std::string& key, const kube::Answer& answer);
  void hold(const std::string& key, std::int64_t until);
  // Forgets waits that are over. True: what was old may be known by now, so compare again.
  bool tick(std::int64_t now);

  // Of what is only for people more is not taken on; everything else is at most a write an object.
  static constexpr std::size_t kMostTold = 1'000;
  bool may_tell() const { return waiting(WriteClass::kTell) < kMostTold; }

  std::size_t waiting(WriteClass kind) const { return queues_[index(kind)].size(); }
  std::size_t in_flight() const { return calls_.size(); }
  std::size_t most_in_flight() const { return max_at_once_; }
  std::uint64_t failures() const { return failed_; }
  // How long the server takes to answer a write, over the last few; 0: not known yet.
  std::int64_t answer_ns() const { return answer_ns_; }
  // Answers in a row that were none: the server is away.
  int silent() const { return silent_; }

 private:
  struct Hold {
    std::int64_t until = 0;
    bool soon = false;
  };
  static constexpr std::size_t kKinds = static_cast<std::size_t>(WriteClass::kCount);
  static std::size_t index(WriteClass kind) { return static_cast<std::size_t>(kind); }
  void pump();
  void start(std::size_t kind, Write write);
  void answered(std::size_t kind, std::int64_t took, const kube::Answer& answer);

  const MonotonicClock& clock_;
  kube::Client& client_;
  std::function<bool()> leading_;
  std::size_t max_at_once_;
  std::array<RoundRobin<Write>, kKinds> queues_;
  std::array<std::size_t, kKinds> sent_now_{};
  std::array<Counter, kKinds> sent_;
  Counter failures_;
  std::set<kube::Call> calls_;
  std::set<std::string> under_way_;    // keys
  std::map<std::string, Hold> holds_;  // by key
  std::uint64_t reign_ = 0;            // an answer frees no key that was taken after clear()
  std::uint64_t failed_ = 0;
  std::int64_t answer_ns_ = 0;
  int silent_ = 0;
  bool pumping_ = false;
};

}  // namespace berth::control
