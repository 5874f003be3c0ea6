// Text for terminals: valid UTF-8 without control characters, stable when escaped again.
#include <algorithm>

#include "base/utf8.h"
#include "fuzz.h"
#include "text/escape.h"

BERTH_FUZZ_TARGET(escape) {
  using namespace berth;
  const std::string_view input = fuzz::text_of(data, size);
  const std::string safe = text::terminal_safe(input);
  fuzz::check(is_utf8(safe), "UTF-8");
  fuzz::check(std::none_of(safe.begin(), safe.end(),
                           [](char c) {
                             const auto byte = static_cast<unsigned char>(c);
                             return byte < 0x20 || byte == 0x7f;
                           }),
              "no control characters");
  fuzz::check(text::terminal_safe(safe) == safe, "twice is once");
  const std::size_t width = size == 0 ? 0 : data[0] % 40;
  std::string_view rest;
  const std::string cut = text::elide_middle(safe, width);
  std::size_t characters = 0;
  for (rest = cut; !rest.empty(); rest.remove_prefix(decode_utf8(rest).size)) ++characters;
  fuzz::check(characters <= width && is_utf8(cut), "at most so wide");
  return 0;
}
