// Lines of at most 80 columns for tables of people/why/.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace berth::people {

inline constexpr std::size_t kColumns = 80;

// Keeps a name and its number on one line; printed as a blank.
std::string glued(std::string_view text);
// Wraps at blanks; the first line begins with head, later ones with hang blanks. What is glued and
// longer than a line is parted after all, and a word that is goes on in the next line. Lines are
// never longer than kColumns where head and hang leave room for a wide character.
void wrap(std::string head, std::size_t hang, const std::string& body, std::string& out);

}  // namespace berth::people
