#include "app/host_port.h"

#include <gtest/gtest.h>

namespace berth::app {
namespace {

TEST(HostPort, IsReadWholeOrNotAtAll) {
  const auto at = [](const std::string& text) {
    const Result<HostPort> place = parse_host_port(text);
    return place.ok() ? place->host + ' ' + std::to_string(place->port) : "";
  };
  EXPECT_EQ(at("localhost:80"), "localhost 80");
  EXPECT_EQ(at("[::1]:9443"), "::1 9443");
  EXPECT_EQ(at(":9443"), " 9443");
  for (const char* bad : {"", "host", "host:", "host:x", "host:65536", "host:1x", "host:-1"}) {
    EXPECT_EQ(at(bad), "") << bad;
  }
}

}  // namespace
}  // namespace berth::app
