// SHA-256 (FIPS 180-4), for telling whether a text is the one that was written: where strangers may
// write both, and a plain hash could be met.
#pragma once

#include <string>
#include <string_view>

namespace berth {

std::string sha256_hex(std::string_view text);  // 64 lower-case digits

}  // namespace berth
