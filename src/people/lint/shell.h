// Commands of a shell script: their words, and where each stands.
//
// Enough for scripts that install things: quotes, backslashes, line continuations, comments,
// separators, here documents (skipped) and $(...), which stays in its word as it is. Nothing is
// expanded. Only check_script.cc uses it. Cost: one pass.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::lint {

struct ShellWord {
  std::string text;  // without its quotes
  std::size_t begin = 0, end = 0;
};
using ShellCommand = std::vector<ShellWord>;

std::vector<ShellCommand> shell_commands(std::string_view script);
// Where a here document begins whose end never comes.
std::optional<std::size_t> open_here_document(std::string_view script);

}  // namespace berth::lint
