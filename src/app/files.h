// Small files of our own: read whole within a bound, replaced as a whole.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::app {

// Code::kNotFound when there is none; more than max_bytes is Code::kExhausted.
Result<std::string> read_file(const std::string& path, std::size_t max_bytes = 16 << 20);
// Readers see the old content or the new one, never a part. Only the owner may read it.
Status replace_file(const std::string& path, std::string_view content);
// What somebody wants in a file. One that is there keeps its rights, and a link stays a link; a new
// one gets those of mode that the umask leaves. Devices and pipes are written to. Unlike the above
// it makes no folder.
Status write_output(const std::string& path, std::string_view content, int mode = 0666);
// With its parents; fine when it is there. Only the owner may enter a new one.
Status make_folder(const std::string& path);
std::string absolute_path(const std::string& path);
// Bytes that nobody can guess, as hex digits: for tokens.
Result<std::string> secret_hex(std::size_t bytes);

}  // namespace berth::app
