// Regular expressions in time linear in the text, for the patterns of CRDs.
//
// The syntax is RE2's as far as schemas use it: literals, ., classes with ranges and \d \w \s,
// anchors ^ $ \A \z, groups (also (?:...) and named), |, and * + ? {m,n} with their lazy forms
// (which match the same texts). Not known, and refused when compiled: flags, \b, \p{..},
// back-references, and a repeat of a repeat (a**), as in RE2. A program of more than 10,000 steps
// is refused. Characters are code points.
//
// Cost: O(text * program); immutable, may be used from many threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace berth::sim {

class Regex {
 public:
  static Result<Regex> compile(std::string_view pattern);
  bool matches(std::string_view text) const;  // somewhere in the text, unless anchored
  // The same for no more steps than work says, which is taken from it; nothing: it took more.
  std::optional<bool> matches(std::string_view text, std::size_t& work) const;

 private:
  friend class RegexCompiler;
  enum class Op : std::uint8_t { kClass, kAny, kSplit, kJump, kBegin, kEnd, kMatch };
  struct Step {
    Op op = Op::kMatch;
    bool negated = false;
    std::uint32_t x = 0, y = 0;  // targets; kClass: range of ranges_
  };
  struct Walk;  // what a match keeps from character to character
  void follow(std::uint32_t at, bool begin, bool end, std::vector<std::uint32_t>& list,
              Walk& walk) const;

  std::vector<Step> steps_;
  std::vector<std::pair<char32_t, char32_t>> ranges_;
};

}  // namespace berth::sim
