#include "base/result.h"

namespace berth {

std::string_view name(Code code) {
  switch (code) {
    case Code::kInvalid:
      return "invalid";
    case Code::kNotFound:
      return "not found";
    case Code::kConflict:
      return "conflict";
    case Code::kExhausted:
      return "exhausted";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kInternal:
      return "internal";
  }
  return "unknown";
}

std::string Error::to_string() const {
  std::string out;
  for (auto it = contexts_.rbegin(); it != contexts_.rend(); ++it) {
    out += *it;
    out += ": ";
  }
  return out += message_;
}

}  // namespace berth
