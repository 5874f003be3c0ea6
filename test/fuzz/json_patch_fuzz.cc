// JSON Patch. Input: {"target": any, "patch": [operations]}. The inputs stay as they were, and the
// result is a valid value of its own.
#include "fuzz.h"
#include "text/json.h"
#include "text/patch.h"

BERTH_FUZZ_TARGET(json_patch) {
  using namespace berth;
  auto input = text::parse_json(fuzz::text_of(data, size), {.limits = {.max_nodes = 5'000}});
  if (!input.ok()) {  // a pointer on its own
    const auto tokens = text::parse_pointer(fuzz::text_of(data, size));
    if (tokens.ok()) {
      fuzz::check(text::print_pointer(*tokens) == fuzz::text_of(data, size), "pointer round trip");
    }
    return 0;
  }
  const text::Value* target = input->root().find("target");
  const text::Value* patch = input->root().find("patch");
  if (target == nullptr || patch == nullptr) return 0;
  const std::string before = text::to_json(input->root());
  const auto result = text::apply_json_patch(
      *target, *patch, {.limits = {.max_nodes = 5'000}, .max_operations = 64});
  fuzz::check(text::to_json(input->root()) == before, "the inputs are not changed");
  if (!result.ok()) return 0;
  const std::string after = text::to_json(result->root());
  input = text::Document();  // the result owns what it shows
  fuzz::check(text::to_json(result->root()) == after, "the result stands alone");
  const auto again = text::parse_json(after);
  fuzz::check(again.ok() && text::equal(again->root(), result->root()), "round trip");
  return 0;
}
