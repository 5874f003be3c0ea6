#include "base/shared_map.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/random.h"

namespace berth {
namespace {

TEST(SharedMap, ACopyAndItsOriginalGoTheirOwnWays) {
  SharedMap<int> map;
  map.put("a", 1);
  map.put("b", 2);
  SharedMap<int> copy = map;
  copy.put("a", 10);
  copy.erase("b");
  map.put("c", 3);
  ASSERT_NE(map.find("a"), nullptr);
  EXPECT_EQ(*map.find("a"), 1);
  EXPECT_NE(map.find("b"), nullptr);
  EXPECT_EQ(*copy.find("a"), 10);
  EXPECT_EQ(copy.find("b"), nullptr);
  EXPECT_EQ(copy.find("c"), nullptr);
  copy.put("b", 20);
  EXPECT_EQ(*copy.find("b"), 20);
  EXPECT_EQ(*map.find("b"), 2);
}

// Copies come and go, so that changes are kept beside, become one with the rest, or are dropped.
TEST(SharedMap, IsAMapWhateverCopiesThereAre) {
  Random random(7);
  std::vector<std::pair<SharedMap<int>, std::map<std::string, int>>> maps(1);
  for (int step = 0; step < 40'000; ++step) {
    auto& [map, want] = maps[random.below(maps.size())];
    const std::string key = "key-" + std::to_string(random.below(300));
    if (random.chance(2, 3)) {
      map.put(key, step);
      want[key] = step;
    } else {
      map.erase(key);
      want.erase(key);
    }
    const std::string asked = "key-" + std::to_string(random.below(300));
    const int* found = map.find(asked);
    const auto it = want.find(asked);
    ASSERT_EQ(found == nullptr, it == want.end()) << "step " << step;
    if (found != nullptr) {
      ASSERT_EQ(*found, it->second) << "step " << step;
    }
    if (random.chance(1, 200) && maps.size() < 4) maps.push_back(maps[random.below(maps.size())]);
    if (random.chance(1, 300) && maps.size() > 1) maps.erase(maps.begin());
  }
}

}  // namespace
}  // namespace berth
