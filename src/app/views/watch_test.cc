#include "app/views/watch.h"

#include <gtest/gtest.h>

#include <sstream>

namespace berth::app {
namespace {

struct Looked {
  int code = 0;
  std::string out;
};

// Looks as often as there are screens; a screen that begins with ! fails with that code.
Looked look_at(const std::vector<std::pair<std::string, int>>& screens, bool terminal_out,
               int rows = 0) {
  std::istringstream in;
  std::ostringstream out, err;
  FakeClock clock(0);
  Terminal terminal{.in = in,
                    .out = out,
                    .err = err,
                    .out_is_terminal = terminal_out,
                    .wall = clock,
                    .monotonic = clock,
                    .rows = [rows] { return rows; }};
  std::size_t at = 0;
  Looked looked;
  looked.code = watch_until(
      {.on = true}, terminal,
      [&](Terminal& inner) {
        inner.out << screens[at].first;
        return screens[at].second;
      },
      [&] { return ++at < screens.size(); });
  looked.out = out.str();
  return looked;
}

TEST(Watch, APipeGetsWhatChanged) {
  const Looked looked = look_at({{"a\n", 0}, {"a\n", 0}, {"", 1}, {"a\n", 0}, {"b\n", 10}}, false);
  EXPECT_EQ(looked.out, "a\n\nb\n");
  EXPECT_EQ(looked.code, 10);
}

TEST(Watch, ATerminalIsDrawnAnewInPlace) {
  const Looked looked = look_at({{"a\nb\n", 0}, {"c\n", 0}}, true);
  EXPECT_EQ(looked.out, "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J\x1b[Hc\x1b[K\n\x1b[J");
}

TEST(Watch, WhatIsHigherThanTheWindowIsCut) {
  const Looked looked = look_at({{"1\n2\n3\n4\n5\n", 0}}, true, 4);
  EXPECT_EQ(looked.out, "\x1b[H1\x1b[K\n2\x1b[K\n+3 lines below the window\x1b[K\n\x1b[J");
}

TEST(Watch, AWrongQuestionEndsIt) {
  EXPECT_EQ(look_at({{"", kExitNothing}, {"a\n", 0}}, false).code, kExitNothing);
  EXPECT_EQ(look_at({{"a\n", 0}, {"", kExitUsage}, {"b\n", 0}}, false).out, "a\n");
}

}  // namespace
}  // namespace berth::app
