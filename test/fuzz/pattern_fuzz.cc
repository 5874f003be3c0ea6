// Patterns of CRDs: a pattern and a text, cut at the first NUL. Whatever they are, compiling and
// matching end when their work is spent.
#include <algorithm>
#include <optional>
#include <string>

#include "fuzz.h"
#include "kinds/schema/regex.h"

namespace {

using namespace berth;

// nullopt: refused, or not looked at to the end.
std::optional<bool> found(const std::string& pattern, std::string_view text) {
  constexpr std::int64_t kMostSteps = 16'384;
  std::int64_t work = 100'000;
  const auto regex = sim::Regex::compile(pattern, work);
  fuzz::check(work >= -2 * kMostSteps, "compiling ends");
  if (!regex.ok()) {
    fuzz::check(!regex.error().to_string().empty(), "refused with a reason");
    return std::nullopt;
  }
  work = 100'000;
  const bool matches = regex->matches(text, work);
  if (work < 0) return std::nullopt;
  return matches;
}

}  // namespace

BERTH_FUZZ_TARGET(pattern) {
  const std::string_view input = fuzz::text_of(data, size);
  const std::size_t cut = std::min(input.find('\0'), input.size());
  const std::string pattern(input.substr(0, cut));
  const std::string_view text = input.substr(std::min(cut + 1, input.size()));
  const auto once = found(pattern, text);
  if (!once) return 0;
  const auto group = found("(?:" + pattern + ")", text);
  fuzz::check(!group || *group == *once, "a group changes nothing");
  const auto either = found("(?:" + pattern + ")|(?:" + pattern + ")", text);
  fuzz::check(!either || *either == *once, "nor does a choice of the same");
  return 0;
}
