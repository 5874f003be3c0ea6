// How often all objects may be read anew for one answer of berth why, so that its time has a bound:
// as often as wanted where there are few, a few times where there are many.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

#include "base/result.h"

namespace berth::app {

class ReadBudget {
 public:
  static constexpr std::size_t kFew = 4'000;       // objects
  static constexpr std::size_t kAtOnce = 300'000;  // objects, in all readings of one answer
  static constexpr std::size_t kLeast = 8;         // readings

  explicit ReadBudget(std::size_t objects)
      : left_(objects <= kFew ? std::numeric_limits<std::size_t>::max()
                              : std::max(kLeast, kAtOnce / objects)) {}

  // Code::kExhausted when it is spent.
  Status take() {
    if (left_ == 0) return Error(Code::kExhausted, "enough was tried for one answer");
    --left_;
    return {};
  }

 private:
  std::size_t left_;
};

}  // namespace berth::app
