// Label and node selectors, as text and as objects: what is taken is valid, and printing it gives
// the same selector again.
#include <algorithm>

#include "fuzz.h"
#include "text/json.h"
#include "text/selector.h"

namespace {

using namespace berth;

void try_text(std::string_view input, text::SelectorKind kind) {
  const auto selector = text::parse_label_selector(input, kind);
  if (!selector.ok()) return;
  fuzz::check(text::validate(*selector, kind).ok(), "what is parsed is valid");
  const auto again = text::parse_label_selector(text::print_label_selector(*selector), kind);
  fuzz::check(again.ok() && *again == *selector, "printing gives the same selector");
  const auto absent = [](std::string_view) { return std::optional<std::string_view>(); };
  const bool expected = std::all_of(selector->begin(), selector->end(), [](const auto& r) {
    return r.op == text::Operator::kNotIn || r.op == text::Operator::kDoesNotExist;
  });
  fuzz::check(text::matches(*selector, absent) == expected, "absent keys");
}

}  // namespace

BERTH_FUZZ_TARGET(selector) {
  const std::string_view input = fuzz::text_of(data, size);
  try_text(input, text::SelectorKind::kLabel);
  try_text(input, text::SelectorKind::kNode);
  const auto doc = text::parse_json(input);
  if (!doc.ok()) return 0;
  text::Decoder decoder;
  text::Selector selector;
  text::decode_label_selector(doc->root(), selector, decoder);
  fuzz::check(text::validate(selector, text::SelectorKind::kLabel).ok(),
              "what is decoded is valid");
  for (const text::Issue& issue : decoder.issues()) {
    fuzz::check(!issue.message().empty(), "an issue has a message");
  }
  text::Decoder node;
  selector.clear();
  text::decode_requirements(doc->root(), text::SelectorKind::kNode, selector, node);
  fuzz::check(text::validate(selector, text::SelectorKind::kNode).ok(), "what is decoded is valid");
  return 0;
}
