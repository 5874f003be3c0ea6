#include "base/round_robin.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace berth {
namespace {

TEST(RoundRobin, WhoBringsMuchDoesNotKeepOthersWaiting) {
  RoundRobin<std::string> line;
  for (int i = 0; i < 1000; ++i) line.push("flood", "f" + std::to_string(i));
  line.push("quiet", "q0");
  line.push("quiet", "q1");
  std::vector<std::string> out;
  for (int i = 0; i < 5; ++i) out.push_back(line.pop());
  EXPECT_EQ(out, (std::vector<std::string>{"f0", "q0", "f1", "q1", "f2"}));
  line.push("quiet", "q2");  // at the end of the order again, and two turns away
  EXPECT_EQ(line.pop(), "f3");
  EXPECT_EQ(line.pop(), "q2");
  EXPECT_EQ(line.size(), 996u);
}

TEST(RoundRobin, NothingIsLostOrKept) {
  RoundRobin<std::unique_ptr<int>> line;
  for (int i = 0; i < 100; ++i) {
    line.push(std::string(1, static_cast<char>('a' + i % 7)), std::make_unique<int>(i));
  }
  int sum = 0;
  while (!line.empty()) sum += *line.pop();
  EXPECT_EQ(sum, 4950);
  line.push("a", std::make_unique<int>(1));
  line.clear();
  EXPECT_TRUE(line.empty());
  line.push("a", std::make_unique<int>(2));
  EXPECT_EQ(*line.pop(), 2);
}

}  // namespace
}  // namespace berth
