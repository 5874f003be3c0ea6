#include "app/host_port.h"

#include <charconv>

namespace berth::app {

Result<HostPort> parse_host_port(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  HostPort out;
  if (colon == std::string::npos) return invalid("found \"" + text + "\", want HOST:PORT");
  out.host = text.substr(0, colon);
  if (out.host.size() >= 2 && out.host.front() == '[' && out.host.back() == ']') {
    out.host = out.host.substr(1, out.host.size() - 2);
  }
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data() + colon + 1, end, out.port);
  if (code != std::errc() || stop != end) {
    return invalid("found \"" + text + "\", want HOST:PORT with a port of 0..65535");
  }
  return out;
}

}  // namespace berth::app
