// An amount of a resource in a quota: a number, or unlimited.
//
// Unlimited absorbs what is added or taken; unlimited less unlimited is nothing; a number less
// unlimited is less than any number. Numbers saturate: sums of quotas never wrap.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

namespace berth::admit {

class Amount {
 public:
  constexpr Amount() = default;
  constexpr Amount(std::int64_t value) : value_(value) {}  // NOLINT: numbers are amounts
  static constexpr Amount unlimited() { return Amount(INT64_MAX); }

  constexpr bool is_unlimited() const { return value_ == INT64_MAX; }
  constexpr std::int64_t value() const { return value_; }

  friend constexpr Amount operator+(Amount a, Amount b) {
    if (a.is_unlimited() || b.is_unlimited()) return unlimited();
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(a.value_, b.value_, &sum)) return std::min(sum, INT64_MAX);
    return a.value_ > 0 ? INT64_MAX : INT64_MIN;
  }
  friend constexpr Amount operator-(Amount a, Amount b) {
    if (a.is_unlimited()) return b.is_unlimited() ? Amount(0) : unlimited();
    if (b.is_unlimited()) return INT64_MIN;
    std::int64_t left = 0;
    if (!__builtin_sub_overflow(a.value_, b.value_, &left)) return left;
    return a.value_ > b.value_ ? INT64_MAX : INT64_MIN;
  }
  Amount& operator+=(Amount other) { return *this = *this + other; }
  Amount& operator-=(Amount other) { return *this = *this - other; }
  friend constexpr auto operator<=>(const Amount&, const Amount&) = default;

 private:
  std::int64_t value_ = 0;
};

}  // namespace berth::admit
