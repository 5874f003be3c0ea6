// Patterns of CRDs: a pattern and a text, cut at the first NUL. Whatever they are, compiling and
// matching end soon.
#include <algorithm>
#include <string>

#include "fuzz.h"
#include "sim/schema/regex.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  const std::string_view input = fuzz::text_of(data, size);
  const std::size_t cut = std::min(input.find('\0'), input.size());
  const std::string pattern(input.substr(0, cut));
  const std::string_view text = input.substr(std::min(cut + 1, input.size()));
  const auto regex = sim::Regex::compile(pattern);
  if (!regex.ok()) {
    fuzz::check(!regex.error().to_string().empty(), "refused with a reason");
    return 0;
  }
  const auto found = regex->matches(text);
  fuzz::check(found == regex->matches(text), "asked twice, the same");
  const auto group = sim::Regex::compile("(?:" + pattern + ")");
  if (group.ok()) fuzz::check(found == group->matches(text), "a group changes nothing");
  const auto either = sim::Regex::compile("(?:" + pattern + ")|(?:" + pattern + ")");
  if (either.ok()) fuzz::check(found == either->matches(text), "nor does a choice of the same");
  return 0;
}
