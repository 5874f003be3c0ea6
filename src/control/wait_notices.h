// Tells those who wait why: pods of what a cycle did not place, pods that cannot be read, and of
// objects that count although part of them cannot be read, which part that is.
//
// On the loop's thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "control/part.h"

namespace berth::control {

class WaitNotices final : public Part {
 public:
  explicit WaitNotices(const Common& common);

  bool changed(const Change& change) override;
  void decided(const Decided& what) override;
  // Before a cycle: what of the objects that it sees is not as it should be.
  void tell_unread(const std::vector<kinds::Note>& refused, const std::vector<kinds::Note>& unread);
  std::size_t waiting() const { return waiting_; }  // pods, as of the last cycle

 private:
  void tell(const std::string& pod, const Notices::Wait& why);
  void tell_all_of(const Decided& what, const model::Outcome& outcome);

  const Common& common_;
  GaugeFamily& unread_metric_;
  std::map<std::string, std::size_t> unread_kinds_;  // that the metric names
  std::size_t waiting_ = 0;
};

}  // namespace berth::control
