// Puts pods on nodes and sends them away: the writes behind World's beliefs, and what comes of
// them.
//
// A binding is written once. Without a clear answer the pod is read again until the API says what
// became of it; meanwhile it counts as bound where we wanted it. A pod is written when nobody has
// to leave its node first and its scheduling gates are gone, members of a gang when this holds for
// all. On the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "control/part.h"
#include "edge/kube/informer.h"

namespace berth::control {

class Binder final : public Part {
 public:
  Binder(const Common& common, kube::Informer& pods, std::int64_t bind_timeout_ns,
         std::function<void()> want_cycle);

  bool changed(const Change& change) override;
  bool tick(std::int64_t now) override;  // doubts, and what waits for too long
  void clear() override;

  // What is decided of pods of no queue.
  void carry_out(const model::Decision& decision);
  // Believed at once, written when its node is clear.
  void place(const std::string& pod, Assumed where);
  // Writes what waited and need not any more.
  void flush();
  // Deletes the pod, telling why by a condition. False: it is not there, or on its way already.
  bool send_away(const std::string& pod, std::string_view reason, const std::string& message);
  // The pod did not get where we sent it: it, or its whole gang, waits longer each time.
  void back_off(const std::string& name);

  std::uint64_t bound() const { return bound_; }
  std::uint64_t evicted() const { return evicted_; }
  int failures_of(const std::string& name) const;

 private:
  struct Trouble {
    int count = 0;
    std::int64_t last = 0;
  };
  struct Refused {  // to be deleted, by the API server
    std::string uid;
    int count = 0;
    std::int64_t until = 0;  // not asked again before
  };
  bool not_yet(const std::string& pod, const Assumed& where) const;
  void write(const std::string& pod);
  void answered(const std::string& pod, const std::string& uid, const kube::Answer& answer);
  void look_again(const std::string& pod, const std::string& uid);
  void remove(const std::string& pod, const std::string& uid);
  void count_eviction();
  void refused(const std::string& pod, const std::string& uid, const kube::Answer& answer);
  void stays(const std::string& pod);

  const Common& common_;
  World& world_;
  kube::Informer& pods_;
  const std::int64_t bind_timeout_ns_;
  std::function<void()> want_cycle_;
  Counter bound_metric_, evicted_metric_, lost_metric_, refused_metric_;
  std::map<std::string, Trouble> troubles_;  // by gang or pod
  std::map<std::string, Refused> refused_;   // by pod
  std::uint64_t bound_ = 0, evicted_ = 0;
};

}  // namespace berth::control
