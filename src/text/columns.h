// How wide text is on a terminal.
//
// Wide characters (East Asian scripts, emoji) take two columns, marks that stand on the character
// before them none. Rarer marks count as one: text is never wider than told, as far as terminals
// agree among themselves. Give it text that is safe to show (text/escape.h); a byte that is not
// UTF-8 counts as a character. Pure; O(n).
#pragma once

#include <cstddef>
#include <string_view>

namespace berth::text {

std::size_t columns_of(std::string_view text);

// The longest start of text that takes at most so many columns; marks stay with their character.
std::string_view first_columns(std::string_view text, std::size_t columns);
// The same from the end; it does not begin with a mark.
std::string_view last_columns(std::string_view text, std::size_t columns);

}  // namespace berth::text
