// The JSON reader: what it takes Boost.JSON takes, and the other way round, but for duplicate keys,
// our bounds and exponents Boost cannot hold; what it prints it reads again as the same value, and
// what it reads from a copy it reads in place.
#include <boost/json.hpp>

#include "fuzz.h"
#include "text/json.h"

BERTH_FUZZ_TARGET(json) {
  using namespace berth;
  const std::string_view input = fuzz::text_of(data, size);
  const auto ours = text::parse_json(input);
  const bool excused = !ours.ok() && (ours.error().code() == Code::kExhausted ||
                                      ours.error().message().find("twice") != std::string::npos);
  boost::json::error_code failed;
  boost::json::parse_options options;
  options.max_depth = 1000;
  boost::json::parse({input.data(), input.size()}, failed, {}, options);
  if (!excused && failed != boost::json::error::exponent_overflow) {
    fuzz::check(ours.ok() == !failed, "agreement with Boost.JSON");
  }
  std::string bytes(input);
  const auto placed = text::parse_json_in_place(bytes);
  fuzz::check(placed.ok() == ours.ok(), "in place the same is taken");
  if (!ours.ok()) {
    fuzz::check(placed.error().message() == ours.error().message(), "the same error in place");
    fuzz::check(ours.error().message().starts_with("line "), "an error has a place");
    return 0;
  }
  fuzz::check(text::equal(placed->root(), ours->root()), "the same value in place");
  const auto again = text::parse_json(text::to_json(ours->root()));
  fuzz::check(again.ok() && text::equal(again->root(), ours->root()), "round trip");
  return 0;
}
