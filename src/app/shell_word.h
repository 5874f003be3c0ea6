// A word of a command that people paste.
#pragma once

#include <string>

namespace berth::app {

std::string shell_word(const std::string& word);  // quoted for a shell when it needs to be

}  // namespace berth::app
