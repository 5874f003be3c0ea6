// Where a server of ours listens, as options name it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace berth::app {

// "host:port", "[::1]:9443", ":9443" for every address of this machine, IPv6 and IPv4.
struct HostPort {
  std::string host;  // "": every address
  std::uint16_t port = 0;
};
Result<HostPort> parse_host_port(const std::string& text);

}  // namespace berth::app
