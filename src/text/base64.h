// RFC 4648 base64 with padding, the form of kubeconfig data and of Secret values.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::text {

std::string base64_encode(std::string_view bytes);
// Line breaks are skipped; anything else outside the alphabet, and wrong padding, is refused.
Result<std::string> base64_decode(std::string_view text);

}  // namespace berth::text
