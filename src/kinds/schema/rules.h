// Small words for the rules of built-in kinds; only for validate_*.cc.
#pragma once

#include <functional>
#include <string>

#include "kinds/schema/node.h"
#include "text/editor.h"

namespace berth::sim {

// Walks object[key] as a list, the path at each item.
inline void each_item(const text::Value& object, std::string_view key, Path& path,
                      const std::function<void(const text::Value&)>& rule) {
  const text::Value& list = object[key];
  if (list.size() == 0) return;
  const Path::Mark outer = path.mark();
  path.child(key);
  for (std::size_t i = 0; const text::Value& item : list.items()) {
    const Path::Mark inner = path.mark();
    path.index(i++);
    rule(item);
    path.back(inner);
  }
  path.back(outer);
}

// Runs a rule at object[key] when it is there.
inline void at_field(const text::Value& object, std::string_view key, Path& path,
                     const std::function<void(const text::Value&)>& rule) {
  const text::Value* member = object.find(key);
  if (member == nullptr || member->is_null()) return;
  const Path::Mark mark = path.mark();
  path.child(key);
  rule(*member);
  path.back(mark);
}

void check_not_negative(const text::Value& object, std::string_view key, Path& path, Causes& out);
void check_range(const text::Value& object, std::string_view key, std::int64_t low,
                 std::int64_t high, Path& path, Causes& out);
void check_label_selector(const text::Value& selector, Path& path, Causes& out);
bool selector_matches(const text::Value& selector, const text::Value& labels);
Cause not_found(std::string field, std::string_view value);
// {metadata, spec} of a pod template under path.
void validate_template(const text::Value& pod_template, Path& path, Causes& out);
// Invalid "field is immutable" when the two differ.
void check_immutable(const text::Value& live, const text::Value& object, std::string_view key,
                     Path& path, Causes& out);
void validate_resource_list(const text::Value& list, Path& path, Causes& out);
void rules_of_autoscaler(const text::Value& spec, Path& path, Causes& out);  // path: of spec
void rules_of_flow(const Kind& kind, const text::Value& object, Path& path, Causes& out);
void rules_of_signing_request(const text::Value& object, Path& path, Causes& out);
void signing_request_update(const text::Value& live, const text::Value& object,
                            std::string_view subresource, Causes& out);
// What the endpoint lets an update change.
text::Value signing_request_for_update(const text::Value& live, const text::Value& object,
                                       std::string_view subresource, text::Editor& edit);

}  // namespace berth::sim
