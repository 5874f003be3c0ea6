// The word somebody meant: of some names the one that is written most like another.
//
// Pure; costs the product of both lengths for each name, names beyond 256 bytes are left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::text {

// Letters to change, add, drop or swap with the next to make b of a, whatever their case; limit + 1
// where it is more than limit.
std::size_t edits_between(std::string_view a, std::string_view b, std::size_t limit);

// The nearest of the names, the first of equals; empty where none is near: at most a third of the
// word may differ, or one must be the beginning or the end of the other. The word itself is no
// answer.
std::string nearest(std::string_view word, const std::vector<std::string>& names);

}  // namespace berth::text
