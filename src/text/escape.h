// Text from strangers, made safe to show.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace berth::text {

// What a terminal could act on becomes visible: control characters (ESC included) and DEL as \n, \t
// or \x1b; C1 controls, bidirectional overrides, invisible and line-breaking characters as \u202e;
// bytes that are not UTF-8 as \xff. Everything else, the backslash too, stays. Applying it twice
// changes nothing.
std::string terminal_safe(std::string_view text);

// At most width columns of a terminal (text/columns.h): the middle gives way to one "…", so that
// both ends of a long name can be read. Invalid bytes count as a character each and are kept.
std::string elide_middle(std::string_view text, std::size_t width);

}  // namespace berth::text
