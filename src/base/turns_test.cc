#include "base/turns.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace berth {
namespace {

TEST(Turns, WhoBringsMuchDoesNotKeepOthersWaiting) {
  Turns<std::string> turns;
  for (int i = 0; i < 1000; ++i) turns.push("flood", "f" + std::to_string(i));
  turns.push("quiet", "q0");
  turns.push("quiet", "q1");
  std::vector<std::string> out;
  for (int i = 0; i < 5; ++i) out.push_back(turns.pop());
  EXPECT_EQ(out, (std::vector<std::string>{"f0", "q0", "f1", "q1", "f2"}));
  turns.push("quiet", "q2");  // at the end of the order again, and two turns away
  EXPECT_EQ(turns.pop(), "f3");
  EXPECT_EQ(turns.pop(), "q2");
  EXPECT_EQ(turns.size(), 996u);
}

TEST(Turns, NothingIsLostOrKept) {
  Turns<std::unique_ptr<int>> turns;
  for (int i = 0; i < 100; ++i) {
    turns.push(std::string(1, static_cast<char>('a' + i % 7)), std::make_unique<int>(i));
  }
  int sum = 0;
  while (!turns.empty()) sum += *turns.pop();
  EXPECT_EQ(sum, 4950);
  turns.push("a", std::make_unique<int>(1));
  turns.clear();
  EXPECT_TRUE(turns.empty());
  turns.push("a", std::make_unique<int>(2));
  EXPECT_EQ(*turns.pop(), 2);
}

}  // namespace
}  // namespace berth
