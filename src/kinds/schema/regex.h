// The patterns of CRDs, as Go's regexp reads them: RE2, whose time is linear in the text.
//
// Linear is still text times pattern where both are long: whoever compiles or matches says how many
// steps he has left for all of his patterns, a step being one of the pattern's for one byte. Most
// texts cost far less than they are charged. Refused when compiled: what RE2 refuses, "\\C", and
// programs of more than about 16,000 steps.
//
// Immutable, may be used from many threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/result.h"

namespace re2 {
class RE2;
}

namespace berth::sim {

class Regex {
 public:
  // Of all patterns of a definition, and of all texts of an object: each less than 100 ms.
  static constexpr std::int64_t kCompileWork = 150'000, kMatchWork = 5'000'000;

  // work: steps that may be taken, less those that were. Refused when it runs out.
  static Result<Regex> compile(std::string_view pattern, std::int64_t& work);
  static Result<Regex> compile(std::string_view pattern);
  // Somewhere in the text, unless anchored. When work runs out it is negative, and the answer false
  // means nothing.
  bool matches(std::string_view text, std::int64_t& work) const;
  bool matches(std::string_view text) const;  // with kMatchWork

 private:
  std::shared_ptr<const re2::RE2> program_;
};

}  // namespace berth::sim
