// Seeded random numbers that are the same on every machine.
//
// xoshiro256** (Blackman and Vigna), its state filled by splitmix64. Nothing here uses the standard
// library's distributions or engines' seeding, whose results differ between implementations.
//
// split(label) gives a child whose numbers depend on this generator's seed and the label alone, not
// on what was drawn before: a component that draws once more does not shift every other one's
// numbers, so a failing seed still fails after an unrelated change.
//
// Not for secrets. Not thread-safe: one generator, one owner; give each component a split.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

namespace berth {

class Random {
 public:
  explicit Random(std::uint64_t seed);

  std::uint64_t seed() const { return seed_; }
  Random split(std::string_view label) const;

  std::uint64_t next();                  // all 64 bits
  std::uint64_t below(std::uint64_t n);  // in [0, n), every value equally likely; n > 0
  std::int64_t between(std::int64_t low, std::int64_t high);  // both ends included; low <= high
  bool chance(std::uint64_t numerator, std::uint64_t denominator);
  double unit();  // in [0, 1), 53 bits

  // Every order equally likely. Moves the elements of a random-access range in place.
  template <class Range>
  void shuffle(Range& range) {
    using std::swap;
    auto first = std::begin(range);
    auto size = static_cast<std::uint64_t>(std::distance(first, std::end(range)));
    using Difference = typename std::iterator_traits<decltype(first)>::difference_type;
    for (std::uint64_t left = size; left > 1; --left) {
      swap(first[static_cast<Difference>(left - 1)], first[static_cast<Difference>(below(left))]);
    }
  }

 private:
  std::uint64_t seed_;
  std::array<std::uint64_t, 4> state_;
};

}  // namespace berth
