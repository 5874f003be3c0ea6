// Field selectors: what is taken prints as text that gives the same selector.
#include "fuzz.h"
#include "text/selector.h"

BERTH_FUZZ_TARGET(field_selector) {
  using namespace berth;
  const auto selector = text::parse_field_selector(fuzz::text_of(data, size));
  if (!selector.ok()) return 0;
  fuzz::check(text::validate(*selector, text::SelectorKind::kField).ok(), "valid");
  const auto again = text::parse_field_selector(text::print_field_selector(*selector));
  fuzz::check(again.ok() && *again == *selector, "printing gives the same selector");
  return 0;
}
