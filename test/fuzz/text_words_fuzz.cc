// Small texts of strangers: base64, targets of requests, JSON pointers. What is taken is written
// and read again as the same.
#include <algorithm>
#include <string>

#include "fuzz.h"
#include "text/base64.h"
#include "text/http.h"
#include "text/patch.h"

namespace {

using namespace berth;

void check_base64(std::string_view input) {
  const auto round = text::base64_decode(text::base64_encode(input));
  fuzz::check(round.ok() && *round == input, "every byte comes back");
  const auto bytes = text::base64_decode(input);
  if (!bytes.ok()) return;
  fuzz::check(bytes->size() <= input.size() / 4 * 3, "no more than it can hold");
  const auto again = text::base64_decode(text::base64_encode(*bytes));
  fuzz::check(again.ok() && *again == *bytes, "bytes come back");
}

void check_target(std::string_view input) {
  const auto target = text::parse_http_target(input);
  if (!target.ok()) return;
  fuzz::check(input.size() <= 8'192, "a target is bounded");
  std::string plain = target->path.empty() ? "/" : "";
  for (const std::string& part : target->path) {
    fuzz::check(!part.empty() && part != "." && part != "..", "a path leads nowhere else");
    fuzz::check(part.find('\0') == std::string::npos, "no NUL in a path");
    plain += '/' + text::percent_encode(part);
  }
  char before = '?';
  for (const auto& [name, value] : target->query) {
    fuzz::check((name + value).find('\0') == std::string::npos, "no NUL in a query");
    plain += before + text::percent_encode(name) + '=' + text::percent_encode(value);
    before = '&';
  }
  if (plain.size() > 8'192) return;
  const auto again = text::parse_http_target(plain);
  fuzz::check(again.ok() && again->path == target->path && again->query == target->query,
              "the plain form reads back");
}

void check_pointer(std::string_view input) {
  const auto parts = text::parse_pointer(input);
  if (!parts.ok()) return;
  std::string plain;
  for (const std::string& part : *parts) {
    plain += '/';
    for (const char c : part) plain += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  const auto again = text::parse_pointer(plain);
  fuzz::check(again.ok() && *again == *parts, "a pointer reads back");
}

}  // namespace

BERTH_FUZZ_TARGET(text_words) {
  const std::string_view input = fuzz::text_of(data, size);
  check_base64(input);
  check_target(input);
  check_pointer(input);
  return 0;
}
