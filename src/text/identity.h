// A text that two values share exactly when equal() calls them the same: for finding equal values
// among many without comparing each with each.
//
// Cost: the size of the value; members of objects are sorted.
#pragma once

#include <string>

#include "text/value.h"

namespace berth::text {

std::string identity_of(const Value& value);

}  // namespace berth::text
