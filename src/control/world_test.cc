#include "control/world.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "text/json.h"

namespace berth::control {
namespace {

// A tenant whose pods come and go, each with keys that nobody ever used: what is kept of them does
// not grow without end.
TEST(World, WordsOfPodsThatAreGoneAreForgotten) {
  World world({"berth"}, 1, {});
  std::vector<kinds::Note> refused, unread;
  world.refresh(refused, unread);
  const std::uint64_t before = world.rebuilds();
  constexpr int kPods = 60, kKeys = 4'000;
  for (int p = 0; p < kPods; ++p) {
    std::string keys;
    for (int k = 0; k < kKeys; ++k) {
      keys += fmt::format(R"({}"made.up/{}-{}":"x")", k == 0 ? "" : ",", p, k);
    }
    const auto pod = text::parse_json(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"a","uid":"u"},)"
        R"("spec":{"schedulerName":"berth","nodeSelector":{)" +
        keys + R"(},"containers":[{"name":"c","image":"i"}]}})");
    ASSERT_TRUE(pod.ok());
    world.put("v1", "Pod", pod->root());
    world.refresh(refused, unread);
  }
  EXPECT_TRUE(refused.empty());
  EXPECT_EQ(world.rebuilds(), before + 2) << "now and then it starts over";
  EXPECT_LT(world.builder().book().words(), std::size_t{110'000});
}

}  // namespace
}  // namespace berth::control
