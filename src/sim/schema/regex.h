// Regular expressions in time linear in the text, for the patterns of CRDs.
//
// The syntax is RE2's as far as schemas use it: literals, ., classes with ranges and \d \w \s,
// anchors ^ $ \A \z, groups (also (?:...) and named), |, and * + ? {m,n} with their lazy forms
// (which match the same texts). Not known, and refused when compiled: flags, \b, \p{..},
// back-references, and a repeat of a repeat (a**), as in RE2. A program of more than 10,000 steps
// is refused. Characters are code points.
//
// Cost: O(text * program), which is much where both are long: whoever compiles or matches says how
// many steps he has left for all of his patterns. Immutable, may be used from many threads.
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
  // Of one pattern's compiling, and of one value's patterns: about 100 ms.
  static constexpr std::int64_t kCompileWork = 2'000'000, kMatchWork = 10'000'000;

  // work: steps that may be taken, less those that were. Refused when it runs out.
  static Result<Regex> compile(std::string_view pattern, std::int64_t& work);
  static Result<Regex> compile(std::string_view pattern);
  // Somewhere in the text, unless anchored. When work runs out it is negative, and the answer false
  // means nothing.
  bool matches(std::string_view text, std::int64_t& work) const;
  bool matches(std::string_view text) const;  // with kMatchWork

 private:
  friend class RegexCompiler;
  enum class Op : std::uint8_t { kClass, kAny, kSplit, kJump, kBegin, kEnd, kMatch };
  struct Step {
    Op op = Op::kMatch;
    bool negated = false;
    std::uint32_t x = 0, y = 0;  // targets; kClass: range of ranges_
  };
  struct Walk;
  void follow(std::uint32_t at, bool begin, bool end, std::vector<std::uint32_t>& list,
              Walk& walk) const;
  bool takes(const Step& step, char32_t rune) const;

  std::vector<Step> steps_;
  std::vector<std::pair<char32_t, char32_t>> ranges_;  // of each class in order, never touching
};

}  // namespace berth::sim
