// Events have two forms, core v1 and events.k8s.io/v1; one is stored (core), both are served.
#pragma once

#include <string>
#include <string_view>

#include "text/editor.h"

namespace berth::sim::api {

using text::Member;
using text::Value;

Value event_to_core(text::Editor& edit, const Value& event);    // from events.k8s.io/v1
Value event_from_core(text::Editor& edit, const Value& event);  // to events.k8s.io/v1

// The core name of a field that events.k8s.io selects by: "regarding.name" is
// "involvedObject.name".
std::string event_field_to_core(std::string_view path);

}  // namespace berth::sim::api
