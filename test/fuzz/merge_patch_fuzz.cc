// Merge patch. Input: [target, patch]. Applying it twice changes no more than applying it once, and
// the result has no null the patch put there.
#include "fuzz.h"
#include "text/json.h"
#include "text/patch.h"

BERTH_FUZZ_TARGET(merge_patch) {
  using namespace berth;
  const auto input = text::parse_json(fuzz::text_of(data, size), {.limits = {.max_nodes = 5'000}});
  if (!input.ok() || input->root().size() < 2 || !input->root().is_array()) return 0;
  const text::Value& target = input->root().items()[0];
  const text::Value& patch = input->root().items()[1];
  const auto once = text::apply_merge_patch(target, patch);
  fuzz::check(once.ok() || once.error().code() == Code::kExhausted, "merging cannot fail");
  if (!once.ok()) return 0;
  const auto twice = text::apply_merge_patch(once->root(), patch);
  fuzz::check(twice.ok() && text::equal(once->root(), twice->root()), "twice is once");
  const auto again = text::parse_json(text::to_json(once->root()));
  fuzz::check(again.ok() && text::equal(again->root(), once->root()), "round trip");
  if (!patch.is_object()) {
    fuzz::check(text::equal(once->root(), patch), "anything but an object replaces");
    return 0;
  }
  for (const text::Member& member : patch.members()) {
    const bool kept = once->root().find(member.key) != nullptr;
    fuzz::check(kept != member.value.is_null(), "null removes, the rest stays");
  }
  return 0;
}
