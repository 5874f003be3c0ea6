// Who is looked at when there is more to decide than one cycle should take.
//
// A long cycle would hold up whoever came since, and everything else that its loop does. So it is
// cut: what a namespace may use of a cycle is the same for all that want more, a namespace goes
// through its own in their order and goes on in the next cycle where it stopped. Whoever waits for
// his turn keeps the answer that he had. Work is counted, never timed: the same history gives the
// same decisions. Where everything fits into a cycle nothing of this happens.
//
// Memory: an answer for each workload that waits, while cycles are cut. On one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "model/decision.h"

namespace berth::decide {

class Turns {
 public:
  static constexpr std::int64_t kCycleWork = 50'000;  // about as many microseconds

  // As workloads are ordered: -priority, created, name, a pod by itself.
  using Key = std::tuple<std::int64_t, std::int64_t, std::string_view, bool>;
  struct Item {
    std::string_view ns;
    Key key;
    std::int64_t work = 0;  // at least, as far as is known; 0: its answer is known
  };

  // A cycle over those that wait, in order. False: all of it fits, and nobody need ask.
  bool begin(const std::vector<Item>& waiting);
  // Whether the item may cost work now. Asked in order; then in order again, with `again`, of those
  // that were told no.
  bool may(const Item& item, bool again) const;
  void paid(const Item& item, std::int64_t work);
  void postponed(const Item& item);
  void end(const model::Decision& decision);
  model::Outcome answer(const std::string& workload, bool gang) const;  // the last one

 private:
  using OwnedKey = std::tuple<std::int64_t, std::int64_t, std::string, bool>;
  struct Share {
    std::int64_t wants = 0, gets = 0, used = 0;
    OwnedKey last;  // that was looked at
    bool cut = false;
  };
  void divide();

  std::map<std::string, OwnedKey, std::less<>> stopped_at_;  // by namespace
  std::map<std::string, Share, std::less<>> shares_;         // of this cycle
  std::map<std::pair<std::string, bool>, model::Outcome> answers_;
};

}  // namespace berth::decide
